//! What the demo plays on: the servers, the operator, the two Helms, and ways to look.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use belay_api::{Release, ReleaseTarget, conditions::find};
use belay_components::{Binary, Component, Components};
use belay_testkit::{
    Cluster,
    cluster::Options as ClusterOptions,
    github::{GitHub, LimitSettings, NewRelease, Rights},
    keda::Keda,
    operator::{HostedOperator, Installation},
    registry::Registry,
    tool::{Finished, Tool},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Secret},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, PostParams},
};
use serde_json::json;

use super::{Options, existing::Existing, tell};
use crate::{
    helms::{self, Major, WEB, suite},
    programs::beside_test,
    rollouts::objects::version,
};

/// The repository on GitHub.
const REPO: &str = "acme/web";
/// The namespace of the operator.
pub(super) const HOME: &str = "belay-system";
/// The namespace of the web service.
pub(super) const SHOP: &str = "shop";

/// Everything that runs.
pub(super) struct Stage {
    // Dropped in this order: the operator before what it speaks to.
    operator: HostedOperator<'static>,
    _keda: Option<Keda>,
    registry: Registry,
    github: GitHub,
    cluster: &'static Cluster,
    is_existing: bool,
    pub(super) client: Client,
}

impl Stage {
    /// Starts all of it: in a cluster of its own, or beside one that is there.
    pub(super) async fn set(options: &Options, existing: Option<&Existing>) -> Result<Self> {
        tell::title("The stage");
        let cluster = match existing {
            Some(existing) => existing.cluster,
            None => own().await?,
        };
        let client = cluster.admin()?;
        let keda = match existing {
            Some(existing) if existing.has_keda() => None,
            _ => Some(Keda::start(cluster).await?),
        };
        let registry = Registry::start(cluster).await?;
        let github = GitHub::start().await?;
        github.create_repository(REPO)?;
        github.set_limits(LimitSettings::off())?;
        for namespace in [HOME, SHOP] {
            let tool = cluster.tool(Binary::Kubectl)?.args(["create", "namespace", namespace]);
            tool.ok().await?;
        }
        let token = github.create_token("demo", &Rights::read([REPO]))?;
        let secret = Secret {
            metadata: ObjectMeta { name: Some("github".to_owned()), ..ObjectMeta::default() },
            string_data: Some([("token".to_owned(), token)].into()),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::namespaced(client.clone(), HOME);
        secrets.create(&PostParams::default(), &secret).await?;
        tell::say(
            "Helm installs charts/belay. The program of that Deployment runs as a process of this \
             machine, with the command, the environment and the ServiceAccount of the chart.",
        );
        let mut values = json!({
            "github": { "url": github.base_url(), "tokenSecret": { "name": "github" } },
            // Within an hour of success Helm's return would be taken for a rollback by hand.
            "revertWindow": "0s",
            "pollInterval": if options.fast { "1s" } else { "10s" },
            "allowHosts": [format!("http://{}", registry.host())],
        });
        if let Some(existing) = existing {
            existing.adjust(&mut values);
        }
        tell::command("helm install belay charts/belay --namespace belay-system --wait");
        let operator = HostedOperator::install(cluster, HOME, Installation::new(values)).await?;
        tell::fact("belay-operator is ready");
        let is_existing = existing.is_some();
        Ok(Self { operator, _keda: keda, registry, github, cluster, is_existing, client })
    }

    /// Says how to reach it, and waits for Ctrl-C.
    pub(super) async fn keep(&self) -> Result<()> {
        tell::title("It stays up until Ctrl-C");
        let folder = programs()?;
        println!("  export KUBECONFIG={}", self.cluster.admin_kubeconfig().display());
        println!("  export PATH={}:$PATH", folder.display());
        println!("  kubectl release status {WEB} -n {SHOP}\n");
        tokio::signal::ctrl_c().await.context("wait for Ctrl-C")
    }

    /// The image of a tag.
    pub(super) fn image(&self, tag: &str) -> String {
        format!("{}:{tag}", self.repository())
    }

    fn repository(&self) -> String {
        format!("{}/web", self.registry.host())
    }

    /// Pushes the image and publishes the release of a version.
    pub(super) async fn publish(&self, version: &str) -> Result<()> {
        self.push(version).await?;
        self.github.publish(REPO, NewRelease::new(format!("v{version}")))?;
        tell::say(&format!("acme/web publishes v{version} on GitHub."));
        Ok(())
    }

    /// Pushes the image of a version.
    pub(super) async fn push(&self, version: &str) -> Result<()> {
        self.registry.push("web", &version.replace('+', "_")).await?;
        Ok(())
    }

    /// Runs Helm on the chart of the web service, and shows the command.
    pub(super) async fn helm(&self, major: Major, verb: &str, more: &str) -> Result<Finished> {
        let number = if major == Major::Three { 3 } else { 4 };
        tell::command(&format!("helm{number} {verb} {WEB} ./chart {more}"));
        let state = self.cluster.run().folder().join("state");
        let tool = helms::helm(self.cluster, major, &state).await?;
        let tool = tool.args([verb, WEB]).arg(suite("charts/demo")).args(more.split_whitespace());
        let repository = format!("image.repository={}", self.repository());
        Ok(tool.args(["--set", &repository, "--namespace", SHOP]).run().await?)
    }

    /// Runs `kubectl WORDS` in the namespace, and shows command and output.
    pub(super) async fn kubectl(&self, words: &str) -> Result<Finished> {
        tell::command(&format!("kubectl {words}"));
        let ran = self.quietly(words)?.run().await?;
        tell::output(&format!("{}{}", ran.stdout, ran.stderr));
        Ok(ran)
    }

    fn quietly(&self, words: &str) -> Result<Tool> {
        let mut path = vec![programs()?];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let tool = self.cluster.tool(Binary::Kubectl)?.args(words.split_whitespace());
        Ok(tool.args(["--namespace", SHOP]).env("PATH", std::env::join_paths(path)?))
    }

    pub(super) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), SHOP)
    }

    /// Objects of another kind of the namespace.
    pub(super) fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), SHOP, &kind)
    }

    /// The live image.
    pub(super) async fn live(&self) -> Result<String> {
        let web = self.deployments().get(WEB).await.context("read Deployment web")?;
        let pod = web.spec.and_then(|spec| spec.template.spec).context("no pod template")?;
        pod.containers.into_iter().next().and_then(|one| one.image).context("no image")
    }

    /// Waits until a version is live, and its Release is healthy.
    pub(super) async fn healthy(&self, version: &str) -> Result<()> {
        let image = self.image(version);
        self.wait(&format!("v{version} to be live and healthy"), || async {
            let live = self.live().await?;
            ensure!(live == image, "{live} is live");
            let release = self.release(version).await?.context("no such Release")?;
            let status = release.status.unwrap_or_default();
            let healthy = find(&status.conditions, "Healthy").context("no condition Healthy")?;
            ensure!(healthy.status == "True", "{} {}", healthy.status, healthy.reason);
            Ok(())
        })
        .await
    }

    /// Waits until Belay says this of the workload: the reason of one of its conditions.
    pub(super) async fn says(&self, reason: &str) -> Result<()> {
        let api: Api<ReleaseTarget> = Api::namespaced(self.client.clone(), SHOP);
        self.wait(&format!("Belay to say {reason}"), || async {
            let status = api.get(WEB).await?.status.unwrap_or_default();
            let reasons: Vec<_> = status.conditions.iter().map(|one| &one.reason).collect();
            ensure!(reasons.iter().any(|it| *it == reason), "it says {reasons:?}");
            Ok(())
        })
        .await
    }

    /// The Release of a version.
    pub(super) async fn release(&self, version: &str) -> Result<Option<Release>> {
        let api: Api<Release> = Api::namespaced(self.client.clone(), SHOP);
        let id = format!("v{version}");
        let all = api.list(&ListParams::default()).await.context("list Releases")?;
        Ok(all.items.into_iter().find(|one| one.config().revisions.iter().any(|it| it.id == id)))
    }

    /// Waits until `look` finds what it wants; the error ends with the operator's log.
    pub(super) async fn wait<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let found = wait::until(what, 2 * wait::SOON, || {
            let look = look();
            async move { look.await.map_err(|error| format!("{error:#}")) }
        })
        .await;
        let Err(error) = found else { return Ok(found?) };
        let log = self.operator.logs().unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let nodes = self.nodes().await;
        bail!("{error}{nodes}\nthe operator's last words:\n{}", last.join("\n"))
    }

    /// What is wrong with the nodes of an existing cluster, if that is why nothing moves.
    async fn nodes(&self) -> &'static str {
        match self.pods().await {
            Ok(pods) if self.is_existing && !pods.iter().any(is_ready) => {
                "\nno pod of the web service is ready: the demo needs a cluster whose nodes are played by kwok, as \
                 `cargo xtask cluster up` starts it, for its images hold no program"
            }
            _ => "",
        }
    }

    /// The pods that are there.
    pub(super) async fn pods(&self) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), SHOP);
        let all = api.list(&ListParams::default().labels(&format!("app={WEB}"))).await?;
        Ok(all.items)
    }

    /// A variable of the container, by which one sees that the rest of an upgrade took place.
    pub(super) async fn motd(&self) -> Result<String> {
        let web = self.deployments().get(WEB).await.context("read Deployment web")?;
        let pod = web.spec.and_then(|spec| spec.template.spec).context("no pod template")?;
        let variables = pod.containers.into_iter().next().and_then(|one| one.env);
        let motd = variables.into_iter().flatten().find(|one| one.name == "MOTD");
        motd.and_then(|one| one.value).context("no variable MOTD")
    }

    /// The resourceVersion of the Deployment.
    pub(super) async fn version(&self) -> Result<u64> {
        let web = self.deployments().get(WEB).await.context("read Deployment web")?;
        version(web.metadata.resource_version.as_deref())
    }
}

/// A cluster of the demo's own, which lives as long as the program, whose end ends it.
async fn own() -> Result<&'static Cluster> {
    let components = Components::from_env()?;
    let kubernetes = components.version(Component::Kubernetes)?;
    tell::say(&format!(
        "Starting etcd, kube-apiserver {kubernetes}, its controllers, one node, KEDA and a registry. Nothing here \
         runs containers: kwok plays the node, and GitHub is scripted. All else is real."
    ));
    let options = ClusterOptions { components: Some(components), ..ClusterOptions::default() };
    Ok(Box::leak(Box::new(Cluster::start(options).await?)))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// The folder of the plugin, for `PATH`.
fn programs() -> Result<PathBuf> {
    let plugin = beside_test("kubectl-release")?;
    Ok(plugin.parent().context("the plugin lies in no folder")?.to_owned())
}

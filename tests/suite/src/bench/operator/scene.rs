//! A control plane with many targets, a GitHub, a registry, and the operator's program beside them.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use belay_api::{AnnotationPrefix, Release, crd};
use belay_testkit::{
    Cluster,
    cluster::Options,
    github::{GitHub, LimitSettings, NewRelease, Rights},
    objects::{ScaledObject, Workload},
    process::Process,
    registry::Registry,
    wait,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    },
};
use serde_json::json;

use crate::programs::Programs;

/// How long things of this size may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
/// Requests of the bench itself that are under way at a time.
const AT_ONCE: usize = 16;

/// The first target.
pub(super) const WEB: &str = "web-0";

/// How large it is, and how the operator runs.
pub(super) struct Size {
    /// Targets.
    pub(super) targets: usize,
    /// Repositories that they follow.
    pub(super) repositories: usize,
    /// Options of `belay-operator run` beyond where things are.
    pub(super) options: Vec<String>,
    /// How long success must hold, in seconds.
    pub(super) bake: u32,
}

/// All of it.
pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    pub(super) github: GitHub,
    registry: Registry,
    size: Size,
    token: tempfile::NamedTempFile,
    namespaces: Vec<String>,
}

impl Scene {
    /// Targets that run `v1.0.0` and are complete; no operator yet.
    pub(super) async fn start(size: Size) -> Result<Self> {
        let cluster = Cluster::start(Options::default()).await?;
        cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await?;
        let registry = Registry::start(&cluster).await?;
        let github = GitHub::start().await?;
        github.set_limits(LimitSettings::default())?;
        let repos: Vec<String> = (0..size.repositories).map(repo).collect();
        for repo in &repos {
            github.create_repository(repo)?;
        }
        let token = tempfile::NamedTempFile::new()?;
        let rights = Rights::read(repos.iter().map(String::as_str));
        std::fs::write(token.path(), github.create_token("bench", &rights)?)?;
        let client = cluster.admin()?;
        let mut namespaces = Vec::new();
        for _ in 0..size.targets.div_ceil(100) {
            namespaces.push(cluster.namespace("bench").await?);
        }
        let scene = Self { cluster, client, github, registry, size, token, namespaces };
        scene.release("v1.0.0").await?;
        stream::iter(0..scene.size.targets)
            .map(|number| scene.create(number))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        scene.complete("1.0.0").await?;
        Ok(scene)
    }

    /// Pushes the images of a release of every repository, and publishes it there.
    pub(super) async fn release(&self, tag: &str) -> Result<()> {
        self.push(tag).await?;
        self.publish(tag)
    }

    /// Pushes the images alone.
    pub(super) async fn push(&self, tag: &str) -> Result<()> {
        for number in 0..self.size.repositories {
            self.registry.push(&repo(number), &image_tag(tag)).await?;
        }
        Ok(())
    }

    /// Publishes the release alone.
    pub(super) fn publish(&self, tag: &str) -> Result<()> {
        for number in 0..self.size.repositories {
            self.github.publish(&repo(number), NewRelease::new(tag))?;
        }
        Ok(())
    }

    async fn create(&self, number: usize) -> Result<()> {
        let repo = repo(number % self.size.repositories);
        let image = format!("{}/{repo}:1.0.0", self.registry.host());
        let workload = Workload::deployment(&format!("web-{number}"))
            .replicas(1)
            .image("app", &image)
            .annotation("belay.dev/repo", &repo)
            .annotation("belay.dev/bake", &format!("{}s", self.size.bake));
        let deployment: Deployment = serde_json::from_value(workload.json().clone())?;
        // Whom the operator may take the image from without being asked.
        let field_manager = Some("helm".to_owned());
        let installs = PostParams { field_manager, ..PostParams::default() };
        self.deployments(number).create(&installs, &deployment).await?;
        Ok(())
    }

    fn deployments(&self, number: usize) -> Api<Deployment> {
        let namespace = &self.namespaces[number / 100];
        Api::namespaced(self.client.clone(), namespace)
    }

    /// All Deployments.
    pub(super) async fn all(&self) -> Result<Vec<Deployment>> {
        let api: Api<Deployment> = Api::all(self.client.clone());
        Ok(api.list(&ListParams::default()).await?.items)
    }

    /// Waits until every Deployment runs an image tag and is complete.
    pub(super) async fn complete(&self, tag: &str) -> Result<Instant> {
        wait::until(&format!("{} Deployments of {tag}", self.size.targets), PATIENCE, || async {
            let all = self.all().await.map_err(|error| format!("{error:#}"))?;
            let done = all.iter().filter(|one| is_complete(one, tag)).count();
            if done == self.size.targets { Ok(Instant::now()) } else { Err(format!("{done}")) }
        })
        .await
        .map_err(Into::into)
    }

    /// Waits until a Deployment's image has this tag, complete or not.
    pub(super) async fn runs(&self, tag: &str) -> Result<Instant> {
        wait::until(&format!("an image with the tag {tag}"), PATIENCE, || async {
            let all = self.all().await.map_err(|error| format!("{error:#}"))?;
            let runs = all.iter().any(|one| has_tag(one, tag));
            if runs { Ok(Instant::now()) } else { Err("another one".to_owned()) }
        })
        .await
        .map_err(Into::into)
    }

    /// Waits until the Releases of a tag are healthy on every target.
    pub(super) async fn healthy(&self, tag: &str) -> Result<Instant> {
        let api: Api<Release> = Api::all(self.client.clone());
        wait::until(&format!("{} healthy Releases", self.size.targets), PATIENCE, || async {
            let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let of_tag = all.items.iter().filter(|release| {
                release.config().revisions.iter().any(|revision| revision.id == tag)
            });
            let healthy: BTreeSet<_> = of_tag
                .filter(|release| {
                    let conditions = release.status.iter().flat_map(|status| &status.conditions);
                    conditions.into_iter().any(|one| one.type_ == "Healthy" && one.status == "True")
                })
                .map(|release| (release.metadata.namespace.clone(), release.metadata.name.clone()))
                .collect();
            let found = healthy.len();
            if found == self.size.targets { Ok(Instant::now()) } else { Err(format!("{found}")) }
        })
        .await
        .map_err(Into::into)
    }

    /// Sets an annotation of the first target, or removes it.
    pub(super) async fn annotate(&self, key: &str, value: Option<&str>) -> Result<()> {
        let patch = json!({ "metadata": { "annotations": { format!("belay.dev/{key}"): value } } });
        let api = self.deployments(0);
        api.patch(WEB, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    fn scaled_object_api(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledObject");
        let kind = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), &self.namespaces[0], &kind)
    }

    /// So many ScaledObjects, of which the first scales the first target.
    pub(super) async fn scaled_objects(&self, count: usize) -> Result<()> {
        let api = &self.scaled_object_api();
        stream::iter(0..count)
            .map(|number| async move {
                let object = ScaledObject::of(&format!("web-{number}"));
                let params = PatchParams::apply("bench");
                api.patch(object.name(), &params, &Patch::Apply(object.json())).await
            })
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| std::future::ready(Ok(())))
            .await?;
        Ok(())
    }

    /// Waits until KEDA has made the HPA of the first target.
    pub(super) async fn scaled(&self) -> Result<()> {
        let api = self.scaled_object_api();
        wait::until("KEDA to have made an HPA", PATIENCE, || async {
            let object = api.get(WEB).await.map_err(|error| error.to_string())?;
            let name = object.data.pointer("/status/hpaName").and_then(|name| name.as_str());
            name.map(drop).ok_or_else(|| object.data["status"].to_string())
        })
        .await
        .map_err(Into::into)
    }

    /// Waits until there is a Release of a tag.
    pub(super) async fn begins(&self, tag: &str) -> Result<Instant> {
        let api: Api<Release> = Api::all(self.client.clone());
        wait::until(&format!("a Release of {tag}"), PATIENCE, || async {
            let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_it = |release: &Release| {
                release.config().revisions.iter().any(|revision| revision.id == tag)
            };
            if all.items.iter().any(is_it) { Ok(Instant::now()) } else { Err("none".to_owned()) }
        })
        .await
        .map_err(Into::into)
    }

    /// Starts the program; returns it once it is ready, with the time that took.
    pub(super) async fn operator(&self) -> Result<(Process, Duration)> {
        let (health, admin) = (free_port()?, free_port()?);
        let kubeconfig = self.cluster.write_kubeconfig("operator", self.cluster.admin_access())?;
        let mut command = Command::new(Programs::find()?.path("belay-operator")?);
        command
            .env("KUBECONFIG", kubeconfig)
            .args(["run", "--namespace", &self.namespaces[0]])
            .args(["--github-url", self.github.base_url()])
            .arg("--github-token-file")
            .arg(self.token.path())
            .args(["--allow-host", &format!("http://{}", self.registry.host())])
            .args(["--health-bind", &format!("127.0.0.1:{health}")])
            .args(["--admin-bind", &format!("127.0.0.1:{admin}")])
            .args(&self.size.options);
        let http = reqwest::Client::new();
        let url = format!("http://127.0.0.1:{health}/readyz");
        let begun = Instant::now();
        let process = self.cluster.run().spawn("belay-operator", command)?;
        process
            .ready(PATIENCE, || async {
                let answer = http.get(&url).send().await.map_err(|error| error.to_string())?;
                if answer.status().is_success() {
                    return Ok(());
                }
                Err(answer.text().await.unwrap_or_default())
            })
            .await?;
        Ok((process, begun.elapsed()))
    }
}

/// Whether a Deployment's image has a tag.
pub(super) fn has_tag(deployment: &Deployment, tag: &str) -> bool {
    let spec = deployment.spec.as_ref();
    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
    let image = pod.and_then(|pod| pod.containers.first()?.image.as_deref());
    image.is_some_and(|image| image.ends_with(&format!(":{tag}")))
}

fn is_complete(deployment: &Deployment, tag: &str) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    has_tag(deployment, tag)
        && status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas == Some(1)
        && status.replicas == Some(1)
        && status.available_replicas == Some(1)
}

fn repo(number: usize) -> String {
    format!("acme/web-{number}")
}

fn image_tag(tag: &str) -> String {
    tag.trim_start_matches('v').replace('+', "_")
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

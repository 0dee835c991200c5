//! A namespace of its own on the control plane that all tests share, with a GitHub and a registry.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use belay_api::{AnnotationPrefix, Release, ReleaseTarget, Rollback, crd};
use belay_testkit::{
    Cluster,
    cluster::{Options, identity::Access},
    github::{GitHub, LimitSettings, NewRelease, Rights},
    keda::Keda,
    objects::Workload,
    registry::Registry,
    wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{Running, Wiring, policies, views::describe};

/// The repository on GitHub.
const REPO: &str = "acme/web";
/// The container that is moved.
const CONTAINER: &str = "app";

/// What all tests of a process share.
pub struct World {
    /// The control plane, with Belay's CRDs.
    pub cluster: &'static Cluster,
    /// The registry.
    pub registry: Registry,
    /// The operator's access: every right, under the admission policies of the chart.
    pub operator: Access,
}

/// That of a process's tests.
static WORLD: OnceCell<World> = OnceCell::const_new();

impl World {
    /// The one of this process.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn shared() -> Result<&'static Self> {
        let start = || async { Self::on(Cluster::shared().await?).await };
        WORLD.get_or_try_init(start).await
    }

    /// The one of this process, which serves KEDA's objects if this is asked for before anything else
    /// is: all tests of a process have it in the same way.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn with_keda() -> Result<&'static Self> {
        let start = || async {
            let cluster = Cluster::shared().await?;
            Keda::apply_crds(cluster).await?;
            Self::on(cluster).await
        };
        WORLD.get_or_try_init(start).await
    }

    /// One with a control plane of its own, until the process ends: for tests that change what all
    /// namespaces share.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn apart() -> Result<&'static Self> {
        Self::apart_with(Options::default()).await
    }

    /// The same, with a control plane that is started in another way.
    ///
    /// # Errors
    /// What could not be started.
    pub async fn apart_with(options: Options) -> Result<&'static Self> {
        let cluster = Box::leak(Box::new(Cluster::start(options).await?));
        Ok(Box::leak(Box::new(Self::on(cluster).await?)))
    }

    async fn on(cluster: &'static Cluster) -> Result<Self> {
        cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await?;
        let (registry, operator) = tokio::try_join!(
            async { Ok(Registry::start(cluster).await?) },
            policies::install(cluster)
        )?;
        Ok(Self { cluster, registry, operator })
    }
}

/// A namespace, a repository, and a Deployment `web`.
pub struct Bed {
    /// The world around it.
    pub world: &'static World,
    /// Its namespace.
    pub namespace: String,
    /// Its GitHub.
    pub github: Arc<GitHub>,
    /// A client with all rights.
    pub client: Client,
    /// The file of a token for GitHub.
    pub token: tempfile::NamedTempFile,
}

impl Bed {
    /// An empty namespace, and a repository without releases.
    ///
    /// # Errors
    /// What could not be had.
    pub async fn new(prefix: &str) -> Result<Self> {
        Self::in_world(World::shared().await?, prefix).await
    }

    /// The same in any world.
    ///
    /// # Errors
    /// What could not be had.
    pub async fn in_world(world: &'static World, prefix: &str) -> Result<Self> {
        let namespace = world.cluster.namespace(prefix).await?;
        let github = GitHub::start().await?;
        github.create_repository(REPO)?;
        github.set_limits(LimitSettings::off())?;
        let token = tempfile::NamedTempFile::new()?;
        std::fs::write(token.path(), github.create_token("test", &Rights::read([REPO]))?)?;
        let client = world.cluster.admin()?;
        Ok(Self { world, namespace, github: Arc::new(github), client, token })
    }

    /// An image of this bed's repository. A word of [`belay_testkit::fate::Fate`] in the tag decides
    /// what becomes of its pods.
    pub fn image(&self, tag: &str) -> String {
        format!("{}/{}/web:{tag}", self.world.registry.host(), self.namespace)
    }

    /// Pushes the image, and publishes the release that it belongs to.
    ///
    /// # Errors
    /// What the registry or GitHub says.
    pub async fn release(&self, tag: &str) -> Result<()> {
        self.push(tag).await?;
        self.publish(tag)
    }

    /// Pushes the image of a tag; returns its digest.
    ///
    /// # Errors
    /// What the registry says.
    pub async fn push(&self, tag: &str) -> Result<String> {
        let image_tag = tag.trim_start_matches('v').replace('+', "_");
        let repository = format!("{}/web", self.namespace);
        Ok(self.world.registry.push(&repository, &image_tag).await?)
    }

    /// Publishes a release, whether its image is there or not.
    ///
    /// # Errors
    /// What GitHub says.
    pub fn publish(&self, tag: &str) -> Result<()> {
        self.github.publish(REPO, NewRelease::new(tag))?;
        Ok(())
    }

    /// The Deployment `web` that follows the repository, not created yet.
    pub fn web(&self, tag: &str) -> Workload {
        self.workload("web", tag)
    }

    /// A Deployment that follows the repository, with short times.
    pub fn workload(&self, name: &str, tag: &str) -> Workload {
        Workload::deployment(name)
            .replicas(1)
            .image(CONTAINER, &self.image(tag))
            .annotation("belay.dev/repo", REPO)
            .annotation("belay.dev/bake", "1s")
            .annotation("belay.dev/deadline", "20s")
    }

    /// Creates a Deployment as `manager` does by POST.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn create(&self, workload: &Workload, manager: &str) -> Result<Deployment> {
        let deployment: Deployment = serde_json::from_value(workload.json().clone())?;
        let params =
            PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        Ok(self.deployments().create(&params, &deployment).await?)
    }

    /// Sets the image of the container as `manager` does by an update.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn set_image(&self, name: &str, image: &str, manager: &str) -> Result<()> {
        let containers = json!([{ "name": CONTAINER, "image": image }]);
        self.patch(
            name,
            manager,
            &json!({
                "spec": { "template": { "spec": { "containers": containers } } },
            }),
        )
        .await
    }

    /// Annotates a Deployment; null removes an annotation.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn annotate(&self, name: &str, key: &str, value: Value) -> Result<()> {
        self.patch(
            name,
            "kubectl-annotate",
            &json!({
                "metadata": { "annotations": { format!("belay.dev/{key}"): value } },
            }),
        )
        .await
    }

    /// Patches a Deployment strategically.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn patch(&self, name: &str, manager: &str, patch: &Value) -> Result<()> {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.deployments().patch(name, &params, &Patch::Strategic(patch)).await?;
        Ok(())
    }

    /// The namespace's Deployments.
    pub fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The namespace's Releases.
    pub fn releases(&self) -> Api<Release> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The namespace's Rollbacks.
    pub fn rollbacks(&self) -> Api<Rollback> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The namespace's ReleaseTargets.
    pub fn targets(&self) -> Api<ReleaseTarget> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The image of a Deployment's container.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn live(&self, name: &str) -> Result<String> {
        let deployment = self.deployments().get(name).await?;
        let pod = deployment.spec.and_then(|spec| spec.template.spec).context("no pod template")?;
        let image = pod.containers.into_iter().find(|one| one.name == CONTAINER);
        image.and_then(|one| one.image).context("no image")
    }

    /// Waits until `look` finds what it wants; the error shows the target as it is.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn wait<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let found = wait::until(what, wait::SOON, || {
            let look = look();
            async move { look.await.map_err(|error| format!("{error:#}")) }
        })
        .await;
        match found {
            Ok(found) => Ok(found),
            Err(error) => Err(anyhow::anyhow!("{error}\n{}", describe(self).await)),
        }
    }

    /// Waits until an image is live.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn wait_for_image(&self, name: &str, image: &str) -> Result<()> {
        self.wait(&format!("{name} to run {image}"), || async {
            let live = self.live(name).await?;
            anyhow::ensure!(live == image, "{live}");
            Ok(())
        })
        .await
    }

    /// Waits until the Release of a tag is healthy.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn wait_for_healthy(&self, target: &str, tag: &str) -> Result<Release> {
        self.wait(&format!("{tag} of {target} to be healthy"), || async {
            let releases = self.releases().list(&kube::api::ListParams::default()).await?;
            let found = releases.items.into_iter().find(|release| {
                let config = release.config();
                config.target_name == target && config.revisions.iter().any(|one| one.id == tag)
            });
            let found = found.context("no such Release")?;
            let status = found.status.clone().unwrap_or_default();
            let healthy = belay_api::conditions::find(&status.conditions, "Healthy");
            let is_healthy = healthy.is_some_and(|one| one.status == "True");
            anyhow::ensure!(is_healthy, "{:?}", status.conditions);
            Ok(found)
        })
        .await
    }

    /// Waits until a condition of a ReleaseTarget has this reason and is True.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn wait_for_condition(&self, target: &str, kind: &str, reason: &str) -> Result<()> {
        self.wait(&format!("{kind} of {target} to be {reason}"), || async {
            let found = self.targets().get(target).await?;
            let status = found.status.unwrap_or_default();
            let condition = belay_api::conditions::find(&status.conditions, kind);
            let condition = condition.context("no such condition")?;
            let is_right = condition.reason == reason && condition.status == "True";
            anyhow::ensure!(is_right, "{} {}", condition.status, condition.reason);
            Ok(())
        })
        .await
    }

    /// An operator for this namespace.
    ///
    /// # Errors
    /// What could not be set up.
    pub fn operator(&self) -> Result<Running> {
        Running::start(self, Wiring::default())
    }

    /// An operator that follows `web`, which Helm has made with v1.0.0 and which is healthy.
    ///
    /// # Errors
    /// What could not be set up, or was there instead.
    pub async fn following(&self, wiring: Wiring) -> Result<Running> {
        self.release("v1.0.0").await?;
        self.create(&self.web("1.0.0"), "helm").await?;
        let operator = Running::start(self, wiring)?;
        self.wait_for_healthy("web", "v1.0.0").await?;
        Ok(operator)
    }
}

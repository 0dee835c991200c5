//! Where a scenario is played: a namespace, one Deployment, a scripted kubelet, and watches that miss
//! nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Component};
use belay_testkit::{
    Cluster,
    cluster::FIELD_MANAGER,
    fate::Fate,
    kubelet::{Kubelet, Pace},
    objects::Workload,
    wait,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    log::{Log, watch},
    objects::{describe, has_image, image_of, is_alive, is_observed, is_ready, reason_of, version},
    recording::{Applied, Head, Recording},
    trim::{Kind, Raw, trim},
};

/// The Deployment's name.
pub const WEB: &str = "web";
/// The container's name.
pub const APP: &str = "app";
/// `progressDeadlineSeconds` of every Deployment.
pub const DEADLINE: u32 = 10;
/// The field manager that rolls images here, as the operator does.
pub const ROLLER: &str = "belay-operator";

/// A node counts as lost after 50 s, and everything is recorded at once on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long nothing may happen before a recording ends.
const QUIET: Duration = Duration::from_millis(1500);
/// The image with a tag; words in the tag decide what becomes of its pods.
pub fn image(tag: &str) -> String {
    format!("registry.example/shop/web:{tag}")
}

/// A place to play one scenario in.
pub struct Stage<'c> {
    cluster: &'c Cluster,
    client: Client,
    namespace: String,
    kubelet: Kubelet,
    log: Arc<Log>,
    // Dropping it ends the watches.
    _watches: JoinSet<()>,
}

impl<'c> Stage<'c> {
    /// Makes a namespace and begins to watch it.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn open(cluster: &'c Cluster, scenario: &str) -> Result<Self> {
        let namespace = cluster.namespace(scenario).await?;
        let kubelet = Kubelet::start(cluster, &format!("kubelet-{namespace}"), Pace::AtOnce)?;
        let client = cluster.admin()?;
        let log = Arc::new(Log::default());
        let mut watches = JoinSet::new();
        for (kind, resource) in [
            (Kind::Deployment, ApiResource::erase::<Deployment>(&())),
            (Kind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            (Kind::Pod, ApiResource::erase::<Pod>(&())),
        ] {
            let api = Api::namespaced_with(client.clone(), &namespace, &resource);
            // The namespace is empty: from here on the watch sees everything.
            let list = api.list(&ListParams::default()).await.context("list an empty namespace")?;
            ensure!(list.items.is_empty(), "{namespace} is not empty");
            let version = list.metadata.resource_version.unwrap_or_default();
            watches.spawn(watch(api, kind, version, Arc::clone(&log)));
        }
        Ok(Self { cluster, client, namespace, kubelet, log, _watches: watches })
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The administrator's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// An API of the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The kubelet that the Deployment's pods are bound to, unless they are bound elsewhere.
    pub fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }

    /// A Deployment of an image whose pods this stage's kubelet runs.
    pub fn web(&self, tag: &str, replicas: u32) -> Workload {
        self.web_anywhere(tag, replicas).on_node(self.kubelet.node())
    }

    /// The same, bound to no node.
    pub fn web_anywhere(&self, tag: &str, replicas: u32) -> Workload {
        Workload::deployment(WEB)
            .replicas(replicas)
            .progress_deadline(DEADLINE)
            .image(APP, &image(tag))
    }

    /// Creates the Deployment, and waits until it is rolled out.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn install(&self, workload: &Workload) -> Result<()> {
        let params = PatchParams::apply(FIELD_MANAGER);
        let object = self.deployments().patch(WEB, &params, &Patch::Apply(workload.json())).await;
        self.note_image(FIELD_MANAGER, &object.context("create the Deployment")?)?;
        self.rolled_out().await
    }

    /// Rolls to an image as the operator does: a minimal body, forced. Returns once the API server
    /// has it.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn roll(&self, tag: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": WEB, "annotations": { "belay.dev/release": format!("web-{tag}") } },
            "spec": { "template": { "spec": { "containers": [{ "name": APP, "image": image(tag) }] } } },
        });
        let params = PatchParams::apply(ROLLER).force();
        let object = self.deployments().patch(WEB, &params, &Patch::Apply(&body)).await;
        self.note_image(ROLLER, &object.with_context(|| format!("roll to {tag}"))?)
    }

    /// Runs kubectl on the Deployment and, if that changed the image, notes it as a new rollout.
    ///
    /// # Errors
    /// Its own words.
    pub async fn kubectl(&self, words: &[&str]) -> Result<()> {
        let before = self.log.deployment()?;
        let tool = self.cluster.tool(Binary::Kubectl)?;
        let target = format!("deployment/{WEB}");
        let line = format!("kubectl {} {target}", words.join(" "));
        self.did(&line);
        tool.args(words).args([&target, "-n", &self.namespace]).ok().await?;
        let generation = before.metadata.generation;
        let what = format!("what `{line}` wrote");
        self.deployment_until(&what, |now| now.metadata.generation > generation).await?;
        if image_of(&before) == image_of(&self.log.deployment()?) {
            return Ok(());
        }
        // The write itself, before the controllers' own.
        let states = self.log.deployments()?;
        let written = states.into_iter().find(|state| state.metadata.generation > generation);
        let written = written.context("the write of kubectl was not seen")?;
        let managers = written.metadata.managed_fields.iter().flatten();
        let by = managers
            .filter(|entry| entry.subresource.is_none())
            .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
            .and_then(|entry| entry.manager.clone());
        self.note_image(&by.unwrap_or_default(), &written)
    }

    /// Changes the Deployment by a merge patch.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn change(&self, what: &str, patch: Value) -> Result<()> {
        self.did(what);
        let api = self.deployments();
        api.patch(WEB, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| what.to_owned())?;
        Ok(())
    }

    /// Sets the number of replicas as an autoscaler does.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn scale(&self, replicas: u32) -> Result<()> {
        self.did(&format!("scaled to {replicas}"));
        let patch = json!({ "spec": { "replicas": replicas } });
        let api = self.deployments();
        api.patch_scale(WEB, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .with_context(|| format!("scale to {replicas}"))?;
        Ok(())
    }

    /// Notes what happens now that no event tells.
    pub fn did(&self, what: &str) {
        self.log.did(what);
    }

    fn note_image(&self, by: &str, object: &Deployment) -> Result<()> {
        let entries = object.metadata.managed_fields.iter().flatten();
        let entry = entries.filter(|entry| entry.subresource.is_none());
        let time = entry
            .filter(|entry| entry.manager.as_deref() == Some(by))
            .filter_map(|entry| entry.time.as_ref())
            .map(|time| time.0)
            .max()
            .with_context(|| format!("{by} owns nothing of what it wrote"))?;
        let applied = Applied {
            by: by.to_owned(),
            image: image_of(object).unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            time,
        };
        let version = version(object.metadata.resource_version.as_deref())?;
        self.log.note(version, Raw::Applied(applied));
        Ok(())
    }

    /// Holds pods that are made from now on, until they are let go.
    pub fn hold(&self) {
        self.kubelet.set_pace(Pace::WhenTold);
    }

    /// Lets held pods be what their image says, and waits until they are ready.
    ///
    /// # Errors
    /// What they were instead.
    pub async fn let_go(&self, pods: &[Pod]) -> Result<()> {
        for pod in pods {
            self.kubelet.let_go(pod);
        }
        let names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
        let what = format!("{names:?} to be ready");
        let is_one = |pod: &&Pod| names.contains(&pod.name_any());
        self.pods_until(&what, |pods| pods.iter().filter(is_one).all(is_ready)).await
    }

    /// Lets every pod be what its image says, from now on and those that are held.
    pub fn let_all_go(&self) {
        self.kubelet.set_pace(Pace::AtOnce);
    }

    /// Waits for so many pods of an image that are not ready, and returns them.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn held(&self, tag: &str, count: usize) -> Result<Vec<Pod>> {
        let what = format!("{count} held pods of {tag}");
        let image = image(tag);
        let is_held = |pod: &Pod| has_image(pod, &image) && !is_ready(pod) && is_alive(pod);
        self.pods_until(&what, |pods| pods.iter().filter(|pod| is_held(pod)).count() == count)
            .await?;
        // The kubelet must have seen them too, to be told about them.
        for pod in self.pods()?.iter().filter(|pod| is_held(pod)) {
            let name = pod.name_any();
            self.kubelet.pod(&what, &self.namespace, |one| one.name_any() == name).await?;
        }
        Ok(self.pods()?.into_iter().filter(|pod| is_held(pod)).collect())
    }

    /// Makes every ready pod of an image something else.
    ///
    /// # Errors
    /// When a pod cannot be read.
    pub fn all_become(&self, tag: &str, fate: Fate) -> Result<()> {
        let image = image(tag);
        self.did(&format!("every pod of {tag}: {fate:?}"));
        for pod in self.pods()?.iter().filter(|pod| has_image(pod, &image) && is_alive(pod)) {
            self.kubelet.become_(pod, fate);
        }
        Ok(())
    }

    /// Writes a pod's status in the kubelet's place.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn pod_status(&self, what: &str, pod: &Pod, status: Value) -> Result<()> {
        self.did(what);
        let patch = json!({ "status": status });
        let api: Api<Pod> = self.api();
        api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch))
            .await
            .with_context(|| format!("write the status of {}", pod.name_any()))?;
        Ok(())
    }

    /// The Deployment as last seen.
    ///
    /// # Errors
    /// When none has been seen.
    pub fn deployment(&self) -> Result<Deployment> {
        self.log.deployment()
    }

    /// The pods as last seen.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn pods(&self) -> Result<Vec<Pod>> {
        self.log.pods()
    }

    /// Waits until the Deployment is as it should be.
    ///
    /// # Errors
    /// What it was instead.
    pub async fn deployment_until(
        &self,
        what: &str,
        is: impl Fn(&Deployment) -> bool,
    ) -> Result<()> {
        wait::until(what, PATIENCE, || {
            std::future::ready(match self.log.deployment() {
                Ok(deployment) if is(&deployment) => Ok(()),
                Ok(deployment) => Err(format!("{:?}", deployment.status)),
                Err(error) => Err(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }

    /// Waits until the pods are as they should be.
    ///
    /// # Errors
    /// What they were instead.
    pub async fn pods_until(&self, what: &str, are: impl Fn(&[Pod]) -> bool) -> Result<()> {
        wait::until(what, PATIENCE, || {
            std::future::ready(match self.pods() {
                Ok(pods) if are(&pods) => Ok(()),
                Ok(pods) => Err(pods.iter().map(describe).collect::<Vec<_>>().join(", ")),
                Err(error) => Err(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }

    /// Waits until the present image runs everywhere.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn rolled_out(&self) -> Result<()> {
        let wanted = image_of(&self.deployment_now().await?).unwrap_or_default();
        let what = format!("{wanted} to be rolled out");
        self.deployment_until(&what, |now| {
            let replicas = now.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
            let status = now.status.clone().unwrap_or_default();
            let numbers = [status.replicas, status.updated_replicas, status.available_replicas];
            image_of(now).as_ref() == Some(&wanted)
                && status.observed_generation >= now.metadata.generation
                && numbers.iter().all(|number| number.unwrap_or_default() == replicas)
        })
        .await?;
        self.pods_until(&what, |pods| {
            pods.iter().filter(|pod| is_alive(pod)).all(|pod| has_image(pod, &wanted))
        })
        .await
    }

    /// Waits until Kubernetes gives up.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn given_up(&self) -> Result<()> {
        self.deployment_until("ProgressDeadlineExceeded", |now| {
            reason_of(now, "Progressing").as_deref() == Some("ProgressDeadlineExceeded")
                && is_observed(now)
        })
        .await
    }

    /// Lets time pass while things stay as they are: what is recorded is that nothing happens.
    ///
    /// # Errors
    /// When a watch has failed.
    pub async fn pass(&self, seconds: u64) -> Result<()> {
        let (start, time) = (Instant::now(), Duration::from_secs(seconds));
        wait::until("time to pass", time + PATIENCE, || {
            let passed = start.elapsed();
            std::future::ready(if passed >= time { Ok(()) } else { Err(format!("{passed:?}")) })
        })
        .await?;
        self.log.without_gap()
    }

    /// Waits until nothing happens any more, and returns what was recorded.
    ///
    /// # Errors
    /// When a watch has failed.
    pub async fn end(&self, scenario: &str, about: &str) -> Result<Recording> {
        wait::until("quiet", PATIENCE, || {
            let last = self.log.last().unwrap_or(Timestamp::MIN);
            let quiet = Timestamp::now().duration_since(last).unsigned_abs();
            std::future::ready(if quiet >= QUIET { Ok(()) } else { Err(format!("{quiet:?}")) })
        })
        .await?;
        self.log.without_gap()?;
        self.did("nothing more happens");
        let version = self.cluster.components().version(Component::Kubernetes)?;
        let head =
            Head { scenario: scenario.to_owned(), about: about.to_owned(), kubernetes: version };
        trim(head, &self.namespace, self.log.seen())
    }

    /// Removes everything, so that others have its place on the nodes.
    ///
    /// # Errors
    /// What is still there.
    pub async fn clear(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await
            .with_context(|| format!("delete the namespace {}", self.namespace))?;
        let pods: Api<Pod> = self.api();
        wait::until("the pods to be gone", PATIENCE, || async {
            let list =
                pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let count = list.items.len();
            if count == 0 { Ok(()) } else { Err(format!("{count} pods")) }
        })
        .await?;
        Ok(())
    }

    fn deployments(&self) -> Api<Deployment> {
        self.api()
    }

    async fn deployment_now(&self) -> Result<Deployment> {
        self.deployments().get(WEB).await.context("get the Deployment")
    }
}

//! A Deployment `web` that KEDA scales, in a namespace of its own.

use std::{
    ops::Deref,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::Result;
use belay_suite::keda::{Change, Kind, Scaling, condition};
use belay_testkit::{
    Cluster,
    cluster::FIELD_MANAGER,
    objects::{ScaledObject, Workload},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};

/// The Deployment and its ScaledObject.
pub(crate) const WEB: &str = "web";
/// Its HPA, for the log.
pub(crate) const HPA: (Kind, &str) = (Kind::Hpa, "keda-hpa-web");
/// Its ScaledObject, for the log.
pub(crate) const SCALED: (Kind, &str) = (Kind::ScaledObject, WEB);

/// KEDA with `web`.
pub(crate) struct Scene {
    scaling: Scaling,
    namespace: String,
    others: AtomicU32,
}

impl Deref for Scene {
    type Target = Scaling;

    fn deref(&self) -> &Scaling {
        &self.scaling
    }
}

impl Scene {
    /// `web` with as many replicas as the metric asks for, at rest.
    pub(crate) async fn at(metric: u32) -> Result<Self> {
        let scene = Self::changed(metric, |object| object).await?;
        scene.until_resumed(WEB).await?;
        let wanted = i32::try_from(metric.div_ceil(10))?.max(1);
        scene.until_replicas(WEB, wanted).await?;
        Ok(scene)
    }

    /// `web` with another ScaledObject than the usual one; nothing is waited for.
    pub(crate) async fn changed(
        metric: u32,
        change: impl FnOnce(ScaledObject) -> ScaledObject,
    ) -> Result<Self> {
        let cluster = Cluster::shared().await?;
        let namespace = cluster.namespace("keda").await?;
        let scaling = Scaling::start(cluster, &namespace).await?;
        deploy(cluster, &namespace, WEB).await?;
        scaling.metric(WEB, metric);
        scaling.apply(&change(scaling.of(WEB))).await?;
        Ok(Self { scaling, namespace, others: AtomicU32::new(0) })
    }

    /// `web` at zero replicas, which the metric can wake up.
    pub(crate) async fn asleep() -> Result<Self> {
        let scene = Self::changed(0, |object| object.replicas(0, 4)).await?;
        scene.until_resumed(WEB).await?;
        scene.until_replicas(WEB, 0).await?;
        Ok(scene)
    }

    /// How often the HPA controller has asked for the metric of a ScaledObject.
    pub(crate) fn readings(&self, name: &str) -> u64 {
        self.metrics.readings(&self.namespace, name)
    }

    /// Puts another Deployment to sleep and wakes it up: what shows that KEDA and the HPA controller
    /// have had the time to do the same to `web`.
    pub(crate) async fn another_wakes_up(&self) -> Result<()> {
        let name = format!("other-{}", self.others.fetch_add(1, Ordering::Relaxed));
        deploy(Cluster::shared().await?, &self.namespace, &name).await?;
        self.apply(&self.of(&name).replicas(0, 4)).await?;
        self.until_replicas(&name, 0).await?;
        self.metric(&name, 15);
        self.until_replicas(&name, 2).await
    }
}

/// The policy for scale-in of an HPA in the log.
pub(crate) fn policy(change: &Change) -> &str {
    change.object["spec"]["behavior"]["scaleDown"]["selectPolicy"].as_str().unwrap_or_default()
}

/// Whether the HPA controller has seen an HPA in the log as it is.
pub(crate) fn is_observed(change: &Change) -> bool {
    let observed = change.object["status"]["observedGeneration"].as_i64();
    observed.is_some() && observed >= change.object["metadata"]["generation"].as_i64()
}

/// What KEDA says of a ScaledObject in the log.
pub(crate) fn paused(change: &Change) -> &str {
    condition(&change.object, "Paused")
}

/// Without a number of replicas: who applies it again must not scale.
async fn deploy(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(cluster.admin()?, namespace);
    let workload = Workload::deployment(name).image("app", "registry.example/web:1");
    api.patch(name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(workload.json())).await?;
    Ok(())
}

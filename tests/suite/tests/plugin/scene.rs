//! Objects as the operator leaves them, made by hand so that every time in them is known.

use anyhow::{Context as _, Result};
use belay_api::{
    Release, ReleaseTarget, Rollback,
    release::{ReleaseConfig, Revision},
};
use belay_suite::operator::World;
use belay_testkit::{Cluster, objects::Workload, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client, Resource,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{run::Shell, shown::ago};

/// The container that is moved.
pub(crate) const APP: &str = "app";

/// A namespace on the control plane that all tests share.
pub(crate) struct Scene {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// The image of a tag, of a registry that nobody asks: pods run by script.
pub(crate) fn image(tag: &str) -> String {
    format!("ghcr.io/acme/web:{tag}")
}

impl Scene {
    /// An empty namespace.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let cluster = World::shared().await?.cluster;
        let namespace = cluster.namespace(prefix).await?;
        Ok(Self { cluster, client: cluster.admin()?, namespace })
    }

    /// The administrator, whose context has this namespace.
    pub(crate) fn shell(&self) -> Result<Shell> {
        Shell::admin(self.cluster, &self.namespace)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates the Deployment as Helm does, and applies the image as the operator does.
    pub(crate) async fn deployment(&self, name: &str, tag: &str, replicas: u32) -> Result<()> {
        let workload = Workload::deployment(name)
            .replicas(replicas)
            .image(APP, &image("chart"))
            .annotation("belay.dev/repo", "acme/web")
            .annotation("belay.dev/range", "^1.9");
        let deployment: Deployment = serde_json::from_value(workload.json().clone())?;
        let params = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
        self.api().create(&params, &deployment).await?;
        self.first_revision(name).await?;
        self.apply_image(name, tag, "belay-operator").await
    }

    /// Waits until the controller has seen the chart's image: revisions are counted from there.
    async fn first_revision(&self, name: &str) -> Result<()> {
        let api: Api<Deployment> = self.api();
        wait::until(&format!("{name} to have its first revision"), wait::SOON, || async {
            let one = api.get(name).await.map_err(|error| error.to_string())?;
            let annotations = one.metadata.annotations.unwrap_or_default();
            let revision = annotations.get("deployment.kubernetes.io/revision");
            revision.map(drop).ok_or_else(|| "none".to_owned())
        })
        .await?;
        Ok(())
    }

    /// Applies an image by force, and says which Release it is.
    pub(crate) async fn apply_image(&self, name: &str, tag: &str, manager: &str) -> Result<()> {
        let mut body = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"name": APP, "image": image(tag)}]}}},
        });
        if manager == "belay-operator" {
            body["metadata"]["annotations"] = json!({"belay.dev/release": release_name(name, tag)});
        }
        let api: Api<Deployment> = self.api();
        let params = PatchParams::apply(manager).force();
        api.patch(name, &params, &Patch::Apply(&body)).await?;
        Ok(())
    }

    /// Waits until so many replicas are available.
    pub(crate) async fn available(&self, name: &str, count: i32) -> Result<()> {
        let api: Api<Deployment> = self.api();
        wait::until(&format!("{name} to have {count} available"), wait::SOON, || async {
            let one = api.get(name).await.map_err(|error| error.to_string())?;
            let status = one.status.unwrap_or_default();
            let is_observed = status.observed_generation == one.metadata.generation;
            let available = status.available_replicas.unwrap_or_default();
            let updated = status.updated_replicas.unwrap_or_default();
            let is_it = is_observed
                && available == count
                && updated == count
                && status.replicas.unwrap_or_default() == count;
            if is_it { Ok(()) } else { Err(format!("{available} available, {updated} updated")) }
        })
        .await?;
        Ok(())
    }

    /// Waits until a pod of the image waits for this reason.
    pub(crate) async fn trouble(&self, tag: &str, reason: &str) -> Result<()> {
        let api: Api<Pod> = self.api();
        let wanted = image(tag);
        wait::until(&format!("a pod with {reason}"), wait::SOON, || async {
            let pods = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_it = |pod: &Pod| {
                let statuses = pod.status.iter().flat_map(|status| &status.container_statuses);
                statuses.flatten().any(|status| {
                    let state = status.state.as_ref().and_then(|state| state.waiting.as_ref());
                    status.image == wanted
                        && state.is_some_and(|state| state.reason.as_deref() == Some(reason))
                })
            };
            if pods.items.iter().any(is_it) { Ok(()) } else { Err("none".to_owned()) }
        })
        .await?;
        Ok(())
    }

    /// A ReleaseTarget with this status; `None` for the workload that the status does not name yet.
    pub(crate) async fn target(&self, name: &str, status: Value) -> Result<()> {
        let mut status = status;
        if status.get("workload").is_none() {
            status["workload"] = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": "1",
            });
        }
        self.put::<ReleaseTarget>(name, json!({}), status).await
    }

    /// Changes a ReleaseTarget, and its status.
    pub(crate) async fn patch_target(&self, name: &str, body: Value, status: Value) -> Result<()> {
        let api: Api<ReleaseTarget> = self.api();
        let params = PatchParams::default();
        api.patch(name, &params, &Patch::Merge(&body)).await?;
        api.patch_status(name, &params, &Patch::Merge(&status)).await?;
        Ok(())
    }

    /// A Release of a tag, with this status. Returns its name.
    pub(crate) async fn release(&self, target: &str, tag: &str, status: Value) -> Result<String> {
        let name = release_name(target, tag);
        let mut status = status;
        if status.get("images").is_none() {
            status["images"] =
                json!([{"container": APP, "asked": image(tag), "stored": image(tag)}]);
        }
        let body = json!({"config": config(target, tag)});
        self.put::<Release>(&name, body, status).await?;
        Ok(name)
    }

    /// A Rollback with this status.
    pub(crate) async fn rollback(&self, name: &str, spec: Value, status: Value) -> Result<()> {
        self.put::<Rollback>(name, json!({"spec": spec}), status).await
    }

    async fn put<K: Resource<DynamicType = ()>>(
        &self,
        name: &str,
        mut body: Value,
        status: Value,
    ) -> Result<()> {
        let kind = kube::api::ApiResource::erase::<K>(&());
        body["apiVersion"] = json!(kind.api_version);
        body["kind"] = json!(kind.kind);
        body["metadata"] = json!({"name": name});
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
        let object: DynamicObject = serde_json::from_value(body)?;
        let made = api.create(&PostParams::default(), &object).await?;
        let patch = json!({"status": status});
        let name = made.metadata.name.context("an object without a name")?;
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
}

fn config(target: &str, tag: &str) -> ReleaseConfig {
    ReleaseConfig {
        target_name: target.to_owned(),
        revisions: vec![Revision {
            name: "application".to_owned(),
            id: format!("v{tag}"),
            source: Some("acme/web".to_owned()),
            type_: Some("github".to_owned()),
            metadata: None,
        }],
        workload_ref: None,
    }
}

/// The name that follows from target and tag.
pub(crate) fn release_name(target: &str, tag: &str) -> String {
    let signature = config(target, tag).signature();
    format!("{target}-{}", signature.as_str().get(..7).unwrap_or_default())
}

/// A condition that became what it is so many seconds ago.
pub(crate) fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    seconds: i64,
) -> Result<Value> {
    Ok(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": ago(seconds)?,
    }))
}

/// An activation between these numbers of seconds ago.
pub(crate) fn activation(
    start: i64,
    end: Option<i64>,
    initiator: &str,
    verdict: Option<&str>,
) -> Result<Value> {
    let end = end.map(ago).transpose()?;
    let mut activation = json!({"ordinal": 1, "startTime": ago(start)?, "initiator": initiator});
    if let Some(end) = end {
        activation["endTime"] = json!(end);
    }
    if let Some(verdict) = verdict {
        activation["verdict"] = json!(verdict);
    }
    Ok(activation)
}

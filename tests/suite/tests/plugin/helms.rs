//! A chart of either Helm whose image others move.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use belay_api::{AnnotationPrefix, ReleaseTarget, crd, target::TargetFields};
use belay_ownership::{FieldPath, Ownership};
use belay_suite::helms::{self, Major, OPERATOR, WEB};
use belay_testkit::{Cluster, tool::Finished};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The image that is moved, without its tag.
pub(crate) const IMAGE: &str = "registry.example/web";
/// The control plane of this process, with Belay's CRDs and without its operator.
pub(crate) async fn cluster() -> Result<&'static Cluster> {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await?;
    APPLIED
        .get_or_try_init(|| async {
            cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await
        })
        .await?;
    Ok(cluster)
}

/// A namespace in which Helm installs the chart `matrix` as `web`.
pub(crate) struct Scene {
    /// The control plane.
    pub(crate) cluster: &'static Cluster,
    /// The namespace.
    pub(crate) namespace: String,
}

impl Scene {
    /// An empty one.
    pub(crate) async fn new() -> Result<Self> {
        let cluster = cluster().await?;
        Ok(Self { cluster, namespace: cluster.namespace("plugin").await? })
    }

    /// The kubeconfig of a ServiceAccount that has these rights in the namespace, and no others.
    pub(crate) async fn reader(&self, rules: &Value) -> Result<PathBuf> {
        let access = helms::account(self.cluster, &self.namespace, "reader", rules).await?;
        Ok(self.cluster.write_kubeconfig(&format!("reader-{}", self.namespace), &access)?)
    }

    /// Runs `helm VERB web CHART WORDS`.
    pub(crate) async fn helm(&self, major: Major, verb: &str, words: &str) -> Result<Finished> {
        let state = self.cluster.run().folder().join(&self.namespace).join("state");
        let tool = helms::helm(self.cluster, major, &state).await?;
        let tool = tool.args([verb, WEB]).arg(helms::suite("charts/matrix"));
        let tool = tool.args(words.split_whitespace()).args(["-n", &self.namespace]);
        Ok(tool.args(["--timeout", "60s"]).run().await?)
    }

    pub(crate) fn deployments(&self) -> Result<Api<Deployment>> {
        Ok(Api::namespaced(self.cluster.admin()?, &self.namespace))
    }

    /// Moves the image as the operator does, with its annotation.
    pub(crate) async fn roll(&self, tag: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": WEB, "annotations": { "belay.dev/release": "web-1234567" } },
            "spec": { "template": { "spec": { "containers": [
                { "name": "app", "image": format!("{IMAGE}:{tag}") }] } } },
        });
        let params = PatchParams::apply(OPERATOR).force();
        self.deployments()?.patch(WEB, &params, &Patch::Apply(body)).await?;
        Ok(())
    }

    /// Moves the image as a person does.
    pub(crate) async fn edit(&self, tag: &str) -> Result<()> {
        let body = json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "app", "image": format!("{IMAGE}:{tag}") }] } } } });
        let params = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        self.deployments()?.patch(WEB, &params, &Patch::Strategic(body)).await?;
        Ok(())
    }

    /// The ReleaseTarget that the operator would keep.
    pub(crate) async fn target(&self) -> Result<()> {
        let live = self.deployments()?.get(WEB).await?;
        let api: Api<ReleaseTarget> = Api::namespaced(self.cluster.admin()?, &self.namespace);
        let new = ReleaseTarget::new(WEB, TargetFields {});
        api.create(&PostParams::default(), &new).await?;
        let status = json!({ "status": {
            "containers": ["app"],
            "workload": { "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB,
                          "uid": live.uid() },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                             "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        } });
        api.patch_status(WEB, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// The live image, and who owns it, each with how it writes: `helm/A`.
    pub(crate) async fn live(&self) -> Result<(String, Vec<String>)> {
        let live = self.deployments()?.get(WEB).await?;
        let ownership = Ownership::decode(live.managed_fields());
        let answer = ownership.at(&FieldPath::image("containers", "app"));
        let owners = answer.owners.iter().map(|owner| {
            let operation = &owner.entry.operation().as_str()[..1];
            format!("{}/{operation}", owner.entry.manager())
        });
        let value: Value = serde_json::to_value(&live)?;
        let containers = value.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let app = containers.into_iter().flatten().find(|one| one["name"] == "app");
        let image = app.and_then(|one| one["image"].as_str()).context("no container app")?;
        Ok((image.to_owned(), owners.collect()))
    }
}

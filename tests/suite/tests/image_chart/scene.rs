//! A chart that uses the library chart, installed in a namespace of its own.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use belay_suite::{
    folders::copy,
    helms::{Major, WEB, account, suite},
};
use belay_testkit::{Cluster, tool::Finished};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An image of the registry that nobody asks: pods run by script.
pub(crate) fn image(name: &str, tag: &str) -> String {
    format!("registry.example/{name}:{tag}")
}

/// The kind of the workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Born {
    Deployment,
    StatefulSet,
    DaemonSet,
}

/// A release of the chart.
pub(crate) struct Scene {
    cluster: &'static Cluster,
    namespace: String,
    helm: Major,
    kind: Born,
    chart: TempDir,
}

impl Scene {
    /// Installs the chart.
    pub(crate) async fn new(helm: Major, kind: Born) -> Result<Self> {
        let cluster = Cluster::shared().await?;
        let namespace = cluster.namespace("image").await?;
        let chart = tempfile::tempdir()?;
        copy(&suite("charts/live-image"), chart.path(), &|text| text)?;
        let library = chart.path().join("charts/belay-image");
        copy(&suite("../../charts/belay-image"), &library, &|text| text)?;
        let scene = Self { cluster, namespace, helm, kind, chart };
        let _ = scene.helm("install", &[]).await?.ok()?;
        Ok(scene)
    }

    /// Runs `helm VERB web CHART WORDS`.
    pub(crate) async fn helm(&self, verb: &str, words: &[&str]) -> Result<Finished> {
        let tool = self.cluster.tool(self.helm.binary())?;
        let kind = format!("kind={:?}", self.kind);
        let tool = tool.args([verb, WEB]).arg(self.chart.path()).args(["--set", &kind]);
        Ok(tool.args(words).args(["-n", &self.namespace]).run().await?)
    }

    /// `helm upgrade` with these values.
    pub(crate) async fn upgrade(&self, values: &str) -> Result<Finished> {
        self.helm("upgrade", &["--set", values.trim_end_matches(',')]).await
    }

    fn api(&self) -> Result<Api<DynamicObject>> {
        let kind = GroupVersionKind::gvk("apps", "v1", &format!("{:?}", self.kind));
        let kind = ApiResource::from_gvk(&kind);
        Ok(Api::namespaced_with(self.cluster.admin()?, &self.namespace, &kind))
    }

    /// Applies 2.0.0 to containers, each in its list, and annotations, by force, as an operator does.
    pub(crate) async fn move_all(
        &self,
        manager: &str,
        containers: &[(&str, &str)],
        annotations: &Value,
    ) -> Result<()> {
        let mut body = json!({
            "apiVersion": "apps/v1", "kind": format!("{:?}", self.kind),
            "metadata": {"name": WEB, "annotations": annotations},
        });
        for (list, container) in containers {
            body["spec"]["template"]["spec"][*list] =
                json!([{"name": container, "image": image("web", "2.0.0")}]);
        }
        let params = PatchParams::apply(manager).force();
        self.api()?.patch(WEB, &params, &Patch::Apply(&body)).await?;
        Ok(())
    }

    /// The same of the container `app` alone.
    pub(crate) async fn move_app(&self, manager: &str, annotations: &Value) -> Result<()> {
        self.move_all(manager, &[("containers", "app")], annotations).await
    }

    async fn object(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.api()?.get(WEB).await?)?)
    }

    /// The live image of a container.
    pub(crate) async fn live(&self, list: &str, container: &str) -> Result<String> {
        let object = self.object().await?;
        let all = object.pointer(&format!("/spec/template/spec/{list}")).and_then(Value::as_array);
        let one = all.into_iter().flatten().find(|one| one["name"] == container);
        let image = one.and_then(|one| one["image"].as_str()).context("no such container")?;
        Ok(image.to_owned())
    }

    /// A number of the live workload.
    pub(crate) async fn number(&self, pointer: &str) -> Result<i64> {
        let object = self.object().await?;
        object.pointer(pointer).and_then(Value::as_i64).context("no number")
    }

    /// The kubeconfig of somebody who may read and write all that Helm keeps, and no Deployment.
    pub(crate) async fn without_deployments(&self) -> Result<PathBuf> {
        let secrets = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["*"] }]);
        let access = account(self.cluster, &self.namespace, "releaser", &secrets).await?;
        Ok(self.cluster.write_kubeconfig(&format!("releaser-{}", self.namespace), &access)?)
    }
}

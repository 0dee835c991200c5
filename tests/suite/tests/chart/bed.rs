//! Rendering and installing the chart.

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_suite::operator::World;
use belay_testkit::{Cluster, keda::Keda, operator::chart, tool::Finished};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The release and its namespace, where a test needs no others.
pub(crate) const RELEASE: &str = "belay";
pub(crate) const NAMESPACE: &str = "belay-system";

/// What Deployment, roles and ServiceAccount of that release are called.
pub(crate) const OPERATOR: &str = "belay-operator";

/// A second prefix of annotations, for the one operator that follows all namespaces: it must leave
/// the workloads of other tests alone.
pub(crate) const OTHER_PREFIX: &str = "chart.example";

/// The control plane of this process, with CRDs that fit both prefixes.
pub(crate) async fn cluster() -> Result<&'static Cluster> {
    static PREPARED: OnceCell<&'static Cluster> = OnceCell::const_new();
    let prepare = || async {
        let cluster = World::shared().await?.cluster;
        let crds: Api<CustomResourceDefinition> = Api::all(cluster.admin()?);
        let version = belay_api::crd::SCHEMA_VERSION.to_string();
        let patch = json!({ "metadata": { "annotations": {
            format!("{OTHER_PREFIX}/schema"): version,
        }}});
        for crd in belay_api::crd::all(&belay_api::AnnotationPrefix::default()) {
            let name = crd.metadata.name.context("a CRD without a name")?;
            crds.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        anyhow::Ok(cluster)
    };
    PREPARED.get_or_try_init(prepare).await.copied()
}

/// KEDA's kinds, without anybody who works on them: a rollout that insists on its pause waits, and
/// holds its claim.
pub(crate) async fn keda_crds(cluster: &Cluster) -> Result<()> {
    static CRDS: OnceCell<()> = OnceCell::const_new();
    CRDS.get_or_try_init(|| Keda::apply_crds(cluster)).await?;
    Ok(())
}

/// `helm template` of the chart with these values.
pub(crate) async fn template(helm: Binary, values: &Value) -> Result<Finished> {
    let tool = Cluster::shared().await?.tool(helm)?.args(["template", RELEASE]).arg(chart());
    let tool = tool.args(["--namespace", NAMESPACE, "--values", "-"]);
    Ok(tool.input(values.to_string()).run().await?)
}

/// The objects that the chart makes with these values.
pub(crate) async fn render(helm: Binary, values: &Value) -> Result<Vec<Value>> {
    let text = template(helm, values).await?.ok()?;
    let mut objects = Vec::new();
    for document in serde_yaml::Deserializer::from_str(&text) {
        let object = Value::deserialize(document)?;
        ensure!(object.is_object(), "{object} is no object");
        objects.push(object);
    }
    Ok(objects)
}

/// The objects of one kind.
pub(crate) fn of_kind<'o>(
    objects: &'o [Value],
    kind: &'o str,
) -> impl Iterator<Item = &'o Value> + 'o {
    objects.iter().filter(move |object| object["kind"] == kind)
}

/// The one Deployment.
pub(crate) fn deployment(objects: &[Value]) -> Result<&Value> {
    let mut found = of_kind(objects, "Deployment");
    let first = found.next().context("no Deployment")?;
    ensure!(found.next().is_none(), "more than one Deployment");
    Ok(first)
}

/// The arguments of the operator, without `run`.
pub(crate) fn arguments(objects: &[Value]) -> Result<Vec<String>> {
    let container = &deployment(objects)?["spec"]["template"]["spec"]["containers"][0];
    let args: Vec<String> = serde_json::from_value(container["args"].clone())?;
    ensure!(args.first().map(String::as_str) == Some("run"), "{args:?}");
    Ok(args[1..].to_vec())
}

/// Helm's words when it refuses values.
pub(crate) async fn refusal(helm: Binary, values: &Value) -> Result<String> {
    let finished = template(helm, values).await?;
    ensure!(!finished.status.success(), "accepted {values}");
    Ok(finished.stderr)
}

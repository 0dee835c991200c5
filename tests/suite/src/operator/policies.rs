//! The admission policies of the chart, and the account that they hold to its word: an operator of the
//! tests may write nothing that an installed one may not.

use anyhow::Result;
use belay_components::Binary;
use belay_testkit::{Cluster, cluster::identity::Access, operator::chart, wait};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::json;

/// The release of the chart, and the namespace that it is rendered for: no test installs it there.
const RELEASE: &str = "belay";
const NAMESPACE: &str = "belay-under-test";
/// The same for an operator that removes pauses of an earlier one.
const MIGRATING: &str = "belay-migrating";
/// What the chart calls the operator's ServiceAccount.
const ACCOUNT: &str = "belay-operator";

/// Installs the policies in a cluster, and returns access for the account that they are about. It has
/// every right, so that nothing but them stands in its way.
///
/// # Errors
/// What Helm or the API server says, or that they do not take hold.
pub(super) async fn install(cluster: &Cluster) -> Result<Access> {
    install_as(cluster, NAMESPACE, &[]).await
}

/// The same for an account of its own, which may also remove pauses with these marks
/// (`migrateFrom.pauseMarks`).
///
/// # Errors
/// What Helm or the API server says, or that they do not take hold.
pub async fn migrating(cluster: &Cluster, marks: &[&str]) -> Result<Access> {
    install_as(cluster, MIGRATING, marks).await
}

async fn install_as(cluster: &Cluster, namespace: &str, marks: &[&str]) -> Result<Access> {
    let values = json!({ "migrateFrom": { "pauseMarks": marks } });
    let tool = cluster.tool(Binary::Helm4)?.args(["template", RELEASE]).arg(chart());
    let tool = tool.args(["--namespace", namespace, "--values", "-", "--show-only"]);
    let tool = tool.args(["templates/admission.yaml", "--set", "admissionPolicy.install=true"]);
    let rendered = tool.input(values.to_string()).ok().await?;
    let apply = cluster.tool(Binary::Kubectl)?.args(["apply", "--server-side", "--filename", "-"]);
    let _ = apply.input(rendered).ok().await?;
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let access = cluster.user(&user, &["system:masters"])?;
    take_hold(cluster, &access).await?;
    Ok(access)
}

/// The API server hears of policies by a watch: waits until neither kind may be created, as far as
/// there is such a kind.
async fn take_hold(cluster: &Cluster, access: &Access) -> Result<()> {
    let client = cluster.client(access)?;
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "canary" },
        "spec": {
            "selector": { "matchLabels": { "app": "canary" } },
            "template": {
                "metadata": { "labels": { "app": "canary" } },
                "spec": { "containers": [{ "name": "app", "image": "canary" }] },
            },
        },
    });
    let scaled = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": { "name": "canary" },
        "spec": {
            "scaleTargetRef": { "name": "canary" },
            "triggers": [{ "type": "cpu", "metadata": { "value": "50" } }],
        },
    });
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for canary in [workload, scaled] {
        let canary: DynamicObject = serde_json::from_value(canary)?;
        let types = canary.types.clone().unwrap_or_default();
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
        let what = format!("the policy of {} to take hold", kind.plural);
        wait::until(&what, wait::SOON, || async {
            match api.create(&dry, &canary).await {
                Ok(_) => Err("the operator's account may create one".to_owned()),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                Err(error) if error.to_string().contains("ValidatingAdmissionPolicy") => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?;
    }
    Ok(())
}

//! The admission policies of the chart, and the account that they hold to its word: an operator of the
//! tests may write nothing that an installed one may not.

use anyhow::Result;
use belay_components::Binary;
use belay_testkit::{Cluster, cluster::identity::Access, operator::chart, wait};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, api::PostParams};
use serde_json::json;

/// The release of the chart, and the namespace that it is rendered for: no test installs it there.
const RELEASE: &str = "belay";
const NAMESPACE: &str = "belay-under-test";
/// What the chart calls the operator's ServiceAccount.
const ACCOUNT: &str = "belay-operator";
/// The mark of an earlier operator whose pauses tests have removed.
pub const OLD_MARK: &str = "release.example.com/paused-by";

/// Installs the policies in a cluster, and returns access for the account that they are about. It has
/// every right, so that nothing but them stands in its way.
///
/// # Errors
/// What Helm or the API server says, or that they do not take hold.
pub(super) async fn install(cluster: &Cluster) -> Result<Access> {
    let values = json!({ "migrateFrom": { "pauseMarks": [OLD_MARK] } });
    let tool = cluster.tool(Binary::Helm4)?.args(["template", RELEASE]).arg(chart());
    let tool = tool.args(["--namespace", NAMESPACE, "--values", "-", "--show-only"]);
    let tool = tool.args(["templates/admission.yaml", "--set", "admissionPolicy.install=true"]);
    let rendered = tool.input(values.to_string()).ok().await?;
    let apply = cluster.tool(Binary::Kubectl)?.args(["apply", "--server-side", "--filename", "-"]);
    let _ = apply.input(rendered).ok().await?;
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let access = cluster.user(&user, &["system:masters"])?;
    take_hold(cluster, &access).await?;
    Ok(access)
}

/// The API server hears of policies by a watch.
async fn take_hold(cluster: &Cluster, access: &Access) -> Result<()> {
    let workloads: Api<Deployment> = Api::namespaced(cluster.client(access)?, "default");
    let canary = serde_json::from_value(json!({
        "metadata": { "name": "canary" },
        "spec": {
            "selector": { "matchLabels": { "app": "canary" } },
            "template": {
                "metadata": { "labels": { "app": "canary" } },
                "spec": { "containers": [{ "name": "app", "image": "canary" }] },
            },
        },
    }))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    wait::until("the policies to take hold", wait::SOON, || async {
        match workloads.create(&dry, &canary).await {
            Ok(_) => Err("the operator's account may create a Deployment".to_owned()),
            Err(error) if error.to_string().contains("ValidatingAdmissionPolicy") => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await?;
    Ok(())
}

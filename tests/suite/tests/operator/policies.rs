//! That the operator of these tests is held to its word by the chart's admission policies.

use anyhow::{Result, ensure};
use belay_suite::operator::Bed;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn the_account_of_the_operator_may_change_nothing_but_images() -> Result<()> {
    let bed = Bed::new("policies").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let client = bed.world.cluster.client(&bed.world.operator)?;
    let workloads =
        kube::Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(client, &bed.namespace);
    let params = PatchParams::default();
    let label = json!({ "metadata": { "labels": { "team": "shop" } } });
    let refused = workloads.patch("web", &params, &Patch::Merge(&label)).await;
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(error.contains("of the metadata the operator changes annotations alone"), "{error}");
    let containers = json!([{ "name": "app", "image": bed.image("1.1.0") }]);
    let image = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    workloads.patch("web", &params, &Patch::Strategic(&image)).await?;
    // Nobody else is concerned.
    bed.deployments().patch("web", &params, &Patch::Merge(&label)).await?;
    Ok(())
}

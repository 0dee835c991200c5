//! Pods that cannot be made, or find no node.

use anyhow::{Context as _, Result};
use belay_testkit::{objects::Workload, wait};
use k8s_openapi::api::core::v1::{ResourceQuota, ServiceAccount};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{Bed, Scenario};
use crate::rollouts::{
    stage::{APP, Stage, image},
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "quota",
        about: "A quota refuses the surge pod.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::ReplicaFailure), (1, Trap::WrongForLong(Naive::Available))],
        play: |stage| {
            Box::pin(async {
                quota(stage).await?;
                stage.given_up().await
            })
        },
    },
    Scenario {
        name: "quota-lifted",
        about: "The quota is raised after 2 s, and the rollout goes on by itself.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::ReplicaFailure)],
        play: |stage| {
            Box::pin(async {
                quota(stage).await?;
                stage.pass(2).await?;
                stage.did("the quota is raised");
                let more = json!({ "spec": { "hard": { "pods": "9" } } });
                let quotas: Api<ResourceQuota> = stage.api();
                quotas.patch(QUOTA, &PatchParams::default(), &Patch::Merge(&more)).await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "no-service-account",
        about: "The ServiceAccount of the pods is gone: the generation is observed, no pod is made.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::ReplicaFailure), (1, Trap::WrongForLong(Naive::Available))],
        play: |stage| Box::pin(no_service_account(stage)),
    },
    Scenario {
        name: "unschedulable",
        about: "One replica that needs more than half of a node: the surge pod finds no place, and \
                1/1 are ready all along.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::WrongForLong(Naive::UpdatedObserved))],
        play: |stage| {
            Box::pin(async {
                stage.install(&large(stage, "kwok-1")).await?;
                stage.roll("2.0.0").await?;
                stage.given_up().await
            })
        },
    },
];

const QUOTA: &str = "pods";

/// A Deployment of one pod that takes more than half of a node.
pub(super) fn large(stage: &Stage<'_>, node: &str) -> Workload {
    let container = json!({
        "name": APP, "image": image("1.0.0"), "resources": { "requests": { "cpu": "600" } },
    });
    stage
        .web_anywhere("1.0.0", 1)
        .pod_spec("containers", json!([container]))
        .pod_spec("nodeSelector", json!({ "kubernetes.io/hostname": node }))
}

/// A Deployment that fills its quota, and a roll that is refused by it.
async fn quota(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 3)).await?;
    let quotas: Api<ResourceQuota> = stage.api();
    let quota = serde_json::from_value(json!({
        "metadata": { "name": QUOTA }, "spec": { "hard": { "pods": "3" } },
    }))?;
    quotas.create(&PostParams::default(), &quota).await.context("create the quota")?;
    wait::until("the quota to count the pods", wait::SOON, || async {
        let quota = quotas.get(QUOTA).await.map_err(|error| error.to_string())?;
        let used = quota.status.and_then(|status| status.used).unwrap_or_default();
        let used = used.get("pods").map(|quantity| quantity.0.clone());
        if used.as_deref() == Some("3") { Ok(()) } else { Err(format!("{used:?}")) }
    })
    .await?;
    stage.roll("2.0.0").await?;
    refused(stage).await
}

async fn refused(stage: &Stage<'_>) -> Result<()> {
    let failure = "the condition ReplicaFailure";
    stage.deployment_until(failure, has_failed).await
}

fn has_failed(deployment: &k8s_openapi::api::apps::v1::Deployment) -> bool {
    let conditions = deployment.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one.type_ == "ReplicaFailure" && one.status == "True")
}

async fn no_service_account(stage: &Stage<'_>) -> Result<()> {
    let accounts: Api<ServiceAccount> = stage.api();
    let account = serde_json::from_value(json!({ "metadata": { "name": "web" } }))?;
    accounts.create(&PostParams::default(), &account).await.context("create a ServiceAccount")?;
    stage.install(&stage.web("1.0.0", 2).pod_spec("serviceAccountName", json!("web"))).await?;
    stage.did("the ServiceAccount is deleted");
    accounts.delete("web", &DeleteParams::default()).await.context("delete a ServiceAccount")?;
    // Admission has a memory of its own.
    stage.pass(1).await?;
    stage.roll("2.0.0").await?;
    refused(stage).await?;
    stage.given_up().await
}

//! Rollouts that succeed.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{apps::v1::DeploymentStatus, core::v1::Pod};
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::json;

use super::{Bed, Scenario};
use crate::rollouts::{
    objects::is_alive,
    stage::{DEADLINE, Stage},
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "good-roll-of-3",
        about: "The default surge. Before the last pod is ready there are four: three new, three \
                available, one of these old.",
        bed: Bed::Nodes,
        traps: &[
            (1, Trap::Wrong(Naive::Available)),
            (1, Trap::Wrong(Naive::AvailableCondition)),
            (1, Trap::Wrong(Naive::Updated)),
            (1, Trap::Wrong(Naive::UpdatedObserved)),
        ],
        play: |stage| Box::pin(roll_of_3(stage)),
    },
    Scenario {
        name: "good-roll-of-1",
        about: "One replica, its pod at once ready.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available)), (1, Trap::Wrong(Naive::Updated))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 1)).await?;
                stage.roll("2.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "slow-but-moving",
        about: "Every pod needs 4 s: in all longer than the deadline, but never so without progress.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::DeadlineSinceWrite))],
        play: |stage| Box::pin(slow_but_moving(stage)),
    },
    Scenario {
        name: "min-ready-seconds",
        about: "A pod counts as available only after it has been ready for 4 s.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::ReadyObserved))],
        play: |stage| {
            Box::pin(async {
                let web = stage.web("1.0.0", 2).spec("minReadySeconds", json!(4));
                stage.install(&web.spec("strategy", json!({ "type": "Recreate" }))).await?;
                stage.roll("2.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "recreate",
        about: "Recreate: the old pods need 2 s to end, and no new one is made before.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available))],
        play: |stage| {
            Box::pin(async {
                let web = stage.web_anywhere("1.0.0", 2).on_node("kwok-0");
                let web = web.spec("strategy", json!({ "type": "Recreate" }));
                stage.install(&web.pod_annotation("testbed/stop", "2s")).await?;
                stage.roll("2.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "recreate-beside-an-ended-pod",
        about: "Recreate, with a pod of the old template that was evicted and still has its object.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available))],
        play: |stage| Box::pin(recreate_beside_an_ended_pod(stage)),
    },
    Scenario {
        name: "no-surge-slow-end",
        about: "maxSurge 0: a new pod is made while the old one still needs 3 s to end.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::OldStillEnding)],
        play: |stage| {
            Box::pin(async {
                let web = stage.web_anywhere("1.0.0", 2).on_node("kwok-0");
                let web = web.spec("strategy", no_surge()).pod_annotation("testbed/stop", "3s");
                stage.install(&web).await?;
                stage.roll("2.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "superseded",
        about: "A second image in mid-rollout: the first one never succeeds.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available)), (2, Trap::Wrong(Naive::Available))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 3)).await?;
                stage.hold();
                stage.roll("2.0.0").await?;
                stage.held("2.0.0", 1).await?;
                stage.roll("3.0.0").await?;
                stage.held("3.0.0", 1).await?;
                stage.let_all_go();
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "annotated-in-mid-rollout",
        about: "An annotation is written in mid-rollout: another generation, the same rollout.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 3)).await?;
                stage.hold();
                stage.roll("2.0.0").await?;
                stage.held("2.0.0", 1).await?;
                let annotation =
                    json!({ "metadata": { "annotations": { "example.com/team": "a" } } });
                stage.change("annotated", annotation).await?;
                stage.let_all_go();
                stage.rolled_out().await
            })
        },
    },
];

/// No pod more than are wanted, and one of them may be missing.
pub(super) fn no_surge() -> serde_json::Value {
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } })
}

async fn roll_of_3(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 3)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    for _ in 0..2 {
        let pods = stage.held("2.0.0", 1).await?;
        stage.let_go(&pods).await?;
    }
    stage.held("2.0.0", 1).await?;
    stage
        .deployment_until("three new and three available ones of four", |now| {
            let status = now.status.clone().unwrap_or_default();
            let numbers = [status.replicas, status.updated_replicas, status.available_replicas];
            numbers == [Some(4), Some(3), Some(3)]
        })
        .await?;
    stage.let_all_go();
    stage.rolled_out().await
}

async fn slow_but_moving(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 3)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    for _ in 0..3 {
        let pods = stage.held("2.0.0", 1).await?;
        stage.pass(u64::from(DEADLINE) * 2 / 5).await?;
        stage.let_go(&pods).await?;
    }
    stage.rolled_out().await
}

async fn recreate_beside_an_ended_pod(stage: &Stage<'_>) -> Result<()> {
    let web = stage.web("1.0.0", 2).spec("strategy", json!({ "type": "Recreate" }));
    stage.install(&web).await?;
    let pods = stage.pods()?;
    let pod = pods.first().context("no pod is there")?;
    stage.hold();
    stage.pod_status("a pod is evicted", pod, super::bake::evicted()).await?;
    let pods = stage.held("1.0.0", 1).await?;
    let is_missing = |status: &DeploymentStatus| status.available_replicas == Some(1);
    let what = "one to be missing";
    stage.deployment_until(what, |now| now.status.as_ref().is_some_and(is_missing)).await?;
    stage.let_go(&pods).await?;
    stage.let_all_go();
    stage.rolled_out().await?;
    stage.roll("2.0.0").await?;
    stage.rolled_out().await?;
    // What is left of it would be left for ever here.
    for pod in stage.pods()?.iter().filter(|pod| !is_alive(pod)) {
        let api: Api<Pod> = stage.api();
        api.delete(&pod.name_any(), &DeleteParams::default()).await?;
    }
    Ok(())
}

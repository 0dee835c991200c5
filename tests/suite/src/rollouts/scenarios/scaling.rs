//! Others scale the Deployment meanwhile, to zero too.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;

use super::{Bed, Scenario};
use crate::rollouts::{
    objects::{is_alive, is_observed, reason_of},
    stage::{DEADLINE, Stage},
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "zero-then-one-bad",
        about: "No replicas, so that a bad image is complete at once; then one: `Progressing` stays \
                True for ever, and no deadline comes.",
        bed: Bed::Nodes,
        traps: &[
            (1, Trap::Wrong(Naive::RolloutStatus)),
            (1, Trap::WrongForLong(Naive::Complete)),
            (1, Trap::NeverGivesUp),
        ],
        play: |stage| {
            Box::pin(async {
                from_zero(stage, "2.0.0-no-pull").await?;
                stage.held("2.0.0-no-pull", 1).await?;
                stage.pass(u64::from(DEADLINE) + 2).await
            })
        },
    },
    Scenario {
        name: "zero-then-one-good",
        about: "No replicas, then one.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::RolloutStatus))],
        play: |stage| {
            Box::pin(async {
                from_zero(stage, "2.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "scaled-out-in-mid-rollout",
        about: "From 2 to 5 while the first new pod is not ready.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available))],
        play: |stage| Box::pin(scaled_in_mid_rollout(stage, 2, 5)),
    },
    Scenario {
        name: "scaled-in-in-mid-rollout",
        about: "From 4 to 2 while the first new pods are not ready.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Available))],
        play: |stage| Box::pin(scaled_in_mid_rollout(stage, 4, 2)),
    },
    Scenario {
        name: "zero-in-mid-rollout",
        about: "To zero while the first new pod is not ready: neither a success nor a failure.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::RolloutStatus))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 2)).await?;
                stage.hold();
                stage.roll("2.0.0").await?;
                stage.held("2.0.0", 1).await?;
                stage.scale(0).await?;
                no_replicas(stage).await
            })
        },
    },
];

async fn from_zero(stage: &Stage<'_>, tag: &str) -> Result<()> {
    stage.install(&stage.web("1.0.0", 0)).await?;
    stage.roll(tag).await?;
    stage.deployment_until("the controller to see the image", is_complete).await?;
    stage.pass(1).await?;
    stage.scale(1).await?;
    stage.deployment_until("the first replica", |now| count(now) == 1).await
}

fn is_complete(deployment: &Deployment) -> bool {
    is_observed(deployment)
        && reason_of(deployment, "Progressing").as_deref() == Some("NewReplicaSetAvailable")
}

fn count(deployment: &Deployment) -> i32 {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.replicas).unwrap_or_default()
}

/// Waits until there is no pod any more.
pub(super) async fn no_replicas(stage: &Stage<'_>) -> Result<()> {
    let what = "no replicas";
    stage.deployment_until(what, |now| is_observed(now) && count(now) == 0).await?;
    stage.pods_until(what, |pods| !pods.iter().any(is_alive)).await
}

async fn scaled_in_mid_rollout(stage: &Stage<'_>, from: u32, to: u32) -> Result<()> {
    stage.install(&stage.web("1.0.0", from)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    let count =
        |pods: &[k8s_openapi::api::core::v1::Pod]| pods.iter().filter(|pod| is_alive(pod)).count();
    let surge = usize::try_from(from)? + 1;
    stage.pods_until("the surge pod", |pods| count(pods) == surge).await?;
    stage.scale(to).await?;
    stage.deployment_until("the controller to see the scale", is_observed).await?;
    stage.pass(1).await?;
    stage.let_all_go();
    stage.rolled_out().await
}

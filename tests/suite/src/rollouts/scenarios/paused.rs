//! `spec.paused`: nothing moves, and no deadline passes.

use anyhow::Result;
use serde_json::json;

use super::{Bed, Scenario};
use crate::rollouts::{
    objects::is_observed,
    stage::{DEADLINE, Stage},
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "paused-at-the-write",
        about: "The image is written while the Deployment is paused; resumed after the deadline.",
        bed: Bed::Nodes,
        traps: &[
            (1, Trap::Wrong(Naive::DeadlineSinceWrite)),
            (1, Trap::WrongForLong(Naive::Available)),
        ],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 2)).await?;
                pause(stage, true).await?;
                stage.roll("2.0.0").await?;
                stage.deployment_until("the controller to see the image", is_observed).await?;
                resumed_late(stage).await
            })
        },
    },
    Scenario {
        name: "paused-in-mid-rollout",
        about: "Paused while the first new pod is not ready, for longer than the deadline.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::DeadlineSinceWrite))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 2)).await?;
                stage.hold();
                stage.roll("2.0.0").await?;
                stage.held("2.0.0", 1).await?;
                pause(stage, true).await?;
                stage.deployment_until("the controller to see the pause", is_observed).await?;
                resumed_late(stage).await
            })
        },
    },
];

async fn resumed_late(stage: &Stage<'_>) -> Result<()> {
    stage.pass(u64::from(DEADLINE) + 2).await?;
    pause(stage, false).await?;
    stage.let_all_go();
    stage.rolled_out().await
}

async fn pause(stage: &Stage<'_>, paused: bool) -> Result<()> {
    let what = if paused { "paused" } else { "resumed" };
    stage.change(what, json!({ "spec": { "paused": paused } })).await
}

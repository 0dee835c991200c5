//! Back from a rollout that Kubernetes has given up: its condition outlives it.

use anyhow::Result;
use belay_testkit::objects::Workload;
use serde_json::json;

use super::{Bed, Scenario, failing::stuck, good::no_surge};
use crate::rollouts::{
    stage::Stage,
    traps::{Naive, Trap},
};

const BAD: &str = "2.0.0-no-pull";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "rollback-to-a-full-replica-set",
        about: "All pods but one are still old: the rollback is done at once.",
        bed: Bed::Nodes,
        traps: &[(2, Trap::Wrong(Naive::GaveUp)), (2, Trap::Wrong(Naive::Available))],
        play: |stage| {
            Box::pin(async {
                stuck(stage, 3, BAD).await?;
                stage.roll("1.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "rollback-recreate",
        about: "No pod is ready, and the controller sees the new generation before it sees that the \
                old condition is none of it; in the same second, so that no stamp tells either.",
        bed: Bed::Nodes,
        traps: &[
            (2, Trap::Wrong(Naive::GaveUp)),
            (2, Trap::Wrong(Naive::GaveUpObserved)),
            (2, Trap::Wrong(Naive::GaveUpSince)),
        ],
        play: |stage| {
            Box::pin(async {
                let web = stage.web("1.0.0", 3).spec("strategy", json!({ "type": "Recreate" }));
                there_and_back(stage, &web).await
            })
        },
    },
    Scenario {
        name: "rollback-without-surge",
        about: "One replica, maxSurge 0, maxUnavailable 1: `Available` is True with no pod at all.",
        bed: Bed::Nodes,
        traps: &[
            (1, Trap::WrongForLong(Naive::AvailableCondition)),
            (2, Trap::Wrong(Naive::GaveUpObserved)),
            (2, Trap::Wrong(Naive::AvailableCondition)),
        ],
        play: |stage| {
            Box::pin(async {
                let web = stage.web("1.0.0", 1).spec("strategy", no_surge());
                there_and_back(stage, &web).await
            })
        },
    },
    Scenario {
        name: "rollback-slow-end",
        about: "Recreate, and pods need 4 s to end, those that never ran too.",
        bed: Bed::Nodes,
        traps: &[(2, Trap::Wrong(Naive::GaveUpObserved))],
        play: |stage| {
            Box::pin(async {
                let web = stage.web_anywhere("1.0.0", 2).on_node("kwok-0");
                let web = web.spec("strategy", json!({ "type": "Recreate" }));
                there_and_back(stage, &web.pod_annotation("testbed/stop", "4s")).await
            })
        },
    },
    Scenario {
        name: "undo-by-kubectl",
        about: "`kubectl rollout undo` of a stuck rollout.",
        bed: Bed::Nodes,
        traps: &[(3, Trap::Wrong(Naive::GaveUp))],
        play: |stage| {
            Box::pin(async {
                stage.install(&stage.web("1.0.0", 2)).await?;
                stage.roll("1.1.0").await?;
                stage.rolled_out().await?;
                stage.roll(BAD).await?;
                stage.given_up().await?;
                stage.kubectl(&["rollout", "undo"]).await?;
                stage.rolled_out().await
            })
        },
    },
];

async fn there_and_back(stage: &Stage<'_>, web: &Workload) -> Result<()> {
    stage.install(web).await?;
    stage.roll(BAD).await?;
    stage.given_up().await?;
    stage.roll("1.0.0").await?;
    stage.rolled_out().await
}

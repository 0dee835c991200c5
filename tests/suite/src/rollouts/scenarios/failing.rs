//! Rollouts that fail, and some that only look as if.

use anyhow::{Context as _, Result, ensure};
use belay_testkit::fate::Fate;
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentStatus},
    core::v1::Pod,
};
use serde_json::json;

use super::{Bed, Scenario};
use crate::rollouts::{
    objects::{has_image, reason_of},
    stage::{APP, DEADLINE, Stage, image},
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "bad-image-1",
        about: "One replica, an image that cannot be pulled: with the default surge the numbers of \
                new and available pods are right all the time.",
        bed: Bed::Nodes,
        traps: &[
            (1, Trap::WrongForLong(Naive::UpdatedObserved)),
            (1, Trap::WrongForLong(Naive::AvailableCondition)),
        ],
        play: |stage| Box::pin(stuck(stage, 1, "2.0.0-no-pull")),
    },
    Scenario {
        name: "bad-image-3",
        about: "Three replicas, an image that cannot be pulled.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::WrongForLong(Naive::Available))],
        play: |stage| Box::pin(stuck(stage, 3, "2.0.0-no-pull")),
    },
    Scenario {
        name: "crash-loop",
        about: "Three replicas, an image that crashes again and again.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::WrongForLong(Naive::Available))],
        play: |stage| Box::pin(stuck(stage, 3, "2.0.0-crash-loop")),
    },
    Scenario {
        name: "never-given-up",
        about: "Recreate, an image that cannot be pulled, and somebody who writes a label just when \
                the controller has made the ReplicaSet: the condition of the last rollout stays, \
                complete for ever (kubernetes#40496).",
        bed: Bed::Nodes,
        traps: &[(1, Trap::NeverGivesUp), (1, Trap::WrongForLong(Naive::Complete))],
        play: |stage| Box::pin(never_given_up(stage)),
    },
    Scenario {
        name: "flapping",
        about: "The new pod is ready for 2 s and then not, again and again: each time counts as \
                progress for Kubernetes, whose deadline never comes.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::NeverGivesUp), (1, Trap::WrongForLong(Naive::UpdatedObserved))],
        play: |stage| Box::pin(flapping(stage)),
    },
    Scenario {
        name: "flapping-availability",
        about: "The first new pod is available for 2 s and then not, again and again, while the \
                second one never is: the same number of available pods, reached again, is no progress.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::NeverGivesUp)],
        play: |stage| Box::pin(flapping_availability(stage)),
    },
    Scenario {
        name: "pull-error-passes",
        about: "The registry cannot be reached for 5 s, then the image is pulled.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::UpdatedObserved))],
        play: |stage| Box::pin(pull_error_passes(stage)),
    },
    Scenario {
        name: "fix-forward",
        about: "A stuck rollout is left for a newer image, which succeeds.",
        bed: Bed::Nodes,
        traps: &[(2, Trap::Wrong(Naive::GaveUp))],
        play: |stage| {
            Box::pin(async {
                stuck(stage, 2, "2.0.0-no-pull").await?;
                stage.roll("3.0.0").await?;
                stage.rolled_out().await
            })
        },
    },
];

/// More labels than can be written while a rollout begins.
const LABELS: u32 = 300;

/// Rolls from a good image to another, until Kubernetes gives up.
pub(super) async fn stuck(stage: &Stage<'_>, replicas: u32, tag: &str) -> Result<()> {
    stage.install(&stage.web("1.0.0", replicas)).await?;
    stage.roll(tag).await?;
    stage.given_up().await
}

async fn never_given_up(stage: &Stage<'_>) -> Result<()> {
    const BAD: &str = "2.0.0-no-pull";
    let web = stage.web("1.0.0", 2).spec("strategy", json!({ "type": "Recreate" }));
    stage.install(&web).await?;
    stage.roll(BAD).await?;
    // The controller's write of its own condition meets a conflict, and is not tried again.
    let is_made = |pods: &[Pod]| pods.iter().any(|pod| has_image(pod, &image(BAD)));
    for number in 0..LABELS {
        if is_made(&stage.pods()?) {
            break;
        }
        let labels = json!({ "metadata": { "labels": { "number": number.to_string() } } });
        stage.change("labelled", labels).await?;
    }
    stage.held(BAD, 2).await?;
    let is_counted = |status: &DeploymentStatus| status.updated_replicas == Some(2);
    let counted = |now: &Deployment| now.status.as_ref().is_some_and(is_counted);
    stage.deployment_until("the pods to be counted", counted).await?;
    stage.pass(1).await?;
    let reason = reason_of(&stage.deployment()?, "Progressing").unwrap_or_default();
    ensure!(reason == "NewReplicaSetAvailable", "no conflict: {reason}");
    stage.pass(u64::from(DEADLINE) + 2).await
}

async fn flapping(stage: &Stage<'_>) -> Result<()> {
    // Less than this at a time, so that no pod ever counts as available.
    let web = stage.web("1.0.0", 1).spec("minReadySeconds", json!(4));
    stage.install(&web).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    let pods = stage.held("2.0.0", 1).await?;
    flap(stage, pods.first().context("no pod is held")?).await
}

async fn flapping_availability(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 3)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    let pods = stage.held("2.0.0", 1).await?;
    stage.let_go(&pods).await?;
    stage.held("2.0.0", 1).await?;
    flap(stage, pods.first().context("no pod is held")?).await
}

/// Makes a pod ready and not, for longer than the deadline.
async fn flap(stage: &Stage<'_>, pod: &Pod) -> Result<()> {
    for _ in 0..=DEADLINE / 3 {
        stage.kubelet().become_(pod, Fate::NeverReady);
        stage.pass(1).await?;
        stage.kubelet().become_(pod, Fate::Ready);
        stage.pass(2).await?;
    }
    stage.kubelet().become_(pod, Fate::NeverReady);
    stage.pass(1).await
}

async fn pull_error_passes(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 1)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    let pods = stage.held("2.0.0", 1).await?;
    let pod = pods.first().context("no pod is held")?;
    let waiting = json!({
        "reason": "ErrImagePull",
        "message": "failed to pull image: dial tcp 192.0.2.1:443: i/o timeout",
    });
    let status = json!({ "phase": "Pending", "containerStatuses": [{
        "name": APP, "image": image("2.0.0"), "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": waiting },
    }]});
    stage.pod_status("the registry cannot be reached", pod, status).await?;
    stage.pass(5).await?;
    stage.let_all_go();
    stage.rolled_out().await
}

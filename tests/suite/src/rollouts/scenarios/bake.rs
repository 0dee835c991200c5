//! What happens to a rollout after it has succeeded.

use anyhow::{Context as _, Result};
use belay_testkit::{fate::Fate, wait};
use k8s_openapi::api::{
    core::v1::{Node, Pod},
    scheduling::v1::PriorityClass,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Bed, Scenario, refused::large, scaling::no_replicas, unique};
use crate::rollouts::{
    objects::{is_alive, is_ready},
    stage::Stage,
    traps::{Naive, Trap},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "crash-after-success",
        about: "All pods of a finished rollout begin to crash: `Progressing` stays complete.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Complete))],
        play: |stage| {
            Box::pin(async {
                succeeded(stage, 2).await?;
                stage.all_become("2.0.0", Fate::CrashLoop)?;
                stage.pods_until("no ready pod", |pods| !pods.iter().any(is_ready)).await
            })
        },
    },
    Scenario {
        name: "unready-after-success",
        about: "All pods of a finished rollout stop being ready, without a crash.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Complete))],
        play: |stage| Box::pin(unready(stage)),
    },
    Scenario {
        name: "replacement-crashes-in-bake",
        about: "A pod is evicted, and the one in its place crashes again and again.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::Complete))],
        play: |stage| {
            Box::pin(async {
                let pod = succeeded(stage, 2).await?;
                stage.hold();
                stage.pod_status("a pod is evicted", &pod, evicted()).await?;
                let pods = stage.held("2.0.0", 1).await?;
                let replacement = pods.first().context("no pod is held")?;
                stage.did("its replacement crashes");
                stage.kubelet().become_(replacement, Fate::CrashLoop);
                stage.pass(4).await
            })
        },
    },
    Scenario {
        name: "evicted-in-bake",
        about: "A node under pressure evicts a pod; its replacement needs 4 s.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| {
            Box::pin(async {
                let pod = succeeded(stage, 2).await?;
                stage.hold();
                stage.pod_status("a pod is evicted", &pod, evicted()).await?;
                replaced_late(stage).await
            })
        },
    },
    Scenario {
        name: "evicted-by-api-in-bake",
        about: "Somebody drains a node; the replacement needs 4 s.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| {
            Box::pin(async {
                let pod = succeeded(stage, 2).await?;
                stage.hold();
                stage.did("a pod is evicted by the API");
                let pods: Api<Pod> = stage.api();
                pods.evict(&pod.name_any(), &EvictParams::default()).await.context("evict")?;
                replaced_late(stage).await
            })
        },
    },
    Scenario {
        name: "preempted-in-bake",
        about: "The scheduler ends the pod for a more important one, which leaves after 4 s.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| Box::pin(preempted(stage)),
    },
    Scenario {
        name: "node-lost-in-bake",
        about: "The node stops reporting: Kubernetes calls its pods unready in the kubelet's place; \
                after 5 s it is back.",
        bed: Bed::NodesMayDie,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| Box::pin(node_lost(stage)),
    },
    Scenario {
        name: "restarted-in-bake",
        about: "`kubectl rollout restart` after success: the same image, another rollout of it.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| {
            Box::pin(async {
                succeeded(stage, 2).await?;
                stage.hold();
                stage.kubectl(&["rollout", "restart"]).await?;
                replaced_late(stage).await
            })
        },
    },
    Scenario {
        name: "scaled-out-in-bake",
        about: "An autoscaler goes from 2 to 4 after success and, while the new pods are not ready, \
                back.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::PodUnready))],
        play: |stage| {
            Box::pin(async {
                succeeded(stage, 2).await?;
                stage.hold();
                stage.scale(4).await?;
                stage.held("2.0.0", 2).await?;
                stage.pass(4).await?;
                stage.scale(2).await?;
                stage.rolled_out().await
            })
        },
    },
    Scenario {
        name: "zero-in-bake",
        about: "To zero 3 s after success, and back to one.",
        bed: Bed::Nodes,
        traps: &[(1, Trap::Wrong(Naive::RolloutStatus))],
        play: |stage| {
            Box::pin(async {
                succeeded(stage, 1).await?;
                stage.pass(3).await?;
                stage.scale(0).await?;
                no_replicas(stage).await?;
                // So long that what was ready before is not taken for what is.
                stage.pass(2).await?;
                stage.scale(1).await?;
                stage.rolled_out().await
            })
        },
    },
];

/// The status of a pod that a kubelet evicted.
pub(super) fn evicted() -> Value {
    json!({
        "phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory.",
        "conditions": [
            { "type": "Ready", "status": "False", "reason": "PodFailed" },
            { "type": "ContainersReady", "status": "False", "reason": "PodFailed" },
            { "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet" },
        ],
    })
}

/// A rollout that has succeeded, and one of its pods.
async fn succeeded(stage: &Stage<'_>, replicas: u32) -> Result<Pod> {
    stage.install(&stage.web("1.0.0", replicas)).await?;
    stage.roll("2.0.0").await?;
    stage.rolled_out().await?;
    // What is made now is younger than the success, also by stamps of whole seconds.
    stage.pass(2).await?;
    stage.pods()?.into_iter().find(is_alive).context("no pod is there")
}

async fn unready(stage: &Stage<'_>) -> Result<()> {
    stage.install(&stage.web("1.0.0", 2)).await?;
    stage.hold();
    stage.roll("2.0.0").await?;
    for _ in 0..2 {
        let pods = stage.held("2.0.0", 1).await?;
        // So that they are older than the success, also by stamps of whole seconds.
        stage.pass(2).await?;
        stage.let_go(&pods).await?;
    }
    stage.rolled_out().await?;
    stage.all_become("2.0.0", Fate::NeverReady)?;
    stage.pods_until("no ready pod", |pods| !pods.iter().any(is_ready)).await?;
    stage.pass(4).await
}

/// A pod that replaces another is held for 4 s.
async fn replaced_late(stage: &Stage<'_>) -> Result<()> {
    stage.held("2.0.0", 1).await?;
    stage.pass(4).await?;
    stage.let_all_go();
    stage.rolled_out().await
}

async fn preempted(stage: &Stage<'_>) -> Result<()> {
    let node = "kwok-2";
    // There is no place for two, not even while one of them ends.
    stage.install(&large(stage, node).spec("strategy", json!({ "type": "Recreate" }))).await?;
    stage.roll("2.0.0").await?;
    stage.rolled_out().await?;
    stage.pass(2).await?;
    let class = unique("urgent");
    let classes: Api<PriorityClass> = Api::all(stage.client().clone());
    let object = serde_json::from_value(json!({ "metadata": { "name": class }, "value": 1000 }))?;
    classes.create(&PostParams::default(), &object).await.context("create a PriorityClass")?;
    let urgent = serde_json::from_value(json!({
        "metadata": { "name": "urgent" },
        "spec": {
            "priorityClassName": class,
            "nodeSelector": { "kubernetes.io/hostname": node },
            "containers": [{
                "name": "urgent", "image": "registry.example/shop/urgent:1",
                "resources": { "requests": { "cpu": "600" } },
            }],
        },
    }))?;
    stage.did("a more important pod comes");
    let pods: Api<Pod> = stage.api();
    // Admission learns of the class a moment later.
    wait::until("the more important pod to be admitted", wait::SOON, || async {
        let created = pods.create(&PostParams::default(), &urgent).await;
        created.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    wait::until("the more important pod to have its place", wait::SOON, || async {
        let pod = pods.get("urgent").await.map_err(|error| error.to_string())?;
        if is_ready(&pod) { Ok(()) } else { Err(format!("{:?}", pod.status)) }
    })
    .await?;
    stage.pass(4).await?;
    stage.did("it leaves");
    pods.delete("urgent", &DeleteParams::default()).await.context("delete the pod")?;
    stage.pods_until("the replacement", |pods| pods.iter().any(is_ready)).await?;
    stage.rolled_out().await
}

async fn node_lost(stage: &Stage<'_>) -> Result<()> {
    let name = stage.kubelet().node();
    let nodes: Api<Node> = Api::all(stage.client().clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    nodes.create(&PostParams::default(), &node).await.context("create the node")?;
    report(&nodes, name).await?;
    succeeded(stage, 2).await?;
    stage.pods_until("the node to be lost", |pods| !pods.iter().any(is_ready)).await?;
    stage.did("the node is lost");
    stage.pass(5).await?;
    stage.did("the node is back");
    report(&nodes, name).await?;
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    for pod in stage.pods()?.iter().filter(|pod| is_alive(pod)) {
        stage.pod_status("its kubelet says that a pod is ready", pod, ready.clone()).await?;
    }
    stage.pods_until("the pods to be ready", |pods| pods.iter().all(is_ready)).await?;
    stage.rolled_out().await
}

/// Says once that a node is alive.
async fn report(nodes: &Api<Node>, name: &str) -> Result<()> {
    let now = jiff::Timestamp::now();
    let status = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]}});
    let params = PatchParams::default();
    nodes.patch_status(name, &params, &Patch::Strategic(&status)).await.context("report")?;
    Ok(())
}

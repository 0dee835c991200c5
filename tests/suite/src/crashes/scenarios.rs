//! The reference runs: what happens to a target, step by step, each when the one before shows.

use anyhow::Result;
use belay_api::Rollback;
use futures::future::BoxFuture;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{
    admission,
    scene::Scene,
    timeline::{Kind, Objects, condition},
};

/// A reference run.
pub struct Scenario {
    /// Its name, the beginning of its namespaces.
    pub(super) name: &'static str,
    /// What happens.
    pub(super) play: for<'s> fn(&'s Scene) -> BoxFuture<'s, Result<()>>,
    /// What admission makes of an image.
    pub(super) admission: Option<fn(&str) -> String>,
}

/// A release is published for a workload that KEDA scales.
pub const KEDA_ROLL: Scenario =
    Scenario { name: "crash-keda-roll", play: |scene| Box::pin(keda_roll(scene)), admission: None };

/// The same with one that cannot be pulled.
pub const KEDA_STUCK: Scenario = Scenario {
    name: "crash-keda-stuck",
    play: |scene| Box::pin(keda_stuck(scene)),
    admission: None,
};

/// The same, and a person rolls back in mid-rollout.
pub const KEDA_UNDONE: Scenario = Scenario {
    name: "crash-keda-undone",
    play: |scene| Box::pin(keda_undone(scene)),
    admission: None,
};

/// A workload that Helm has installed is seen for the first time.
pub const FIRST_SIGHT: Scenario =
    Scenario { name: "crash-first", play: |scene| Box::pin(first_sight(scene)), admission: None };

/// A release is published.
pub const ROLL: Scenario =
    Scenario { name: "crash-roll", play: |scene| Box::pin(roll(scene)), admission: None };

/// A release is published that cannot be pulled.
pub const STUCK: Scenario =
    Scenario { name: "crash-stuck", play: |scene| Box::pin(stuck(scene)), admission: None };

/// A person rolls back.
pub const ROLLBACK: Scenario =
    Scenario { name: "crash-rollback", play: |scene| Box::pin(rollback(scene)), admission: None };

/// A release is published before its image.
pub const LATE_IMAGE: Scenario =
    Scenario { name: "crash-late", play: |scene| Box::pin(late_image(scene)), admission: None };

/// A person sets another image while a release rolls out.
pub const CHANGED: Scenario =
    Scenario { name: "crash-changed", play: |scene| Box::pin(changed(scene)), admission: None };

/// Admission gives the image another host.
pub const REWRITTEN: Scenario = Scenario {
    name: "crash-rewritten",
    play: |scene| Box::pin(rewritten(scene)),
    admission: Some(admission::rewritten),
};

async fn first_sight(scene: &Scene) -> Result<()> {
    scene.bed.release("v1.0.0").await?;
    scene.install(&scene.web("1.0.0")).await?;
    scene.phase("start");
    scene.start();
    healthy(scene, "v1.0.0").await
}

/// The state that the other runs begin with; how it comes about is [`FIRST_SIGHT`].
async fn settled(scene: &Scene) -> Result<()> {
    scene.bed.release("v1.0.0").await?;
    scene.install(&scene.web("1.0.0")).await?;
    scene.start();
    healthy(scene, "v1.0.0").await?;
    scene.pause().await
}

async fn roll(scene: &Scene) -> Result<()> {
    settled(scene).await?;
    scene.bed.push("v1.1.0").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0")?;
    healthy(scene, "v1.1.0").await
}

async fn stuck(scene: &Scene) -> Result<()> {
    settled(scene).await?;
    scene.bed.push("v1.1.0+no-pull").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0+no-pull")?;
    rolled_back(scene).await?;
    healthy(scene, "v1.0.0").await
}

/// The same with a ScaledObject.
async fn scaled(scene: &Scene) -> Result<()> {
    scene.bed.release("v1.0.0").await?;
    scene.install(&scene.web("1.0.0").annotation("belay.dev/scaledobject", "web")).await?;
    scene.scale().await?;
    scene.start();
    healthy(scene, "v1.0.0").await?;
    scene.pause().await
}

async fn keda_roll(scene: &Scene) -> Result<()> {
    scaled(scene).await?;
    scene.bed.push("v1.1.0").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0")?;
    healthy(scene, "v1.1.0").await?;
    let_go(scene).await
}

async fn keda_stuck(scene: &Scene) -> Result<()> {
    scaled(scene).await?;
    scene.bed.push("v1.1.0+no-pull").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0+no-pull")?;
    rolled_back(scene).await?;
    healthy(scene, "v1.0.0").await?;
    let_go(scene).await
}

async fn keda_undone(scene: &Scene) -> Result<()> {
    scaled(scene).await?;
    scene.bed.push("v1.1.0+never-ready").await?;
    scene.bed.publish("v1.1.0+never-ready")?;
    rolling(scene, "v1.1.0+never-ready").await?;
    scene.pause().await?;
    scene.phase("asked");
    ask_for_rollback(scene).await?;
    rolled_back(scene).await?;
    healthy(scene, "v1.0.0").await?;
    let_go(scene).await
}

/// Waits until no pause is held.
async fn let_go(scene: &Scene) -> Result<()> {
    scene
        .until("the pause to be dropped", |objects| {
            let annotations = &objects.one(Kind::ScaledObject, "web")["metadata"]["annotations"];
            let text = annotations.to_string();
            if text.contains("pause") { Err(text) } else { Ok(()) }
        })
        .await
}

async fn ask_for_rollback(scene: &Scene) -> Result<()> {
    let rollback: Rollback = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Rollback",
        "metadata": { "name": "web-back" },
        "spec": {
            "toReleaseRef": { "target": "web" },
            "reason": "the new one is slow",
            "initiatedBy": { "principal": "ann", "type": "user" },
        },
    }))?;
    scene.bed.rollbacks().create(&PostParams::default(), &rollback).await?;
    Ok(())
}

/// Waits until a release is in mid-rollout: the target says so, and the new pod does not become ready.
async fn rolling(scene: &Scene, tag: &str) -> Result<()> {
    scene
        .until(&format!("{tag} to roll"), |objects| {
            let active = condition(release(objects, tag), "Active");
            let progressing = condition(objects.one(Kind::Target, "web"), "Progressing");
            if active == "True/Applied" && progressing == "True/Rolling" {
                Ok(())
            } else {
                Err(format!("Active={active} Progressing={progressing}"))
            }
        })
        .await
}

async fn rollback(scene: &Scene) -> Result<()> {
    settled(scene).await?;
    scene.bed.release("v1.1.0").await?;
    healthy(scene, "v1.1.0").await?;
    scene.pause().await?;
    scene.phase("asked");
    ask_for_rollback(scene).await?;
    rolled_back(scene).await?;
    healthy(scene, "v1.0.0").await
}

async fn late_image(scene: &Scene) -> Result<()> {
    settled(scene).await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0")?;
    scene
        .until("v1.1.0 to wait for its image", |objects| {
            let status = &objects.one(Kind::Target, "web")["status"];
            let mut candidates = status["candidates"].as_array().into_iter().flatten();
            let waits =
                candidates.any(|one| one["tag"] == "v1.1.0" && one["gate"] == "WaitingForImage");
            if waits { Ok(()) } else { Err(status.to_string()) }
        })
        .await?;
    scene.phase("pushed");
    scene.bed.push("v1.1.0").await?;
    healthy(scene, "v1.1.0").await
}

async fn changed(scene: &Scene) -> Result<()> {
    settled(scene).await?;
    scene.bed.push("v1.1.0+never-ready").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0+never-ready")?;
    rolling(scene, "v1.1.0+never-ready").await?;
    scene.phase("changed");
    scene.set_image(&scene.image("0.9.0")).await?;
    scene
        .until("the target to be stalled", |objects| {
            match condition(objects.one(Kind::Target, "web"), "Stalled").as_str() {
                "True/ChangedByPerson" => Ok(()),
                other => Err(format!("Stalled={other}")),
            }
        })
        .await
}

async fn rewritten(scene: &Scene) -> Result<()> {
    admission::rewrite(scene).await?;
    scene.bed.release("v1.0.0").await?;
    let asked = scene.image("");
    let repository = asked.trim_end_matches(':');
    scene.install(&scene.web("1.0.0").annotation("belay.dev/image", repository)).await?;
    scene.start();
    healthy(scene, "v1.0.0").await?;
    scene.pause().await?;
    scene.bed.push("v1.1.0").await?;
    scene.phase("published");
    scene.bed.publish("v1.1.0")?;
    healthy(scene, "v1.1.0").await
}

/// The Release of a tag; null if there is none.
fn release<'o>(objects: &'o Objects, tag: &str) -> &'o Value {
    let is_of_tag = |one: &Value| one["config"]["revisions"][0]["id"] == tag;
    let mut releases = objects.all(Kind::Release).map(|(_, release)| release);
    releases.find(|one| is_of_tag(one)).unwrap_or(&Value::Null)
}

/// Waits until a release is active and healthy.
async fn healthy(scene: &Scene, tag: &str) -> Result<()> {
    scene
        .until(&format!("{tag} to be healthy"), |objects| {
            let release = release(objects, tag);
            let (active, healthy) = (condition(release, "Active"), condition(release, "Healthy"));
            if active.starts_with("True/") && healthy.starts_with("True/") {
                Ok(())
            } else {
                Err(format!("Active={active} Healthy={healthy}"))
            }
        })
        .await
}

/// Waits until a Rollback has succeeded.
async fn rolled_back(scene: &Scene) -> Result<()> {
    scene
        .until("a Rollback to succeed", |objects| {
            let all = objects.all(Kind::Rollback);
            let all: Vec<_> = all.map(|(_, one)| condition(one, "Succeeded")).collect();
            let is_done = all.iter().any(|one| one.starts_with("True/"));
            if is_done { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await
}

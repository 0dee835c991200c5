//! The Deployment `web` that KEDA scales and the operator follows.

use std::ops::Deref;

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    NamedValue as _,
    conditions::find,
    reasons::{Note, ProgressingReason},
    target::TargetStatus,
};
use belay_suite::{
    keda::{Change, Kind, MANAGER, Scaling},
    operator::{Bed, Running, Wiring, World, support::wait_for_target},
};
use belay_testkit::objects::{ScaledObject, Workload};
use kube::{Api, api::DynamicObject};
use serde_json::Value;

/// The Deployment, its target and its ScaledObject.
pub(crate) const WEB: &str = "web";
/// Its ScaledObject, for the log.
pub(crate) const SCALED: (Kind, &str) = (Kind::ScaledObject, WEB);
/// Its HPA, for the log.
pub(crate) const HPA: (Kind, &str) = (Kind::Hpa, "keda-hpa-web");
/// The Deployment itself, for the log.
pub(crate) const WORKLOAD: (Kind, &str) = (Kind::Deployment, WEB);
/// Says whose a pause is.
pub(crate) const OWNER: &str = "belay.dev/pause-owner";
/// Says until when.
pub(crate) const EXPIRES: &str = "belay.dev/pause-expires";

/// A namespace with KEDA.
pub(crate) struct Scene {
    pub(crate) bed: Bed,
    pub(crate) scaling: Scaling,
}

impl Deref for Scene {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

/// The usual operator, with pauses, and with other settings.
pub(crate) fn wired(change: impl FnOnce(&mut belay_engine::settings::Settings)) -> Wiring {
    let mut wiring = Wiring::default();
    wiring.settings.scaled_objects = true;
    change(&mut wiring.settings);
    wiring
}

/// The usual operator that gives up on a proof soon.
pub(crate) fn impatient() -> Wiring {
    wired(|settings| settings.windows.pause_proof = belay_api::Duration::from_secs(3))
}

impl Scene {
    /// An empty namespace with KEDA.
    pub(crate) async fn new(prefix: &str) -> Result<Self> {
        let bed = Bed::in_world(World::with_keda().await?, prefix).await?;
        let scaling = Scaling::start(bed.world.cluster, &bed.namespace).await?;
        Ok(Self { bed, scaling })
    }

    /// `web` with its ScaledObject named, not created yet.
    pub(crate) fn scaled(&self, tag: &str) -> Workload {
        self.bed.web(tag).annotation("belay.dev/scaledobject", WEB)
    }

    /// `web` at four replicas, all at rest, followed by an operator that has found it healthy.
    pub(crate) async fn following(prefix: &str, wiring: Wiring) -> Result<(Self, Running)> {
        Self::following_as(prefix, wiring, |workload| workload, |object| object).await
    }

    /// The same, with the usual operator and a deadline that no test waits for.
    pub(crate) async fn rolling_long(prefix: &str) -> Result<(Self, Running)> {
        let patient = |workload: Workload| workload.annotation("belay.dev/deadline", "5m");
        Self::following_as(prefix, wired(|_| ()), patient, |object| object).await
    }

    /// The same with another workload, or another ScaledObject.
    pub(crate) async fn following_as(
        prefix: &str,
        wiring: Wiring,
        workload: impl FnOnce(Workload) -> Workload,
        object: impl FnOnce(ScaledObject) -> ScaledObject,
    ) -> Result<(Self, Running)> {
        let scene = Self::new(prefix).await?;
        scene.release("v1.0.0").await?;
        scene.scaling.metric(WEB, 35);
        scene.create(&workload(scene.scaled("1.0.0")), "helm").await?;
        scene.scaling.settle(&object(scene.scaling.of(WEB))).await?;
        scene.scaling.until_replicas(WEB, 4).await?;
        let operator = Running::start(&scene.bed, wiring)?;
        scene.wait_for_healthy(WEB, "v1.0.0").await?;
        Ok((scene, operator))
    }

    /// Publishes a release whose pods never become ready, and waits until it rolls: a rollout that
    /// lasts until its deadline.
    pub(crate) async fn rolling(&self, version: &str) -> Result<()> {
        self.release(&format!("v{version}+never-ready")).await?;
        self.wait_for_image(WEB, &self.image(&format!("{version}_never-ready"))).await
    }

    /// Waits until no pause of ours is held in the namespace.
    pub(crate) async fn until_dropped(&self) -> Result<()> {
        self.wait("no pause to be held", || async {
            let held = self.scaling.owned_by(MANAGER).await?;
            ensure!(held.is_empty(), "{held:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a ScaledObject carries a claim of ours; returns it.
    pub(crate) async fn until_claimed(&self, name: &str) -> Result<Value> {
        self.wait(&format!("the ScaledObject {name} to be claimed"), || async {
            let owner = self.scaling.annotation(name, OWNER).await?.context("no claim")?;
            Ok(serde_json::from_str(&owner)?)
        })
        .await
    }

    /// The claims that the ScaledObject has carried, each state once.
    pub(crate) fn claims(&self) -> Result<Vec<Option<Value>>> {
        let all = self.scaling.log.after(0, SCALED.0, SCALED.1)?;
        let mut claims: Vec<Option<Value>> = all.iter().map(claim).collect();
        claims.dedup();
        Ok(claims)
    }

    /// Waits until the target notes this; returns what it says.
    pub(crate) async fn noted(&self, note: Note) -> Result<String> {
        let what = format!("the note {}", note.as_str());
        wait_for_target(self, WEB, &what, |status| {
            let found = find(&status.conditions, note.as_str())?;
            (found.status == "True").then(|| found.message.clone())
        })
        .await
    }

    /// Waits until the target notes this no more.
    pub(crate) async fn unnoted(&self, note: Note) -> Result<()> {
        let what = format!("no note {}", note.as_str());
        let is_gone =
            |status: &TargetStatus| find(&status.conditions, note.as_str()).is_none().then_some(());
        wait_for_target(self, WEB, &what, is_gone).await
    }

    /// Waits until the target is under way like this; returns what it says.
    pub(crate) async fn busy(&self, reason: ProgressingReason) -> Result<String> {
        let what = format!("Progressing/{}", reason.as_str());
        wait_for_target(self, WEB, &what, |status| {
            let found = find(&status.conditions, "Progressing")?;
            (found.reason == reason.as_str()).then(|| found.message.clone())
        })
        .await
    }
}

/// Waits until the ScaledObject `web` of a bed without [`Scaling`] is not paused by us any more.
pub(crate) async fn until_let_go(bed: &Bed, objects: &Api<DynamicObject>) -> Result<()> {
    bed.wait("the pause to be dropped", || async {
        let entries = objects.get(WEB).await?.metadata.managed_fields.unwrap_or_default();
        let is_held = entries.iter().any(|entry| entry.manager.as_deref() == Some(MANAGER));
        ensure!(!is_held, "it is held");
        Ok(())
    })
    .await
}

/// The claim that a ScaledObject in the log carries.
pub(crate) fn claim(change: &Change) -> Option<Value> {
    serde_json::from_str(change.object["metadata"]["annotations"][OWNER].as_str()?).ok()
}

/// The image of a Deployment in the log.
pub(crate) fn image(change: &Change) -> &str {
    change.object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

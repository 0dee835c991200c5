//! The decision of one pass: at most one step, the status that follows, and when to look again.
//!
//! [`plan`] is total: whatever was observed, it comes to a plan. A step carries the uid and
//! resourceVersion of what it was decided from, so that a world that has moved on refuses it and
//! the next pass decides anew. Every intent stands in an object before it is acted on: a Release
//! before its image, an attempt before its apply, a revert before it is answered. A crash anywhere
//! therefore leaves a state from which the same plan follows.

mod apply;
mod begin;
mod blocks;
mod cull;
mod failure;
mod first;
mod foreign;
mod foresee;
mod forward;
mod late;
mod make;
mod others;
mod pause;
mod pods;
mod record;
mod registry;
mod resolve;
mod rollback;
mod status;
mod unfollowed;
mod verdict;
mod view;

use std::ops::ControlFlow;

use belay_api::{
    NamedValue as _, Release, Rollback, annotations::PauseMode, events::EventReason,
    reasons::StalledReason, release::ReleaseStatus, rollback::RollbackStatus, target::TargetStatus,
};
use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};

pub use self::{
    foresee::{Foreseen, foresee_rollback},
    pause::end_unfollowed_claim,
    unfollowed::end_unfollowed,
};
use crate::{annotations::ContainerName, observed::Observed, pause::Claim, settings::Settings};

/// What is to be done in this pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The one mutation.
    pub step: Option<Step>,
    /// The whole status of the ReleaseTarget; absent where it must stay as it is, or go.
    pub status: Option<Box<TargetStatus>>,
    /// When to look again if nothing happens before.
    pub wake: Option<Timestamp>,
    /// What must be read before the next pass can decide.
    pub look: Vec<Look>,
    /// Events, to be sent once the step was accepted.
    pub notices: Vec<Notice>,
    /// Whether the workload's pods must be watched until a plan says otherwise: a rollout or a
    /// Rollback is under way, or this step begins one.
    #[serde(default)]
    pub pods: bool,
}

/// Something to read that a pass does not read by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Look {
    /// Ask the registry for this image.
    Image(String),
    /// Read the target's ScaledObject, and then the HPA that it names, afresh; if they are what was
    /// read last, again and again for a while, until they are not.
    Scaler,
}

/// What a mutation depends on: the object that it was decided from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Precondition {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
}

/// One mutation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Create a Release. That it exists already is no error: the next pass sees it.
    CreateRelease(Box<Release>),
    /// Write a Release's status.
    ReleaseStatus {
        /// Its name.
        name: String,
        /// What it was decided from.
        from: Precondition,
        /// The whole status.
        status: Box<ReleaseStatus>,
    },
    /// Write a Release's annotation `blocked`.
    BlockRelease {
        /// Its name.
        name: String,
        /// What it was decided from.
        from: Precondition,
        /// The annotation's value.
        value: String,
    },
    /// Apply images and the `release` annotation to the workload.
    Apply(Intent),
    /// Claim the pause of a ScaledObject, claim it again, or renew the claim.
    ClaimPause(PauseIntent),
    /// Drop what our manager for pauses owns on a ScaledObject, and no more.
    DropPause {
        /// Its name.
        scaled_object: String,
        /// What it was decided from.
        from: Precondition,
    },
    /// Remove a pause that an earlier operator left, with the annotations by which it marked it.
    RemovePause {
        /// The ScaledObject's name.
        scaled_object: String,
        /// What it was decided from.
        from: Precondition,
        /// The whole keys of those annotations.
        marks: Vec<String>,
    },
    /// Create a Rollback. That it exists already is no error.
    CreateRollback(Box<Rollback>),
    /// Write a Rollback's status.
    RollbackStatus {
        /// Its name.
        name: String,
        /// What it was decided from.
        from: Precondition,
        /// The whole status.
        status: Box<RollbackStatus>,
    },
    /// Delete a Release that is no longer kept.
    DeleteRelease {
        /// Its name.
        name: String,
        /// What it was decided from.
        from: Precondition,
    },
    /// Delete a Rollback that is no longer kept.
    DeleteRollback {
        /// Its name.
        name: String,
        /// What it was decided from.
        from: Precondition,
    },
    /// Delete the ReleaseTarget of a workload that is no longer followed.
    DeleteTarget {
        /// Its uid.
        uid: String,
    },
}

/// A server-side apply to the workload: these fields and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The workload that it was decided from.
    pub from: Precondition,
    /// Its generation.
    pub generation: i64,
    /// The image of each followed container.
    pub images: Vec<IntendedImage>,
    /// The value of the `release` annotation.
    pub release: String,
    /// Whether the fields are taken from those who own them.
    pub force: bool,
    /// The attempt of a Rollback; absent for other moves.
    #[serde(default)]
    pub attempt: Option<i32>,
}

/// A server-side apply to a ScaledObject by the manager for pauses: KEDA's annotation of the mode,
/// `pause-owner` and `pause-expires`, and no more. It is never forced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseIntent {
    /// The ScaledObject's name.
    pub scaled_object: String,
    /// What it was decided from.
    pub from: Precondition,
    /// How it is paused; never [`PauseMode::None`].
    pub mode: PauseMode,
    /// Who claims it.
    pub claim: Claim,
    /// When the claim ends by itself.
    pub expires: Timestamp,
}

/// The image of one container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IntendedImage {
    /// The container.
    pub container: ContainerName,
    /// The image string.
    pub image: String,
}

/// An event on the workload. Its words are those that the reference lists: others cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notice {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// Its reason: one word of [`EventReason`] or [`StalledReason`].
    pub reason: String,
    /// Its text, the same for the same cause.
    pub message: String,
}

impl Notice {
    /// What one of the words of events says.
    pub fn of(reason: EventReason, message: impl Into<String>) -> Self {
        let is_warning = reason.is_warning();
        Self { is_warning, reason: reason.as_str().to_owned(), message: message.into() }
    }

    /// A target that stalls.
    pub fn stalled(reason: StalledReason, message: impl Into<String>) -> Self {
        Self { is_warning: true, reason: reason.as_str().to_owned(), message: message.into() }
    }
}

/// Whether the pass goes on to its next question.
type Flow = ControlFlow<()>;

/// Decides what to do about one target at `now`.
pub fn plan(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    begin::begin(observed, settings, whole_second(now))
}

/// Kubernetes keeps whole seconds: what is stored must compare equal to what was meant.
fn whole_second(now: Timestamp) -> Timestamp {
    let floor = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    now.round(floor).unwrap_or(Timestamp::MIN)
}

//! Judging a rollout: is it under way, has it succeeded, has it failed (the operator specification,
//! sections 4.1 to 4.3, for Deployments)?
//!
//! A Deployment's conditions are no evidence by themselves: `Available`, `NewReplicaSetAvailable`
//! and even `ProgressDeadlineExceeded` are true of other rollouts than the one that is judged, some
//! for milliseconds, some for ever. What counts are numbers that belong to our generation.

mod facts;
mod pod;
mod pods;
mod rollout;

use belay_api::{
    Duration,
    reasons::{HealthyReason, ProgressingReason},
    release::Progress,
};
use jiff::Timestamp;

pub use self::{
    facts::{ContainerFacts, Facts, PodFacts, ProgressingFacts, ReplicaFailure},
    rollout::judge,
};
use crate::annotations::ContainerName;

/// What a rollout is judged by, beside what is seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// When the API server accepted the image; its clock where that is known.
    pub applied: Timestamp,
    /// The longest time without progress.
    pub deadline: Duration,
    /// How long success must hold.
    pub bake: Duration,
    /// How long a cause that is certain to stay must have stood.
    pub fast: Duration,
    /// The followed containers.
    pub followed: Vec<ContainerName>,
    /// Whether the bake does not start yet, because autoscaling has not been seen to resume.
    pub awaits_resume: bool,
    /// For how long that may be so.
    pub resume: Duration,
}

/// What is to be said of a rollout now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Where it stands.
    pub state: RolloutState,
    /// The marks to remember. They change only when something happens, never with time alone.
    pub progress: Progress,
    /// When to look again, if nothing happens before.
    pub wake: Option<Timestamp>,
}

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutState {
    /// New pods come up.
    Rolling {
        /// What hinders them, for a cause that may pass.
        trouble: Option<Trouble>,
        /// When it counts as failed, unless there is progress before.
        deadline: Option<Timestamp>,
    },
    /// `spec.paused` is set: the clock stands still.
    Paused,
    /// The workload has no replicas, so nothing shows whether the image works.
    ScaledToZero,
    /// It succeeded, and success must hold.
    Baking {
        /// When it is healthy if success holds; absent while success is broken.
        until: Option<Timestamp>,
    },
    /// It succeeded, and success has held.
    Healthy,
    /// It failed.
    Failed(Failure),
}

/// What hinders new pods, for a cause outside the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Which.
    pub kind: TroubleKind,
    /// In words for people.
    pub message: String,
}

/// Causes that may pass; they wait for the deadline, and then block for a while only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleKind {
    /// A pull error that does not say that there is no such image.
    ImagePull,
    /// No node takes the pod.
    Unschedulable,
    /// A quota refuses the pod.
    Quota,
    /// Admission refuses the pod.
    Admission,
}

impl TroubleKind {
    /// The reason of a Release's `Healthy` when the deadline passes meanwhile.
    pub fn healthy_reason(self) -> HealthyReason {
        match self {
            Self::ImagePull => HealthyReason::ImagePullTimedOut,
            Self::Unschedulable => HealthyReason::Unschedulable,
            Self::Quota => HealthyReason::QuotaExceeded,
            Self::Admission => HealthyReason::AdmissionDenied,
        }
    }

    /// The reason of a ReleaseTarget's `Progressing` until then.
    pub fn progressing_reason(self) -> ProgressingReason {
        match self {
            Self::ImagePull => ProgressingReason::ImagePullFailed,
            Self::Unschedulable => ProgressingReason::Unschedulable,
            Self::Quota => ProgressingReason::QuotaExceeded,
            Self::Admission => ProgressingReason::AdmissionDenied,
        }
    }
}

/// Why a rollout failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason of a Release's `Healthy`.
    pub reason: HealthyReason,
    /// In words for people.
    pub message: String,
    /// Whether the cause is outside the release, so that it may be tried again.
    pub is_temporary: bool,
}

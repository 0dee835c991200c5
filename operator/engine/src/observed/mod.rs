//! What was observed for one pass over one target.
//!
//! Each fact carries the time at which it was read, and a read that failed is `Unknown`, never
//! "absent". Nothing here holds a secret: an [`Observed`] is written to files as the format of a bug
//! report.

mod fact;
mod scaler;
mod workload;

use std::collections::BTreeMap;

use belay_api::{Release, Rollback, target::TargetStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::{
    fact::Fact,
    scaler::{ClaimFacts, HpaFacts, PauseKey, PauseKind, Scaler, ScalerFacts},
    workload::{ContainerState, HeldBy, WorkloadFacts},
};
use crate::{judge::PodFacts, selection::GithubReleases};

/// All facts about one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// The namespace.
    pub namespace: String,
    /// The workload; `None` if it is gone.
    pub workload: Fact<Option<WorkloadFacts>>,
    /// The ReleaseTarget under the target's name; `None` if there is none.
    pub target: Fact<Option<TargetRecord>>,
    /// The namespace's Releases of this target.
    pub releases: Fact<Vec<Release>>,
    /// The namespace's Rollbacks of this target.
    pub rollbacks: Fact<Vec<Rollback>>,
    /// GitHub's answer about the repository that is followed.
    pub forge: Fact<Forge>,
    /// The registry's answers, by image string.
    #[serde(default)]
    pub images: BTreeMap<String, Fact<ImageAnswer>>,
    /// The workload's pods; needed only while a rollout is under way.
    pub pods: Fact<Vec<PodFacts>>,
    /// The target's ScaledObject and its HPA, read afresh; absent where no pass has asked for it
    /// ([`Look::Scaler`](crate::plan::Look::Scaler)).
    #[serde(default)]
    pub scaler: Option<Fact<Scaler>>,
    /// Pauses of ScaledObjects of the namespace that are claimed for this target, by whatever
    /// operator, as the watch shows them.
    #[serde(default)]
    pub claims: Vec<ClaimFacts>,
    /// What other objects say about this one.
    pub surroundings: Fact<Surroundings>,
    /// The answer to the last apply of this operator process, if it was refused. Lost with the
    /// process; then the apply is tried again.
    #[serde(default)]
    pub refused: Option<Refused>,
    /// The answer to the last write of a pause of this operator process, if it was refused, or changed
    /// nothing of what it was to change. Lost with the process; then the write is tried again.
    #[serde(default)]
    pub pause_refused: Option<PauseRefused>,
    /// What is done without a right that is missing.
    #[serde(default)]
    pub handicaps: Handicaps,
}

/// A ReleaseTarget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRecord {
    /// Its uid.
    pub uid: String,
    /// Its status.
    pub status: TargetStatus,
}

/// What GitHub says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Forge {
    /// The repository and its releases.
    Found {
        /// The numeric id, which survives a rename.
        repository_id: i64,
        /// The releases.
        releases: GithubReleases,
        /// Whether GitHub was asked without a credential.
        #[serde(default)]
        is_anonymous: bool,
        /// Whether little is left of the credential's rate limit.
        #[serde(default)]
        is_low: bool,
    },
    /// No such repository, for the operator's credential.
    NotFound,
    /// The operator's configuration does not permit it.
    NotAllowed,
    /// GitHub asked not to be called before then.
    Throttled {
        /// When it may be called again.
        until: Timestamp,
    },
}

/// What a registry says about an image. That it cannot be reached is [`Fact::Unknown`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImageAnswer {
    /// It is there.
    Present {
        /// Its digest, where the registry gave one.
        #[serde(default)]
        digest: Option<String>,
        /// Platforms of the cluster's nodes that it lacks.
        #[serde(default)]
        missing_platforms: Vec<String>,
    },
    /// It is not there (404).
    Missing,
    /// The credential is refused.
    Denied {
        /// The pull secret that was used.
        #[serde(default)]
        secret: Option<String>,
    },
    /// The operator's configuration does not permit it.
    NotAllowed,
    /// The registry asked not to be called before then.
    Throttled {
        /// When it may be called again.
        until: Timestamp,
    },
}

/// What other objects say about a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Surroundings {
    /// The older workload that has this targetName, `Kind/name`.
    pub duplicate_of: Option<String>,
    /// The older workload whose target has this ScaledObject, `Kind/name`.
    pub scaled_object_of: Option<String>,
    /// Leases of other operators that are held now, `NAMESPACE/NAME`.
    pub held_leases: Vec<String>,
    /// How many rollouts of other targets are under way.
    pub rollouts_elsewhere: u32,
    /// Release tags of the same repository that failed for their own fault on other targets of the
    /// namespace, and have succeeded nowhere since.
    pub failed_elsewhere: Vec<String>,
    /// The namespace's annotation `release-limit`.
    pub release_limit: Option<String>,
    /// Which registries images may be of.
    pub registries: Registries,
}

/// Which registries the operator's configuration permits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Registries {
    /// It names none: those of the images that run.
    #[default]
    OfLiveImages,
    /// Those that it names.
    Listed {
        /// Images of the target's Releases that are of none of them, as they were asked for.
        refused: Vec<String>,
    },
}

/// What the operator has no right to see, and does without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Handicaps {
    /// Why pods are listed from time to time instead of watched.
    pub pods_listed: Option<String>,
    /// Whether nodes are not read, so that platforms of images are not checked.
    pub no_platforms: bool,
}

/// An apply that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The name of the Release that was to be applied.
    pub release: String,
    /// The attempt of a Rollback that it was; absent for a forward move.
    #[serde(default)]
    pub attempt: Option<i32>,
    /// How often in a row it was refused, from 1.
    #[serde(default)]
    pub times: u32,
    /// The workload's generation then; the answer is worth nothing for another one.
    pub generation: i64,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub cause: Refusal,
}

/// A write of a pause that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseRefused {
    /// The ScaledObject.
    pub scaled_object: String,
    /// Whether a pause was to be dropped or removed, rather than claimed.
    #[serde(default)]
    pub is_drop: bool,
    /// How often in a row it was refused, from 1.
    #[serde(default)]
    pub times: u32,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub cause: Refusal,
}

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// These managers own fields of ours, and the apply was not forced.
    Conflict {
        /// Their names.
        managers: Vec<String>,
    },
    /// The API server or an admission check says no.
    Denied {
        /// Its words, clipped.
        message: String,
    },
    /// The call failed, and may succeed later.
    Failed {
        /// What happened, clipped.
        message: String,
    },
}

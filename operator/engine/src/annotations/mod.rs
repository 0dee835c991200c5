//! Reading of a target's annotations (the operator specification, section 2).
//!
//! What users write is read here once, into types; whatever cannot be read gives a [`Problem`] that
//! names key and value, and the target is not moved.

mod containers;
mod managers;
mod nearest;
mod problem;
mod read;
mod repo;

use belay_api::{
    Duration, TargetName,
    annotations::{ImageCheck, Mode, OnFailure, PauseMode},
};
use serde::{Deserialize, Serialize};

pub use self::{
    containers::{ContainerName, LiveContainer},
    managers::{Adopt, is_gitops, is_kubectl},
    nearest::nearest,
    problem::Problem,
    read::{Reading, Subject, Support, read, target_name},
    repo::{InvalidRepo, RepoSlug},
};
use crate::{
    image::Repository,
    version::{Range, TagPattern, TagTemplate},
};

/// What a target's annotations ask for, with the defaults of those that are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetSettings {
    /// The GitHub repository that is followed.
    pub repo: RepoSlug,
    /// The image repository; absent for the one last asked for, else the live one.
    pub image: Option<Repository>,
    /// The containers that are moved, in the order of the annotation.
    pub containers: Vec<ContainerName>,
    /// Containers of the same image repository that are not moved.
    pub left_out: Vec<ContainerName>,
    /// The name under which Releases and Rollbacks are filed.
    #[serde(with = "target_name")]
    pub target: TargetName,
    /// The ScaledObject to pause.
    pub scaled_object: Option<String>,
    /// Which release tags count.
    pub tag_pattern: TagPattern,
    /// Whether `tag-pattern` was written, so that releases are listed.
    pub lists_releases: bool,
    /// Which image tag belongs to a release.
    pub tag_template: TagTemplate,
    /// Which versions are followed; absent for GitHub's latest release.
    pub range: Option<Range>,
    /// Whether prereleases count.
    pub prereleases: bool,
    /// How long a release must have been published.
    pub min_age: Duration,
    /// Whether the digest is written behind the tag.
    pub digest: bool,
    /// Whether the registry is asked.
    pub image_check: ImageCheck,
    /// How the ScaledObject is paused; absent if that was not written.
    pub pause: Option<PauseMode>,
    /// The longest time without progress.
    pub deadline: Duration,
    /// How long success must hold.
    pub bake: Duration,
    /// What follows a failed rollout.
    pub on_failure: OnFailure,
    /// Whether workloads are written.
    pub mode: Mode,
    /// What a person holds the target at.
    pub hold: Option<Hold>,
    /// The tag of a blocked Release that may be tried once more.
    pub allow: Option<String>,
    /// Managers, by exact name, whose images are replaced.
    pub take_over: Vec<String>,
    /// What is taken over once.
    pub adopt: Option<Adopt>,
}

impl TargetSettings {
    /// Whether pages of releases are listed, rather than GitHub asked for its latest alone.
    pub fn lists_all(&self) -> bool {
        self.range.is_some() || self.lists_releases
    }
}

/// A person pins the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// To what runs.
    Here,
    /// To this tag, of the release or of the image.
    Tag(String),
}

impl Hold {
    /// The annotation's value.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Here => "true",
            Self::Tag(tag) => tag,
        }
    }
}

mod target_name {
    use belay_api::TargetName;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(name: &TargetName, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(name.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TargetName, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

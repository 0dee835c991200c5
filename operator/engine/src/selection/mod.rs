//! Which GitHub release should be the next Release, and what keeps every other one back (the
//! operator specification, section 3.2).

mod ask;
mod running;
mod select;

use belay_api::gates::Gate;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::{
    ask::ForgeAsk,
    running::{Running, RunningVersion},
    select::{Context, Missing, select},
};
use crate::version::Rank;

/// A GitHub release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GithubRelease {
    /// Its tag.
    pub tag: String,
    /// Not published yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// Marked as a prerelease.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prerelease: bool,
    /// When it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Who published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What is known of a repository's releases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GithubReleases {
    /// The releases that were read, in any order. Where pages are not listed: GitHub's latest, and
    /// the one that runs, if it was asked for.
    pub items: Vec<GithubRelease>,
    /// The tag of the one that GitHub calls the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// Whether there are more than were read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A GitHub release that might become the next Release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its tag as published.
    pub tag: String,
    /// What it is ordered by.
    pub rank: Rank,
    /// The image tag that belongs to it; empty behind the gates `Pattern` and `InvalidTag`.
    pub image_tag: String,
    /// What keeps it back.
    pub gate: Option<Gate>,
    /// Why, in words for people; empty for the one that is free.
    pub message: String,
}

/// What selection comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The candidates, best first, at most as many as a status lists.
    pub candidates: Vec<Candidate>,
    /// The index of the one to take.
    pub choice: Option<usize>,
    /// The image tags that were given up for now and are worth another look.
    pub overdue: Vec<String>,
    /// A candidate that cannot be compared with what runs, which only a person can settle.
    pub cannot_compare: Option<usize>,
    /// When a candidate becomes free by itself.
    pub wake: Option<Timestamp>,
}

impl Selection {
    /// The candidate to take.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.choice?)
    }
}

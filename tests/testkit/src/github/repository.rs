//! Repositories with their releases and refs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{auth::hex, deployment::Deployment};

/// The branch every repository has.
pub const DEFAULT_BRANCH: &str = "main";

/// Whether a release becomes the one `releases/latest` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum MakeLatest {
    /// It does, whatever its version: GitHub's default.
    #[default]
    True,
    /// It leaves the latest one as it is.
    False,
    /// Creation date decides, then the higher version.
    Legacy,
}

/// A release to be published. Everything but the tag has GitHub's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRelease {
    /// The tag.
    pub tag: String,
    /// The title; the tag where none is given.
    #[serde(default)]
    pub name: Option<String>,
    /// The release notes.
    #[serde(default)]
    pub notes: String,
    /// Seen only by those who may push.
    #[serde(default)]
    pub draft: bool,
    /// Never the latest.
    #[serde(default)]
    pub prerelease: bool,
    /// Whether it becomes the latest.
    #[serde(default)]
    pub make_latest: MakeLatest,
    /// The date of the *commit* that the tag points to, which is what GitHub sorts by; now where
    /// none is given.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// Names of assets; each has a size that follows from its name.
    #[serde(default)]
    pub assets: Vec<String>,
}

impl NewRelease {
    /// A plain release of a tag.
    pub fn new(tag: impl Into<String>) -> Self {
        Self {
            tag: tag.into(),
            name: None,
            notes: String::new(),
            draft: false,
            prerelease: false,
            make_latest: MakeLatest::default(),
            created_at: None,
            assets: Vec::new(),
        }
    }

    /// As a draft.
    #[must_use]
    pub fn draft(self) -> Self {
        Self { draft: true, ..self }
    }

    /// As a prerelease.
    #[must_use]
    pub fn prerelease(self) -> Self {
        Self { prerelease: true, ..self }
    }

    /// With another say on the latest release.
    #[must_use]
    pub fn make_latest(self, make_latest: MakeLatest) -> Self {
        Self { make_latest, ..self }
    }

    /// With a commit of this date.
    #[must_use]
    pub fn created_at(self, at: Timestamp) -> Self {
        Self { created_at: Some(at), ..self }
    }

    /// With notes of this many bytes: enough of them make a page that is too large to read.
    #[must_use]
    pub fn notes_of(self, bytes: usize) -> Self {
        Self { notes: "n".repeat(bytes), ..self }
    }

    /// With an asset.
    #[must_use]
    pub fn asset(mut self, name: impl Into<String>) -> Self {
        self.assets.push(name.into());
        self
    }
}

/// What to change about a release; what is none stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseEdit {
    /// Another tag.
    pub tag: Option<String>,
    /// Another title.
    pub name: Option<String>,
    /// Other notes.
    pub notes: Option<String>,
    /// Publish it, or take it back to a draft.
    pub draft: Option<bool>,
    /// Promote it, or demote it.
    pub prerelease: Option<bool>,
    /// Whether it becomes the latest.
    pub make_latest: Option<MakeLatest>,
}

/// A release.
#[derive(Debug, Clone)]
pub(crate) struct Release {
    pub(crate) id: u64,
    pub(crate) tag: String,
    pub(crate) name: String,
    pub(crate) notes: String,
    pub(crate) draft: bool,
    pub(crate) prerelease: bool,
    pub(crate) author: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) published_at: Option<Timestamp>,
    pub(crate) assets: Vec<Asset>,
}

impl Release {
    pub(crate) fn may_be_latest(&self) -> bool {
        !self.draft && !self.prerelease
    }
}

/// A file of a release.
#[derive(Debug, Clone)]
pub(crate) struct Asset {
    pub(crate) id: u64,
    pub(crate) name: String,
}

/// How a branch stands to the default branch, for `auto_merge` of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// Nothing to merge.
    #[default]
    Current,
    /// Behind: a deployment merges the default branch into it and is not created (202).
    Behind,
    /// Behind, and the merge conflicts (409).
    Conflicting,
}

/// A branch that a deployment may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Branch {
    pub(crate) base: Base,
}

/// The state of one commit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CommitState {
    /// Passed.
    Success,
    /// Not known yet.
    Pending,
    /// Failed.
    Failure,
}

/// A repository.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) id: u64,
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) private: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) pushed_at: Timestamp,
    /// In the order they were made.
    pub(crate) releases: Vec<Release>,
    /// The release that was published as the latest.
    pub(crate) latest: Option<u64>,
    pub(crate) branches: BTreeMap<String, Branch>,
    /// By commit, then by context.
    pub(crate) statuses: BTreeMap<String, BTreeMap<String, CommitState>>,
    pub(crate) deployments: Vec<Deployment>,
}

impl Repository {
    pub(crate) fn new(id: u64, owner: String, name: String, private: bool, now: Timestamp) -> Self {
        Self {
            id,
            owner,
            name,
            private,
            created_at: now,
            pushed_at: now,
            releases: Vec::new(),
            latest: None,
            branches: BTreeMap::from([(DEFAULT_BRANCH.to_owned(), Branch::default())]),
            statuses: BTreeMap::new(),
            deployments: Vec::new(),
        }
    }

    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Releases as GitHub lists them: newest commit first, the younger release first where two
    /// share a commit.
    pub(crate) fn newest_first(&self, drafts: bool) -> Vec<&Release> {
        let mut releases: Vec<_> =
            self.releases.iter().filter(|release| drafts || !release.draft).collect();
        releases.sort_by_key(|release| std::cmp::Reverse((release.created_at, release.id)));
        releases
    }

    /// The release `releases/latest` answers: the one that was published as the latest while it is
    /// still fit to be, else the one with the newest commit, the higher version of two.
    pub(crate) fn latest(&self) -> Option<&Release> {
        let fit = || self.releases.iter().filter(|release| release.may_be_latest());
        fit().find(|release| Some(release.id) == self.latest).or_else(|| {
            fit().max_by_key(|release| (release.created_at, version(&release.tag), release.id))
        })
    }

    /// Takes a release's say on the latest one into account.
    pub(crate) fn settle_latest(&mut self, id: u64, make_latest: MakeLatest) {
        match make_latest {
            MakeLatest::True => self.latest = Some(id),
            MakeLatest::False => {}
            MakeLatest::Legacy => self.latest = None,
        }
    }

    /// The commit behind a branch, a published tag or a commit's own id.
    pub(crate) fn commit(&self, reference: &str) -> Option<String> {
        let published = self.releases.iter().filter(|release| !release.draft);
        let tags = published.map(|release| release.tag.as_str());
        let mut names = self.branches.keys().map(String::as_str).chain(tags);
        names
            .find(|name| *name == reference || self.commit_id(name) == reference)
            .map(|name| self.commit_id(name))
    }

    /// Commits are not modelled; each ref has one that follows from its name.
    fn commit_id(&self, reference: &str) -> String {
        let digest = Sha256::digest(format!("{} {reference}", self.id));
        hex(digest.get(..20).unwrap_or_default())
    }
}

/// The numbers of a tag, and whether it is a final version: enough to tell the higher of two.
fn version(tag: &str) -> (Vec<u64>, bool) {
    let core = tag.split(['-', '+']).next().unwrap_or_default();
    let digits = |part: &str| {
        let digits: String = part.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    (core.split('.').map(digits).collect(), !tag.contains('-'))
}

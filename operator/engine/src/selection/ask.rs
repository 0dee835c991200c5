//! What must be asked of GitHub before candidates can be selected.

use std::collections::BTreeSet;

use belay_api::{Release, annotations::OwnAnnotation, release::Activation};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    annotations::{Reading, RepoSlug, TargetSettings},
    image::ImageRef,
    observed::WorkloadFacts,
    settings::Settings,
    version::possible_tags,
};

/// What a target must know of its repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgeAsk {
    /// The repository.
    pub repo: RepoSlug,
    /// Whether the release that GitHub calls the latest is needed.
    pub latest: bool,
    /// Whether all pages of releases are needed.
    pub list: bool,
    /// The tags whose releases are needed beside: of what runs or ran last, or of what could have
    /// made the image that runs. A few; empty where pages are listed.
    pub tags: BTreeSet<String>,
}

impl ForgeAsk {
    /// What a workload needs to know; `None` if it is not followed, or its configuration cannot be
    /// followed. `releases` are those of its namespace.
    pub fn of<'r>(
        workload: &WorkloadFacts,
        releases: impl IntoIterator<Item = &'r Release>,
        settings: &Settings,
    ) -> Option<Self> {
        let Reading::Followed { settings: wants, .. } = workload.reading(settings) else {
            return None;
        };
        let list = wants.lists_all();
        let tags = if list { BTreeSet::new() } else { tags(workload, releases, settings, &wants) };
        Some(Self { repo: wants.repo, latest: !list, list, tags })
    }
}

fn tags<'r>(
    workload: &WorkloadFacts,
    releases: impl IntoIterator<Item = &'r Release>,
    settings: &Settings,
    wants: &TargetSettings,
) -> BTreeSet<String> {
    let live = wants.containers.first().and_then(|name| workload.image(name)).unwrap_or_default();
    let annotated = workload.annotations.get(&settings.prefix.key(OwnAnnotation::Release));
    let mut tags = BTreeSet::new();
    let mut is_explained = false;
    let mut last: Option<(Timestamp, &str)> = None;
    for release in releases {
        if release.config().target_name != wants.target.as_str() {
            continue;
        }
        let Some(tag) = github_tag(release, &wants.repo) else { continue };
        let status = release.status.as_ref();
        let images = status.map(|status| status.images.as_slice()).unwrap_or_default();
        let is_live =
            images.iter().any(|image| image.stored.as_deref() == Some(live) || image.asked == live);
        let is_named = release.metadata.name.as_ref() == annotated && annotated.is_some();
        let activation = status.and_then(|status| status.activations.last());
        if (is_named && is_live) || activation.is_some_and(|one| one.end_time.is_none()) {
            tags.insert(tag.to_owned());
        }
        is_explained |= is_live;
        if let Some(ended) = activation.and_then(ended)
            && last.is_none_or(|(newest, _)| newest < ended)
        {
            last = Some((ended, tag));
        }
    }
    if tags.is_empty()
        && let Some((_, tag)) = last
    {
        tags.insert(tag.to_owned());
    }
    let image = live.parse::<ImageRef>().ok().filter(|_| !is_explained);
    if let Some(tag) = image.as_ref().and_then(ImageRef::tag) {
        tags.extend(possible_tags(tag, &wants.tag_pattern, &wants.tag_template));
    }
    tags
}

fn ended(activation: &Activation) -> Option<Timestamp> {
    activation.end_time.as_ref().map(|time| time.0)
}

/// The release tag of a Release that is of this repository.
fn github_tag<'r>(release: &'r Release, repo: &RepoSlug) -> Option<&'r str> {
    let is_of_repo = |source: &String| source.parse::<RepoSlug>().is_ok_and(|one| one == *repo);
    let mut revisions = release.config().revisions.iter();
    let revision = revisions.find(|one| one.source.as_ref().is_some_and(is_of_repo))?;
    Some(&revision.id)
}

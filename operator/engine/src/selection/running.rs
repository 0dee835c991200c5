//! Which version runs.

use super::GithubReleases;
use crate::{
    annotations::TargetSettings,
    version::{Rank, parse_version},
};

/// What is known of the image that runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Running<'a> {
    /// The release tag of the Release that the workload names, while its image is the stored one.
    pub release_tag: Option<&'a str>,
    /// The tag of the live image.
    pub image_tag: Option<&'a str>,
}

/// The version that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningVersion {
    /// The tag of the GitHub release it is, where that is known.
    pub tag: Option<String>,
    /// What candidates are compared with.
    pub rank: Rank,
}

impl RunningVersion {
    /// The version of the Release that runs; only without one that of the release whose image tag
    /// runs, and only without that what can be read from the image tag.
    pub fn of(running: Running<'_>, releases: &GithubReleases, settings: &TargetSettings) -> Self {
        let version_of = |tag: &str| {
            let version = settings.tag_pattern.version_of(tag)?;
            parse_version(version)
        };
        if let Some(tag) = running.release_tag {
            let published = releases.items.iter().find(|one| one.tag == tag);
            let rank = Rank {
                version: version_of(tag),
                published: published.and_then(|one| one.published),
            };
            return Self { tag: Some(tag.to_owned()), rank };
        }
        let Some(image_tag) = running.image_tag else { return Self::default() };
        let made_of = releases.items.iter().filter(|release| {
            settings
                .tag_pattern
                .version_of(&release.tag)
                .and_then(|version| settings.tag_template.render(&release.tag, version))
                .is_some_and(|made| made == image_tag)
        });
        let ranked = made_of.map(|one| {
            let rank = Rank { version: version_of(&one.tag), published: one.published };
            (one.tag.clone(), rank)
        });
        if let Some((tag, rank)) = ranked.max_by(|(_, one), (_, other)| one.order(other)) {
            return Self { tag: Some(tag), rank };
        }
        let version = settings
            .tag_template
            .version_in(image_tag, &settings.tag_pattern)
            .and_then(|version| parse_version(&version));
        Self { tag: None, rank: Rank { version, published: None } }
    }
}

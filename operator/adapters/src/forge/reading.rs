//! What is known of a repository after it was read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de};

use super::{Answer, ForgeError, Page};
use crate::object::Object;

/// A release on GitHub, without its notes and assets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its tag.
    pub tag: String,
    /// Not published yet.
    pub draft: bool,
    /// Marked as a prerelease.
    pub prerelease: bool,
    /// When it was published.
    pub published: Option<Timestamp>,
    /// Who published it.
    pub author: Option<String>,
    /// Its page, where it is an `https` address.
    pub url: Option<String>,
}

/// Longer texts are no tag that git accepts.
const LONGEST_TAG: usize = 1_024;

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            tag_name: String,
            draft: bool,
            prerelease: bool,
            published_at: Option<Timestamp>,
            #[serde(default)]
            author: Option<Object<Author>>,
            #[serde(default)]
            html_url: Option<String>,
        }
        #[derive(Deserialize)]
        struct Author {
            login: String,
        }
        let Object(wire) = Object::<Wire>::deserialize(deserializer)?;
        if wire.tag_name.len() > LONGEST_TAG {
            return Err(de::Error::custom("a tag is too long"));
        }
        let url = wire.html_url.filter(|url| {
            url.starts_with("https://")
                && url.len() <= belay_api::limits::URL
                && url.bytes().all(|b| b.is_ascii_graphic())
        });
        let clip = |Object(it): Object<Author>| {
            belay_api::limits::clip(&it.login, belay_api::limits::PRINCIPAL)
        };
        Ok(Self {
            tag: wire.tag_name,
            draft: wire.draft,
            prerelease: wire.prerelease,
            published: wire.published_at,
            author: wire.author.map(clip),
            url,
        })
    }
}

/// Which repository answers to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The numeric id, which survives a rename. Another repository under the same name has another.
    pub id: u64,
    /// `owner/name` as GitHub has it now.
    pub full_name: String,
    /// Whether it is private.
    pub private: bool,
    /// Whether the name that was asked for is an old one that is redirected here, or is gone.
    pub moved: bool,
}

/// What `/repos/…` and `/repositories/…` answer.
#[derive(Debug, Deserialize)]
pub(crate) struct RepositoryBody {
    pub(crate) id: u64,
    pub(crate) full_name: String,
    pub(crate) private: bool,
}

/// Releases by pages, newest first as GitHub lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The releases.
    pub releases: Vec<Release>,
    /// Whether there are more than were read.
    pub truncated: bool,
}

/// What is to be read of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    /// GitHub's latest release.
    pub latest: bool,
    /// The listed pages.
    pub list: bool,
    /// Releases by their tag.
    pub tags: BTreeSet<String>,
}

impl Wants {
    /// What either wants.
    pub fn join(&mut self, other: &Self) {
        self.latest |= other.latest;
        self.list |= other.list;
        self.tags.extend(other.tags.iter().cloned());
    }
}

/// Why something is not known. None of these says that it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// The repository is missing or private: GitHub tells these in the same words, and so does
    /// Belay.
    Hidden,
    /// GitHub asks not to be called before then.
    Throttled {
        /// From when on it may be called again.
        until: Timestamp,
    },
    /// GitHub refuses the credential or its permissions.
    Denied {
        /// The status.
        status: u16,
    },
    /// GitHub fails, cannot be reached, or says what makes no sense.
    Failed {
        /// In words for people, without the text of the answer.
        why: String,
        /// For metrics.
        category: &'static str,
    },
}

impl From<&ForgeError> for Unknown {
    fn from(error: &ForgeError) -> Self {
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            why = format!("{why}: {error}");
            cause = error.source();
        }
        Self::Failed {
            why: belay_api::limits::clip(&why, belay_api::limits::ITEM_MESSAGE),
            category: error.category(),
        }
    }
}

/// A value, `None` for 404, or why neither is known; and whether it is other than the last time.
pub(crate) enum Outcome<T> {
    Found { page: Page<T>, fresh: bool },
    Missing,
    Moved(Option<u64>),
    Unknown(Unknown),
}

impl<T> From<Result<Answer<T>, ForgeError>> for Outcome<T> {
    fn from(answer: Result<Answer<T>, ForgeError>) -> Self {
        match answer {
            Ok(Answer::Fresh(page)) => Self::Found { page, fresh: true },
            Ok(Answer::NotModified(page)) => Self::Found { page, fresh: false },
            Ok(Answer::Missing) => Self::Missing,
            Ok(Answer::Moved { id }) => Self::Moved(id),
            Ok(Answer::Throttled { until, .. }) => Self::Unknown(Unknown::Throttled { until }),
            Ok(Answer::Denied { status }) => Self::Unknown(Unknown::Denied { status }),
            Ok(Answer::Upstream { status }) => Self::Unknown(Unknown::Failed {
                why: format!("GitHub answered {status}"),
                category: "upstream",
            }),
            Err(error) => Self::Unknown(Unknown::from(&error)),
        }
    }
}

/// What is known of a repository, each part by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// When.
    pub at: Timestamp,
    /// Which repository it is. The other parts are of this one.
    pub identity: Result<Identity, Unknown>,
    /// GitHub's latest release, `None` where the repository has none; only if it was wanted.
    pub latest: Option<Result<Option<Release>, Unknown>>,
    /// The listed pages; only if they were wanted.
    pub list: Option<Result<Listing, Unknown>>,
    /// Each tag that was wanted, with its release or `None`.
    pub tags: BTreeMap<String, Result<Option<Release>, Unknown>>,
    /// Requests that were answered, and how many of these with 304.
    pub requests: Requests,
}

/// How GitHub answered, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// All.
    pub all: u32,
    /// 304.
    pub not_modified: u32,
}

impl Reading {
    /// A reading of which nothing is known, for one reason.
    pub(crate) fn unknown(at: Timestamp, wants: &Wants, why: &Unknown) -> Self {
        Self {
            at,
            identity: Err(why.clone()),
            latest: wants.latest.then(|| Err(why.clone())),
            list: wants.list.then(|| Err(why.clone())),
            tags: wants.tags.iter().map(|tag| (tag.clone(), Err(why.clone()))).collect(),
            requests: Requests::default(),
        }
    }

    /// The first reason for which a part is not known.
    pub fn problem(&self) -> Option<&Unknown> {
        let latest = self.latest.iter().filter_map(|it| it.as_ref().err());
        let list = self.list.iter().filter_map(|it| it.as_ref().err());
        let tags = self.tags.values().filter_map(|it| it.as_ref().err());
        self.identity.as_ref().err().into_iter().chain(latest).chain(list).chain(tags).next()
    }

    /// Whether it says the same, at another time.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Self { at: _, identity, latest, list, tags, requests: _ } = self;
        (identity, latest, list, tags) == (&other.identity, &other.latest, &other.list, &other.tags)
    }
}

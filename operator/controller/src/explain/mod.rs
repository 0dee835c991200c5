//! `explain`: the selection of one pass, without a cluster.
//!
//! The annotations are read, GitHub is asked and its releases are judged by the same code as in the
//! operator. Nothing is asked of a registry, and a Block is not known here.

mod print;
mod subject;

use std::collections::BTreeMap;

use belay_adapters::{
    Clock,
    forge::{self, Reading as Answered, View},
};
use belay_engine::{
    Timestamp,
    annotations::{Reading, TargetSettings},
    observed::{Fact, Forge},
    selection::{
        Candidate, Context, ForgeAsk, GithubRelease, GithubReleases, Running, Selection, select,
    },
};

pub use self::print::Explanation;
use crate::{
    cli,
    config::{ConfigError, ForgeConfig},
    forge::{Sight, fact, wants},
};

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A workload with these annotations would be `Stalled/InvalidConfig`.
    #[error("read the annotations: {0}")]
    Annotations(String),
    /// GitHub cannot be asked.
    #[error("prepare to ask GitHub")]
    Config(#[source] ConfigError),
    /// GitHub shows no such repository.
    #[error("read {0}: GitHub shows no repository of this name {1}")]
    NotFound(String, &'static str),
    /// GitHub asked for patience.
    #[error("read {repo}: GitHub asks not to be called before {until}")]
    Throttled {
        /// The repository.
        repo: String,
        /// From when on it may be called again.
        until: Timestamp,
    },
    /// It is not known what GitHub has.
    #[error("read {repo}: {why}")]
    Unknown {
        /// The repository.
        repo: String,
        /// Why.
        why: String,
    },
}

/// Asks GitHub once and judges what it has.
///
/// # Errors
/// Why nothing can be said.
pub async fn explain(arguments: &cli::Explain, clock: Clock) -> Result<Explanation, ExplainError> {
    let settings = subject::settings();
    let workload = subject::workload(arguments, &settings);
    let wanted = match workload.reading(&settings) {
        Reading::Followed { settings, .. } => *settings,
        Reading::Problems(problems) => {
            return Err(ExplainError::Annotations(subject::words(&problems, &settings)));
        }
        Reading::NotFollowed => {
            return Err(ExplainError::Annotations("the repository is missing".to_owned()));
        }
    };
    let ask = ForgeAsk::of(&workload, [], &settings)
        .ok_or_else(|| ExplainError::Annotations("they name no repository".to_owned()))?;
    let hosts = belay_adapters::registry::HostPolicy::default();
    let config = ForgeConfig::of(&arguments.github, belay_api::Duration::default(), &hosts)
        .map_err(ExplainError::Config)?;
    let client = config.client(clock.clone()).map_err(ExplainError::Config)?;
    let is_anonymous = client.is_anonymous();
    let slug = ask.repo.as_str().parse().map_err(|error: forge::InvalidSlug| {
        ExplainError::Unknown { repo: ask.repo.to_string(), why: error.to_string() }
    })?;
    let answered = forge::Forge::new(client).read(&slug, &wants(&ask)).await;
    let releases = releases(&answered, &ask, is_anonymous)?;
    let now = clock.now();
    let judged = judge(&wanted, releases, arguments.running.as_deref(), now);
    Ok(Explanation::of(&answered, &wanted, arguments.running.as_deref(), is_anonymous, judged))
}

/// What GitHub has, by the reading that the operator's passes use.
fn releases(
    answered: &Answered,
    ask: &ForgeAsk,
    is_anonymous: bool,
) -> Result<GithubReleases, ExplainError> {
    let repo = || ask.repo.to_string();
    let sight = Sight { public: true, private: true, is_anonymous };
    let view = View { reading: answered.clone(), next: answered.at, is_low: false };
    match fact(Some(&view), ask, sight, answered.at) {
        Fact::Known { value: Forge::Found { releases, .. }, .. } => Ok(releases),
        Fact::Known { value: Forge::NotFound | Forge::NotAllowed, .. } => {
            let whom = if is_anonymous {
                "to those without a token; a private one needs --github-token-file"
            } else {
                "to this token"
            };
            Err(ExplainError::NotFound(repo(), whom))
        }
        Fact::Known { value: Forge::Throttled { until }, .. } => {
            Err(ExplainError::Throttled { repo: repo(), until })
        }
        Fact::Unknown { why, .. } => Err(ExplainError::Unknown { repo: repo(), why }),
    }
}

/// Candidates with the times of their publication, and what is known beside.
struct Judged {
    candidates: Vec<(Candidate, Option<Timestamp>)>,
    /// The index of the one to take.
    choice: Option<usize>,
    /// When a candidate becomes free by itself.
    wake: Option<Timestamp>,
    /// Releases that were read.
    read: usize,
    /// Whether GitHub has more.
    truncated: bool,
}

fn judge(
    settings: &TargetSettings,
    mut releases: GithubReleases,
    running: Option<&str>,
    now: Timestamp,
) -> Judged {
    let read = releases.items.len();
    let running = match running {
        Some(tag) => Running { release_tag: None, image_tag: Some(tag) },
        None => older_than_all(&mut releases),
    };
    let context = Context {
        releases: &releases,
        running,
        blocks: &[],
        allowed: None,
        missing: &BTreeMap::new(),
        now,
    };
    let Selection { candidates, choice, wake, .. } = select(settings, &context);
    let chosen = choice.and_then(|index| candidates.get(index)).map(|one| one.tag.clone());
    let candidates: Vec<_> = candidates
        .into_iter()
        .filter(|one| one.tag != NOTHING)
        .map(|one| {
            let published = one.rank.published;
            (one, published)
        })
        .collect();
    let choice = candidates.iter().position(|(one, _)| Some(&one.tag) == chosen.as_ref());
    Judged { candidates, choice, wake, read, truncated: releases.truncated }
}

/// No release has an empty tag.
const NOTHING: &str = "";

/// A running version that every release is above: of no version, published before all others.
fn older_than_all(releases: &mut GithubReleases) -> Running<'static> {
    releases.items.push(GithubRelease {
        tag: NOTHING.to_owned(),
        draft: false,
        prerelease: false,
        published: Some(Timestamp::MIN),
        author: None,
        url: None,
    });
    Running { release_tag: Some(NOTHING), image_tag: None }
}

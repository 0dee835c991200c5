//! The gates, in the order in which their reasons are worth knowing, and the choice.

use std::collections::BTreeMap;

use belay_api::{gates::Gate, limits};
use jiff::{SignedDuration, Timestamp};

use super::{Candidate, GithubRelease, GithubReleases, Running, RunningVersion, Selection};
use crate::{
    annotations::{Hold, TargetSettings},
    block::Block,
    text, time,
    version::{Rank, parse_version},
};

/// How long an image may be missing before, with a range, the next lower candidate is taken.
pub(crate) const YIELD_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// What selection depends on, beside the settings.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The repository's releases.
    pub releases: &'a GithubReleases,
    /// What runs.
    pub running: Running<'a>,
    /// What is refused, expired blocks included.
    pub blocks: &'a [Block],
    /// The tag that `allow` frees now: not yet used up.
    pub allowed: Option<&'a str>,
    /// Release tags whose image the registry does not have.
    pub missing: &'a BTreeMap<String, Missing>,
    /// The present.
    pub now: Timestamp,
}

/// An image that the registry does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Since when it is waited for.
    pub since: Timestamp,
}

/// Orders the releases, says of each what keeps it back, and chooses the best of the others.
pub fn select(settings: &TargetSettings, context: &Context<'_>) -> Selection {
    let running = RunningVersion::of(context.running, context.releases, settings);
    let mut selection = Selection::default();
    let mut candidates = considered(settings, context.releases)
        .map(|release| Ranked::of(release, settings))
        .collect::<Vec<_>>();
    candidates.sort_by(|one, other| {
        other.rank.order(&one.rank).then_with(|| other.release.tag.cmp(&one.release.tag))
    });
    let gates = Gates { settings, context, running: &running };
    let mut all = Vec::with_capacity(candidates.len());
    for ranked in candidates {
        let verdict = gates.judge(&ranked, &mut selection);
        let (gate, message) = match verdict {
            Some(gate) => gate,
            None if selection.choice.is_some() => {
                (Some(Gate::Outranked), "a better candidate passes every gate".to_owned())
            }
            None => {
                selection.choice = Some(all.len());
                (None, String::new())
            }
        };
        if gate == Some(Gate::WaitingForImage) {
            selection.overdue.push(ranked.image_tag.clone().unwrap_or_default());
        }
        if message == CANNOT_COMPARE && selection.cannot_compare.is_none() {
            selection.cannot_compare = Some(all.len());
        }
        all.push(Candidate {
            tag: text::clipped(ranked.release.tag.clone(), limits::TAG),
            rank: ranked.rank,
            image_tag: ranked.image_tag.unwrap_or_default(),
            gate,
            message: text::clipped(message, limits::ITEM_MESSAGE),
        });
    }
    shorten(&mut all, &mut selection.choice);
    shorten_index(&all, &mut selection.cannot_compare);
    selection.candidates = all;
    selection
}

const CANNOT_COMPARE: &str = "it cannot be compared with what runs";

/// The releases that can be candidates at all: without range and pattern GitHub's latest alone.
fn considered<'a>(
    settings: &TargetSettings,
    releases: &'a GithubReleases,
) -> impl Iterator<Item = &'a GithubRelease> {
    let lists = settings.lists_all();
    releases
        .items
        .iter()
        .filter(move |release| lists || releases.latest.as_ref() == Some(&release.tag))
}

/// Keeps as many candidates as a status lists, the chosen one among them.
fn shorten(all: &mut Vec<Candidate>, choice: &mut Option<usize>) {
    if let Some(index) = choice.filter(|index| *index >= limits::CANDIDATES) {
        let chosen = all.swap_remove(index);
        all.truncate(limits::CANDIDATES - 1);
        all.push(chosen);
        *choice = Some(all.len() - 1);
    }
    all.truncate(limits::CANDIDATES);
}

fn shorten_index(all: &[Candidate], index: &mut Option<usize>) {
    *index = index.filter(|index| *index < all.len());
}

struct Ranked<'a> {
    release: &'a GithubRelease,
    /// Whether the tag matches the pattern.
    matches: bool,
    rank: Rank,
    image_tag: Option<String>,
}

impl<'a> Ranked<'a> {
    fn of(release: &'a GithubRelease, settings: &TargetSettings) -> Self {
        let version = settings.tag_pattern.version_of(&release.tag);
        let image_tag = version.and_then(|text| settings.tag_template.render(&release.tag, text));
        Self {
            release,
            matches: version.is_some(),
            rank: Rank { version: version.and_then(parse_version), published: release.published },
            image_tag,
        }
    }
}

struct Gates<'a> {
    settings: &'a TargetSettings,
    context: &'a Context<'a>,
    running: &'a RunningVersion,
}

impl Gates<'_> {
    /// What keeps a candidate back; `None` if nothing does.
    fn judge(&self, one: &Ranked<'_>, out: &mut Selection) -> Option<(Option<Gate>, String)> {
        let gated = |gate, message: String| Some((Some(gate), message));
        if one.release.draft {
            return gated(Gate::Draft, "the release is a draft".to_owned());
        }
        if !one.matches {
            let pattern = &self.settings.tag_pattern;
            return gated(Gate::Pattern, format!("the tag does not match {pattern}"));
        }
        if one.image_tag.is_none() || one.release.tag.chars().count() > limits::TAG {
            let template = &self.settings.tag_template;
            return gated(Gate::InvalidTag, format!("{template} makes no valid image tag of it"));
        }
        if let Some(message) = self.prerelease(one) {
            return gated(Gate::Prerelease, message);
        }
        if let Some(message) = self.out_of_range(one) {
            return gated(Gate::Range, message);
        }
        if let Some(message) = self.lower(one) {
            return gated(Gate::Lower, message);
        }
        if let Some(message) = self.blocked(one, out) {
            return gated(Gate::Blocked, message);
        }
        if let Some(message) = self.young(one, out) {
            return gated(Gate::Age, message);
        }
        if let Some(hold) = &self.settings.hold {
            let message = match hold {
                Hold::Here => "a person holds the target".to_owned(),
                Hold::Tag(tag) => format!("a person holds the target at {tag}"),
            };
            return gated(Gate::Hold, message);
        }
        self.given_up(one).and_then(|message| gated(Gate::WaitingForImage, message))
    }

    fn prerelease(&self, one: &Ranked<'_>) -> Option<String> {
        if self.settings.prereleases && self.settings.range.is_some() {
            return None;
        }
        let by_version = one.rank.version.as_ref().is_some_and(|version| !version.pre.is_empty());
        match (one.release.prerelease, by_version) {
            (true, _) => Some("GitHub marks it as a prerelease".to_owned()),
            (false, true) => Some("its version is a prerelease".to_owned()),
            (false, false) => None,
        }
    }

    fn out_of_range(&self, one: &Ranked<'_>) -> Option<String> {
        let range = self.settings.range.as_ref()?;
        match &one.rank.version {
            None => Some("its tag is no semantic version, and range is set".to_owned()),
            Some(version) if !range.contains(version) => Some(format!("it is not in {range}")),
            Some(_) => None,
        }
    }

    fn lower(&self, one: &Ranked<'_>) -> Option<String> {
        let running = &self.running.rank;
        let is_running = self.running.tag.as_ref() == Some(&one.release.tag);
        if is_running || one.image_tag.as_deref() == self.context.running.image_tag {
            return Some("it runs".to_owned());
        }
        // With a range only versions count, and against a tag that is none any version is a step
        // forward.
        let order = match (&self.settings.range, &one.rank.version, &running.version) {
            (Some(_), _, None) => return None,
            (Some(_), Some(own), Some(running)) => Some(own.cmp(running)),
            _ => one.rank.compare(running),
        };
        match order {
            Some(std::cmp::Ordering::Greater) => None,
            Some(_) => {
                let what = running.version.as_ref().map(ToString::to_string);
                let what = what.or_else(|| self.running.tag.clone()).unwrap_or_default();
                Some(text::clipped(format!("it is not above {what}, which runs"), 300))
            }
            None => Some(CANNOT_COMPARE.to_owned()),
        }
    }

    fn blocked(&self, one: &Ranked<'_>, out: &mut Selection) -> Option<String> {
        let now = self.context.now;
        let pattern = &self.settings.tag_pattern;
        let is_allowed = self
            .context
            .allowed
            .is_some_and(|tag| tag == one.release.tag || Some(tag) == one.image_tag.as_deref());
        let covers = |block: &&Block| {
            block.counts_at(now) && block.covers(&one.release.tag, &one.rank, pattern)
        };
        let mut blocks = self.context.blocks.iter().filter(covers).peekable();
        if is_allowed || blocks.peek().is_none() {
            return None;
        }
        let mut ends = Some(Timestamp::MIN);
        let mut message = String::new();
        for block in blocks {
            // It is free when the last of its blocks has ended.
            ends = ends.zip(block.until).map(|(one, other)| one.max(other));
            let from = &block.from.tag;
            message = match &block.to {
                Some(to) => format!("{} from {from} to {}", words(block), to.tag),
                None => format!("{from}: {}", words(block)),
            };
        }
        if let Some(ends) = ends {
            time::earlier(&mut out.wake, ends);
        }
        Some(message)
    }

    fn young(&self, one: &Ranked<'_>, out: &mut Selection) -> Option<String> {
        let min_age = self.settings.min_age;
        if min_age.as_secs() == 0 {
            return None;
        }
        let Some(published) = one.release.published else {
            return Some("GitHub gives no time of publication".to_owned());
        };
        let old_enough = time::after(published, min_age);
        if self.context.now >= old_enough {
            return None;
        }
        time::earlier(&mut out.wake, old_enough);
        Some(format!("it is younger than {min_age}"))
    }

    /// With a range, an image that is missing for long yields to the next lower candidate.
    fn given_up(&self, one: &Ranked<'_>) -> Option<String> {
        self.settings.range.as_ref()?;
        let missing = self.context.missing.get(&one.release.tag)?;
        let yields = self.context.now >= time::plus(missing.since, YIELD_AFTER);
        yields.then(|| "the registry has not had its image for 1h".to_owned())
    }
}

fn words(block: &Block) -> &'static str {
    use belay_api::reasons::BlockedReason as Reason;
    match block.reason {
        Reason::RolledBack => "rolled back",
        Reason::RolloutFailed => "its rollout failed",
        Reason::RolledBackByHelm => "rolled back by Helm",
        Reason::RolledBackByPerson => "rolled back by hand",
        Reason::Superseded => "pre-empted by a Rollback",
        Reason::BlockedTemporarily => "blocked for a while",
        Reason::Allowed | Reason::Expired | Reason::NotBlocked => "was blocked",
    }
}

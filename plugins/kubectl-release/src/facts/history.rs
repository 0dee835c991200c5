//! The Releases of a target as a story: what became of each, when, how long it took, by whom.

use belay_api::{
    Release, Rollback,
    conditions::{ConditionStatus, ReleaseCondition, find, status},
    gates::Verdict,
    reasons::{ReleaseReadyReason, RollbackRequiredReason},
    release::Activation,
    values::{NamedValue as _, parse},
};
use jiff::{SignedDuration, Timestamp};

use super::live::{short, tag};
use crate::print::Paint;

/// One Release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its image in short: `web:1.9.2`; the tag of the release where it has none yet.
    pub image: String,
    /// The tag of its image.
    pub tag: String,
    /// The digest of its image.
    pub digest: Option<String>,
    /// What became of it, in one word.
    pub word: String,
    /// Whether the workload's template names it.
    pub is_active: bool,
    /// When it became active last, else when it was made.
    pub when: Option<Timestamp>,
    /// How long its last rollout took.
    pub took: Option<SignedDuration>,
    /// Who made it active.
    pub by: Option<String>,
    /// Why it is as it is.
    pub note: Option<String>,
}

impl Entry {
    /// What a Release says; `rollbacks` are those of its target.
    pub fn of<'r>(release: &Release, rollbacks: impl Iterator<Item = &'r Rollback>) -> Self {
        let told = release.status.clone().unwrap_or_default();
        let last = told.activations.last();
        let image = told.images.first();
        let spelled = image.map(|image| image.stored.as_deref().unwrap_or(&image.asked));
        let id = release.config().revisions.first().map(|revision| revision.id.clone());
        let id = id.unwrap_or_default();
        let is_active =
            status(&told.conditions, ReleaseCondition::Active.as_str()) == ConditionStatus::True;
        let created = release.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Self {
            name: release.metadata.name.clone().unwrap_or_default(),
            image: spelled.map_or_else(|| id.clone(), |image| short(image).to_owned()),
            tag: spelled.map_or(id, tag),
            digest: image.and_then(|image| image.digest.clone()),
            word: word(release, is_active),
            is_active,
            when: last.map(|last| last.start_time.0).or(created),
            took: last.and_then(|last| took(release, last)),
            by: last.and_then(|last| last.initiator.clone()).or_else(|| author(release)),
            note: note(release, last, rollbacks),
        }
    }

    /// The colour of its word.
    pub fn paint(&self) -> Paint {
        match self.word.as_str() {
            "active" => Paint::Good,
            "failed" | "blocked" | "rolled-back" => Paint::Bad,
            "pausing" | "rolling" | "baking" => Paint::Warn,
            _ => Paint::Plain,
        }
    }
}

/// All Releases, the one that became active last first.
pub fn entries(releases: &[&Release], rollbacks: &[&Rollback]) -> Vec<Entry> {
    let mut all: Vec<Entry> =
        releases.iter().map(|release| Entry::of(release, rollbacks.iter().copied())).collect();
    all.sort_by(|one, other| other.when.cmp(&one.when).then_with(|| one.name.cmp(&other.name)));
    all
}

/// The Release that ran before `release` became active last, by the ends of activations.
pub fn before<'r>(releases: &[&'r Release], release: &Release) -> Option<&'r Release> {
    let start = last(release)?.start_time.0;
    let ended = |other: &&&'r Release| {
        let ends = other.status.as_ref().map(|status| status.activations.as_slice());
        ends.unwrap_or_default()
            .iter()
            .filter_map(|activation| activation.end_time.as_ref().map(|time| time.0))
            .filter(|end| *end <= start)
            .max()
    };
    let others = releases.iter().filter(|one| one.metadata.name != release.metadata.name);
    others.filter(|one| ended(one).is_some()).max_by_key(ended).copied()
}

/// What failed before `active` took its place again: `2.0.0 failed: no such image`.
pub fn fallen(releases: &[&Release], active: &Release) -> Option<String> {
    let before = before(releases, active)?;
    let verdict = last(before)?.verdict.as_ref()?.known();
    let entry = Entry::of(before, [].into_iter());
    let note = entry.note.filter(|_| verdict == Some(Verdict::Failed))?;
    Some(format!("{} failed: {note}", entry.tag))
}

/// A Release that another one says ran before it, and that is gone: older ones were removed.
pub fn removed(releases: &[&Release]) -> Option<String> {
    let is_there =
        |name: &str| releases.iter().any(|one| one.metadata.name.as_deref() == Some(name));
    releases
        .iter()
        .filter_map(|one| one.status.as_ref()?.previous_release.as_ref())
        .map(|previous| &previous.release_ref.name)
        .find(|name| !is_there(name))
        .cloned()
}

/// The last activation.
pub fn last(release: &Release) -> Option<&Activation> {
    release.status.as_ref()?.activations.last()
}

/// How long the rollout of the last activation took. Once it is judged, the operator keeps no progress:
/// the condition that says that nothing is to be taken back is then as old as the success. What was
/// found running took no time.
pub fn took(release: &Release, last: &Activation) -> Option<SignedDuration> {
    let status = release.status.as_ref()?;
    let progress = status.progress.as_ref().and_then(|progress| progress.succeeded_time.as_ref());
    let succeeded = || {
        let required = find(&status.conditions, ReleaseCondition::RollbackRequired.as_str())?;
        let reason = parse::<RollbackRequiredReason>(&required.reason).ok()?;
        let is_success =
            required.status == "False" && reason == RollbackRequiredReason::RolloutHealthy;
        is_success.then_some(required.last_transition_time.0)
    };
    let succeeded = progress.map(|time| time.0).or_else(succeeded)?;
    Some(succeeded.duration_since(last.start_time.0)).filter(|took| took.as_secs() > 0)
}

fn author(release: &Release) -> Option<String> {
    let revision = release.config().revisions.first()?;
    match revision.type_.as_deref() {
        Some("github") => Some(format!("GitHub {}", revision.id)),
        _ => revision.metadata.as_ref()?.author.clone(),
    }
}

fn word(release: &Release, is_active: bool) -> String {
    let conditions =
        release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_blocked =
        status(conditions, ReleaseCondition::Blocked.as_str()) == ConditionStatus::True;
    if is_blocked && !is_active {
        return "blocked".to_owned();
    }
    let Some(ready) = find(conditions, ReleaseCondition::Ready.as_str()) else {
        return if is_active { "active" } else { "new" }.to_owned();
    };
    let Ok(reason) = parse::<ReleaseReadyReason>(&ready.reason) else {
        return ready.reason.to_ascii_lowercase();
    };
    match reason {
        ReleaseReadyReason::Pausing => "pausing",
        ReleaseReadyReason::Rolling => "rolling",
        ReleaseReadyReason::Baking => "baking",
        ReleaseReadyReason::Healthy | ReleaseReadyReason::ScaledToZero if is_active => "active",
        ReleaseReadyReason::Healthy
        | ReleaseReadyReason::ScaledToZero
        | ReleaseReadyReason::Superseded => "superseded",
        ReleaseReadyReason::Failed => "failed",
        ReleaseReadyReason::RolledBack => "rolled-back",
        ReleaseReadyReason::Blocked => "blocked",
    }
    .to_owned()
}

fn note<'r>(
    release: &Release,
    last: Option<&Activation>,
    rollbacks: impl Iterator<Item = &'r Rollback>,
) -> Option<String> {
    let told = release.status.as_ref()?;
    let verdict = last.and_then(|last| last.verdict.as_ref()?.known());
    if verdict == Some(Verdict::Failed) {
        let healthy = find(&told.conditions, ReleaseCondition::Healthy.as_str());
        let words = healthy.filter(|healthy| healthy.status == "False").map(|healthy| {
            let message = healthy.message.trim();
            if message.is_empty() { healthy.reason.clone() } else { message.to_owned() }
        });
        return words.or_else(|| last?.message.clone());
    }
    let last = last?;
    if let Some(manager) = last.changed_by() {
        return Some(format!("changed by {manager}"));
    }
    let name = release.metadata.name.as_deref()?;
    let began = |rollback: &&Rollback| {
        rollback.status.as_ref().is_some_and(|status| {
            let to = status.to_release_ref.as_ref().is_some_and(|to| to.name == name);
            let near = status.start_time.as_ref().is_some_and(|start| start.0 <= last.start_time.0);
            let ended =
                status.completion_time.as_ref().is_none_or(|end| end.0 >= last.start_time.0);
            to && near && ended
        })
    };
    let from = rollbacks
        .filter(began)
        .filter_map(|rollback| rollback.status.as_ref()?.from_release_ref.as_ref())
        .map(|from| format!("rolled back from {}", from.name))
        .last();
    from.or_else(|| {
        let blocked = find(&told.conditions, ReleaseCondition::Blocked.as_str())?;
        let says = blocked.status == "True" && !blocked.message.trim().is_empty();
        says.then(|| blocked.message.clone())
    })
    .or_else(|| last.message.clone())
}

#[cfg(test)]
mod tests;

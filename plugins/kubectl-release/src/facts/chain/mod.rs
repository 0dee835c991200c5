//! The chain from the policy to health, and its first link that is broken: why a target does not move.

mod links;

use belay_api::{
    Release,
    conditions::find,
    gates::{Gate, WaitReason},
    reasons::{HealthyReason, HeldReason, ProgressingReason, StalledReason, TargetReadyReason},
    target::{CandidateStatus, TargetStatus},
};
use jiff::Timestamp;

use self::links::{of_gate, of_progressing, of_stalled};
use super::{
    live::{Live, LiveContainer},
    standing::Standing,
    words::{Explain, Words, explain},
};
use crate::print::Icon;

/// A link of the chain, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Whether the target can be followed, and which release is selected.
    Policy,
    /// Whether that release may become the next Release now.
    Release,
    /// Whether its image is there.
    Image,
    /// Whether the image may be written.
    Apply,
    /// Whether its pods come up.
    Rollout,
    /// Whether it stays well.
    Health,
}

impl Step {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::Policy, Self::Release, Self::Image, Self::Apply, Self::Rollout, Self::Health];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Release => "release",
            Self::Image => "image",
            Self::Apply => "apply",
            Self::Rollout => "rollout",
            Self::Health => "health",
        }
    }
}

/// How a link is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Which one.
    pub step: Step,
    /// Good, bad, busy, or none where it was not come to.
    pub icon: Icon,
    /// What is the case.
    pub text: String,
}

/// The chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What it explains.
    pub title: String,
    /// Its links.
    pub links: Vec<Link>,
    /// What is behind the first broken one.
    pub cause: Option<String>,
    /// What to do.
    pub next: Vec<String>,
}

/// What the chain is made of.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The target's name.
    pub name: &'a str,
    /// What the operator says.
    pub status: &'a TargetStatus,
    /// What is live; `None` where it could not be read.
    pub live: Option<&'a Live>,
    /// Its followed containers.
    pub followed: &'a [&'a LiveContainer],
    /// The active Release, if it could be read.
    pub active: Option<&'a Release>,
    /// The policy in words: `GitHub acme/web, range ^1.9`.
    pub source: &'a str,
    /// What troubles pods, in words.
    pub trouble: Option<&'a str>,
    /// What failed before the active Release took its place again.
    pub fallen: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// Where the chain breaks, and what that means.
struct Break {
    step: Step,
    icon: Icon,
    word: String,
    message: String,
    words: Option<Words>,
}

/// The candidate that the policy selects, and the one that would be taken.
struct Selected<'a> {
    candidate: Option<&'a CandidateStatus>,
}

impl<'a> Selected<'a> {
    /// The best one that the policy itself does not rule out.
    fn of(status: &'a TargetStatus) -> Self {
        let is_wanted = |one: &&CandidateStatus| {
            let Some(gate) = &one.gate else { return true };
            gate.known().is_none_or(|gate| of_gate(gate).is_some_and(|step| step > Step::Policy))
        };
        Self { candidate: status.candidates.iter().find(is_wanted) }
    }

    fn tag(&self) -> Option<&'a str> {
        self.candidate.map(|one| one.tag.as_str())
    }
}

/// Makes the chain; `target` is how commands name it.
pub fn chain(ground: &Ground<'_>, namespace: Option<&str>) -> Chain {
    let (status, now) = (ground.status, ground.now);
    let standing = Standing::of(Some(status));
    let selected = Selected::of(status);
    let broken = first_break(ground, &standing, &selected);
    let at = broken.as_ref().map(|broken| broken.step);
    let links = Step::ALL
        .into_iter()
        .map(|step| match &broken {
            Some(broken) if broken.step == step => Link {
                step,
                icon: broken.icon,
                text: said(&broken.word, &broken.message, broken.words),
            },
            Some(_) if at.is_some_and(|at| step > at) => {
                Link { step, icon: Icon::None, text: not_yet(step, ground) }
            }
            _ => Link { step, icon: Icon::Good, text: good(step, ground, &selected) },
        })
        .collect();
    let tag = selected.tag().or_else(|| status.wanted.as_ref()?.tag.as_deref()).unwrap_or("TAG");
    let commands = broken.as_ref().and_then(|broken| broken.words);
    let commands = commands.map(|words| words.commands(ground.name, namespace));
    Chain {
        title: title(ground, &standing, &selected, broken.as_ref(), now),
        links,
        cause: broken.as_ref().map(|broken| cause(broken, status, now)),
        next: commands
            .unwrap_or_default()
            .into_iter()
            .map(|command| match command.strip_suffix(" TAG") {
                Some(rest) => format!("{rest} {tag}"),
                None => command,
            })
            .collect(),
    }
}

fn first_break(ground: &Ground<'_>, standing: &Standing, selected: &Selected<'_>) -> Option<Break> {
    let status = ground.status;
    if let Some(cause) = &standing.stalled {
        let step = cause.reason.map_or(Step::Apply, of_stalled);
        return Some(Break {
            step,
            icon: Icon::Bad,
            word: cause.word.clone(),
            message: cause.message.clone(),
            words: explain::<StalledReason>(&cause.word),
        });
    }
    if let Some(cause) = &standing.progressing
        && let Some(step) = cause.reason.and_then(of_progressing)
    {
        let is_trouble = matches!(
            cause.reason,
            Some(
                ProgressingReason::ImagePullFailed
                    | ProgressingReason::Unschedulable
                    | ProgressingReason::QuotaExceeded
                    | ProgressingReason::AdmissionDenied
                    | ProgressingReason::ImageReverted
                    | ProgressingReason::CouldNotFreeze
                    | ProgressingReason::TargetPaused
            )
        );
        return Some(Break {
            step,
            icon: if is_trouble { Icon::Bad } else { Icon::Busy },
            word: cause.word.clone(),
            message: cause.message.clone(),
            words: explain::<ProgressingReason>(&cause.word),
        });
    }
    if let Some(held) = find(&status.conditions, "Held").filter(|one| one.status == "True") {
        return Some(Break {
            step: Step::Release,
            icon: Icon::Idle,
            word: held.reason.clone(),
            message: held.message.clone(),
            words: explain::<HeldReason>(&held.reason),
        });
    }
    match standing.reason {
        Some(reason @ (TargetReadyReason::Failed | TargetReadyReason::RolledBack)) => {
            let fallen = ground.fallen.filter(|_| reason == TargetReadyReason::RolledBack);
            return Some(Break {
                step: Step::Rollout,
                icon: Icon::Bad,
                word: standing.word.clone(),
                message: fallen.map_or_else(|| standing.message.clone(), ToOwned::to_owned),
                words: Some(reason.words()),
            });
        }
        Some(reason @ TargetReadyReason::Unknown) => {
            return Some(Break {
                step: Step::Policy,
                icon: Icon::Warn,
                word: standing.word.clone(),
                message: standing.message.clone(),
                words: Some(reason.words()),
            });
        }
        Some(
            TargetReadyReason::Ready
            | TargetReadyReason::Progressing
            | TargetReadyReason::Stalled
            | TargetReadyReason::Held,
        )
        | None => {}
    }
    let candidate = selected.candidate?;
    let gate = candidate.gate.as_ref()?;
    let step = gate.known().map_or(Some(Step::Release), of_gate)?;
    Some(Break {
        step,
        icon: Icon::Bad,
        word: gate.as_str().to_owned(),
        message: candidate.message.clone().unwrap_or_default(),
        words: explain::<Gate>(gate.as_str()),
    })
}

/// The word, what it means, and what the operator says.
fn said(word: &str, message: &str, words: Option<Words>) -> String {
    match (message, words) {
        ("", Some(words)) => format!("{word}: {}", words.why),
        ("", None) => word.to_owned(),
        (message, _) => format!("{word}: {message}"),
    }
}

fn cause(broken: &Break, status: &TargetStatus, now: Timestamp) -> String {
    let why = broken.words.map_or(broken.word.as_str(), |words| words.why);
    let Some(waiting) = &status.waiting else { return format!("{why}.") };
    let waits = explain::<WaitReason>(waiting.reason.as_str());
    let waits = waits.map_or(waiting.reason.as_str(), |words| words.why);
    match waiting.until.as_ref().filter(|until| until.0 > now) {
        Some(until) => {
            let left = super::age::between(now, until.0);
            format!("{why}. In {left}: {waits}.")
        }
        None => format!("{why}."),
    }
}

fn title(
    ground: &Ground<'_>,
    standing: &Standing,
    selected: &Selected<'_>,
    broken: Option<&Break>,
    now: Timestamp,
) -> String {
    let place = format!("{}/{}", ground.namespace, ground.name);
    let status = ground.status;
    let runs = status.current.as_ref().and_then(|one| one.tag.clone().or(one.image.clone()));
    let runs = runs.unwrap_or_else(|| "an unknown image".to_owned());
    let wanted = selected.tag().or_else(|| status.wanted.as_ref()?.tag.as_deref());
    let since = standing.since.map(|since| super::age::between(since, now));
    let since = since.map(|since| format!(" for {since}")).unwrap_or_default();
    let busy = broken.is_some_and(|broken| broken.icon == Icon::Busy);
    match (broken, wanted) {
        (None, _) => format!("{place} runs {runs}, as it should."),
        (Some(_), Some(wanted)) if busy => format!("{place} is moving to {wanted}."),
        (Some(_), Some(wanted)) if !is_same(wanted, &runs) => {
            format!("{place} has not moved to {wanted}{since}; it runs {runs}.")
        }
        (Some(_), _) => format!("{place} runs {runs} and is {}{since}.", standing.word),
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_start_matches('v') == other.trim_start_matches('v')
}

/// What a link that holds says.
fn good(step: Step, ground: &Ground<'_>, selected: &Selected<'_>) -> String {
    let status = ground.status;
    match step {
        Step::Policy => {
            let ignored: Vec<String> = status
                .candidates
                .iter()
                .filter_map(|one| {
                    let gate = one.gate.as_ref()?.known()?;
                    let is_policy = of_gate(gate) == Some(Step::Policy);
                    is_policy.then(|| format!("{} ignored: {gate}", one.tag))
                })
                .take(2)
                .collect();
            let ignored = if ignored.is_empty() {
                String::new()
            } else {
                format!("; {}", ignored.join(", "))
            };
            match selected.tag() {
                Some(tag) => format!("selected {tag} ({}{ignored})", ground.source),
                None => format!("nothing newer than what runs ({}{ignored})", ground.source),
            }
        }
        Step::Release => match status.wanted.as_ref() {
            Some(wanted) => {
                let tag = wanted.tag.as_deref().or(wanted.image.as_deref()).unwrap_or("-");
                format!("wants {tag}, nothing holds it")
            }
            None => "nothing holds it".to_owned(),
        },
        Step::Image => {
            let current = status.current.as_ref().and_then(|current| current.digest.as_deref());
            match current {
                Some(digest) => format!("found, {}", super::live::short_digest(digest)),
                None => "nothing wrong is known of it".to_owned(),
            }
        }
        Step::Apply => owners(ground),
        Step::Rollout => replicas(ground),
        Step::Health => health(ground, true),
    }
}

/// What a link says that was not come to.
fn not_yet(step: Step, ground: &Ground<'_>) -> String {
    match step {
        Step::Apply => owners(ground),
        Step::Rollout => replicas(ground),
        // What keeps it from being judged stands in the link before.
        Step::Health => health(ground, false),
        Step::Policy | Step::Release | Step::Image => "not come to".to_owned(),
    }
}

fn owners(ground: &Ground<'_>) -> String {
    if ground.live.is_none() {
        return "unknown: the workload could not be read".to_owned();
    }
    let one = |container: &&LiveContainer| {
        let owners: Vec<String> = container.owners.iter().map(super::live::owner).collect();
        let owners = if owners.is_empty() { "nobody".to_owned() } else { owners.join(", ") };
        format!("{} {} owned by {owners}", container.name, container.tag())
    };
    let all: Vec<String> = ground.followed.iter().map(one).collect();
    if all.is_empty() { "no followed container".to_owned() } else { all.join("; ") }
}

fn replicas(ground: &Ground<'_>) -> String {
    let Some(live) = ground.live else {
        return "unknown: the workload could not be read".to_owned();
    };
    let numbers = &live.replicas;
    let trouble = ground.trouble.map(|trouble| format!("; {trouble}")).unwrap_or_default();
    let pause = super::pause::sentence(ground.status, ground.now);
    let pause = pause.map(|pause| format!("; {pause}")).unwrap_or_default();
    format!(
        "{} of {} updated, {} available{trouble}{pause}",
        numbers.updated, numbers.wanted, numbers.available
    )
}

fn health(ground: &Ground<'_>, is_told: bool) -> String {
    let Some(release) = ground.active else { return "no active Release is known".to_owned() };
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
    let Some(healthy) = find(conditions.unwrap_or_default(), "Healthy") else {
        return "not judged".to_owned();
    };
    let name = release.metadata.name.as_deref().unwrap_or_default();
    if !is_told {
        return format!("{name} {}", healthy.reason);
    }
    let words = explain::<HealthyReason>(&healthy.reason);
    format!("{name} {}", said(&healthy.reason, &healthy.message, words))
}

#[cfg(test)]
mod tests;

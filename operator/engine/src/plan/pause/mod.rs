//! The pause of a ScaledObject around a rollout (the operator specification, section 5).
//!
//! A pause is a claim that stands on the ScaledObject itself: whose it is, for which target and
//! Release, since when and until when. Whether a claim is live follows in every pass from the
//! Releases and Rollbacks alone, never from memory; one that is not live is dropped.

mod freeze;
mod live;
mod overdue;
mod reading;
mod resume;

use belay_api::{Duration, annotations::PauseMode, target::PauseStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{PauseIntent, Precondition, Step, view::Pass};
use crate::{
    observed::{ClaimFacts, Fact, Observed, PauseRefused, Refusal, Scaler, TargetRecord},
    pause::Claim,
    settings::Settings,
    time,
};

pub(super) use self::freeze::Move;

/// How old a reading may be that proves a pause.
const FRESH: SignedDuration = SignedDuration::from_secs(10);
/// How soon something is looked at again that cannot be had.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// What is added to twice the deadline, until a claim ends by itself.
const SPARE: SignedDuration = SignedDuration::from_mins(5);
/// How soon a refused write is tried again, if nothing changes.
const RETRY_REFUSED: SignedDuration = SignedDuration::from_mins(5);
/// The longest wait after a write that failed.
const MAX_RETRY: u64 = 30;

/// What a target's annotations ask for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    scaled_object: &'a str,
    mode: PauseMode,
    /// Whether `pause` was written, so that a rollout waits for its proof.
    is_written: bool,
}

/// What becomes of a claim, or of marks of an earlier operator, on the ScaledObject of a target that
/// no workload has. `None` if it is another operator's to drop, or there is nothing to be dropped.
///
/// Whether that is so must be certain: a claim that is live is lost by it.
pub fn end_unfollowed_claim(
    facts: &ClaimFacts,
    settings: &Settings,
    now: Timestamp,
) -> Option<Step> {
    if may_drop(facts, settings, false, now) {
        return Some(drop_step(facts));
    }
    // Who claims it holds it.
    (facts.claim.is_none() && !facts.marks.is_empty()).then(|| remove_step(facts))
}

/// Whether a claim that is not live may be dropped: it is ours, its time is over, or nobody can read
/// whose it is and our manager wrote it.
fn may_drop(facts: &ClaimFacts, settings: &Settings, takes_over: bool, now: Timestamp) -> bool {
    let is_over = facts.expires.is_some_and(|expires| expires <= now);
    match &facts.claim {
        Some(claim) => {
            takes_over
                || claim.instance == settings.instance
                || is_over
                || (facts.expires.is_none() && facts.mode.is_some())
        }
        None => facts.mode.is_some(),
    }
}

/// The next claim of ours that has to go where nothing of the target is live.
pub(super) fn drop_all(
    observed: &Observed,
    record: Option<&TargetRecord>,
    settings: &Settings,
    now: Timestamp,
) -> Option<Step> {
    let is_refused = |facts: &ClaimFacts| {
        observed.pause_refused.as_ref().is_some_and(|refused| {
            refused.is_drop
                && refused.scaled_object == facts.scaled_object
                && now < retry_at(refused)
        })
    };
    let mut claims = observed.claims.iter();
    let facts = claims.find(|facts| {
        may_drop(facts, settings, names_us(record, settings), now) && !is_refused(facts)
    })?;
    Some(drop_step(facts))
}

fn precondition(facts: &ClaimFacts) -> Precondition {
    Precondition { uid: facts.uid.clone(), resource_version: facts.resource_version.clone() }
}

fn drop_step(facts: &ClaimFacts) -> Step {
    Step::DropPause { scaled_object: facts.scaled_object.clone(), from: precondition(facts) }
}

fn remove_step(facts: &ClaimFacts) -> Step {
    Step::RemovePause {
        scaled_object: facts.scaled_object.clone(),
        from: precondition(facts),
        marks: facts.marks.clone(),
    }
}

impl<'a> Pass<'a> {
    /// The pause that the annotations ask for.
    fn pause_wanted(&self) -> Option<Wanted<'a>> {
        let scaled_object = self.wants.scaled_object.as_deref()?;
        let mode = self.wants.pause.unwrap_or_default();
        let wanted = Wanted { scaled_object, mode, is_written: self.wants.pause.is_some() };
        (mode != PauseMode::None).then_some(wanted)
    }

    /// Whether a rollout that begins now is paused.
    pub(super) fn will_pause(&self) -> bool {
        self.pause_wanted().is_some() && self.is_pausable()
    }

    /// Whether the record names us: then claims of the operator before us are ours.
    fn takes_over(&self) -> bool {
        names_us(self.record, self.settings)
    }

    fn is_our_claim(&self, facts: &ClaimFacts) -> bool {
        facts.claim.as_ref().is_some_and(|claim| {
            claim.target == self.wants.target.as_str()
                && (claim.instance == self.settings.instance || self.takes_over())
        })
    }

    /// Our claim on the ScaledObject that the annotations name, as the watch shows it, or a reading
    /// that is newer.
    fn our_claim(&self) -> Option<&'a ClaimFacts> {
        let wanted = self.pause_wanted()?;
        let is_there = |facts: &&ClaimFacts| {
            facts.scaled_object == wanted.scaled_object && self.is_our_claim(facts)
        };
        self.observed.claims.iter().find(is_there).or_else(|| {
            let Some(Scaler::Found(facts)) = self.fresh_scaler()?.value() else { return None };
            facts.claim.as_ref().filter(is_there)
        })
    }

    /// The last reading, whatever came of it, unless that was long ago.
    fn fresh_scaler(&self) -> Option<&'a Fact<Scaler>> {
        self.scaler_since(time::plus(self.now, -FRESH))
    }

    /// The last reading, unless it is time to read anew what could not be had.
    fn recent_scaler(&self) -> Option<&'a Fact<Scaler>> {
        let reading = self.observed.scaler.as_ref()?;
        (time::plus(reading.read(), AGAIN) > self.now).then_some(reading)
    }

    fn scaler_since(&self, since: Timestamp) -> Option<&'a Fact<Scaler>> {
        self.observed.scaler.as_ref().filter(|reading| reading.read() >= since)
    }

    /// Whether the rollout may be paused at all now: there are pods that could be scaled in.
    fn is_pausable(&self) -> bool {
        self.workload.rollout.wanted > 0 && !self.workload.rollout.paused
    }

    /// Twice the deadline and a spare: how long a claim lasts by itself.
    fn claim_lasts(&self) -> SignedDuration {
        time::signed(self.wants.deadline).saturating_mul(2).saturating_add(SPARE)
    }

    /// When a claim is to be renewed.
    fn renews_at(&self, facts: &ClaimFacts) -> Timestamp {
        let half = time::unsigned(self.claim_lasts()).as_secs() / 2;
        let half = time::signed(Duration::from_secs(half));
        facts.expires.map_or(Timestamp::MIN, |expires| time::plus(expires, -half))
    }

    /// Claims the pause of the ScaledObject that `from` is of.
    fn claim(
        &self,
        wanted: Wanted<'_>,
        from: Precondition,
        release: &str,
        since: Timestamp,
    ) -> Step {
        Step::ClaimPause(PauseIntent {
            scaled_object: wanted.scaled_object.to_owned(),
            from,
            mode: wanted.mode,
            claim: Claim {
                instance: self.settings.instance.clone(),
                target: self.wants.target.as_str().to_owned(),
                release: release.to_owned(),
                since,
            },
            expires: time::plus(self.now, self.claim_lasts()),
        })
    }

    /// Why a write of a pause is not tried now, and when it will be.
    fn pause_refused(&self, scaled_object: &str, is_drop: bool) -> Option<(&'a str, Timestamp)> {
        let refused = self.observed.pause_refused.as_ref()?;
        let is_about = refused.scaled_object == scaled_object && refused.is_drop == is_drop;
        let again = retry_at(refused);
        (is_about && self.now < again).then(|| (said(&refused.cause), again))
    }

    /// The claim of ours that stands, for the status.
    pub(super) fn pause_status(&self) -> Option<PauseStatus> {
        let ours = self.observed.claims.iter().filter(|facts| self.is_our_claim(facts));
        let is_wanted = |facts: &&ClaimFacts| {
            Some(facts.scaled_object.as_str()) == self.wants.scaled_object.as_deref()
        };
        let ours: Vec<&ClaimFacts> = ours.collect();
        if ours.is_empty() && self.draft.keeps_status_of_pause {
            return self.record?.status.pause.clone();
        }
        let facts = ours.iter().copied().find(is_wanted).or_else(|| ours.first().copied())?;
        Some(PauseStatus {
            scaled_object: facts.scaled_object.clone(),
            mode: facts.mode?.into(),
            release: facts.claim.as_ref()?.release.clone(),
            expires: Time(facts.expires?),
        })
    }
}

fn names_us(record: Option<&TargetRecord>, settings: &Settings) -> bool {
    record.is_some_and(|record| record.status.instance.as_ref() == Some(&settings.instance))
}

fn retry_at(refused: &PauseRefused) -> Timestamp {
    match refused.cause {
        Refusal::Failed { .. } => {
            let doublings = refused.times.saturating_sub(1).min(5);
            let wait = (1_u64 << doublings).min(MAX_RETRY);
            time::after(refused.at, Duration::from_secs(wait))
        }
        Refusal::Denied { .. } | Refusal::Conflict { .. } => time::plus(refused.at, RETRY_REFUSED),
    }
}

fn said(cause: &Refusal) -> &str {
    match cause {
        Refusal::Denied { message } | Refusal::Failed { message } => message,
        Refusal::Conflict { .. } => "somebody else owns its annotations",
    }
}

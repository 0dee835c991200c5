//! What follows a failed rollout (the operator specification, sections 3.8 and 3.9).

use belay_api::{
    Release, Rollback,
    annotations::OnFailure,
    conditions::find,
    gates::Verdict,
    reasons::{ActiveReason, StalledReason, SucceededReason},
    rollback::InitiatorType,
    values::parse,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Flow,
    resolve::Resolved,
    view::{Pass, last_activation, name, open_activation, rollback_name, tag},
};
use crate::{judge::RolloutState, time};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// After so many system Rollbacks within a day no forward move starts.
const BREAKER: usize = 2;

impl<'a> Pass<'a> {
    /// Whether a Release is active because somebody else wrote its image.
    pub(super) fn is_written_by_other(release: &Release) -> bool {
        let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
        find(conditions.unwrap_or_default(), "Active")
            .and_then(|condition| parse::<ActiveReason>(&condition.reason).ok())
            .is_some_and(|reason| reason == ActiveReason::WrittenByOther)
    }

    /// Whether the present activation of a Release is a Rollback's doing.
    pub(super) fn came_by_rollback(&self, release: &Release) -> bool {
        let Some(last) = last_activation(release) else { return false };
        self.rollbacks.iter().any(|rollback| {
            let Some(status) = &rollback.status else { return false };
            let is_to = status.to_release_ref.as_ref().is_some_and(|to| to.name == name(release));
            let began = status.start_time.as_ref().map(|time| time.0);
            let ended = status.completion_time.as_ref().map(|time| time.0);
            is_to
                && status.attempt_count.is_some()
                && began.is_some_and(|began| began <= last.start_time.0)
                && ended.is_none_or(|ended| ended >= last.start_time.0)
        })
    }

    /// A failed forward move is rolled back, once, or left in place.
    pub(super) fn answer_failure(&mut self) -> Flow {
        let Some(active) = self.active else { return Flow::Continue(()) };
        let Some(open) = open_activation(active) else { return Flow::Continue(()) };
        let verdict = open.verdict.as_ref().and_then(belay_api::Open::known);
        if verdict != Some(Verdict::Failed) {
            return Flow::Continue(());
        }
        let message = open.message.clone().unwrap_or_default();
        if self.came_by_rollback(active) {
            let message = format!("the Rollback to {} failed: {message}", tag(active));
            self.draft.stalled.get_or_insert((StalledReason::RollbackFailed, message));
            return Flow::Continue(());
        }
        let wanted = self.system_rollback_name(active, open.ordinal);
        let existing = self.rollbacks.iter().find(|one| rollback_name(one) == wanted).copied();
        if let Some(existing) = existing {
            // It has ended, or the pass would not have come here, and the Release is still active.
            let reason = existing.status.as_ref().and_then(|status| status.message.clone());
            let message = format!("{message}; {}", reason.unwrap_or_default());
            self.draft.stalled.get_or_insert((StalledReason::RollbackFailed, message));
            return Flow::Continue(());
        }
        let is_ours = !Self::is_written_by_other(active);
        let goes_back = self.wants.on_failure == OnFailure::Rollback && is_ours;
        if goes_back && matches!(self.resolve(active, None, false), Resolved::To(_)) {
            let reason = format!("{} failed: {message}", tag(active));
            let step = self.new_rollback(active, open.ordinal, &reason);
            return self.draft.step(step);
        }
        let message = if goes_back {
            format!("{} failed and there is no Release to go back to: {message}", tag(active))
        } else {
            format!("{} failed and stays in place: {message}", tag(active))
        };
        self.draft.stalled.get_or_insert((StalledReason::Broken, message));
        Flow::Continue(())
    }

    /// A Rollback that failed is said as long as nothing has moved since.
    pub(super) fn mind_failed_rollback(&mut self) {
        let Some(last) = self.failed_rollback() else { return };
        let message = last.status.as_ref().and_then(|status| status.message.clone());
        let message = message.unwrap_or_default();
        let message = format!("the Rollback {} failed: {message}", rollback_name(last));
        self.draft.stalled.get_or_insert((StalledReason::RollbackFailed, message));
    }

    /// The last Rollback, if it was tried and failed, and nothing has moved since.
    pub(super) fn failed_rollback(&self) -> Option<&'a Rollback> {
        let ended = |rollback: &&&Rollback| {
            let status = rollback.status.as_ref()?;
            let was_tried = status.attempt_count.is_some() && status.is_terminal();
            Some(status.completion_time.as_ref().filter(|_| was_tried)?.0)
        };
        let last = self.rollbacks.iter().filter(|one| ended(one).is_some()).max_by_key(ended);
        let (last, at) = last.and_then(|last| Some((*last, ended(&last)?)))?;
        let status = last.status.as_ref()?;
        let has_failed = find(&status.conditions, "Succeeded").is_some_and(|condition| {
            matches!(
                parse::<SucceededReason>(&condition.reason),
                Ok(SucceededReason::DeploymentFailed | SucceededReason::DeadlineExceeded)
            )
        });
        let to = status.to_release_ref.as_ref().map(|to| to.name.as_str());
        // Times are of whole seconds: of that second is also what took its place at once.
        let has_moved = self.releases.iter().any(|one| {
            let is_other = to.is_some_and(|to| to != name(one));
            last_activation(one)
                .is_some_and(|last| last.start_time.0 > at || (is_other && last.start_time.0 == at))
        });
        let is_there = self.state == Some(RolloutState::Healthy) && self.active.map(name) == to;
        (has_failed && !has_moved && !is_there).then_some(last)
    }

    /// Until when the breaker keeps forward moves back.
    pub(super) fn breaker(&self) -> Option<Timestamp> {
        let mut times: Vec<Timestamp> = self
            .rollbacks
            .iter()
            .filter_map(|rollback| counts_for_breaker(rollback))
            .filter(|started| time::plus(*started, DAY) > self.now)
            .collect();
        times.sort_unstable();
        let older = times.len().checked_sub(BREAKER)?;
        times.get(older).map(|started| time::plus(*started, DAY))
    }
}

/// When a Rollback that the breaker counts began.
fn counts_for_breaker(rollback: &Rollback) -> Option<Timestamp> {
    let status = rollback.status.as_ref().filter(|_| is_system(rollback))?;
    status.attempt_count?;
    Some(status.start_time.as_ref()?.0)
}

/// Whether the breaker still counts it.
pub(super) fn is_counted(rollback: &Rollback, now: Timestamp) -> bool {
    counts_for_breaker(rollback).is_some_and(|began| time::plus(began, DAY) > now)
}

pub(super) fn is_system(rollback: &Rollback) -> bool {
    rollback.spec.initiated_by.type_ == InitiatorType::System
}

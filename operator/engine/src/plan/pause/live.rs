//! Which claims are live, keeping those that are, and dropping the others.

use belay_api::{
    annotations::{Mode, OnFailure},
    conditions::{TargetCondition, find},
    events::EventReason,
    gates::Verdict,
    reasons::{ActiveReason, Note, ProgressingReason},
    rollback::Driver,
    values::parse,
};
use jiff::SignedDuration;

use super::{AGAIN, Wanted, drop_step, freeze::Obstacle, may_drop, precondition, remove_step};
use crate::{
    judge::RolloutState,
    observed::ClaimFacts,
    plan::{
        Flow, Look, Precondition, Step,
        failure::is_system,
        resolve::Resolved,
        rollback::{has_started, status_of},
        view::{Pass, is_same, last_activation, name, open_activation, rollback_name},
    },
    time,
};

/// For how long a claim is kept for a candidate that nobody can name, because GitHub has not been
/// asked yet since the start.
const WITHOUT_GITHUB: SignedDuration = SignedDuration::from_secs(60);

impl<'a> Pass<'a> {
    /// Drops what is not live, renews what is, and claims again what was taken away in the middle of
    /// a rollout. A claim for a candidate is looked at when the pass knows whether that is applied.
    pub(in crate::plan) fn mind_pause(&mut self) -> Flow {
        let is_live = self.needs_pause();
        if let Some(step) = self.next_drop(is_live, false) {
            return self.drop_claim(step);
        }
        if is_live {
            self.keep_note();
            return self.keep_pause();
        }
        self.mind_resume();
        Flow::Continue(())
    }

    /// At the end of a pass that found nothing else to do: whatever claim it has not asked for goes.
    pub(in crate::plan) fn end_pause(&mut self) {
        let draft = &self.draft;
        let is_over = draft.step.is_some()
            || draft.is_undecided
            || draft.is_anothers
            || draft.claims
            || draft.keeps_pause;
        if is_over {
            return;
        }
        if let Some(step) = self.next_drop(self.needs_pause(), true) {
            // What was to be told comes with the status, in the next pass.
            self.draft.notices.clear();
            let _ = self.drop_claim(step);
        }
    }

    fn drop_claim(&mut self, step: Step) -> Flow {
        if let Step::DropPause { scaled_object, .. } = &step {
            let message = format!("dropping the pause of the ScaledObject {scaled_object}");
            self.draft.tell(EventReason::Resuming, message);
        }
        self.draft.step(step)
    }

    /// Whether our claim is live whatever this pass is about to apply: a rollout of ours is under
    /// way, or its failure is to be answered, or a Rollback is carried out.
    fn needs_pause(&self) -> bool {
        self.may_pause()
            && (self.is_our_rollout() || self.is_going_back() || self.answers_failure())
    }

    /// Whether any claim of ours can be live.
    fn may_pause(&self) -> bool {
        self.will_pause()
            && self.wants.mode == Mode::Apply
            && self.surroundings.scaled_object_of.is_none()
    }

    /// Whether a rollout of ours is under way: neither succeeded nor failed.
    fn is_our_rollout(&self) -> bool {
        let Some(active) = self.active else { return false };
        open_activation(active).is_some_and(|open| open.verdict.is_none())
            && matches!(self.state, Some(RolloutState::Rolling { .. }))
            && self.is_ours()
            && is_of_ours(active)
    }

    /// Whether a Rollback is under way that has not applied its image yet.
    fn is_going_back(&self) -> bool {
        self.pending().filter(|one| one.spec.driver == Driver::Native && has_started(one)).any(
            |one| {
                let to = status_of(one).to_release_ref;
                let to = to.and_then(|to| self.release(&to.name));
                to.is_some_and(|to| !self.active.is_some_and(|active| is_same(active, to)))
            },
        )
    }

    /// Whether the active Release failed, and a Rollback follows.
    fn answers_failure(&self) -> bool {
        let Some(active) = self.active else { return false };
        let Some(open) = open_activation(active) else { return false };
        let has_failed =
            open.verdict.as_ref().and_then(belay_api::Open::known) == Some(Verdict::Failed);
        if !has_failed || self.came_by_rollback(active) {
            return false;
        }
        if self.pending().any(|one| one.spec.driver == Driver::Native) {
            return true;
        }
        let own = self.system_rollback_name(active, open.ordinal);
        let is_answered =
            self.rollbacks.iter().any(|one| is_system(one) && rollback_name(one) == own);
        !is_answered
            && self.wants.on_failure == OnFailure::Rollback
            && !Self::is_written_by_other(active)
            && matches!(self.resolve(active, None, false), Resolved::To(_))
    }

    /// The next claim or mark that has to go.
    fn next_drop(&mut self, is_live: bool, is_end: bool) -> Option<Step> {
        let observed = self.observed;
        for facts in &observed.claims {
            let is_ours_there = self.is_our_claim(facts)
                && Some(&facts.scaled_object) == self.wants.scaled_object.as_ref();
            if is_ours_there && (is_live || self.is_for_candidate(facts, is_end)) {
                continue;
            }
            let step = if may_drop(facts, self.settings, self.takes_over(), self.now) {
                drop_step(facts)
            } else if facts.claim.is_none()
                && !facts.marks.is_empty()
                && self.wants.mode == Mode::Apply
            {
                remove_step(facts)
            } else {
                continue;
            };
            if let Some((_, again)) = self.pause_refused(&facts.scaled_object, true) {
                self.draft.wake(again);
                continue;
            }
            return Some(step);
        }
        None
    }

    /// Whether a claim may be for what this pass is about to apply. At the end of the pass it is not,
    /// unless GitHub has not answered yet.
    fn is_for_candidate(&mut self, facts: &ClaimFacts, is_end: bool) -> bool {
        let Some(claim) = &facts.claim else { return false };
        let was_applied = self
            .release(&claim.release)
            .and_then(last_activation)
            .is_some_and(|last| last.start_time.0 >= claim.since);
        if was_applied || !self.may_pause() {
            return false;
        }
        if !is_end {
            return true;
        }
        let until = time::plus(claim.since, WITHOUT_GITHUB);
        if self.observed.forge.value().is_none() && self.now < until {
            self.draft.wake(until);
            return true;
        }
        false
    }

    fn keep_pause(&mut self) -> Flow {
        let Some(wanted) = self.pause_wanted() else { return Flow::Continue(()) };
        let ours = self.our_claim();
        if let Some(facts) = ours.filter(|facts| facts.mode == Some(wanted.mode)) {
            return match self.renewal(wanted, facts) {
                Some(step) => self.draft.step(step),
                None => Flow::Continue(()),
            };
        }
        if !self.is_our_rollout() {
            // Before the image is applied, the pause is claimed and proven anyway.
            return Flow::Continue(());
        }
        self.claim_again(wanted, ours)
    }

    /// The step that renews a claim, when it is time.
    pub(super) fn renewal(&mut self, wanted: Wanted<'_>, facts: &ClaimFacts) -> Option<Step> {
        let claim = facts.claim.as_ref()?;
        let due = self.renews_at(facts);
        if self.now < due {
            self.draft.wake(due);
            return None;
        }
        if let Some((_, again)) = self.pause_refused(wanted.scaled_object, false) {
            self.draft.wake(again);
            return None;
        }
        Some(self.claim(wanted, precondition(facts), &claim.release, claim.since))
    }

    /// Claims a pause in the middle of a rollout, without waiting for its proof: it was stripped, the
    /// workload was paused until now, or it could not be claimed before.
    fn claim_again(&mut self, wanted: Wanted<'_>, ours: Option<&'a ClaimFacts>) -> Flow {
        let (Some(active), Some(reading)) = (self.active, self.fresh_scaler()) else {
            self.look_again(wanted);
            return Flow::Continue(());
        };
        let facts = match self.claimable(wanted, reading) {
            Ok(facts) => facts,
            Err(obstacle) => {
                self.draft.wake(time::plus(reading.read(), AGAIN));
                if let Obstacle::Refused(cause) | Obstacle::Cannot(cause) = obstacle {
                    self.goes_on(&cause);
                }
                return Flow::Continue(());
            }
        };
        let is_there = facts.claim.as_ref().is_some_and(|claim| self.is_our_claim(claim));
        if is_there && facts.our_pause(wanted.mode).is_some() {
            // Either the reading or the watch is late.
            self.draft.look.push(Look::Scaler);
            return Flow::Continue(());
        }
        let was_there = self.record.is_some_and(|record| record.status.pause.is_some());
        let is_switched = ours.is_some_and(|facts| facts.mode.is_some());
        if (ours.is_some() || was_there) && !is_switched {
            let message = format!(
                "somebody took the pause of the ScaledObject {} away in mid-rollout; it is claimed \
                 again",
                wanted.scaled_object
            );
            self.draft.tell(EventReason::PauseLost, message);
        }
        let claim = ours.and_then(|facts| facts.claim.as_ref());
        let release = claim.map_or(name(active), |claim| claim.release.as_str()).to_owned();
        let since = claim.map_or(self.now, |claim| claim.since);
        let from = Precondition {
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
        };
        let step = self.claim(wanted, from, &release, since);
        self.draft.step(step)
    }

    /// Asks for a reading, unless the last one said that nothing can be claimed, and is not old.
    fn look_again(&mut self, wanted: Wanted<'_>) {
        let last = self.recent_scaler().filter(|last| self.claimable(wanted, last).is_err());
        if let Some(last) = last {
            self.draft.wake(time::plus(last.read(), AGAIN));
        } else {
            self.draft.look.push(Look::Scaler);
            self.draft.keeps_status_of_pause = true;
        }
    }

    /// Nothing can be paused any more, or somebody else says that nothing is to be, and is not fought.
    fn goes_on(&mut self, cause: &str) {
        self.note_and_tell(Note::RolledUnpaused, EventReason::RolledUnpaused, cause);
    }

    /// A rollout that began without a pause goes on saying so.
    fn keep_note(&mut self) {
        if !self.is_our_rollout() || !self.has_said_unpaused(self.active.map(name)) {
            return;
        }
        let conditions = self.record.map(|record| record.status.conditions.as_slice());
        let kind = belay_api::NamedValue::as_str(Note::RolledUnpaused);
        if let Some(said) = find(conditions.unwrap_or_default(), kind) {
            self.draft.note(Note::RolledUnpaused, said.message.clone());
        }
    }

    /// Whether the record says that the move to this Release goes on without a pause.
    pub(super) fn has_said_unpaused(&self, release: Option<&str>) -> bool {
        self.has_wanted(release) && self.has_note(Note::RolledUnpaused)
    }

    /// Whether the record is about the move to this Release.
    pub(super) fn has_wanted(&self, release: Option<&str>) -> bool {
        let wanted = self.record.and_then(|record| record.status.wanted.as_ref());
        release.is_some() && wanted.and_then(|wanted| wanted.release.as_deref()) == release
    }

    /// What the record says that is done.
    pub(super) fn said_progressing(&self) -> Option<ProgressingReason> {
        let conditions = self.record.map(|record| record.status.conditions.as_slice());
        let kind = belay_api::NamedValue::as_str(TargetCondition::Progressing);
        parse(&find(conditions?, kind)?.reason).ok()
    }

    /// Notes something, and tells of it once: when the record does not have the note yet.
    pub(super) fn note_and_tell(&mut self, note: Note, event: EventReason, message: &str) {
        if !self.has_note(note) {
            self.draft.tell(event, message);
        }
        self.draft.note(note, message);
    }

    /// Whether the record has a note.
    pub(super) fn has_note(&self, note: Note) -> bool {
        let conditions = self.record.map(|record| record.status.conditions.as_slice());
        find(conditions.unwrap_or_default(), belay_api::NamedValue::as_str(note)).is_some()
    }
}

/// Whether a Release is active because Belay applied its image.
fn is_of_ours(release: &belay_api::Release) -> bool {
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), "Active")
        .and_then(|condition| parse::<ActiveReason>(&condition.reason).ok())
        .is_some_and(|reason| matches!(reason, ActiveReason::Applied | ActiveReason::Restored))
}

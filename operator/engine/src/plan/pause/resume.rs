//! After success: the pause is dropped, and autoscaling is seen to resume.

use belay_api::{
    Duration,
    events::EventReason,
    gates::WaitReason,
    reasons::{Note, ProgressingReason},
};
use jiff::Timestamp;

use super::AGAIN;
use crate::{
    judge::RolloutState,
    observed::Scaler,
    plan::{
        Look,
        view::{Pass, open_activation},
    },
    time,
};

impl Pass<'_> {
    /// Whether the bake waits until autoscaling is seen to resume.
    pub(in crate::plan) fn awaits_resume(&self, succeeded: Option<Timestamp>) -> bool {
        let succeeded = succeeded.unwrap_or(self.now);
        self.now < self.resume_until(succeeded) && self.was_paused() && !self.has_resumed(succeeded)
    }

    /// For how long it waits at most.
    pub(in crate::plan) fn longest_resume(&self) -> Duration {
        match self.pause_wanted() {
            Some(_) => self.settings.windows.pause_proof,
            None => Duration::default(),
        }
    }

    fn resume_until(&self, succeeded: Timestamp) -> Timestamp {
        time::after(succeeded, self.settings.windows.pause_proof)
    }

    /// Says that the bake waits, and looks.
    pub(in crate::plan) fn await_resume(&mut self, succeeded: Timestamp) {
        let until = self.resume_until(succeeded);
        self.draft.busy(ProgressingReason::Resuming, "");
        self.draft.wait(WaitReason::ResumeProof, until);
        if self.our_claim().is_none() {
            self.draft.look.push(Look::Scaler);
        }
    }

    /// Whether this pass said that the bake waits.
    pub(in crate::plan) fn is_awaiting_resume(&self) -> bool {
        matches!(self.draft.progressing, Some((ProgressingReason::Resuming, _)))
    }

    /// Whether this rollout was paused: the claim is there, or the status shows what became of it.
    fn was_paused(&self) -> bool {
        if self.pause_wanted().is_none() || self.workload.rollout.wanted == 0 {
            return false;
        }
        let Some(record) = self.record else { return false };
        let is_resuming = self.said_progressing() == Some(ProgressingReason::Resuming);
        self.our_claim().is_some()
            || record.status.pause.is_some()
            || is_resuming
            || self.has_note(Note::ResumeUnproven)
    }

    /// Whether autoscaling goes on, or there is nothing that could.
    fn has_resumed(&self, since: Timestamp) -> bool {
        if self.our_claim().is_some() {
            return false;
        }
        let Some(reading) = self.scaler_since(since) else { return false };
        match reading.value() {
            None => false,
            Some(Scaler::NoKeda | Scaler::Missing) => true,
            Some(Scaler::Found(facts)) => {
                facts.deleting
                    || !self.is_scaled_by(facts)
                    || facts.foreign_pause().is_some()
                    || facts.is_resumed(since, reading.read())
            }
        }
    }

    /// Says, as long as it is so, that autoscaling has not been seen to resume.
    pub(super) fn mind_resume(&mut self) {
        let Some(open) = self.active.and_then(open_activation) else { return };
        let since = match &self.state {
            Some(RolloutState::Baking { .. }) => {
                let progress =
                    self.active.and_then(|active| active.status.as_ref()?.progress.as_ref());
                let succeeded = progress.and_then(|progress| progress.succeeded_time.as_ref());
                let Some(succeeded) = succeeded.map(|time| time.0) else { return };
                if self.now < self.resume_until(succeeded) {
                    return;
                }
                succeeded
            }
            Some(RolloutState::Healthy) if self.has_note(Note::ResumeUnproven) => open.start_time.0,
            _ => return,
        };
        if !self.was_paused() || self.has_resumed(since) {
            return;
        }
        let Some(name) = self.wants.scaled_object.as_deref() else { return };
        let message = match self.pause_refused(name, true) {
            Some((said, _)) => {
                format!("the pause of the ScaledObject {name} cannot be dropped: {said}")
            }
            None => format!(
                "the pause of the ScaledObject {name} was dropped, and KEDA has not been seen to \
                 resume"
            ),
        };
        self.note_and_tell(Note::ResumeUnproven, EventReason::ResumeUnproven, &message);
        match self.recent_scaler() {
            Some(reading) => self.draft.wake(time::plus(reading.read(), AGAIN)),
            None => self.draft.look.push(Look::Scaler),
        }
    }
}

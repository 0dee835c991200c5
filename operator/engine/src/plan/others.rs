//! Rollouts that others began, of a change of anything but the image (the operator specification,
//! section 3.4: one at a time, whatever its origin).

use belay_api::{
    conditions::{ConditionStatus, find},
    reasons::{ProgressingReason, StalledReason},
};
use jiff::{SignedDuration, Timestamp};

use super::view::Pass;
use crate::{judge::RolloutState, time};

const UNDER_WAY: &str = "a rollout that Belay did not begin is under way";

impl Pass<'_> {
    /// Says what is done about the pause, unless the condition is the clock of others.
    pub(super) fn busy_pausing(&mut self, reason: ProgressingReason, message: String) {
        let is_clock = |said: &(ProgressingReason, String)| said.1 == UNDER_WAY;
        if !self.draft.progressing.as_ref().is_some_and(is_clock) {
            self.draft.busy(reason, message);
        }
    }

    /// Waits for a rollout of others while it makes progress. Our own are judged elsewhere.
    pub(super) fn wait_for_others(&mut self) {
        let is_over = match &self.state {
            Some(state) => *state == RolloutState::Healthy,
            None => self.active.is_none() && self.is_known(),
        };
        if !is_over || self.frozen {
            return;
        }
        let facts = &self.workload.rollout;
        if facts.observed_generation < facts.generation {
            // For a moment, mostly: what is being changed is not known yet.
            let message = "the workload's last change has not been looked at by its controller";
            self.draft.others_rollout = Some(message.to_owned());
            return;
        }
        if facts.paused || !self.is_unfinished() {
            return;
        }
        let ends = time::after(self.last_progress_of_others(), self.wants.deadline);
        // The condition is the clock, and so it stays even when the time is over.
        self.draft.busy(ProgressingReason::Rolling, UNDER_WAY);
        if self.now < ends {
            self.draft.wake(ends);
            self.draft.others_rollout = Some(UNDER_WAY.to_owned());
        } else {
            let message = format!(
                "a rollout that Belay did not begin makes no progress for {}; a newer release may \
                 start",
                self.wants.deadline
            );
            self.draft.stalled.get_or_insert((StalledReason::Broken, message));
        }
    }

    /// Whether pods of an earlier template are left, or none of the present one has come up. A
    /// scale-out of a finished rollout is none.
    fn is_unfinished(&self) -> bool {
        let facts = &self.workload.rollout;
        let is_complete = facts
            .progressing
            .as_ref()
            .is_some_and(|progressing| progressing.reason == "NewReplicaSetAvailable");
        facts.replicas != facts.updated
            || (facts.updated > 0 && facts.available == 0 && !is_complete)
    }

    /// When it was last seen to move: when it was first seen, or what Kubernetes says since.
    fn last_progress_of_others(&self) -> Timestamp {
        let conditions = self.record.map(|record| record.status.conditions.as_slice());
        let first_seen = find(conditions.unwrap_or_default(), "Progressing")
            .filter(|one| one.status == belay_api::NamedValue::as_str(ConditionStatus::True))
            .filter(|one| one.message == UNDER_WAY)
            .map_or(self.now, |condition| condition.last_transition_time.0);
        let facts = &self.workload.rollout;
        let Some(progressing) = &facts.progressing else { return first_seen };
        let Some(last_update) = progressing.last_update else { return first_seen };
        match progressing.reason.as_str() {
            // It is of an earlier rollout.
            "NewReplicaSetAvailable" => first_seen,
            // Updated when the time was over, not when there was progress.
            "ProgressDeadlineExceeded" => {
                let own = facts.progress_deadline.unwrap_or_default().max(0);
                let own = SignedDuration::from_secs(i64::from(own));
                first_seen.max(time::plus(last_update, -own)).min(self.now)
            }
            _ => first_seen.max(last_update).min(self.now),
        }
    }
}

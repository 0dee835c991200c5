//! Whether pods must be watched (the operator specification, section 3.7).

use belay_api::{
    conditions::{ConditionStatus, TargetCondition, status},
    target::TargetStatus,
};

use super::{
    Step,
    view::{Pass, open_activation},
};
use crate::judge::RolloutState;

impl Pass<'_> {
    /// Whether a rollout or a Rollback is under way, or begins with this pass's step.
    pub(super) fn needs_pods(&self) -> bool {
        let begins = matches!(self.draft.step, Some(Step::Apply(_) | Step::CreateRollback(_)));
        begins || self.draft.awaits_pods || self.is_rolling()
    }

    fn is_rolling(&self) -> bool {
        match &self.state {
            Some(
                RolloutState::Rolling { .. } | RolloutState::Paused | RolloutState::Baking { .. },
            ) => true,
            // A failure is answered within a few passes, mostly by the next rollout.
            Some(RolloutState::Failed(_)) => self.draft.step.is_some(),
            Some(RolloutState::Healthy | RolloutState::ScaledToZero) => false,
            // Its beginning is being written down; it is judged in the next pass.
            None => {
                self.draft.step.is_some()
                    && self.workload.rollout.wanted != 0
                    && self.active.is_some_and(|active| {
                        open_activation(active).is_none_or(|open| open.verdict.is_none())
                    })
            }
        }
    }
}

/// Whether a rollout was under way by the last status.
pub(super) fn were_watched(old: &TargetStatus) -> bool {
    status(&old.conditions, belay_api::NamedValue::as_str(TargetCondition::Progressing))
        == ConditionStatus::True
}

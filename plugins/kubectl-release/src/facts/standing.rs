//! Where a Target stands: the STATUS word, since when, and what it asks of the reader.

use belay_api::{
    NamedValue as _,
    conditions::{TargetCondition, find},
    reasons::{ProgressingReason, StalledReason, TargetReadyReason},
    target::TargetStatus,
    values::parse,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::print::Icon;

/// Where a Target stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The word, as the operator wrote it; `Unknown` where it has written none.
    pub word: String,
    /// The word, if this version knows it.
    pub reason: Option<TargetReadyReason>,
    /// Since when it is so, as far as conditions tell.
    pub since: Option<Timestamp>,
    /// What the operator says about it.
    pub message: String,
    /// Why nothing moves.
    pub stalled: Option<Cause<StalledReason>>,
    /// What is under way.
    pub progressing: Option<Cause<ProgressingReason>>,
}

/// The reason of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause<T> {
    /// The word as it was written.
    pub word: String,
    /// The word, if this version knows it.
    pub reason: Option<T>,
    /// What the operator says about it.
    pub message: String,
}

impl Standing {
    /// What a status says; one that is absent says nothing.
    pub fn of(status: Option<&TargetStatus>) -> Self {
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = |kind: TargetCondition| find(conditions, kind.as_str());
        let Some(ready) = condition(TargetCondition::Ready) else {
            return Self {
                word: TargetReadyReason::Unknown.as_str().to_owned(),
                reason: Some(TargetReadyReason::Unknown),
                since: None,
                message: "the operator has not written anything about it yet".to_owned(),
                stalled: None,
                progressing: None,
            };
        };
        let reason = parse::<TargetReadyReason>(&ready.reason).ok();
        // The transition time of Ready stays where another reason has the same status; the condition
        // that stands for the word tells better.
        let told = match reason {
            Some(TargetReadyReason::Progressing) => condition(TargetCondition::Progressing),
            Some(TargetReadyReason::Stalled) => condition(TargetCondition::Stalled),
            Some(TargetReadyReason::Held) => condition(TargetCondition::Held),
            Some(
                TargetReadyReason::Ready
                | TargetReadyReason::Failed
                | TargetReadyReason::RolledBack
                | TargetReadyReason::Unknown,
            )
            | None => None,
        };
        let is_true = |one: &&Condition| one.status == "True";
        let told = told.filter(is_true);
        Self {
            word: ready.reason.clone(),
            reason,
            since: Some(told.unwrap_or(ready).last_transition_time.0),
            message: ready.message.clone(),
            stalled: condition(TargetCondition::Stalled).filter(is_true).map(Cause::of),
            progressing: condition(TargetCondition::Progressing).filter(is_true).map(Cause::of),
        }
    }

    /// The sign before or after the word.
    pub fn icon(&self) -> Icon {
        match self.reason {
            Some(TargetReadyReason::Ready) => Icon::Good,
            Some(TargetReadyReason::Progressing) => Icon::Busy,
            Some(TargetReadyReason::Held) => Icon::Idle,
            Some(
                TargetReadyReason::Stalled
                | TargetReadyReason::Failed
                | TargetReadyReason::RolledBack,
            ) => Icon::Bad,
            Some(TargetReadyReason::Unknown) | None => Icon::Warn,
        }
    }

    /// Whether what should run does run.
    pub fn is_ready(&self) -> bool {
        self.reason == Some(TargetReadyReason::Ready)
    }

    /// Whether it ended badly: exit code 3.
    pub fn is_bad(&self) -> bool {
        match self.reason {
            Some(
                TargetReadyReason::Stalled
                | TargetReadyReason::Failed
                | TargetReadyReason::RolledBack,
            ) => true,
            Some(
                TargetReadyReason::Ready
                | TargetReadyReason::Progressing
                | TargetReadyReason::Held
                | TargetReadyReason::Unknown,
            )
            | None => false,
        }
    }

    /// Whether nothing more happens by itself, so that a watch ends. A hold does not end a move that
    /// is under way.
    pub fn is_final(&self) -> bool {
        match self.reason {
            Some(TargetReadyReason::Held) => self.progressing.is_none(),
            Some(TargetReadyReason::Progressing | TargetReadyReason::Unknown) | None => false,
            Some(
                TargetReadyReason::Ready
                | TargetReadyReason::Stalled
                | TargetReadyReason::Failed
                | TargetReadyReason::RolledBack,
            ) => true,
        }
    }

    /// Whether every replica runs the wanted image, although it may still have to hold.
    pub fn is_rolled_out(&self) -> bool {
        match &self.progressing {
            None => self.is_final() && !self.is_bad(),
            Some(cause) => match cause.reason {
                Some(ProgressingReason::Baking | ProgressingReason::Resuming) => true,
                Some(
                    ProgressingReason::Idle
                    | ProgressingReason::FirstSight
                    | ProgressingReason::Pausing
                    | ProgressingReason::CouldNotFreeze
                    | ProgressingReason::Rolling
                    | ProgressingReason::TargetPaused
                    | ProgressingReason::ImagePullFailed
                    | ProgressingReason::Unschedulable
                    | ProgressingReason::QuotaExceeded
                    | ProgressingReason::AdmissionDenied
                    | ProgressingReason::RollingBack
                    | ProgressingReason::Restoring
                    | ProgressingReason::ImageReverted,
                )
                | None => false,
            },
        }
    }
}

impl<T: belay_api::NamedValue> Cause<T> {
    fn of(condition: &Condition) -> Self {
        Self {
            word: condition.reason.clone(),
            reason: parse(&condition.reason).ok(),
            message: condition.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn standing(conditions: &Value) -> Standing {
        let conditions = conditions.as_array().unwrap().iter().map(|one| {
            json!({
                "type": one[0], "status": one[1], "reason": one[2], "message": "",
                "lastTransitionTime": one[3].as_str().unwrap_or("2026-01-01T00:00:00Z"),
            })
        });
        let status = json!({"conditions": conditions.collect::<Vec<_>>()});
        Standing::of(Some(&serde_json::from_value(status).unwrap()))
    }

    #[rstest]
    #[case::ready(json!([["Ready", "True", "Ready"]]), "Ready", false, true)]
    #[case::progressing(
        json!([["Ready", "Unknown", "Progressing"], ["Progressing", "True", "Rolling"]]),
        "Progressing", false, false
    )]
    #[case::stalled(json!([["Ready", "False", "Stalled"]]), "Stalled", true, true)]
    #[case::failed(json!([["Ready", "False", "Failed"]]), "Failed", true, true)]
    #[case::back(json!([["Ready", "True", "RolledBack"]]), "RolledBack", true, true)]
    #[case::held(json!([["Ready", "Unknown", "Held"]]), "Held", false, true)]
    #[case::held_and_rolling(
        json!([["Ready", "Unknown", "Held"], ["Progressing", "True", "Rolling"]]),
        "Held", false, false
    )]
    #[case::newer(json!([["Ready", "Unknown", "Levitating"]]), "Levitating", false, false)]
    #[case::nothing(json!([]), "Unknown", false, false)]
    fn the_word_decides(
        #[case] conditions: Value,
        #[case] word: &str,
        #[case] bad: bool,
        #[case] ends: bool,
    ) {
        let standing = standing(&conditions);
        assert_eq!(standing.word, word);
        assert_eq!((standing.is_bad(), standing.is_final()), (bad, ends));
    }

    #[rstest]
    #[case(json!([["Ready", "Unknown", "Progressing"], ["Progressing", "True", "Rolling"]]), false)]
    #[case(json!([["Ready", "Unknown", "Progressing"], ["Progressing", "True", "Baking"]]), true)]
    #[case(json!([["Ready", "True", "Ready"], ["Progressing", "False", "Idle"]]), true)]
    #[case(json!([["Ready", "False", "Stalled"]]), false)]
    fn a_rollout_is_complete_before_it_is_ready(#[case] conditions: Value, #[case] done: bool) {
        assert_eq!(standing(&conditions).is_rolled_out(), done);
    }

    #[test]
    fn the_condition_that_stands_for_the_word_says_since_when() {
        let stalled = standing(&json!([
            ["Ready", "False", "Stalled", "2026-01-01T00:00:00Z"],
            ["Stalled", "True", "TugOfWar", "2026-01-02T00:00:00Z"],
        ]));
        assert_eq!(stalled.since.unwrap().to_string(), "2026-01-02T00:00:00Z");
        assert_eq!(stalled.stalled.unwrap().reason, Some(StalledReason::TugOfWar));
    }
}

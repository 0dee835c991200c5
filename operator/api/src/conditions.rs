//! Condition types, each tied to its reasons, and how a condition is made and kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{
    limits,
    reasons::{
        ActiveReason, AnnotationsValidReason, AutomatedReason, BlockedReason, HealthyReason,
        HeldReason, InProgressReason, Note, ProgressingReason, ReleaseReadyReason,
        RollbackBlockedReason, RollbackRequiredReason, StalledReason, SucceededReason,
        TargetReadyReason,
    },
    values::{NamedValue, UnknownValue, named_values, parse},
};

named_values! {
    "condition status";
    /// The status of a condition.
    pub enum ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// Nobody knows.
        Unknown = "Unknown",
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

named_values! {
    "condition of a Release";
    /// The conditions of a Release.
    pub enum ReleaseCondition {
        /// The workload's template names this Release.
        Active = "Active",
        /// The Release works; it returns to Unknown at each activation.
        Healthy = "Healthy",
        /// The target should go back from it; policies act on it.
        RollbackRequired = "RollbackRequired",
        /// Belay refuses to go to it.
        Blocked = "Blocked",
        /// Its annotations were read and mirrored.
        AnnotationsValid = "AnnotationsValid",
        /// The summary: its reason is the one word to read.
        Ready = "Ready",
    }
}

named_values! {
    "condition of a Rollback";
    /// The conditions of a Rollback.
    pub enum RollbackCondition {
        /// The move is under way.
        InProgress = "InProgress",
        /// The move ended, well or badly; Unknown until then.
        Succeeded = "Succeeded",
    }
}

named_values! {
    "condition of an AutomatedRollbackPolicy";
    /// The conditions of an AutomatedRollbackPolicy.
    pub enum PolicyCondition {
        /// The policy acts.
        Automated = "Automated",
        /// The policy should fire and cannot.
        RollbackBlocked = "RollbackBlocked",
    }
}

named_values! {
    "condition of a ReleaseTarget";
    /// The conditions of a ReleaseTarget. Notes ([`Note`]) come beside them.
    pub enum TargetCondition {
        /// The summary: what should run does run. Its reason is the STATUS of the target.
        Ready = "Ready",
        /// Belay moves the target, or judges a move.
        Progressing = "Progressing",
        /// Nothing moves until somebody acts; there only while that is so.
        Stalled = "Stalled",
        /// A person holds the target; there only while it is held.
        Held = "Held",
    }
}

/// A condition's type together with its reason, so that one `match` can cover an object's
/// conditions whole.
pub trait State: Copy + 'static {
    /// All pairs of type and reason, in the order of the reference.
    fn all() -> Vec<Self>;

    /// The pair of these words.
    ///
    /// # Errors
    /// [`UnknownValue`], for the type or for the reason; other writers may use words of their own.
    fn parse(condition_type: &str, reason: &str) -> Result<Self, UnknownValue>;

    /// The condition's `type`.
    fn condition_type(self) -> &'static str;

    /// The condition's `reason`.
    fn reason(self) -> &'static str;

    /// The sentence about the reason.
    fn describe(self) -> &'static str;

    /// The pair that a condition holds.
    ///
    /// # Errors
    /// As [`State::parse`].
    fn of(condition: &Condition) -> Result<Self, UnknownValue> {
        Self::parse(&condition.type_, &condition.reason)
    }

    /// A condition that changed its status at `now`, observed at `generation`. A message longer
    /// than the API server takes is clipped. See [`carry_transition_times`].
    fn condition(
        self,
        status: ConditionStatus,
        message: &str,
        generation: Option<i64>,
        now: Time,
    ) -> Condition {
        Condition {
            type_: self.condition_type().to_owned(),
            status: status.as_str().to_owned(),
            reason: self.reason().to_owned(),
            message: limits::clip(message, limits::CONDITION_MESSAGE),
            observed_generation: generation,
            last_transition_time: now,
        }
    }
}

macro_rules! states {
    ($(#[$meta:meta])* pub enum $name:ident of $types:ident { $($variant:ident($reason:ident),)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(
                #[doc = concat!("The condition `", stringify!($variant), "`.")]
                $variant($reason),
            )+
        }

        impl State for $name {
            fn all() -> Vec<Self> {
                let mut all = Vec::new();
                $(all.extend($reason::ALL.iter().copied().map(Self::$variant));)+
                all
            }

            fn parse(condition_type: &str, reason: &str) -> Result<Self, UnknownValue> {
                Ok(match parse::<$types>(condition_type)? {
                    $($types::$variant => Self::$variant(parse(reason)?),)+
                })
            }

            fn condition_type(self) -> &'static str {
                match self { $(Self::$variant(_) => $types::$variant.as_str(),)+ }
            }

            fn reason(self) -> &'static str {
                match self { $(Self::$variant(reason) => reason.as_str(),)+ }
            }

            fn describe(self) -> &'static str {
                match self { $(Self::$variant(reason) => reason.describe(),)+ }
            }
        }

        $(
            impl From<$reason> for $name {
                fn from(reason: $reason) -> Self {
                    Self::$variant(reason)
                }
            }
        )+
    };
}

states! {
    /// Every condition of a Release with its reason.
    pub enum ReleaseState of ReleaseCondition {
        Active(ActiveReason),
        Healthy(HealthyReason),
        RollbackRequired(RollbackRequiredReason),
        Blocked(BlockedReason),
        AnnotationsValid(AnnotationsValidReason),
        Ready(ReleaseReadyReason),
    }
}

states! {
    /// Every condition of a Rollback with its reason.
    pub enum RollbackState of RollbackCondition {
        InProgress(InProgressReason),
        Succeeded(SucceededReason),
    }
}

states! {
    /// Every condition of an AutomatedRollbackPolicy with its reason.
    pub enum PolicyState of PolicyCondition {
        Automated(AutomatedReason),
        RollbackBlocked(RollbackBlockedReason),
    }
}

states! {
    /// Every condition of a ReleaseTarget with its reason, but for the notes.
    pub enum TargetState of TargetCondition {
        Ready(TargetReadyReason),
        Progressing(ProgressingReason),
        Stalled(StalledReason),
        Held(HeldReason),
    }
}

/// A note's type and reason are the same word.
impl State for Note {
    fn all() -> Vec<Self> {
        Self::ALL.to_vec()
    }

    fn parse(condition_type: &str, reason: &str) -> Result<Self, UnknownValue> {
        parse::<Self>(reason)?;
        parse(condition_type)
    }

    fn condition_type(self) -> &'static str {
        self.as_str()
    }

    fn reason(self) -> &'static str {
        self.as_str()
    }

    fn describe(self) -> &'static str {
        NamedValue::describe(self)
    }
}

/// The condition of a type. Types are unique in a list: the API server sees to it.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == condition_type)
}

/// The status of a condition; `Unknown` where it is absent or has a word of its own.
pub fn status(conditions: &[Condition], condition_type: &str) -> ConditionStatus {
    find(conditions, condition_type)
        .and_then(|condition| parse(&condition.status).ok())
        .unwrap_or(ConditionStatus::Unknown)
}

/// Gives each condition of `new` the transition time it had in `old` if its status is still the
/// same, so that an unchanged status stays equal to the one before.
pub fn carry_transition_times(new: &mut [Condition], old: &[Condition]) {
    for condition in new {
        if let Some(before) = find(old, &condition.type_)
            && before.status == condition.status
        {
            condition.last_transition_time = before.last_transition_time.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn every_state_survives_the_condition_that_holds_it<S: State + PartialEq + std::fmt::Debug>() {
        for state in S::all() {
            let condition = state.condition(ConditionStatus::True, "m", Some(3), at(7));
            assert_eq!(S::of(&condition).unwrap(), state);
            assert_eq!(condition.observed_generation, Some(3));
            assert!(!state.describe().is_empty());
        }
    }

    #[test]
    fn every_pair_of_type_and_reason_survives_the_condition_that_holds_it() {
        every_state_survives_the_condition_that_holds_it::<ReleaseState>();
        every_state_survives_the_condition_that_holds_it::<RollbackState>();
        every_state_survives_the_condition_that_holds_it::<PolicyState>();
        every_state_survives_the_condition_that_holds_it::<TargetState>();
        every_state_survives_the_condition_that_holds_it::<Note>();
    }

    #[test]
    fn a_condition_and_a_note_never_have_the_same_type() {
        for note in Note::ALL {
            assert!(parse::<TargetCondition>(note.as_str()).is_err(), "{note}");
        }
    }

    #[test]
    fn reasons_are_what_the_api_server_accepts_as_a_reason() {
        let states = [
            ReleaseState::all().into_iter().map(State::reason).collect::<Vec<_>>(),
            RollbackState::all().into_iter().map(State::reason).collect(),
            PolicyState::all().into_iter().map(State::reason).collect(),
            TargetState::all().into_iter().map(State::reason).collect(),
            Note::all().into_iter().map(State::reason).collect(),
        ];
        for reason in states.iter().flatten() {
            assert!(reason.starts_with(|c: char| c.is_ascii_uppercase()), "{reason}");
            assert!(reason.chars().all(|c| c.is_ascii_alphanumeric()), "{reason}");
        }
    }

    #[rstest]
    #[case("Healthy", "Pausing")]
    #[case("Sick", "Rolling")]
    #[case("healthy", "Rolling")]
    fn a_reason_of_another_condition_is_not_understood(#[case] kind: &str, #[case] reason: &str) {
        ReleaseState::parse(kind, reason).unwrap_err();
    }

    #[test]
    fn a_transition_time_changes_with_the_status_only() {
        let old = vec![
            ReleaseState::from(ActiveReason::Applied).condition(
                ConditionStatus::True,
                "",
                None,
                at(1),
            ),
            ReleaseState::from(HealthyReason::Rolling).condition(
                ConditionStatus::Unknown,
                "",
                None,
                at(1),
            ),
        ];
        let mut new = vec![
            ReleaseState::from(ActiveReason::Restored).condition(
                ConditionStatus::True,
                "other words",
                None,
                at(9),
            ),
            ReleaseState::from(HealthyReason::Baked).condition(
                ConditionStatus::True,
                "",
                None,
                at(9),
            ),
        ];
        carry_transition_times(&mut new, &old);
        assert_eq!(new[0].last_transition_time, at(1));
        assert_eq!(new[1].last_transition_time, at(9));
        assert_eq!(status(&new, "Healthy"), ConditionStatus::True);
        assert_eq!(status(&new, "Blocked"), ConditionStatus::Unknown);
    }

    #[test]
    fn a_message_is_clipped_to_what_the_api_server_takes() {
        let long = "x".repeat(limits::CONDITION_MESSAGE + 1);
        let condition = ReleaseState::from(ActiveReason::Applied).condition(
            ConditionStatus::True,
            &long,
            None,
            at(0),
        );
        assert_eq!(condition.message.chars().count(), limits::CONDITION_MESSAGE);
    }
}

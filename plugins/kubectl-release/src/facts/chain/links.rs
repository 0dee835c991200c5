//! Which link a word of the status is about. No word is left out.

use belay_api::{
    gates::Gate,
    reasons::{ProgressingReason, StalledReason},
};

use super::Step;

/// The link that is broken where nothing moves.
pub(super) fn of_stalled(reason: StalledReason) -> Step {
    match reason {
        StalledReason::InvalidConfig
        | StalledReason::DuplicateTarget
        | StalledReason::AnotherOperator
        | StalledReason::NotAllowed
        | StalledReason::RepositoryReplaced
        | StalledReason::RepositoryNotFound
        | StalledReason::CannotCompare => Step::Policy,
        StalledReason::ReleaseNameTaken | StalledReason::BreakerOpen => Step::Release,
        StalledReason::RepositoryDiffers => Step::Image,
        StalledReason::ManagedByGitOps
        | StalledReason::TugOfWar
        | StalledReason::ChangedByPerson
        | StalledReason::FieldConflict
        | StalledReason::Forbidden
        | StalledReason::ApplyRefused => Step::Apply,
        StalledReason::Broken => Step::Rollout,
        StalledReason::RollbackFailed => Step::Health,
    }
}

/// The link that is at work; `None` where nothing is.
pub(super) fn of_progressing(reason: ProgressingReason) -> Option<Step> {
    match reason {
        ProgressingReason::Idle => None,
        ProgressingReason::FirstSight => Some(Step::Policy),
        ProgressingReason::Pausing
        | ProgressingReason::CouldNotFreeze
        | ProgressingReason::ImageReverted => Some(Step::Apply),
        ProgressingReason::Rolling
        | ProgressingReason::TargetPaused
        | ProgressingReason::ImagePullFailed
        | ProgressingReason::Unschedulable
        | ProgressingReason::QuotaExceeded
        | ProgressingReason::AdmissionDenied
        | ProgressingReason::RollingBack
        | ProgressingReason::Restoring => Some(Step::Rollout),
        ProgressingReason::Resuming | ProgressingReason::Baking => Some(Step::Health),
    }
}

/// The link that a gate is at; `None` where the candidate is simply not a move forward.
pub(super) fn of_gate(gate: Gate) -> Option<Step> {
    match gate {
        Gate::Lower | Gate::Outranked => None,
        Gate::Draft | Gate::Prerelease | Gate::Pattern | Gate::InvalidTag | Gate::Range => {
            Some(Step::Policy)
        }
        Gate::Age
        | Gate::Blocked
        | Gate::Hold
        | Gate::FailedElsewhere
        | Gate::InFlight
        | Gate::ConcurrencyLimit => Some(Step::Release),
        Gate::WaitingForImage
        | Gate::RegistryDenied
        | Gate::RegistryUnavailable
        | Gate::PlatformMissing
        | Gate::TagMoved => Some(Step::Image),
    }
}

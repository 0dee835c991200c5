//! What the operator tells by events on a workload. What somebody has to act on stands in a status too:
//! events are for those who look at the workload alone, and can be lost.
//!
//! A doc comment is the sentence that the reference prints.

use crate::values::named_values;

named_values! {
    "reason of an event";
    /// Reasons of events, in the order in which a move meets them. A target that stalls is told of
    /// under the reason of its condition [`Stalled`](crate::reasons::StalledReason) instead.
    pub enum EventReason {
        /// The target was followed by another operator, which the message names, and is followed by
        /// this one from now on.
        TakenOver = "TakenOver",
        /// The image that runs is on another host than the one asked for, and counts as its mirror.
        MirrorHost = "MirrorHost",
        /// A pause of the ScaledObject is claimed, before the image moves.
        Pausing = "Pausing",
        /// Somebody took the pause of the ScaledObject away in the middle; it is claimed again.
        PauseLost = "PauseLost",
        /// The rollout goes on without a pause of the ScaledObject; the message says why.
        RolledUnpaused = "RolledUnpaused",
        /// The image of a new release was applied.
        Applying = "Applying",
        /// The workload came back with a lower version, and the image of the last good Release was
        /// applied.
        Restored = "Restored",
        /// An apply left the operator as owner of other fields than those that it applied.
        UnexpectedOwnership = "UnexpectedOwnership",
        /// A Release became active; the message says by whom.
        Active = "Active",
        /// Pods may not be watched; they are listed every 10 seconds while a rollout is under way.
        PodsNotWatched = "PodsNotWatched",
        /// The pause of the ScaledObject was dropped.
        Resuming = "Resuming",
        /// Autoscaling has not been seen to resume after the pause.
        ResumeUnproven = "ResumeUnproven",
        /// A pause is there after its time, because it cannot be dropped or renewed; the message has
        /// why.
        PauseOverdue = "PauseOverdue",
        /// The active Release was judged healthy.
        Healthy = "Healthy",
        /// The active Release was judged to have failed; the message says why.
        Failed = "Failed",
        /// A Rollback begins; the message says from where to where.
        RollingBack = "RollingBack",
        /// A Rollback reached its Release.
        RolledBack = "RolledBack",
        /// A Rollback ended without reaching its Release.
        RollbackFailed = "RollbackFailed",
        /// Another manager changed the image to one that is not of the active Release.
        ImageChanged = "ImageChanged",
        /// Another manager put an earlier image back; Belay applies its own again after a while.
        ImageReverted = "ImageReverted",
        /// The target is not stalled any more.
        Resumed = "Resumed",
    }
}

impl EventReason {
    /// Whether the event is of type Warning, not Normal.
    pub const fn is_warning(self) -> bool {
        match self {
            Self::TakenOver
            | Self::MirrorHost
            | Self::Pausing
            | Self::Applying
            | Self::Restored
            | Self::Active
            | Self::Resuming
            | Self::Healthy
            | Self::RolledBack
            | Self::Resumed => false,
            Self::PauseLost
            | Self::RolledUnpaused
            | Self::UnexpectedOwnership
            | Self::PodsNotWatched
            | Self::ResumeUnproven
            | Self::PauseOverdue
            | Self::Failed
            | Self::RollingBack
            | Self::RollbackFailed
            | Self::ImageChanged
            | Self::ImageReverted => true,
        }
    }
}

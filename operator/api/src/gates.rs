//! Why a candidate is not taken, and what a target waits for.

use crate::values::named_values;

named_values! {
    "gate";
    /// What keeps a candidate from becoming the next Release (operator specification, sections 3.2
    /// and 3.5). A candidate without a gate is free.
    pub enum Gate {
        /// The release is a draft.
        Draft = "Draft",
        /// The release is a prerelease, and `prereleases` is not set.
        Prerelease = "Prerelease",
        /// The release's tag does not match `tag-pattern`.
        Pattern = "Pattern",
        /// `tag-template` makes no valid image tag of it.
        InvalidTag = "InvalidTag",
        /// The version is outside `range`, or is no semantic version.
        Range = "Range",
        /// The release is younger than `min-age`.
        Age = "Age",
        /// Belay refuses it: the target left it, or a version above it, for a lower one.
        Blocked = "Blocked",
        /// A person holds the target.
        Hold = "Hold",
        /// The version is not above the one that runs.
        Lower = "Lower",
        /// A better candidate passes every gate.
        Outranked = "Outranked",
        /// The release failed on another target of the namespace.
        FailedElsewhere = "FailedElsewhere",
        /// A rollout or a Rollback is under way; the candidate waits for its verdict.
        InFlight = "InFlight",
        /// As many rollouts as the operator permits are under way.
        ConcurrencyLimit = "ConcurrencyLimit",
        /// The registry does not have the image yet.
        WaitingForImage = "WaitingForImage",
        /// The registry refuses the credential that was used.
        RegistryDenied = "RegistryDenied",
        /// The registry cannot be reached, fails, or asked for patience.
        RegistryUnavailable = "RegistryUnavailable",
        /// The image lacks a platform that nodes of the cluster have.
        PlatformMissing = "PlatformMissing",
        /// A Release of this tag exists, and the tag names another image now.
        TagMoved = "TagMoved",
    }
}

named_values! {
    "cause of waiting";
    /// What a target waits for (`status.waiting.reason`): a deadline, a back-off or a limit, never
    /// the ordinary poll.
    pub enum WaitReason {
        /// The rollout must make progress until then.
        Deadline = "Deadline",
        /// Success must hold until then.
        Bake = "Bake",
        /// The candidate becomes old enough then.
        MinAge = "MinAge",
        /// A temporary block ends then.
        BlockExpires = "BlockExpires",
        /// The registry is asked for the image again then.
        ImageBackoff = "ImageBackoff",
        /// The registry asked not to be called before then.
        RegistryThrottled = "RegistryThrottled",
        /// GitHub asked not to be called before then.
        GitHubThrottled = "GitHubThrottled",
        /// The pause must be proven until then.
        PauseProof = "PauseProof",
        /// Autoscaling must be seen to resume until then.
        ResumeProof = "ResumeProof",
        /// The image that was put back is applied again then.
        ReassertBackoff = "ReassertBackoff",
        /// The Rollback is tried again then.
        RollbackBackoff = "RollbackBackoff",
        /// The Rollback must end until then.
        RollbackTimeout = "RollbackTimeout",
        /// The breaker closes then.
        BreakerOpen = "BreakerOpen",
        /// As many rollouts as the operator permits are under way.
        ConcurrencyLimit = "ConcurrencyLimit",
        /// The API server is called again then.
        ApiBackoff = "ApiBackoff",
    }
}

named_values! {
    "budget";
    /// How much of GitHub's rate limit the operator's credential has left
    /// (`status.forge.budget`).
    pub enum ForgeBudget {
        /// Enough.
        Ok = "ok",
        /// Little: GitHub is asked less often.
        Low = "low",
        /// None: GitHub is not asked before the reset.
        Exhausted = "exhausted",
    }
}

named_values! {
    "verdict";
    /// How an activation ended or was judged (`status.activations[].verdict`).
    pub enum Verdict {
        /// It was judged healthy.
        Healthy = "Healthy",
        /// Its rollout or its bake failed.
        Failed = "Failed",
        /// It was taken back before it was judged.
        RolledBack = "RolledBack",
        /// Another image took its place before it was judged.
        Superseded = "Superseded",
    }
}

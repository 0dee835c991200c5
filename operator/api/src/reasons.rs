//! Every reason, one enum for each condition. The operator specification names most of them in
//! sections 1 and 3 to 8; those it leaves open ("the condition is False because …") are named here.
//!
//! A doc comment is the sentence that the reference prints.

use crate::values::named_values;

// === Release ===

named_values! {
    "reason of Active";
    /// Reasons of a Release's `Active`: does the workload's template name it?
    pub enum ActiveReason {
        /// True: the API server accepted Belay's apply of this Release's image.
        Applied = "Applied",
        /// True: it is what ran when Belay first saw the workload.
        Baseline = "Baseline",
        /// True: the workload came back with a version below it, and Belay restored it.
        Restored = "Restored",
        /// True: another manager wrote exactly the image of this Release.
        WrittenByOther = "WrittenByOther",
        /// True or False: as the Release's own annotations say; no workload that Belay follows has
        /// its target.
        Annotated = "Annotated",
        /// False: it was never active.
        NotActivated = "NotActivated",
        /// False: another Release of the target became active.
        Superseded = "Superseded",
        /// False: the target went back from it to an earlier Release.
        RolledBack = "RolledBack",
        /// False: the workload's image was changed to one that no Release names.
        ImageChanged = "ImageChanged",
    }
}

named_values! {
    "reason of Healthy";
    /// Reasons of a Release's `Healthy`: how its current or last activation was judged.
    pub enum HealthyReason {
        /// Unknown: it was never active.
        NotActivated = "NotActivated",
        /// Unknown: its rollout is under way.
        Rolling = "Rolling",
        /// Unknown: its rollout succeeded and must now hold for the target's `bake`.
        Baking = "Baking",
        /// Unknown: the workload has no replicas, so nothing shows whether it works.
        ScaledToZero = "ScaledToZero",
        /// Unknown: its activation ended before there was a verdict.
        Superseded = "Superseded",
        /// Unknown: no analysis selects it, and nothing else judges it.
        AnalysisMissing = "AnalysisMissing",
        /// Unknown: an analysis ended in an error, was inconclusive or was terminated.
        AnalysisError = "AnalysisError",
        /// Unknown: an analysis has not ended.
        AnalysisInProgress = "AnalysisInProgress",
        /// True: its rollout succeeded and held for the target's `bake`.
        Baked = "Baked",
        /// True: every analysis of its health succeeded.
        AnalysisSuccessful = "AnalysisSuccessful",
        /// False: its image reference is not valid.
        InvalidImageName = "InvalidImageName",
        /// False: a container cannot be created from its configuration.
        CreateContainerConfigError = "CreateContainerConfigError",
        /// False: there is no such image for its pods: it is not found, denied, or of another
        /// platform.
        ImagePullFailed = "ImagePullFailed",
        /// False: its image could not be pulled until the deadline, for a cause that may pass.
        ImagePullTimedOut = "ImagePullTimedOut",
        /// False: its containers crash again and again.
        CrashLoopBackOff = "CrashLoopBackOff",
        /// False: its pods fitted no node until the deadline.
        Unschedulable = "Unschedulable",
        /// False: a quota refused its pods until the deadline.
        QuotaExceeded = "QuotaExceeded",
        /// False: admission refused its pods until the deadline.
        AdmissionDenied = "AdmissionDenied",
        /// False: its rollout made no progress for the target's `deadline`.
        DeadlineExceeded = "DeadlineExceeded",
        /// False: its pods failed while it baked.
        BakeFailed = "BakeFailed",
        /// False: success came and went until three bakes and a deadline were over.
        BakeUnstable = "BakeUnstable",
        /// False: an analysis of its health failed.
        AnalysisFailed = "AnalysisFailed",
    }
}

named_values! {
    "reason of RollbackRequired";
    /// Reasons of a Release's `RollbackRequired`, which policies watch.
    pub enum RollbackRequiredReason {
        /// Unknown: its rollout has no result yet.
        RolloutInProgress = "RolloutInProgress",
        /// False: its rollout succeeded.
        RolloutHealthy = "RolloutHealthy",
        /// True: its rollout or its bake failed.
        RolloutFailed = "RolloutFailed",
        /// Unknown: no analysis labelled `rollback` selects it.
        AnalysisMissing = "AnalysisMissing",
        /// Unknown: an analysis ended in an error, was inconclusive or was terminated.
        AnalysisError = "AnalysisError",
        /// Unknown: an analysis has not ended.
        AnalysisInProgress = "AnalysisInProgress",
        /// False: every analysis labelled `rollback` succeeded.
        AnalysisSuccessful = "AnalysisSuccessful",
        /// True: an analysis labelled `rollback` failed.
        AnalysisFailed = "AnalysisFailed",
    }
}

named_values! {
    "reason of Blocked";
    /// Reasons of a Release's `Blocked`, and of the blocks that a ReleaseTarget lists.
    pub enum BlockedReason {
        /// True: a Rollback left it for an earlier Release.
        RolledBack = "RolledBack",
        /// True: its rollout or its bake failed.
        RolloutFailed = "RolloutFailed",
        /// True: Helm put an earlier Release back while this one was not healthy for long.
        RolledBackByHelm = "RolledBackByHelm",
        /// True: a person put an earlier image back.
        RolledBackByPerson = "RolledBackByPerson",
        /// True: a person's Rollback pre-empted its rollout.
        Superseded = "Superseded",
        /// True, for one hour and at most twice: it failed for a cause outside itself, such as an
        /// unschedulable pod, a quota or a refused admission.
        BlockedTemporarily = "BlockedTemporarily",
        /// False: `allow` named it and it may be tried once more.
        Allowed = "Allowed",
        /// False: its block was temporary and is over.
        Expired = "Expired",
        /// False: nothing blocks it.
        NotBlocked = "NotBlocked",
    }
}

named_values! {
    "reason of AnnotationsValid";
    /// Reasons of a Release's `AnnotationsValid`.
    pub enum AnnotationsValidReason {
        /// True: its annotations were read and mirrored.
        Valid = "Valid",
        /// False: an annotation cannot be read; the value read before stays.
        Unparsable = "Unparsable",
        /// False: a workload that Belay follows has its target, so the operator alone decides.
        OperatorOwned = "OperatorOwned",
        /// False: two Releases say that they are active, and the newer activation is another's.
        Superseded = "Superseded",
    }
}

named_values! {
    "reason of Ready";
    /// Reasons of a Release's `Ready`: the one-word summary that `kubectl get rel` shows.
    pub enum ReleaseReadyReason {
        /// The ScaledObject is being paused before its rollout.
        Pausing = "Pausing",
        /// Its rollout is under way.
        Rolling = "Rolling",
        /// Its rollout succeeded and must now hold.
        Baking = "Baking",
        /// It is active on a workload without replicas.
        ScaledToZero = "ScaledToZero",
        /// It was judged healthy.
        Healthy = "Healthy",
        /// Its rollout or its bake failed.
        Failed = "Failed",
        /// The target went back from it.
        RolledBack = "RolledBack",
        /// Another Release took its place.
        Superseded = "Superseded",
        /// Belay refuses to go to it.
        Blocked = "Blocked",
    }
}

// === Rollback ===

named_values! {
    "reason of InProgress";
    /// Reasons of a Rollback's `InProgress`.
    pub enum InProgressReason {
        /// False: an older Rollback of the target goes first.
        Queued = "Queued",
        /// True: the driver was told to go to the Release.
        DeploymentTriggered = "DeploymentTriggered",
        /// True: an attempt failed and another one follows.
        Retrying = "Retrying",
        /// True: the workload is paused (`spec.paused`), so nothing can roll.
        TargetPaused = "TargetPaused",
        /// False: it ended as asked.
        Completed = "Completed",
        /// False: it ended without reaching the Release.
        Failed = "Failed",
        /// False: another move took its place.
        Superseded = "Superseded",
    }
}

named_values! {
    "reason of Succeeded";
    /// Reasons of a Rollback's `Succeeded`. Once it is True or False nothing in the status changes.
    pub enum SucceededReason {
        /// Unknown: it has not ended.
        Pending = "Pending",
        /// True: the Release runs and was judged healthy, or the driver says so.
        DeploymentSucceeded = "DeploymentSucceeded",
        /// False: the Release was tried and failed, or the driver gave up.
        DeploymentFailed = "DeploymentFailed",
        /// False: somebody else moved the target meanwhile.
        DeploymentSuperseded = "DeploymentSuperseded",
        /// False: `spec.timeout` passed.
        DeadlineExceeded = "DeadlineExceeded",
        /// False: it was never begun; `status.rejection` says why.
        Rejected = "Rejected",
    }
}

named_values! {
    "rejection";
    /// Why a Rollback was rejected (`status.rejection`).
    pub enum Rejection {
        /// No earlier Release of the target can be gone to.
        NoReleaseToGoTo = "NoReleaseToGoTo",
        /// The named Release does not exist.
        ReleaseNotFound = "ReleaseNotFound",
        /// The named Release belongs to another target.
        OtherTarget = "OtherTarget",
        /// The named Release is active already.
        AlreadyActive = "AlreadyActive",
        /// The named Release was not judged healthy when it last ran; `force` goes there all the
        /// same.
        NotHealthy = "NotHealthy",
        /// The named Release is blocked; `force` goes there all the same.
        Blocked = "Blocked",
        /// The named Release is of another repository, which not even `force` permits.
        OtherRepository = "OtherRepository",
        /// A GitOps controller owns the image and would put its own back.
        ManagedByGitOps = "ManagedByGitOps",
        /// The operator's configuration does not permit it, or the thing named does not exist.
        NotAllowed = "NotAllowed",
        /// The driver is `native` and no workload that Belay follows has this target.
        NotFollowed = "NotFollowed",
        /// The driver is not `native` and Belay follows the workload of this target.
        Followed = "Followed",
        /// An option of the driver is missing or has a wrong value.
        InvalidOptions = "InvalidOptions",
    }
}

// === AutomatedRollbackPolicy ===

named_values! {
    "reason of Automated";
    /// Reasons of a policy's `Automated`: does it act?
    pub enum AutomatedReason {
        /// True or False: as `spec.enabled` says.
        SetByUser = "SetByUser",
        /// False: it has fired, and waits until a newer Release reaches the opposite status.
        DisabledByController = "DisabledByController",
        /// False: two policies have this target, so neither acts.
        DuplicatePolicy = "DuplicatePolicy",
        /// False: neither an analysis nor anybody else writes the condition it watches.
        NothingToWatch = "NothingToWatch",
    }
}

named_values! {
    "reason of RollbackBlocked";
    /// Reasons of a policy's `RollbackBlocked`: it should fire, can it?
    pub enum RollbackBlockedReason {
        /// True: no earlier Release can be gone to.
        NoReleaseToGoTo = "NoReleaseToGoTo",
        /// False: a Release to go to exists, or nothing asks for one.
        NotBlocked = "NotBlocked",
    }
}

// === ReleaseTarget ===

named_values! {
    "reason of Ready";
    /// Reasons of a ReleaseTarget's `Ready`: the STATUS that `kubectl release status` shows.
    pub enum TargetReadyReason {
        /// What should run does run and was judged healthy.
        Ready = "Ready",
        /// Belay is moving the target, or judging a move.
        Progressing = "Progressing",
        /// Nothing moves until somebody acts; the condition `Stalled` says why.
        Stalled = "Stalled",
        /// A person holds the target; the condition `Held` says more.
        Held = "Held",
        /// The last move failed and was left in place.
        Failed = "Failed",
        /// The last move failed, and the target went back.
        RolledBack = "RolledBack",
        /// A read failed, so the state is not known.
        Unknown = "Unknown",
    }
}

named_values! {
    "reason of Progressing";
    /// Reasons of a ReleaseTarget's `Progressing`: what Belay does or waits for right now.
    pub enum ProgressingReason {
        /// False: there is nothing to do.
        Idle = "Idle",
        /// True: a workload without Releases is left alone until its own rollout has ended.
        FirstSight = "FirstSight",
        /// True: the ScaledObject is being paused.
        Pausing = "Pausing",
        /// True: the pause cannot be proven, and `pause` was asked for, so the rollout waits.
        CouldNotFreeze = "CouldNotFreeze",
        /// True: pods of the new image come up.
        Rolling = "Rolling",
        /// True: somebody set `spec.paused`; the clock stands still until it is gone.
        TargetPaused = "TargetPaused",
        /// True: a container's image cannot be pulled, for a cause that may pass.
        ImagePullFailed = "ImagePullFailed",
        /// True: new pods fit no node.
        Unschedulable = "Unschedulable",
        /// True: a quota refuses new pods.
        QuotaExceeded = "QuotaExceeded",
        /// True: admission refuses new pods.
        AdmissionDenied = "AdmissionDenied",
        /// True: the pause of the ScaledObject is being dropped.
        Resuming = "Resuming",
        /// True: the rollout succeeded and must now hold.
        Baking = "Baking",
        /// True: a Rollback is under way.
        RollingBack = "RollingBack",
        /// True: the workload came back with a lower version, and the last good one is restored.
        Restoring = "Restoring",
        /// True: another manager put an image back, and Belay's is applied again after a while.
        ImageReverted = "ImageReverted",
    }
}

named_values! {
    "reason of Stalled";
    /// Reasons of a ReleaseTarget's `Stalled`: nothing moves until somebody acts. The condition is
    /// there only while that is so.
    pub enum StalledReason {
        /// An annotation, or the workload's own configuration, cannot be followed; the message
        /// names key and value.
        InvalidConfig = "InvalidConfig",
        /// An older workload has this targetName, or an older Target has this ScaledObject.
        DuplicateTarget = "DuplicateTarget",
        /// Another instance of the operator follows this target.
        AnotherOperator = "AnotherOperator",
        /// The operator's allow-lists do not permit this repository, registry or host for the
        /// namespace, or it does not exist.
        NotAllowed = "NotAllowed",
        /// The live image is of another repository than the one asked for.
        RepositoryDiffers = "RepositoryDiffers",
        /// Another GitHub repository has taken the name of the one that was followed.
        RepositoryReplaced = "RepositoryReplaced",
        /// GitHub shows no repository of this name to the operator's credential.
        RepositoryNotFound = "RepositoryNotFound",
        /// The running image has no version that a release can be compared with.
        CannotCompare = "CannotCompare",
        /// The Release's name belongs to a Release of another repository.
        ReleaseNameTaken = "ReleaseNameTaken",
        /// A rollout made no progress for the deadline and was left in place; a newer release may
        /// start.
        Broken = "Broken",
        /// Two moves were taken back within 24 hours.
        BreakerOpen = "BreakerOpen",
        /// The Rollback failed too.
        RollbackFailed = "RollbackFailed",
        /// A GitOps controller owns the image.
        ManagedByGitOps = "ManagedByGitOps",
        /// Another manager put its image back each time that Belay applied its own.
        TugOfWar = "TugOfWar",
        /// A person changed the image.
        ChangedByPerson = "ChangedByPerson",
        /// Another manager owns the image, and Belay does not force it.
        FieldConflict = "FieldConflict",
        /// The API server does not permit the operator to read or write what it must.
        Forbidden = "Forbidden",
        /// The API server or an admission check refuses the change of the workload.
        ApplyRefused = "ApplyRefused",
    }
}

named_values! {
    "reason of Held";
    /// Reasons of a ReleaseTarget's `Held`. The condition is there only while the target is held.
    pub enum HeldReason {
        /// True: forward moves stand still as asked.
        OnHold = "OnHold",
        /// True: the tag that is held is not the one that runs; the message has the command.
        Mismatch = "Mismatch",
    }
}

named_values! {
    "note";
    /// Notes on a ReleaseTarget: conditions that are there only while they are true, hinder
    /// nothing, and have their own name as reason.
    pub enum Note {
        /// Admission changed the image that Belay asked for; what was stored is followed.
        ChangedByAdmission = "ChangedByAdmission",
        /// GitHub is asked without a credential, so new releases are seen later.
        Unauthenticated = "Unauthenticated",
        /// The repository has more releases than are read; older ones were not looked at.
        ListTruncated = "ListTruncated",
        /// The tag that runs names another image now; nothing is written.
        TagMoved = "TagMoved",
        /// A container of the repository is not followed, because `container` leaves it out.
        ContainerLeftOut = "ContainerLeftOut",
        /// The rollout goes on without a pause, because the pause could not be proven.
        RolledUnpaused = "RolledUnpaused",
        /// The pause was dropped, but autoscaling has not been seen to resume.
        ResumeUnproven = "ResumeUnproven",
        /// A pause is there after its time, because it cannot be dropped or renewed; the message has
        /// why.
        PauseOverdue = "PauseOverdue",
        /// Nodes may not be read, so platforms of the image were not checked.
        PlatformsNotChecked = "PlatformsNotChecked",
        /// Pods may not be watched; they are listed every 10 seconds while a rollout is under way.
        PodsListed = "PodsListed",
        /// The namespace's release limit cannot be read; the default is used.
        ReleaseLimitInvalid = "ReleaseLimitInvalid",
        /// Annotations under the prefix mean nothing to this version; the message names the known
        /// ones that are nearest.
        UnknownAnnotation = "UnknownAnnotation",
    }
}

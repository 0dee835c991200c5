//! The words of a Release and of an AutomatedRollbackPolicy.

use belay_api::{
    gates::Verdict,
    reasons::{
        ActiveReason, AnnotationsValidReason, AutomatedReason, BlockedReason, HealthyReason,
        ReleaseReadyReason, RollbackBlockedReason, RollbackRequiredReason,
    },
};

use super::{Explain, Words, words};

const PODS: &[&str] = &["kubectl release status {t}"];
const BACK: &[&str] = &["kubectl release rollback {t}", "kubectl release status {t}"];

impl Explain for ActiveReason {
    fn words(self) -> Words {
        match self {
            Self::Applied => words("Belay applied its image", &[]),
            Self::Baseline => words("it ran when Belay first saw the workload", &[]),
            Self::Restored => {
                words("the workload came back with a lower version, and Belay restored it", &[])
            }
            Self::WrittenByOther => words("another manager wrote exactly its image", &[]),
            Self::Annotated => words("the Release's own annotations say so", &[]),
            Self::NotActivated => words("it was never active", &[]),
            Self::Superseded => words("another Release became active", &[]),
            Self::RolledBack => words("the target went back from it", &[]),
            Self::ImageChanged => words(
                "the image was changed to one that no Release names",
                &["kubectl release why {t}"],
            ),
        }
    }
}

impl Explain for HealthyReason {
    fn words(self) -> Words {
        match self {
            Self::NotActivated => words("it was never active, so it was never judged", &[]),
            Self::Rolling => words("its rollout is under way", &["kubectl release status {t} -w"]),
            Self::Baking => {
                words("its rollout succeeded and must now hold", &["kubectl release status {t} -w"])
            }
            Self::ScaledToZero => {
                words("there are no replicas, so nothing shows whether it works", &[])
            }
            Self::Superseded => {
                words("another image took its place before there was a verdict", &[])
            }
            Self::AnalysisMissing => words(
                "no analysis selects it, and nothing else judges it",
                &["label an AnalysisTemplate for it"],
            ),
            Self::AnalysisError => words(
                "an analysis ended in an error, was inconclusive or was terminated",
                &["kubectl get analysisruns"],
            ),
            Self::AnalysisInProgress => words("an analysis has not ended", &[]),
            Self::Baked => words("its rollout succeeded and held", &[]),
            Self::AnalysisSuccessful => words("every analysis of its health succeeded", &[]),
            Self::InvalidImageName => words(
                "its image reference is not valid",
                &["correct the `image`, `tag-pattern` or `tag-template` annotation"],
            ),
            Self::CreateContainerConfigError => words(
                "a container cannot be created from its configuration",
                &[
                    "check the ConfigMaps and Secrets that the container names",
                    "kubectl release status {t}",
                ],
            ),
            Self::ImagePullTimedOut => words(
                "its image could not be pulled in time, for a cause that may pass",
                &["kubectl release status {t}"],
            ),
            Self::ImagePullFailed => words(
                "there is no such image for its pods: not found, denied, or of another platform",
                &["check the image and the pull secret", "kubectl release status {t}"],
            ),
            Self::CrashLoopBackOff => words(
                "its containers crash again and again",
                &["kubectl logs of the failing pod, with --previous", "kubectl release status {t}"],
            ),
            Self::Unschedulable => words("its pods fitted no node until the deadline", PODS),
            Self::QuotaExceeded => words(
                "a quota refused its pods until the deadline",
                &["raise the quota of the namespace"],
            ),
            Self::AdmissionDenied => words("admission refused its pods until the deadline", PODS),
            Self::DeadlineExceeded => words("its rollout made no progress for the deadline", PODS),
            Self::BakeFailed => words("its pods failed while it baked", PODS),
            Self::BakeUnstable => {
                words("success came and went until three bakes and a deadline were over", PODS)
            }
            Self::AnalysisFailed => {
                words("an analysis of its health failed", &["kubectl get analysisruns"])
            }
        }
    }
}

impl Explain for RollbackRequiredReason {
    fn words(self) -> Words {
        match self {
            Self::RolloutInProgress => words("its rollout has no result yet", &[]),
            Self::RolloutHealthy => words("its rollout succeeded", &[]),
            Self::RolloutFailed => words("its rollout or its bake failed", BACK),
            Self::AnalysisMissing => words("no analysis labelled `rollback` selects it", &[]),
            Self::AnalysisError => words(
                "an analysis ended in an error, was inconclusive or was terminated",
                &["kubectl get analysisruns"],
            ),
            Self::AnalysisInProgress => words("an analysis has not ended", &[]),
            Self::AnalysisSuccessful => words("every analysis labelled `rollback` succeeded", &[]),
            Self::AnalysisFailed => words("an analysis labelled `rollback` failed", BACK),
        }
    }
}

impl Explain for BlockedReason {
    fn words(self) -> Words {
        const ALLOW: &[&str] = &["kubectl release resume {t} --allow TAG"];
        match self {
            Self::RolledBack => words("the target was rolled back from it", ALLOW),
            Self::RolloutFailed => words("its rollout or its bake failed", ALLOW),
            Self::RolledBackByHelm => words("Helm put an earlier Release back", ALLOW),
            Self::RolledBackByPerson => words("a person put an earlier image back", ALLOW),
            Self::Superseded => words("a person's Rollback pre-empted its rollout", ALLOW),
            Self::BlockedTemporarily => {
                words("it failed for a cause outside itself, and is tried again later", ALLOW)
            }
            Self::Allowed => words("`allow` named it, so it may be tried once more", &[]),
            Self::Expired => words("its block was temporary and is over", &[]),
            Self::NotBlocked => words("nothing blocks it", &[]),
        }
    }
}

impl Explain for AnnotationsValidReason {
    fn words(self) -> Words {
        match self {
            Self::Valid => words("its annotations were read and mirrored", &[]),
            Self::Unparsable => words(
                "an annotation cannot be read; the value read before stays",
                &["correct the annotation that the message names"],
            ),
            Self::OperatorOwned => words(
                "Belay follows a workload of this target, so the operator alone decides",
                &["remove the annotations from the Release"],
            ),
            Self::Superseded => {
                words("two Releases say that they are active, and the other is newer", &[])
            }
        }
    }
}

impl Explain for ReleaseReadyReason {
    fn words(self) -> Words {
        match self {
            Self::Pausing => words("the ScaledObject is being paused before its rollout", &[]),
            Self::Rolling => words("its rollout is under way", &[]),
            Self::Baking => words("its rollout succeeded and must now hold", &[]),
            Self::ScaledToZero => words("it is active on a workload without replicas", &[]),
            Self::Healthy => words("it was judged healthy", &[]),
            Self::Failed => words("its rollout or its bake failed", BACK),
            Self::RolledBack => words("the target went back from it", &[]),
            Self::Superseded => words("another Release took its place", &[]),
            Self::Blocked => {
                words("Belay refuses to go to it", &["kubectl release resume {t} --allow TAG"])
            }
        }
    }
}

impl Explain for Verdict {
    fn words(self) -> Words {
        match self {
            Self::Healthy => words("it was judged healthy", &[]),
            Self::Failed => words("its rollout or its bake failed", &[]),
            Self::RolledBack => words("it was taken back before it was judged", &[]),
            Self::Superseded => words("another image took its place before it was judged", &[]),
        }
    }
}

impl Explain for AutomatedReason {
    fn words(self) -> Words {
        match self {
            Self::SetByUser => words("the policy is as spec.enabled says", &[]),
            Self::DisabledByController => words(
                "it has fired, and waits until a newer Release reaches the opposite status",
                &[],
            ),
            Self::DuplicatePolicy => words(
                "two policies have this target, so neither acts",
                &["delete one of the two policies"],
            ),
            Self::NothingToWatch => words(
                "neither an analysis nor anybody else writes the condition it watches",
                &["label an AnalysisTemplate for the target's Releases"],
            ),
        }
    }
}

impl Explain for RollbackBlockedReason {
    fn words(self) -> Words {
        match self {
            Self::NoReleaseToGoTo => words(
                "it should fire, and no earlier Release can be gone to",
                &["kubectl release history {t}"],
            ),
            Self::NotBlocked => words("nothing keeps it from firing", &[]),
        }
    }
}

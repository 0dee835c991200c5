//! The words of a ReleaseTarget.

use belay_api::reasons::{HeldReason, Note, ProgressingReason, StalledReason, TargetReadyReason};

use super::{Explain, Words, words};

const WHY: &[&str] = &["kubectl release why {t}"];
const FOLLOW: &[&str] = &["kubectl release status {t} -w"];
const OWNERS: &str = "kubectl release owners {t} --path image";

impl Explain for TargetReadyReason {
    fn words(self) -> Words {
        match self {
            Self::Ready => words("what should run does run and is healthy", &[]),
            Self::Progressing => words("Belay is moving the target, or judging a move", FOLLOW),
            Self::Stalled => words("nothing moves until somebody acts", WHY),
            Self::Held => words("a person holds the target", &["kubectl release resume {t}"]),
            Self::Failed => words(
                "the last move failed and was left in place",
                &["kubectl release rollback {t}", "kubectl release why {t}"],
            ),
            Self::RolledBack => words(
                "the last move failed, and the target went back",
                &["kubectl release why {t}", "kubectl release history {t}"],
            ),
            Self::Unknown => words("a read failed, so the state is not known", WHY),
        }
    }
}

impl Explain for ProgressingReason {
    fn words(self) -> Words {
        match self {
            Self::Idle => words("there is nothing to do", &[]),
            Self::FirstSight => words(
                "Belay sees the workload for the first time and waits until its own rollout ends",
                FOLLOW,
            ),
            Self::Pausing => words("the ScaledObject is being paused before the rollout", FOLLOW),
            Self::CouldNotFreeze => words(
                "the pause that was asked for cannot be proven, so the rollout waits",
                &["look at KEDA and the ScaledObject", "kubectl release why {t}"],
            ),
            Self::Rolling => words("pods of the new image come up", FOLLOW),
            Self::TargetPaused => words(
                "somebody set spec.paused; Belay's clock stands still until it is gone",
                &["kubectl rollout resume deployment {t}"],
            ),
            Self::ImagePullFailed => words(
                "an image cannot be pulled, for a cause that may pass",
                &["kubectl release status {t} -w", "kubectl release rollback {t}"],
            ),
            Self::Unschedulable => words(
                "new pods fit no node",
                &["make room, or lower the requests", "kubectl release status {t}"],
            ),
            Self::QuotaExceeded => {
                words("a quota refuses new pods", &["raise the quota of the namespace"])
            }
            Self::AdmissionDenied => {
                words("admission refuses new pods", &["kubectl release status {t}"])
            }
            Self::Resuming => words("the pause of the ScaledObject is being dropped", FOLLOW),
            Self::Baking => words("the rollout succeeded and must now hold", FOLLOW),
            Self::RollingBack => words("a Rollback is under way", FOLLOW),
            Self::Restoring => words(
                "the workload came back with a lower version, and the last good one is restored",
                FOLLOW,
            ),
            Self::ImageReverted => words(
                "another manager put its image back; Belay applies its own again after a while",
                &[OWNERS, "run Helm with --post-renderer belay"],
            ),
        }
    }
}

impl Explain for StalledReason {
    fn words(self) -> Words {
        match self {
            Self::InvalidConfig => words(
                "an annotation, or the workload's own configuration, cannot be followed",
                &["correct what the message names"],
            ),
            Self::DuplicateTarget => words(
                "an older workload has this target's name, or an older target its ScaledObject",
                &["give this workload another `target` or `scaledobject` annotation"],
            ),
            Self::AnotherOperator => words(
                "another instance of the operator follows this target",
                &["stop one of the two", "annotate the workload with adopt: instance=NS/NAME"],
            ),
            Self::NotAllowed => words(
                "the operator's allow-lists do not permit the repository, registry or host, or it \
                 does not exist",
                &[
                    "ask whoever runs the operator for --allow-repo, --allow-registry or --allow-host",
                ],
            ),
            Self::RepositoryDiffers => words(
                "the live image is of another repository than the one asked for",
                &["set the `image` annotation to the repository that should run"],
            ),
            Self::RepositoryReplaced => words(
                "another GitHub repository has taken the name of the one that was followed",
                &["check the `repo` annotation", "kubectl release leave {t}"],
            ),
            Self::RepositoryNotFound => words(
                "GitHub shows no repository of this name to the operator",
                &["check the `repo` annotation and the operator's GitHub credential"],
            ),
            Self::CannotCompare => words(
                "the running image has no version that a release can be compared with",
                &["set the `range` annotation, or roll out a version by hand once"],
            ),
            Self::ReleaseNameTaken => words(
                "the Release's name belongs to a Release of another repository",
                &["kubectl release history {t}", "give the workload another `target` annotation"],
            ),
            Self::Broken => words(
                "a rollout made no progress for the deadline and was left in place; a newer release \
                 may start",
                &["kubectl release rollback {t}", "kubectl release status {t}"],
            ),
            Self::BreakerOpen => words(
                "two moves were taken back within 24 hours, so nothing new starts",
                &["kubectl release resume {t} --allow TAG", "kubectl release history {t}"],
            ),
            Self::RollbackFailed => words(
                "the Rollback failed too",
                &["kubectl release status {t}", "kubectl release rollback {t} --to RELEASE"],
            ),
            Self::ManagedByGitOps => words(
                "a GitOps controller owns the image; Belay does not fight it",
                &[
                    "let the GitOps controller ignore the image",
                    "kubectl release leave {t}",
                    OWNERS,
                ],
            ),
            Self::TugOfWar => words(
                "another manager put its image back each time that Belay applied its own",
                &[
                    "run Helm with --post-renderer belay",
                    "kubectl release rollback {t} --to TAG",
                    OWNERS,
                ],
            ),
            Self::ChangedByPerson => words(
                "a person changed the image, and Belay leaves it alone",
                &["kubectl release resume {t} --dry-run", "kubectl release hold {t}"],
            ),
            Self::FieldConflict => words(
                "another manager owns the image, and Belay does not force it",
                &["kubectl release adopt {t}", OWNERS],
            ),
            Self::Forbidden => words(
                "the API server does not permit the operator to read or write what it must",
                &["compare the operator's Role with its chart", "kubectl release doctor {t}"],
            ),
            Self::ApplyRefused => words(
                "the API server or an admission check refuses the change of the workload",
                &["correct what the message names", "kubectl release why {t}"],
            ),
        }
    }
}

impl Explain for HeldReason {
    fn words(self) -> Words {
        match self {
            Self::OnHold => {
                words("forward moves stand still as asked", &["kubectl release resume {t}"])
            }
            Self::Mismatch => words(
                "the tag that is held is not the one that runs",
                &["kubectl release rollback {t} --to TAG", "kubectl release resume {t}"],
            ),
        }
    }
}

impl Explain for Note {
    fn words(self) -> Words {
        match self {
            Self::ChangedByAdmission => words(
                "admission changed the image that Belay asked for; what was stored is followed",
                &[],
            ),
            Self::Unauthenticated => words(
                "GitHub is asked without a credential, so new releases are seen later",
                &["give the operator a GitHub token or App"],
            ),
            Self::ListTruncated => words(
                "the repository has more releases than are read; older ones were not looked at",
                &["narrow `tag-pattern`, or remove old releases"],
            ),
            Self::TagMoved => words(
                "the tag that runs names another image now; nothing is written",
                &["publish a new release instead of moving a tag"],
            ),
            Self::ContainerLeftOut => words(
                "a container of the repository is not followed, because `container` leaves it out",
                &["add it to the `container` annotation if it should move too"],
            ),
            Self::RolledUnpaused => words(
                "the rollout goes on without a pause, because the pause could not be proven",
                &["look at KEDA and the ScaledObject"],
            ),
            Self::ResumeUnproven => words(
                "the pause was dropped, but autoscaling has not been seen to resume",
                &["look at KEDA and the ScaledObject"],
            ),
            Self::PauseOverdue => words(
                "a pause is there after its time, because it cannot be dropped or renewed",
                &["grant the operator `patch` of ScaledObjects, as the chart does"],
            ),
            Self::PlatformsNotChecked => {
                words("nodes may not be read, so platforms of the image were not checked", &[])
            }
            Self::PodsListed => words(
                "pods may not be watched; they are listed every 10 seconds during a rollout",
                &["grant the operator `watch` of pods"],
            ),
            Self::ReleaseLimitInvalid => words(
                "the namespace's release limit cannot be read; the default is used",
                &["correct the namespace's `release-limit` annotation"],
            ),
            Self::UnknownAnnotation => words(
                "annotations under the prefix mean nothing to this version of the operator",
                &["correct or remove them"],
            ),
        }
    }
}

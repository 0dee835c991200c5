//! The words of a Rollback.

use belay_api::reasons::{InProgressReason, Rejection, SucceededReason};

use super::{Explain, Words, words};

const HISTORY: &[&str] = &["kubectl release history {t}"];
const FORCE: &[&str] =
    &["kubectl release rollback {t} --to RELEASE --force", "kubectl release history {t}"];

impl Explain for InProgressReason {
    fn words(self) -> Words {
        match self {
            Self::Queued => words("it has not begun", &["kubectl release status {t} -w"]),
            Self::DeploymentTriggered => {
                words("the image is being put back", &["kubectl release status {t} -w"])
            }
            Self::Retrying => words(
                "an attempt failed and another one follows",
                &["kubectl release status {t} -w"],
            ),
            Self::TargetPaused => words(
                "the workload is paused (spec.paused), so nothing can roll",
                &["kubectl rollout resume deployment {t}"],
            ),
            Self::Completed => words("it ended as asked", &[]),
            Self::Failed => words("it ended without reaching the Release", HISTORY),
            Self::Superseded => words("another move took its place", HISTORY),
        }
    }
}

impl Explain for SucceededReason {
    fn words(self) -> Words {
        match self {
            Self::Pending => words("it has not ended", &["kubectl release status {t} -w"]),
            Self::DeploymentSucceeded => words("the Release runs and was judged healthy", &[]),
            Self::DeploymentFailed => words(
                "the Release was tried and failed",
                &["kubectl release status {t}", "kubectl release rollback {t} --to RELEASE"],
            ),
            Self::DeploymentSuperseded => {
                words("somebody else moved the target meanwhile", HISTORY)
            }
            Self::DeadlineExceeded => words("its timeout passed", &["kubectl release status {t}"]),
            Self::Rejected => words("it was never begun", &["kubectl release why {t}"]),
        }
    }
}

impl Explain for Rejection {
    fn words(self) -> Words {
        match self {
            Self::NoReleaseToGoTo => {
                words("no earlier Release of the target can be gone to", HISTORY)
            }
            Self::ReleaseNotFound => words("the Release does not exist", HISTORY),
            Self::OtherTarget => words("the Release belongs to another target", HISTORY),
            Self::AlreadyActive => words("the Release is active already", HISTORY),
            Self::NotHealthy => words("the Release was not healthy when it last ran", FORCE),
            Self::Blocked => words("the Release is blocked", FORCE),
            Self::OtherRepository => words(
                "the Release is of another repository, which not even --force permits",
                HISTORY,
            ),
            Self::ManagedByGitOps => words(
                "a GitOps controller owns the image and would put its own back",
                &["roll back in the GitOps repository", "kubectl release owners {t} --path image"],
            ),
            Self::NotAllowed => words(
                "the operator's configuration does not permit it, or what is named does not exist",
                &["ask whoever runs the operator"],
            ),
            Self::NotFollowed => words(
                "Belay follows no workload of this target",
                &["kubectl release status", "annotate the workload with `repo`"],
            ),
            Self::Followed => words(
                "Belay follows the workload, so only its own driver may move it",
                &["leave out the driver"],
            ),
            Self::InvalidOptions => words(
                "an option of the driver is missing or has a wrong value",
                &["correct what the message names"],
            ),
        }
    }
}

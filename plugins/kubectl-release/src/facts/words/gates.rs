//! The words of candidates, waits and budgets.

use belay_api::gates::{ForgeBudget, Gate, WaitReason};

use super::{Explain, Words, words};

impl Explain for Gate {
    fn words(self) -> Words {
        match self {
            Self::Draft => words("the release is a draft", &["publish the release on GitHub"]),
            Self::Prerelease => words(
                "the release is a prerelease",
                &["set `prereleases: \"true\"` with `range` to follow those too"],
            ),
            Self::Pattern => words(
                "the release's tag does not match `tag-pattern`",
                &["correct the `tag-pattern` annotation if it should count"],
            ),
            Self::InvalidTag => words(
                "`tag-template` makes no valid image tag of it",
                &["correct the `tag-template` annotation"],
            ),
            Self::Range => words(
                "the version is outside `range`, or is no semantic version",
                &["widen the `range` annotation if it should count"],
            ),
            Self::Age => words("the release is younger than `min-age`", &[]),
            Self::Blocked => words(
                "Belay refuses it: the target left it, or a version above it, for a lower one",
                &["kubectl release resume {t} --allow TAG", "publish a newer release"],
            ),
            Self::Hold => words("a person holds the target", &["kubectl release resume {t}"]),
            Self::Lower => words(
                "the version is not above the one that runs",
                &["kubectl release rollback {t} --to TAG"],
            ),
            Self::Outranked => words("a better candidate passes every gate", &[]),
            Self::FailedElsewhere => words(
                "the release failed on another target of the namespace",
                &["kubectl release resume {t} --allow TAG"],
            ),
            Self::InFlight => words(
                "a rollout or a Rollback is under way, and it waits for the verdict",
                &["kubectl release status {t} -w"],
            ),
            Self::ConcurrencyLimit => {
                words("as many rollouts as the operator permits are under way", &[])
            }
            Self::WaitingForImage => words(
                "the registry does not have the image yet",
                &["check that the build pushed the image"],
            ),
            Self::RegistryDenied => words(
                "the registry refuses the credential that was used",
                &["check the pull secret that the message names"],
            ),
            Self::RegistryUnavailable => {
                words("the registry cannot be reached, fails, or asked for patience", &[])
            }
            Self::PlatformMissing => words(
                "the image lacks a platform that nodes of the cluster have",
                &["push the image for that platform too"],
            ),
            Self::TagMoved => words(
                "a Release of this tag exists, and the tag names another image now",
                &["publish a new release instead of moving a tag"],
            ),
        }
    }
}

impl Explain for WaitReason {
    fn words(self) -> Words {
        match self {
            Self::Deadline => words("the rollout must make progress until then", &[]),
            Self::Bake => words("success must hold until then", &[]),
            Self::MinAge => words("the candidate becomes old enough then", &[]),
            Self::BlockExpires => words("a temporary block ends then", &[]),
            Self::ImageBackoff => words("the registry is asked for the image again then", &[]),
            Self::RegistryThrottled => {
                words("the registry asked not to be called before then", &[])
            }
            Self::GitHubThrottled => words("GitHub asked not to be called before then", &[]),
            Self::PauseProof => words("the pause must be proven until then", &[]),
            Self::ResumeProof => words("autoscaling must be seen to resume until then", &[]),
            Self::ReassertBackoff => {
                words("the image that was put back is applied again then", &[])
            }
            Self::RollbackBackoff => words("the Rollback is tried again then", &[]),
            Self::RollbackTimeout => words("the Rollback must end until then", &[]),
            Self::BreakerOpen => {
                words("the breaker closes then", &["kubectl release resume {t} --allow TAG"])
            }
            Self::ConcurrencyLimit => {
                words("as many rollouts as the operator permits are under way", &[])
            }
            Self::ApiBackoff => words("the API server is called again then", &[]),
        }
    }
}

impl Explain for ForgeBudget {
    fn words(self) -> Words {
        match self {
            Self::Ok => words("enough of GitHub's rate limit is left", &[]),
            Self::Low => {
                words("little of GitHub's rate limit is left, so it is asked less often", &[])
            }
            Self::Exhausted => words(
                "nothing of GitHub's rate limit is left; it is not asked before the reset",
                &["give the operator a GitHub App of its own"],
            ),
        }
    }
}

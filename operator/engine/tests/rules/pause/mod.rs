//! The pause of a ScaledObject around a rollout: whom it is for, its proof, how long it is kept, and
//! that autoscaling resumes (sections 3.6 to 3.8 and 5).

mod freeze;
mod live;
mod orphans;
mod overdue;
mod proof;
mod resume;
mod unpaused;

use belay_api::{
    annotations::TargetAnnotation::{self, OnFailure},
    rollback::InitiatorType,
};
use belay_engine::plan::Step;

use crate::case::{Case, Fate, name_of};

/// The ways in which images come to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    /// What Helm put back is applied again.
    Reassert,
    /// The workload came back with a lower version.
    Restore,
    /// A person's Rollback.
    Rollback,
    /// What follows a failure.
    SystemRollback,
}

impl Way {
    fn is_rollback(self) -> bool {
        matches!(self, Self::Rollback | Self::SystemRollback)
    }

    /// A scaled target on which this is about to happen.
    fn begin(self) -> Case {
        let mut case = match self {
            Self::Forward => Case::new(),
            Self::Reassert | Self::Restore | Self::Rollback => Case::moved(100_000, Some(90_000)),
            Self::SystemRollback => Case::moved(30, None),
        };
        case.scale();
        match self {
            Self::Forward => case.publish("v1.1.0"),
            Self::Reassert => case.write("helm", false, &crate::case::image("1.0.0")),
            Self::Restore => come_back_lower(&mut case),
            Self::Rollback => _ = case.ask_back("by-hand", "", InitiatorType::User),
            Self::SystemRollback => {
                // It was begun by an operator that paused nothing.
                case.annotate(TargetAnnotation::Pause, "none");
                case.annotate(OnFailure, "stop");
                case.work(700);
                case.strip(OnFailure);
                case.strip(TargetAnnotation::Pause);
            }
        }
        case
    }
}

/// 1.1.0 was good on the workload before this one, which came with 1.0.0.
fn come_back_lower(case: &mut Case) {
    let now = case.now;
    let workload = case.workload();
    "uid-new".clone_into(&mut workload.uid);
    workload.created = crate::case::at(now);
    workload.annotations.remove("belay.dev/release");
    workload.annotation_held_by.clear();
    workload.containers[0].live.image = crate::case::image("1.0.0");
    workload.containers[0].held_by = vec![crate::case::held_by("helm", false, now)];
    case.observed.target = belay_engine::observed::Fact::known(None, crate::case::at(now));
    case.changed();
}

/// Two replicas of 1.0.0, and 1.1.0 rolling under a pause; it hangs.
fn rolling() -> Case {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.passes();
    assert_eq!(case.live(), crate::case::image("1.1.0"));
    case
}

/// The claim among steps: mode, Release, since.
fn claims(steps: &[Step]) -> Vec<(String, String, i64)> {
    let brief = |step: &Step| match step {
        Step::ClaimPause(intent) => {
            let claim = &intent.claim;
            Some((intent.mode.to_string(), claim.release.clone(), claim.since.as_second()))
        }
        _ => None,
    };
    steps.iter().filter_map(brief).collect()
}

fn claimed_for(tag: &str, since: i64) -> Vec<(String, String, i64)> {
    vec![("scale-in".to_owned(), name_of(tag), since)]
}

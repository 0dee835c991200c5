//! A claim that is there after its time.

use belay_engine::observed::Refusal;
use rstest::rstest;

use super::rolling;
use crate::{
    case::{Case, Fate, HOUR},
    keda::brief,
};

/// How long a claim lasts with the usual deadline.
const LASTS: i64 = 2 * 600 + 300;

/// The rollout has succeeded, and so many drops of its pause are refused.
fn refused(drops: usize) -> Case {
    let mut case = rolling();
    case.keda.refusals = vec![Refusal::Denied { message: "no".to_owned() }; drops];
    case.fate = Fate::Succeeds;
    case.complete();
    case.changed();
    case
}

#[test]
fn it_is_told_once_with_its_cause_until_it_is_gone() {
    let mut case = refused(8);
    let ends = case.now + LASTS;
    case.work(LASTS - 1);
    assert_eq!(case.reason("PauseOverdue"), None);
    assert!(!case.told.contains("PauseOverdue"));
    case.work(1);
    assert_eq!(case.now, ends);
    let message = case.message("PauseOverdue");
    assert!(message.starts_with("the pause of the ScaledObject web ended at "), "{message}");
    assert!(message.ends_with("Z, and it cannot be dropped: no"), "{message}");
    let mut told = usize::from(case.told.contains("PauseOverdue"));
    for _ in 0..20 {
        case.wait(1);
        let (decided, _) = case.pass();
        told += decided.notices.iter().filter(|one| one.reason == "PauseOverdue").count();
    }
    assert_eq!(told, 1);
    // It hinders nothing.
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    case.work(HOUR);
    assert_eq!(case.pauses(), []);
    assert_eq!(case.reason("PauseOverdue"), None);
}

/// What there is nothing to be said of.
#[rstest]
#[case::before_its_time(refused(2), 600)]
#[case::dropped_in_time(refused(2), LASTS + 1)]
#[case::renewed_in_time(rolling(), 599)]
fn nothing_is_told(#[case] mut case: Case, #[case] seconds: i64) {
    case.work(seconds);
    assert_eq!(case.reason("PauseOverdue"), None);
    assert!(!case.told.contains("PauseOverdue"));
}

/// A claim of a rollout that is under way, whose renewal is refused.
#[test]
fn a_renewal_that_is_refused_is_told_when_the_time_is_over() {
    let mut case = rolling();
    case.annotate(belay_api::annotations::TargetAnnotation::Deadline, "2h");
    case.keda.refusals = vec![Refusal::Denied { message: "no".to_owned() }; 100];
    let steps = brief(&case.work(LASTS));
    assert!(steps.iter().all(|step| step == "claim scale-in"), "{steps:?}");
    let message = case.message("PauseOverdue");
    assert!(message.ends_with("Z, and it cannot be renewed: no"), "{message}");
    case.keda.refusals.clear();
    assert_eq!(brief(&case.work(300)), ["claim scale-in"]);
    assert_eq!(case.reason("PauseOverdue"), None);
}

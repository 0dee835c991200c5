//! Hold and allow (section 3, "Hold" and "Blocks").

use belay_api::{
    annotations::TargetAnnotation, gates::Gate, gates::Verdict, rollback::InitiatorType,
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, Fate, HOUR, image},
};

#[rstest]
#[case::here("true", "OnHold")]
#[case::at_the_release_that_runs("v1.0.0", "OnHold")]
#[case::at_the_image_that_runs("1.0.0", "OnHold")]
#[case::elsewhere("v1.1.0", "Mismatch")]
fn a_held_target_does_not_move_forward(#[case] hold: &str, #[case] reason: &str) {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Hold, hold);
    case.publish("v1.1.0");
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::Hold));
    assert_eq!(case.reason("Held").as_deref(), Some(reason));
    assert_eq!(case.reason("Ready").as_deref(), Some("Held"));
    assert_eq!(case.status().hold.as_deref(), Some(hold));
    if reason == "Mismatch" {
        let command = format!("kubectl release rollback web --to {hold}");
        assert!(case.message("Held").contains(&command));
    }
    // What was published meanwhile is applied once the hold is gone.
    case.strip(TargetAnnotation::Hold);
    assert!(writes_workload(&case.work(100)));
    assert_eq!(case.reason("Held"), None);
}

#[test]
fn false_holds_nothing() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Hold, "false");
    case.publish("v1.1.0");
    assert!(writes_workload(&case.work(100)));
}

#[test]
fn work_in_flight_is_finished_under_a_hold() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.work(30);
    case.annotate(TargetAnnotation::Hold, "true");
    case.work(100);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
}

#[test]
fn work_in_flight_is_rolled_back_under_a_hold() {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(30);
    case.annotate(TargetAnnotation::Hold, "v1.1.0");
    case.fate = Fate::Succeeds;
    case.work(HOUR);
    assert_eq!((case.live(), case.verdict("v1.1.0")), (image("1.0.0"), Some(Verdict::Failed)));
    // Held at what is not live any more: that starts nothing.
    assert_eq!(case.reason("Held").as_deref(), Some("Mismatch"));
    assert!(!writes_workload(&case.work(DAY)));
}

#[test]
fn a_persons_rollback_works_under_a_hold() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.annotate(TargetAnnotation::Hold, "true");
    case.ask_back("by-hand", "", InitiatorType::User);
    case.work(100);
    assert_eq!(case.live(), image("1.0.0"));
    assert_eq!(case.outcome("by-hand"), "DeploymentSucceeded");
    assert_eq!(case.reason("Held").as_deref(), Some("OnHold"));
}

// --- Allow.

/// 1.1.0 failed and was rolled back.
fn rolled_back() -> Case {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(599);
    case.fate = Fate::Succeeds;
    case.work(HOUR);
    assert_eq!((case.live(), case.gate("v1.1.0")), (image("1.0.0"), Some(Gate::Blocked)));
    case
}

#[rstest]
#[case::by_release_tag("v1.1.0", true)]
#[case::by_image_tag("1.1.0", true)]
#[case::another("v1.1.1", false)]
fn allow_frees_a_blocked_release(#[case] allow: &str, #[case] moves: bool) {
    let mut case = rolled_back();
    case.annotate(TargetAnnotation::Allow, allow);
    assert_eq!(writes_workload(&case.work(HOUR)), moves);
    if moves {
        assert_eq!((case.live(), case.verdict("v1.1.0")), (image("1.1.0"), Some(Verdict::Healthy)));
    }
}

#[test]
fn allow_is_used_up_by_one_activation() {
    let mut case = rolled_back();
    case.fate = Fate::Hangs;
    case.annotate(TargetAnnotation::Allow, "v1.1.0");
    case.work(599);
    case.fate = Fate::Succeeds;
    case.work(HOUR);
    assert_eq!((case.live(), case.last("v1.1.0").ordinal), (image("1.0.0"), 2));
    let block = case.block("v1.1.0").unwrap();
    assert_eq!((block.count, block.allowed.unwrap().ordinal), (2, 2));
    // The same value permits nothing more, not even when the breaker has closed again.
    assert!(!writes_workload(&case.work(3 * DAY)));

    // It counts again after it was absent.
    case.strip(TargetAnnotation::Allow);
    case.passes();
    assert_eq!(case.block("v1.1.0").unwrap().allowed, None);
    case.annotate(TargetAnnotation::Allow, "v1.1.0");
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
}

#[test]
fn a_crash_between_the_note_and_the_move_does_not_cost_the_permission() {
    let mut case = rolled_back();
    case.annotate(TargetAnnotation::Allow, "v1.1.0");
    while case.block("v1.1.0").unwrap().allowed.is_none() {
        case.pass();
    }
    case.observed.images.clear();
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
}

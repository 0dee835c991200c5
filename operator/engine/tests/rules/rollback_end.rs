//! How Rollbacks end (section 7).

use belay_api::{
    gates::{Gate, Verdict},
    rollback::InitiatorType::User,
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{DAY, Fate, HOUR, image, seconds},
    rollback::{OWN, history},
};

#[test]
fn it_must_end_in_time() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back(OWN, "", User).timeout = seconds(120);
    case.work(119);
    assert_eq!(case.outcome(OWN), "Pending");
    case.work(1);
    assert_eq!(case.outcome(OWN), "DeadlineExceeded");
    assert_eq!(case.stalled().as_deref(), Some("RollbackFailed"));
    // What it went to is judged all the same.
    case.work(HOUR);
    assert_eq!(case.verdict("v1.2.0"), Some(Verdict::Failed));
}

#[rstest]
#[case::above_what_was_left("v1.4.0", true)]
#[case::refused("v1.2.5", false)]
fn one_that_did_not_end_in_time_admits_what_is_above_its_block_at_once(
    #[case] tag: &str,
    #[case] starts: bool,
) {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back(OWN, "", User).timeout = seconds(120);
    case.publish(tag);
    assert_eq!(applies(&case.work(119)), [(image("1.2.0"), false)]);
    assert_eq!(case.gate(tag), Some(if starts { Gate::InFlight } else { Gate::Blocked }));
    let steps = case.work(1);
    assert_eq!(case.outcome(OWN), "DeadlineExceeded");
    let expected = if starts { vec![(image("1.4.0"), false)] } else { Vec::new() };
    assert_eq!(applies(&steps), expected);
    // What took its place is waited for like any other.
    if starts {
        case.publish("v1.5.0");
        assert!(!writes_workload(&case.work(300)));
        assert_eq!(case.gate("v1.5.0"), Some(Gate::InFlight));
    }
}

#[test]
fn while_the_workload_is_paused_it_waits_without_an_attempt() {
    let mut case = history();
    case.workload().rollout.paused = true;
    case.ask_back(OWN, "", User);
    assert!(!writes_workload(&case.work(1_700)));
    let status = case.rollback(OWN).status.unwrap();
    assert_eq!(status.attempt_count, None);
    assert_eq!(case.reason("Progressing").as_deref(), Some("TargetPaused"));
    case.work(100);
    assert_eq!(case.outcome(OWN), "DeadlineExceeded");
}

#[test]
fn a_change_by_others_meanwhile_ends_it() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back(OWN, "", User);
    case.work(10);
    case.write("kubectl-edit", false, &image("1.0.7"));
    case.work(10);
    assert_eq!(case.outcome(OWN), "DeploymentSuperseded");
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
}

#[test]
fn what_was_gone_to_fails_and_nothing_more_is_tried() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back(OWN, "", User);
    case.work(2 * HOUR);
    assert_eq!(case.outcome(OWN), "DeploymentFailed");
    assert_eq!((case.live(), case.stalled().as_deref()), (image("1.2.0"), Some("RollbackFailed")));
    assert_eq!(case.rollbacks().len(), 1);
}

#[test]
fn an_ended_one_never_changes() {
    let mut case = history();
    case.ask_back(OWN, "", User);
    case.work(200);
    let ended = case.rollback(OWN).status;
    case.publish("v1.5.0");
    case.work(10 * DAY);
    assert_eq!(case.rollback(OWN).status, ended);
}

//! When pods are watched: while a rollout or a Rollback is under way (section 3.7).

use belay_api::rollback::InitiatorType::User;
use belay_engine::observed::Fact;

use crate::case::{Case, Fate, HOUR, at, image};

/// Passes until a plan asks for the pods, or none is left.
fn asks(case: &mut Case) -> bool {
    for _ in 0..40 {
        let (decided, moved) = case.pass();
        if decided.pods || !moved {
            return decided.pods;
        }
    }
    panic!("no rest")
}

#[test]
fn at_rest_they_are_not() {
    assert!(!Case::new().plan().pods);
}

#[test]
fn from_the_apply_to_the_verdict_they_are() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    while case.live() != image("1.1.0") {
        case.pass();
    }
    // At every pass until the bake is over.
    let end = case.now + 60;
    while case.now < end {
        let (decided, moved) = case.pass();
        assert!(decided.pods, "{decided:?}");
        if !moved {
            case.wait(1);
        }
    }
    case.work(10);
    assert!(!case.plan().pods);
}

#[test]
fn the_apply_itself_asks_for_them() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let applies = loop {
        let (decided, _) = case.pass();
        if let Some(belay_engine::plan::Step::Apply(_)) = decided.step {
            break decided;
        }
        assert!(!decided.pods);
    };
    assert!(applies.pods);
}

#[test]
fn a_baseline_bakes_under_watch() {
    let mut case = Case::bare("1.0.0");
    assert!(asks(&mut case));
    case.work(30);
    assert!(case.plan().pods);
    case.work(60);
    assert!(!case.plan().pods);
}

#[test]
fn a_rollback_that_waits_is_under_way() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.workload().rollout.paused = true;
    case.ask_back("by-hand", "", User);
    case.work(60);
    assert!(case.plan().pods);
}

#[test]
fn what_cannot_be_read_for_a_moment_does_not_close_the_watch() {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(60);
    assert!(case.plan().pods);
    let read = at(case.now);
    case.observed.releases = Fact::Unknown { why: "because".to_owned(), read };
    case.pass();
    assert!(case.plan().pods);
}

#[test]
fn what_others_roll_out_is_none_of_our_business() {
    let mut case = Case::new();
    case.hang();
    case.passes();
    assert!(!case.plan().pods);
}

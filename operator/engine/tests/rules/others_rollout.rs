//! A rollout that others began, of anything but the image: one at a time (section 3.4).

use belay_api::gates::Gate;
use belay_engine::judge::ProgressingFacts;
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, HOUR, at, image},
};

/// `helm upgrade` changed an environment variable: new pods come up, and a release is published.
fn changed() -> Case {
    let mut case = Case::new();
    case.changed();
    case.hang();
    case.publish("v1.1.0");
    case
}

#[test]
fn a_candidate_waits_until_it_is_complete() {
    let mut case = changed();
    assert!(!writes_workload(&case.work(300)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::InFlight));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Rolling"));
    let rollout = &mut case.workload().rollout;
    (rollout.replicas, rollout.updated, rollout.available) = (2, 2, 2);
    assert_eq!(applies(&case.work(1)), [(image("1.1.0"), false)]);
}

#[test]
fn without_progress_for_the_deadline_a_newer_release_may_start() {
    let mut case = changed();
    assert!(!writes_workload(&case.work(599)));
    assert!(writes_workload(&case.work(1)));
}

#[test]
fn and_without_one_it_is_said_to_be_broken() {
    let mut case = Case::new();
    case.changed();
    case.hang();
    assert_eq!(case.work(HOUR), []);
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
    let rollout = &mut case.workload().rollout;
    (rollout.replicas, rollout.updated, rollout.available) = (2, 2, 2);
    case.passes();
    assert_eq!((case.stalled(), case.reason("Ready").as_deref()), (None, Some("Ready")));
}

#[test]
fn progress_starts_the_clock_anew() {
    let mut case = changed();
    case.work(500);
    // A pod was replaced.
    case.workload().rollout.updated = 2;
    let last_update = Some(at(case.now));
    case.workload().rollout.progressing =
        Some(ProgressingFacts { reason: "ReplicaSetUpdated".to_owned(), last_update });
    assert!(!writes_workload(&case.work(599)));
    assert!(writes_workload(&case.work(1)));
}

#[test]
fn a_condition_of_an_earlier_rollout_is_no_clock() {
    let mut case = changed();
    // The template has changed, and the condition still says that all is well since a month ago.
    let last_update = Some(at(case.now - 30 * 24 * HOUR));
    case.workload().rollout.progressing =
        Some(ProgressingFacts { reason: "NewReplicaSetAvailable".to_owned(), last_update });
    assert!(!writes_workload(&case.work(599)));
    assert!(writes_workload(&case.work(1)));
}

#[test]
fn while_the_controller_has_not_seen_a_change_nothing_starts_and_nothing_is_written() {
    let mut case = Case::new();
    case.changed();
    case.workload().rollout.observed_generation -= 1;
    assert_eq!(case.work(HOUR), []);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Idle"));
    case.publish("v1.1.0");
    assert_eq!(case.work(10), []);
    assert_eq!(case.gate("v1.1.0"), Some(Gate::InFlight));
    case.workload().rollout.observed_generation += 1;
    assert!(writes_workload(&case.work(1)));
}

#[rstest]
#[case::out((5, 5, 5, 2))]
#[case::out_from_zero((3, 0, 0, 0))]
#[case::in_((1, 3, 3, 3))]
#[case::a_lost_pod((2, 2, 2, 1))]
#[case::all_pods_lost((2, 2, 2, 0))]
fn scaling_is_no_rollout(#[case] numbers: (i32, i32, i32, i32)) {
    let mut case = Case::new();
    let rollout = &mut case.workload().rollout;
    (rollout.wanted, rollout.replicas, rollout.updated, rollout.available) = numbers;
    assert_eq!(case.work(HOUR), []);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Idle"));
    case.publish("v1.1.0");
    assert!(writes_workload(&case.work(1)));
}

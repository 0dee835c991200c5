//! Verdicts on rollouts: status writes as the real controllers make them, sample by sample, and the
//! traps that others fell into.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod samples;

use belay_api::{Duration, reasons::HealthyReason, release::Progress};
use belay_engine::{
    Timestamp,
    judge::{Facts, PodFacts, ReplicaFailure, RolloutState, Terms, TroubleKind, judge},
};
use rstest::rstest;

use crate::samples::{
    COMPLETE, GAVE_UP, at, crashing, numbers, pod, progressing, ready, replay, terms, unobserved,
    waiting, with_pods,
};

#[rstest]
// Three replicas roll, with the default surge. The mid-rollout sample has as many new pods and as
// many available ones as are wanted, one of the available ones old.
#[case::three_replicas(&[
    (0, unobserved(numbers(3, 3, 3, 3)), "rolling"),
    (1, numbers(3, 3, 0, 3), "rolling"),
    (1, numbers(3, 4, 1, 3), "rolling"),
    (2, numbers(3, 4, 3, 3), "rolling"),
    (3, numbers(3, 3, 3, 2), "rolling"),
    (4, numbers(3, 3, 3, 3), "baking"),
    (63, numbers(3, 3, 3, 3), "baking"),
    (64, numbers(3, 3, 3, 3), "healthy"),
])]
// Old numbers, before the controller looked (krane#325: success after 1.9 s).
#[case::old_numbers(&[
    (0, unobserved(progressing(numbers(3, 3, 3, 3), COMPLETE, -500)), "rolling"),
    (99, unobserved(progressing(numbers(3, 3, 3, 3), COMPLETE, -500)), "rolling"),
])]
// One replica, image not there: updated and available are 1 the whole time.
#[case::one_replica_without_image(&[
    (1, numbers(1, 2, 1, 1), "rolling"),
    (500, numbers(1, 2, 1, 1), "rolling"),
    (601, progressing(numbers(1, 2, 1, 1), GAVE_UP, 601), "failed DeadlineExceeded"),
])]
// A rollback while the condition is still the failed rollout's (kubernetes#124264, kubernaut#199).
#[case::stale_condition(&[
    (0, unobserved(progressing(numbers(3, 4, 3, 2), GAVE_UP, -1)), "rolling"),
    (0, progressing(numbers(3, 4, 0, 0), GAVE_UP, 0), "rolling"),
    (1, progressing(numbers(3, 4, 0, 0), GAVE_UP, 0), "rolling"),
    (2, progressing(numbers(3, 3, 3, 3), COMPLETE, 2), "baking"),
    (62, progressing(numbers(3, 3, 3, 3), COMPLETE, 2), "healthy"),
])]
// The condition of our own rollout counts, to the second.
#[case::own_condition_early(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (599, progressing(numbers(3, 4, 1, 3), GAVE_UP, 598), "rolling"),
])]
#[case::own_condition(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (599, progressing(numbers(3, 4, 1, 3), GAVE_UP, 599), "failed DeadlineExceeded"),
])]
// Nobody but us notices: the condition stays "complete" (kubernetes#40496, #106054, #44657).
#[case::own_clock(&[
    (1, progressing(numbers(3, 4, 1, 3), COMPLETE, -9), "rolling"),
    (600, progressing(numbers(3, 4, 1, 3), COMPLETE, -9), "rolling"),
    (601, progressing(numbers(3, 4, 1, 3), COMPLETE, -9), "failed DeadlineExceeded"),
])]
// Each step is progress, and so extends the deadline.
#[case::slow_but_moving(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (500, numbers(3, 4, 2, 3), "rolling"),
    (1000, numbers(3, 3, 2, 3), "rolling"),
    (1500, numbers(3, 3, 3, 3), "baking"),
])]
// Flapping between the same two pictures is none (flagger#523).
#[case::flapping(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (200, numbers(3, 4, 2, 3), "rolling"),
    (400, numbers(3, 4, 1, 3), "rolling"),
    (600, numbers(3, 4, 2, 3), "rolling"),
    (799, numbers(3, 4, 1, 3), "rolling"),
    (800, numbers(3, 4, 2, 3), "failed DeadlineExceeded"),
])]
// Recreate: nothing runs in between.
#[case::recreate(&[
    (0, numbers(2, 2, 0, 2), "rolling"),
    (1, numbers(2, 0, 0, 0), "rolling"),
    (2, numbers(2, 2, 2, 0), "rolling"),
    (3, numbers(2, 2, 2, 2), "baking"),
])]
// maxSurge 0, maxUnavailable 1 and one replica: `Available` is True with nothing available.
#[case::nothing_available(&[
    (0, numbers(1, 1, 1, 0), "rolling"),
    (9, numbers(1, 1, 1, 0), "rolling"),
])]
// No replicas (jac#8694); later the first one, with a bad image (kubernetes#106697).
#[case::zero_then_bad(&[
    (0, unobserved(numbers(0, 0, 0, 0)), "zero"),
    (1, progressing(numbers(0, 0, 0, 0), COMPLETE, 1), "zero"),
    (9000, progressing(numbers(0, 0, 0, 0), COMPLETE, 1), "zero"),
    (9001, progressing(numbers(1, 1, 1, 0), COMPLETE, 1), "rolling"),
    (9600, progressing(numbers(1, 1, 1, 0), COMPLETE, 1), "rolling"),
    (9601, progressing(numbers(1, 1, 1, 0), COMPLETE, 1), "failed DeadlineExceeded"),
])]
// An activation that is shorter than the bake counts, and the next one goes on from there.
#[case::baked_in_parts(&[
    (0, numbers(0, 0, 0, 0), "zero"),
    (10, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(0, 0, 0, 0), "zero"),
    (9000, numbers(1, 1, 1, 0), "rolling"),
    (9001, numbers(1, 1, 1, 1), "baking"),
    (9020, numbers(1, 1, 1, 1), "baking"),
    (9021, numbers(1, 1, 1, 1), "healthy"),
])]
// Scaled to zero in mid-rollout: no verdict, and pods that are still there only wait for their end.
#[case::zero_meanwhile(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (2, numbers(0, 4, 1, 3), "zero"),
    (3, numbers(0, 0, 0, 0), "zero"),
    (9999, numbers(0, 0, 0, 0), "zero"),
])]
// A scale-out does not hold up the verdict, a scale-in lowers what is asked for.
#[case::scaled_out(&[
    (1, numbers(2, 3, 1, 2), "rolling"),
    (2, numbers(9, 9, 9, 2), "baking"),
    (62, numbers(9, 9, 9, 2), "healthy"),
])]
#[case::scaled_in(&[
    (1, numbers(9, 9, 1, 9), "rolling"),
    (2, numbers(1, 2, 1, 2), "rolling"),
    (3, numbers(1, 1, 1, 1), "baking"),
])]
// Paused by a person (kubernetes#36427): the clock stands still, and starts again afterwards.
#[case::paused(&[
    (1, numbers(3, 4, 1, 3), "rolling"),
    (599, Facts { paused: true, ..numbers(3, 4, 1, 3) }, "paused"),
    (5000, Facts { paused: true, ..numbers(3, 4, 1, 3) }, "paused"),
    (5001, numbers(3, 4, 1, 3), "rolling"),
    (5600, numbers(3, 4, 1, 3), "rolling"),
    (5601, numbers(3, 4, 1, 3), "failed DeadlineExceeded"),
])]
// Paused as it was applied: nothing is rolled, and nothing is called a success.
#[case::paused_at_once(&[
    (0, Facts { paused: true, ..numbers(3, 3, 0, 3) }, "paused"),
    (9999, Facts { paused: true, ..numbers(3, 3, 0, 3) }, "paused"),
])]
// Somebody scales while it bakes: for a moment nothing is known, and that breaks nothing.
#[case::unobserved_meanwhile(&[
    (1, numbers(3, 3, 3, 3), "baking"),
    (30, unobserved(numbers(4, 3, 3, 3)), "baking"),
    (60, unobserved(numbers(4, 3, 3, 3)), "baking"),
    (61, unobserved(numbers(4, 3, 3, 3)), "baking"),
    (62, numbers(4, 4, 4, 3), "healthy"),
])]
// `kubectl rollout restart` while it bakes: the clock starts again.
#[case::restarted(&[
    (1, numbers(3, 3, 3, 3), "baking"),
    (50, numbers(3, 4, 1, 3), "broken"),
    (70, numbers(3, 3, 3, 3), "baking"),
    (129, numbers(3, 3, 3, 3), "baking"),
    (130, numbers(3, 3, 3, 3), "healthy"),
])]
// Success that never holds: three bakes and a deadline.
#[case::unstable(&[
    (0, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(1, 1, 1, 0), "broken"),
    (300, numbers(1, 1, 1, 1), "baking"),
    (350, numbers(1, 1, 1, 0), "broken"),
    (750, numbers(1, 1, 1, 1), "baking"),
    (779, numbers(1, 1, 1, 1), "baking"),
    (780, numbers(1, 1, 1, 1), "failed BakeUnstable"),
])]
// Nobody looked for an hour: what holds then is given its bake, what does not is given up.
#[case::not_looked_at(&[
    (0, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(1, 1, 1, 0), "broken"),
    (5000, numbers(1, 1, 1, 1), "baking"),
    (5001, numbers(1, 1, 1, 1), "baking"),
    (5059, numbers(1, 1, 1, 1), "baking"),
    (5060, numbers(1, 1, 1, 1), "healthy"),
])]
#[case::not_looked_at_and_broken(&[
    (0, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(1, 1, 1, 0), "broken"),
    (5000, unobserved(numbers(1, 1, 1, 0)), "broken"),
    (5001, numbers(1, 1, 1, 0), "failed BakeUnstable"),
])]
#[case::not_looked_at_and_broken_later(&[
    (0, numbers(1, 1, 1, 1), "baking"),
    (50, numbers(1, 1, 1, 0), "broken"),
    (5000, numbers(1, 1, 1, 1), "baking"),
    (5030, numbers(1, 1, 1, 0), "failed BakeUnstable"),
])]
fn samples_are_judged(#[case] samples: &[(i64, Facts, &str)]) {
    let facts: Vec<_> = samples.iter().map(|(second, facts, _)| (*second, facts.clone())).collect();
    let expected: Vec<_> = samples.iter().map(|(_, _, word)| (*word).to_owned()).collect();
    assert_eq!(replay(&terms(), &facts).0, expected);
}

#[test]
fn a_bake_of_nothing_is_healthy_at_once() {
    let terms = Terms { bake: Duration::from_secs(0), ..terms() };
    assert_eq!(replay(&terms, &[(1, numbers(1, 1, 1, 1))]).0, ["healthy"]);
}

#[test]
fn a_longer_deadline_of_the_target_wins_over_kubernetes_own() {
    let terms = Terms { deadline: Duration::from_secs(1800), ..terms() };
    let stuck = |second| (second, progressing(numbers(3, 4, 1, 3), GAVE_UP, 601));
    let (words, _) = replay(&terms, &[(1, numbers(3, 4, 1, 3)), stuck(700), stuck(1801)]);
    assert_eq!(words, ["rolling", "rolling", "failed DeadlineExceeded"]);
}

#[test]
fn the_image_of_another_is_no_success() {
    let facts = Facts { images_are_stored: false, ..numbers(3, 3, 3, 3) };
    assert_eq!(replay(&terms(), &[(1, facts)]).0, ["rolling"]);
}

#[rstest]
#[case::invalid_name(
    waiting(pod("a", 1), "app", "InvalidImageName", ""),
    HealthyReason::InvalidImageName
)]
#[case::config(
    waiting(pod("a", 1), "app", "CreateContainerConfigError", "no such secret"),
    HealthyReason::CreateContainerConfigError
)]
#[case::no_manifest(
    waiting(pod("a", 1), "app", "ImagePullBackOff", "manifest unknown"),
    HealthyReason::ImagePullFailed
)]
#[case::not_found(
    waiting(pod("a", 1), "init:app", "ErrImagePull", "x: Not Found"),
    HealthyReason::ImagePullFailed
)]
#[case::denied(
    waiting(pod("a", 1), "app", "ErrImagePull", "pull access denied"),
    HealthyReason::ImagePullFailed
)]
#[case::platform(
    waiting(pod("a", 1), "app", "ErrImagePull", "no match for platform in manifest"),
    HealthyReason::ImagePullFailed
)]
#[case::crashes(crashing(pod("a", 1), "app", 3), HealthyReason::CrashLoopBackOff)]
#[case::a_side_car_crashes(crashing(pod("a", 1), "proxy", 7), HealthyReason::CrashLoopBackOff)]
fn a_certain_cause_ends_it_after_30_seconds(
    #[case] pod: PodFacts,
    #[case] expected: HealthyReason,
) {
    let stuck = |second| (second, with_pods(numbers(3, 4, 1, 3), std::slice::from_ref(&pod)));
    let (words, last) = replay(&terms(), &[stuck(5), stuck(30), stuck(31)]);
    assert!(words[1].starts_with("rolling"), "{words:?}");
    assert_eq!(words[2], format!("failed {expected}"));
    let RolloutState::Failed(failure) = last.state else { panic!("{words:?}") };
    assert!(!failure.is_temporary && failure.message.contains("pod a"), "{failure:?}");
}

#[rstest]
#[case::registry_down(
    waiting(pod("a", 1), "app", "ErrImagePull", "i/o timeout"),
    TroubleKind::ImagePull
)]
#[case::passing_401(
    waiting(pod("a", 1), "app", "ErrImagePull", "401 Unauthorized"),
    TroubleKind::ImagePull
)]
#[case::no_words(
    waiting(pod("a", 1), "app", "ImagePullBackOff", "Back-off pulling image"),
    TroubleKind::ImagePull
)]
#[case::no_node(PodFacts { unschedulable: Some("0/1 nodes".to_owned()), started: None, ..pod("a", 1) }, TroubleKind::Unschedulable)]
fn a_cause_that_may_pass_waits_for_the_deadline(
    #[case] pod: PodFacts,
    #[case] expected: TroubleKind,
) {
    let stuck = |second| (second, with_pods(numbers(3, 4, 1, 3), std::slice::from_ref(&pod)));
    let (words, last) = replay(&terms(), &[stuck(1), stuck(600), stuck(601)]);
    let rolling = format!("rolling {expected:?}");
    assert_eq!(words, [rolling.clone(), rolling, format!("failed {}", expected.healthy_reason())]);
    let RolloutState::Failed(failure) = last.state else { panic!("{words:?}") };
    assert!(failure.is_temporary);
}

#[rstest]
#[case("pods \"a\" is forbidden: exceeded quota: q", Some(TroubleKind::Quota))]
#[case("admission webhook \"x\" denied the request", Some(TroubleKind::Admission))]
#[case("pods \"a\" is forbidden: error looking up service account", Some(TroubleKind::Admission))]
#[case("internal error", None)]
fn pods_that_cannot_be_made_are_seen(#[case] message: &str, #[case] expected: Option<TroubleKind>) {
    let failure = ReplicaFailure { reason: "FailedCreate".to_owned(), message: message.to_owned() };
    let facts = Facts { replica_failure: Some(failure), ..numbers(3, 3, 0, 3) };
    let (_, last) = replay(&terms(), &[(1, facts)]);
    let RolloutState::Rolling { trouble, .. } = last.state else { panic!("{last:?}") };
    assert_eq!(trouble.map(|trouble| trouble.kind), expected);
}

#[rstest]
#[case::old_pod(PodFacts { is_new: false, ..crashing(pod("a", -99), "app", 9) })]
#[case::being_deleted(PodFacts { deleting: true, ..crashing(pod("a", 1), "app", 9) })]
#[case::two_crashes(crashing(pod("a", 1), "app", 2))]
#[case::crashed_before_us(crashing(pod("a", -500), "app", 40))]
fn what_is_no_certain_cause_does_not_end_it(#[case] pod: PodFacts) {
    let stuck = |second| (second, with_pods(numbers(3, 4, 1, 3), std::slice::from_ref(&pod)));
    assert_eq!(replay(&terms(), &[stuck(1), stuck(300)]).0, ["rolling", "rolling"]);
}

#[test]
fn an_image_that_one_new_pod_pulled_exists() {
    let mut other = ready(waiting(pod("b", 1), "app", "", ""));
    other.containers[0].waiting = None;
    other.containers[0].pulled = true;
    let pods = [waiting(pod("a", 1), "app", "ErrImagePull", "not found"), other];
    let stuck = (300, with_pods(numbers(3, 4, 2, 3), &pods));
    assert_eq!(replay(&terms(), &[stuck]).0, ["rolling ImagePull"]);
}

#[test]
fn a_pod_that_waited_for_a_node_has_its_30_seconds() {
    let mut late = waiting(pod("a", 1), "app", "ErrImagePull", "not found");
    late.started = Some(at(300));
    let stuck = |second| (second, with_pods(numbers(3, 4, 1, 3), std::slice::from_ref(&late)));
    let (words, _) = replay(&terms(), &[stuck(329), stuck(330)]);
    assert_eq!(words, ["rolling ImagePull", "failed ImagePullFailed"]);
}

#[test]
fn unknown_pods_fail_nothing_before_the_deadline() {
    let stuck = |second| (second, Facts { pods: None, ..numbers(3, 4, 1, 3) });
    let (words, _) = replay(&terms(), &[stuck(1), stuck(600), stuck(601)]);
    assert_eq!(words, ["rolling", "rolling", "failed DeadlineExceeded"]);
}

/// Success at 2, the predicate false from 10 on, with these pods.
fn broken(pods: &[PodFacts], until: i64) -> Vec<String> {
    let good = numbers(3, 3, 3, 3);
    let bad = with_pods(numbers(3, 3, 3, 2), pods);
    replay(&terms(), &[(2, good), (10, bad.clone()), (until, bad)]).0
}

#[rstest]
#[case::unready(pod("a", 1), true)]
#[case::crashes(crashing(pod("a", 1), "app", 3), true)]
#[case::a_replacement_crashes(crashing(pod("a", 9), "app", 3), true)]
#[case::a_replacement_starts(pod("a", 9), false)]
#[case::a_replacement_side_car_crashes(crashing(pod("a", 9), "proxy", 3), false)]
#[case::evicted(PodFacts { disrupted: true, ..pod("a", 1) }, false)]
#[case::scaled_in(PodFacts { deleting: true, ..pod("a", 1) }, false)]
#[case::no_node(PodFacts { unschedulable: Some(String::new()), ..pod("a", 1) }, false)]
#[case::of_an_older_template(PodFacts { is_new: false, ..pod("a", 1) }, false)]
#[case::all_are_ready(ready(pod("a", 1)), false)]
fn a_bake_fails_by_evidence_alone(#[case] pod: PodFacts, #[case] fails: bool) {
    let pods = [pod];
    assert_eq!(broken(&pods, 39), ["baking", "broken", "broken"]);
    let expected = if fails { "failed BakeFailed" } else { "broken" };
    assert_eq!(broken(&pods, 40)[2], expected);
}

#[test]
fn evidence_must_stand_for_30_seconds_without_a_gap() {
    let good = numbers(3, 3, 3, 3);
    let bad = with_pods(numbers(3, 3, 3, 2), &[pod("a", 1)]);
    let samples = [(2, good.clone()), (10, bad.clone()), (35, good), (36, bad.clone()), (65, bad)];
    let (words, _) = replay(&terms(), &samples);
    assert_eq!(words, ["baking", "broken", "baking", "broken", "broken"]);
}

#[test]
fn unknown_pods_neither_start_nor_end_the_count() {
    let good = numbers(3, 3, 3, 3);
    let bad = with_pods(numbers(3, 3, 3, 2), &[pod("a", 1)]);
    let unknown = Facts { pods: None, ..bad.clone() };
    let samples = [(2, good), (10, bad.clone()), (45, unknown), (46, bad)];
    assert_eq!(replay(&terms(), &samples).0, ["baking", "broken", "broken", "failed BakeFailed"]);
}

#[test]
fn what_is_remembered_does_not_change_with_time_alone() {
    let mut progress = Progress::default();
    for second in 1..500 {
        let judgement = judge(&numbers(3, 4, 1, 3), &terms(), &progress, at(second));
        assert!(second == 1 || judgement.progress == progress);
        let RolloutState::Rolling { deadline, .. } = judgement.state else { panic!("{second}") };
        assert_eq!(deadline, Some(at(601)));
        progress = judgement.progress;
    }
}

#[test]
fn absurd_numbers_are_survived() {
    let extremes = [i32::MIN, -1, 0, 1, i32::MAX];
    let times = [Timestamp::MIN, at(0), Timestamp::MAX];
    for wanted in extremes {
        for replicas in extremes {
            for updated in extremes {
                for now in times {
                    let facts = numbers(wanted, replicas, updated, replicas);
                    let terms = Terms {
                        applied: now,
                        deadline: Duration::from_secs(u64::MAX),
                        bake: Duration::from_secs(u64::MAX),
                        fast: Duration::from_secs(u64::MAX),
                        followed: Vec::new(),
                        awaits_resume: false,
                        resume: Duration::from_secs(u64::MAX),
                    };
                    let first = judge(&facts, &terms, &Progress::default(), now);
                    judge(&facts, &terms, &first.progress, Timestamp::MAX);
                }
            }
        }
    }
}

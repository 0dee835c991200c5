//! What follows a failed rollout: Blocks, Rollbacks, breakers, fixing forward, zero replicas
//! (sections 3.4, 3.8, 3.9).

use belay_api::{
    annotations::TargetAnnotation,
    gates::{Gate, Verdict, WaitReason},
    reasons::BlockedReason,
};
use belay_engine::{
    block::{Block, Mark},
    judge::{ContainerFacts, PodFacts, ReplicaFailure},
    observed::{Fact, ImageAnswer},
    plan::{Look, Step},
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, Fate, HOUR, at, digest, image, name_of},
};

/// The first pods never become ready; whatever comes after does.
fn fail(case: &mut Case, tag: &str) {
    case.fate = Fate::Hangs;
    case.publish(tag);
    case.work(599);
    case.fate = Fate::Succeeds;
    case.work(200);
}

#[test]
fn a_failure_is_blocked_then_rolled_back_once() {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(599);
    case.fate = Fate::Succeeds;
    case.wait(1);
    let steps = case.passes();
    let kinds: Vec<_> = steps
        .iter()
        .map(|step| match step {
            Step::ReleaseStatus { .. } => "release",
            Step::BlockRelease { .. } => "block",
            Step::CreateRollback(_) => "create",
            Step::RollbackStatus { .. } => "rollback",
            Step::Apply(_) => "apply",
            _ => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        [
            // The verdict, the block and its condition, the answer.
            "release", "block", "release", "create",
            // Started, all between blocked and shown, the attempt counted, made.
            "rollback", "block", "release", "rollback", "apply",
            // The end of one activation, the beginning of the other, success.
            "release", "release", "release", "rollback",
        ][..kinds.len()]
    );
    case.work(200);
    let name = format!("{}-failed-1", name_of("v1.1.0"));
    assert_eq!(case.outcome(&name), "DeploymentSucceeded");
    assert_eq!(case.rollbacks().len(), 1);
    let block = case.block("v1.1.0").unwrap();
    assert_eq!((block.reason, block.until), (BlockedReason::RolloutFailed, None));
    assert_eq!(block.to.unwrap().tag, "v1.0.0");
    assert_eq!(case.reason("Ready").as_deref(), Some("RolledBack"));
    assert!(!writes_workload(&case.work(30 * DAY)));
}

#[test]
fn on_failure_stop_leaves_it_in_place_and_blocks_it_alone() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::OnFailure, "stop");
    fail(&mut case, "v1.1.0");
    assert!(case.rollbacks().is_empty());
    assert_eq!((case.live(), case.stalled().as_deref()), (image("1.1.0"), Some("Broken")));
    assert_eq!(case.block("v1.1.0").unwrap().to, None);
    // A newer one may start.
    case.publish("v1.1.1");
    assert_eq!(applies(&case.work(100)), [(image("1.1.1"), false)]);
    assert_eq!(case.stalled(), None);
}

#[test]
fn without_a_release_to_go_to_it_stays() {
    let mut case = Case::bare("1.0.0");
    // The baseline never became healthy.
    case.work(10);
    fail(&mut case, "v1.1.0");
    case.publish("v1.2.0");
    let mut case = Case::new();
    case.release_mut("v1.0.0").status.as_mut().unwrap().activations[0].verdict =
        Some(Verdict::Failed.into());
    case.publish("v1.1.0");
    fail(&mut case, "v1.1.0");
    assert!(case.rollbacks().is_empty());
    assert_eq!((case.live(), case.stalled().as_deref()), (image("1.1.0"), Some("Broken")));
    assert!(case.message("Stalled").contains("no Release to go back to"));
}

#[test]
fn all_between_is_refused_and_above_is_free() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Range, "^1");
    fail(&mut case, "v1.5.0");
    assert_eq!(case.live(), image("1.0.0"));
    for tag in ["v1.3.0", "v1.4.9", "v1.5.0-rc.1"] {
        case.publish(tag);
    }
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.gate("v1.4.9"), Some(Gate::Blocked));
    let shown = case.status().blocked[0].clone();
    assert_eq!((shown.from.as_str(), shown.to.as_deref()), ("v1.5.0", Some("v1.0.0")));
    case.publish("v1.5.1");
    assert_eq!(applies(&case.work(100)), [(image("1.5.1"), false)]);
}

#[test]
fn a_cause_outside_the_release_blocks_for_an_hour_and_twice_at_most() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let mut blocks = Vec::new();
    for _ in 0..3 {
        case.fate = Fate::Hangs;
        while case.live() != image("1.1.0") {
            // The breaker is not what is looked at here.
            case.rollbacks().clear();
            case.work(10);
        }
        case.fate = Fate::Succeeds;
        let message = "exceeded quota: pods".to_owned();
        let reason = "FailedCreate".to_owned();
        case.workload().rollout.replica_failure = Some(ReplicaFailure { reason, message });
        case.work(100);
        assert_eq!(case.reason("Progressing").as_deref(), Some("QuotaExceeded"));
        assert_eq!(case.verdict("v1.1.0"), None);
        case.work(600);
        case.workload().rollout.replica_failure = None;
        case.work(100);
        assert_eq!(case.live(), image("1.0.0"));
        let block = case.block("v1.1.0").unwrap();
        let ended = case.last("v1.1.0").end_time.unwrap().0.as_second();
        let lasts = block.until.map(|until| until.as_second() - ended);
        blocks.push((block.reason, lasts.is_some_and(|lasts| (3_590..=3_600).contains(&lasts))));
    }
    assert_eq!(
        blocks,
        [
            (BlockedReason::BlockedTemporarily, true),
            (BlockedReason::BlockedTemporarily, true),
            (BlockedReason::RolloutFailed, false)
        ]
    );
}

/// A deadline that is over before the cause has stood for its 30 seconds.
#[rstest]
#[case::not_found("manifest unknown", BlockedReason::RolloutFailed)]
#[case::not_found_behind_a_long_name(
    &format!("{} not found", "x".repeat(600)),
    BlockedReason::RolloutFailed
)]
#[case::may_pass("i/o timeout", BlockedReason::BlockedTemporarily)]
fn a_cause_that_is_certain_blocks_for_good_whatever_ends_the_rollout(
    #[case] message: &str,
    #[case] expected: BlockedReason,
) {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Deadline, "10s");
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(5);
    let pods = vec![stuck(&case, "ErrImagePull", message)];
    case.observed.pods = Fact::known(pods, at(case.now));
    case.fate = Fate::Succeeds;
    case.work(20);
    let block = case.block("v1.1.0").unwrap();
    let is_for_a_while = expected == BlockedReason::BlockedTemporarily;
    assert_eq!((block.reason, block.until.is_some()), (expected, is_for_a_while));
}

/// Another pod of the rollout has the image, so that it exists.
#[test]
fn what_one_pod_could_pull_is_blocked_for_a_while_only() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Deadline, "60s");
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(5);
    let mut other = stuck(&case, "ContainerCreating", "");
    "web-b".clone_into(&mut other.name);
    other.containers[0].pulled = true;
    let pods = vec![stuck(&case, "ErrImagePull", "not found"), other];
    case.observed.pods = Fact::known(pods, at(case.now));
    case.fate = Fate::Succeeds;
    case.work(100);
    assert_eq!(case.block("v1.1.0").unwrap().reason, BlockedReason::BlockedTemporarily);
}

fn stuck(case: &Case, waiting: &str, message: &str) -> PodFacts {
    PodFacts {
        name: "web-a".to_owned(),
        is_new: true,
        created: at(case.now),
        started: Some(at(case.now)),
        ready: false,
        deleting: false,
        disrupted: false,
        unschedulable: None,
        containers: vec![ContainerFacts {
            name: "app".parse().unwrap(),
            waiting: Some(waiting.to_owned()),
            message: Some(message.to_owned()),
            restarts: 0,
            pulled: false,
        }],
    }
}

// --- Before an automatic Rollback.

/// 1.2.0 fails; 1.1.0 and 1.0.0 were healthy before.
fn about_to_go_back(registry: impl FnOnce(&mut Case)) -> Case {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.fate = Fate::Hangs;
    case.publish("v1.2.0");
    case.work(599);
    case.fate = Fate::Succeeds;
    registry(&mut case);
    case.observed.images.clear();
    case
}

#[rstest]
#[case::as_it_was(|_: &mut Case| {}, image("1.1.0"))]
#[case::gone(|case: &mut Case| { case.registry.remove(&image("1.1.0")); }, image("1.0.0"))]
#[case::moved_and_there_by_digest(
    |case: &mut Case| {
        case.serve("1.1.0", 'b');
        let there = ImageAnswer::Present { digest: Some(digest('a')), missing_platforms: Vec::new() };
        case.registry.insert(format!("ghcr.io/acme/web@{}", digest('a')), there);
    },
    format!("ghcr.io/acme/web@{}", digest('a'))
)]
#[case::moved_and_gone(|case: &mut Case| case.serve("1.1.0", 'b'), image("1.0.0"))]
fn the_image_to_go_back_to_is_looked_at(#[case] registry: fn(&mut Case), #[case] expected: String) {
    let mut case = about_to_go_back(registry);
    assert_eq!(applies(&case.work(100)), [(expected, false)]);
}

#[test]
fn an_outage_of_the_registry_stops_no_rollback() {
    let mut case = about_to_go_back(|_| {});
    case.wait(1);
    while case.plan().look.is_empty() {
        case.pass();
    }
    assert_eq!(case.plan().look, [Look::Image(image("1.1.0"))]);
    let unknown = Fact::Unknown { why: "connection refused".to_owned(), read: at(case.now) };
    case.observed.images.insert(image("1.1.0"), unknown);
    assert_eq!(applies(&case.work(10)), [(image("1.1.0"), false)]);
}

#[rstest]
#[case::too_old_for_anything(-300)]
#[case::from_before_the_failure(0)]
fn what_the_registry_said_before_the_failure_is_not_good_enough(#[case] read: i64) {
    let mut case = about_to_go_back(|_| {});
    let answer = case.registry[&image("1.1.0")].clone();
    case.observed.images.insert(image("1.1.0"), Fact::known(answer, at(case.now + read)));
    case.wait(1);
    case.registry.remove(&image("1.1.0"));
    assert_eq!(applies(&case.work(100)), [(image("1.0.0"), false)]);
}

#[test]
fn a_digest_that_was_there_before_the_failure_is_looked_for_again() {
    let mut case = about_to_go_back(|case| case.serve("1.1.0", 'b'));
    let pinned = format!("ghcr.io/acme/web@{}", digest('a'));
    let there = ImageAnswer::Present { digest: Some(digest('a')), missing_platforms: Vec::new() };
    case.observed.images.insert(pinned, Fact::known(there, at(case.now)));
    case.wait(1);
    assert_eq!(applies(&case.work(100)), [(image("1.0.0"), false)]);
}

/// The clock that Rollbacks are stamped with may be ahead of the one that answers are.
#[test]
fn what_is_asked_now_is_never_too_old() {
    let mut case = about_to_go_back(|_| {});
    case.wait(1);
    while case.rollbacks().is_empty() {
        case.pass();
    }
    let ahead = at(case.now + 2);
    let metadata = &mut case.rollbacks()[0].metadata;
    metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(ahead));
    assert_eq!(applies(&case.passes()), [(image("1.1.0"), false)]);
}

#[test]
fn an_answer_lost_by_a_crash_is_asked_for_again_before_the_attempt() {
    let mut case = about_to_go_back(|case| {
        case.serve("1.1.0", 'b');
        let there =
            ImageAnswer::Present { digest: Some(digest('a')), missing_platforms: Vec::new() };
        case.registry.insert(format!("ghcr.io/acme/web@{}", digest('a')), there);
    });
    case.wait(1);
    let name = format!("{}-failed-1", name_of("v1.2.0"));
    let counted = |case: &mut Case| {
        let rollback =
            case.rollbacks().iter().find(|one| one.metadata.name.as_ref() == Some(&name));
        rollback.and_then(|one| one.status.as_ref()?.attempt_count).is_some()
    };
    while !counted(&mut case) {
        case.pass();
    }
    case.observed.images.clear();
    let pinned = format!("ghcr.io/acme/web@{}", digest('a'));
    assert_eq!(applies(&case.passes()), [(pinned, false)]);
}

// --- Breakers.

#[test]
fn after_two_rollbacks_in_a_day_nothing_starts_until_the_older_is_a_day_old() {
    let mut case = Case::new();
    let first = case.now + 600;
    fail(&mut case, "v1.1.0");
    case.work(HOUR);
    fail(&mut case, "v1.2.0");
    case.publish("v1.3.0");
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.stalled().as_deref(), Some("BreakerOpen"));
    let waiting = case.status().waiting.clone().unwrap();
    assert_eq!(waiting.reason.known(), Some(WaitReason::BreakerOpen));
    assert_eq!(waiting.until.unwrap().0.as_second(), first + DAY);
    let command = "kubectl release resume web --allow v1.3.0";
    assert!(case.message("Stalled").contains(command));
    case.now = first + DAY - 1;
    assert!(!writes_workload(&case.passes()));
    case.wait(1);
    assert!(writes_workload(&case.passes()));
}

#[test]
fn a_person_can_pass_the_breaker_with_one_release_once() {
    let mut case = Case::new();
    fail(&mut case, "v1.1.0");
    fail(&mut case, "v1.2.0");
    case.annotate(TargetAnnotation::Allow, "v1.3.0");
    fail(&mut case, "v1.3.0");
    // Tried, failed, taken back: the breaker refuses no Rollback.
    assert_eq!((case.live(), case.verdict("v1.3.0")), (image("1.0.0"), Some(Verdict::Failed)));
    assert_eq!(case.rollbacks().len(), 3);
    assert!(!writes_workload(&case.work(10 * DAY)));
    assert_eq!(case.last("v1.3.0").ordinal, 1);
}

#[test]
fn rollbacks_of_persons_do_not_open_the_breaker() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    for (name, to) in [("one", "v1.0.0"), ("two", "v1.1.0"), ("three", "v1.0.0")] {
        let spec = case.ask_back(name, &name_of(to), belay_api::rollback::InitiatorType::User);
        spec.force = true;
        case.work(HOUR);
        assert_eq!(case.outcome(name), "DeploymentSucceeded", "{name}");
    }
    case.publish("v1.2.0");
    assert!(writes_workload(&case.work(100)));
}

#[rstest]
#[case::failed(&["v1.1.0"], "", Some(Gate::FailedElsewhere))]
#[case::another_failed(&["v1.0.9"], "", None)]
#[case::allowed(&["v1.1.0"], "v1.1.0", None)]
#[case::another_allowed(&["v1.1.0"], "v1.0.9", Some(Gate::FailedElsewhere))]
fn what_failed_on_another_target_is_not_started(
    #[case] failed: &[&str],
    #[case] allow: &str,
    #[case] gate: Option<Gate>,
) {
    let mut case = Case::new();
    case.surroundings().failed_elsewhere = failed.iter().map(|one| (*one).to_owned()).collect();
    if !allow.is_empty() {
        case.annotate(TargetAnnotation::Allow, allow);
    }
    case.publish("v1.1.0");
    let steps = case.work(30);
    assert_eq!(writes_workload(&steps), gate.is_none());
    if gate.is_some() {
        assert_eq!(case.gate("v1.1.0"), gate);
        case.surroundings().failed_elsewhere.clear();
        assert!(writes_workload(&case.work(30)));
    }
}

// --- Zero replicas.

#[test]
fn at_zero_replicas_a_release_is_active_and_the_next_one_may_come() {
    let mut case = Case::new();
    let rollout = &mut case.workload().rollout;
    (rollout.wanted, rollout.replicas, rollout.updated, rollout.available) = (0, 0, 0, 0);
    case.publish("v1.1.0");
    case.work(100);
    assert_eq!(case.live(), image("1.1.0"));
    let conditions = case.release_mut("v1.1.0").status.clone().unwrap().conditions;
    let ready = belay_api::conditions::find(&conditions, "Ready").unwrap().reason.clone();
    assert_eq!(ready, "ScaledToZero");
    assert!(!case.plan().pods);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    case.publish("v1.2.0");
    case.work(100);
    assert_eq!(case.live(), image("1.2.0"));
    // What never ran is not gone back to.
    case.workload().rollout.wanted = 2;
    case.hang();
    case.work(700);
    case.fate = Fate::Succeeds;
    case.work(200);
    assert_eq!(case.live(), image("1.0.0"));
}

#[test]
fn scaled_to_zero_while_it_bakes_it_is_said_to_be_at_zero_at_once() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.work(10);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Baking"));
    // Nobody has looked at it yet, and its pods are still there.
    case.changed();
    let rollout = &mut case.workload().rollout;
    rollout.wanted = 0;
    rollout.observed_generation -= 1;
    case.passes();
    let conditions = case.release_mut("v1.1.0").status.clone().unwrap().conditions;
    let ready = belay_api::conditions::find(&conditions, "Ready").unwrap().reason.clone();
    assert_eq!(ready, "ScaledToZero");
    assert_eq!(case.reason("Progressing").as_deref(), Some("Idle"));
}

#[test]
fn a_damaged_block_still_refuses_its_own_release() {
    let mut case = Case::moved(3 * HOUR, Some(60));
    case.undo("v1.0.0");
    case.work(10);
    let annotations = case.release_mut("v1.1.0").metadata.annotations.get_or_insert_default();
    annotations.insert("belay.dev/blocked".to_owned(), "{".to_owned());
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::Blocked));
}

#[test]
fn a_block_that_is_over_is_shown_to_be_over() {
    let mut case = Case::moved(3 * HOUR, Some(60));
    case.undo("v1.0.0");
    case.work(10);
    let until = at(case.now + 60);
    let block = Block { until: Some(until), ..case.block("v1.1.0").unwrap() };
    assert_eq!(block.from, Mark { tag: "v1.1.0".to_owned(), published: block.from.published });
    case.set_block("v1.1.0", &block);
    case.work(59);
    let blocked = |case: &mut Case| {
        let conditions = case.release_mut("v1.1.0").status.clone().unwrap().conditions;
        let one = belay_api::conditions::find(&conditions, "Blocked").cloned().unwrap();
        (one.status, one.reason)
    };
    assert_eq!(blocked(&mut case).0, "True");
    let steps = case.work(1);
    assert_eq!(blocked(&mut case), ("False".to_owned(), "Expired".to_owned()));
    assert!(writes_workload(&steps));
}

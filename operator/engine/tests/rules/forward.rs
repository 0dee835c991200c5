//! Forward moves (sections 3.2, 3.4, 3.6).

use belay_api::{
    annotations::TargetAnnotation,
    gates::{Gate, WaitReason},
};
use belay_engine::{
    observed::{Fact, Forge, Refusal},
    plan::Step,
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, Fate, HOUR, at, digest, image, name_of},
};

#[test]
fn at_rest_there_is_nothing_to_do() {
    let mut case = Case::new();
    assert_eq!(case.work(30 * DAY), []);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Idle"));
}

#[test]
fn a_release_is_recorded_then_applied_then_judged() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let steps = case.work(200);
    let kinds: Vec<_> = steps
        .iter()
        .map(|step| match step {
            Step::CreateRelease(_) => "create",
            Step::ReleaseStatus { status, .. } if status.activations.is_empty() => "intend",
            Step::ReleaseStatus { name, .. } if *name == name_of("v1.0.0") => "end",
            Step::ReleaseStatus { .. } => "judge",
            Step::Apply(_) => "apply",
            _ => "other",
        })
        .collect();
    // Its beginning, success, the verdict.
    assert_eq!(kinds, ["create", "intend", "apply", "end", "judge", "judge", "judge"]);
    assert_eq!(case.verdict("v1.1.0"), Some(belay_api::gates::Verdict::Healthy));
    let previous = case.release_mut("v1.1.0").status.clone().unwrap().previous_release.unwrap();
    assert_eq!(previous.release_ref.name, name_of("v1.0.0"));
}

#[test]
fn all_containers_move_in_one_apply() {
    let mut case = Case::new();
    case.follow_two();
    case.publish("v1.1.0");
    let steps = case.work(100);
    let Some(Step::Apply(intent)) = steps.iter().find(|step| matches!(step, Step::Apply(_))) else {
        panic!("{steps:?}")
    };
    let moved: Vec<_> = intent.images.iter().map(|one| one.container.to_string()).collect();
    assert_eq!(moved, ["app", "worker"]);
    assert!(intent.images.iter().all(|one| one.image == image("1.1.0")));
    assert_eq!(case.verdict("v1.1.0"), Some(belay_api::gates::Verdict::Healthy));
}

#[test]
fn with_digest_the_digest_is_written() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Digest, "true");
    case.publish("v1.1.0");
    let asked = format!("{}@{}", image("1.1.0"), digest('a'));
    assert_eq!(applies(&case.work(100)), [(asked, false)]);
    assert_eq!(case.gate("v1.1.0"), Some(Gate::Lower));
}

// --- One at a time.

#[rstest]
#[case::rolling(true, 0)]
#[case::baking(false, 30)]
fn a_candidate_waits_for_the_verdict(#[case] hangs: bool, #[case] wait: i64) {
    let mut case = Case::new();
    if hangs {
        case.fate = Fate::Hangs;
    }
    case.publish("v1.1.0");
    case.work(wait);
    case.publish("v1.2.0");
    assert!(!writes_workload(&case.work(29)));
    assert_eq!(case.gate("v1.2.0"), Some(Gate::InFlight));
    assert_eq!(case.live(), image("1.1.0"));
    // A failure or a success: then its turn comes.
    case.fate = Fate::Succeeds;
    case.work(HOUR);
    assert_eq!(case.live(), image("1.2.0"));
}

#[test]
fn a_paused_workload_is_not_moved() {
    let mut case = Case::new();
    case.workload().rollout.paused = true;
    case.publish("v1.1.0");
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::InFlight));
    case.workload().rollout.paused = false;
    assert!(writes_workload(&case.work(1)));
}

#[test]
fn a_pending_rollback_goes_first() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.fate = Fate::Hangs;
    case.ask_back("by-hand", "", belay_api::rollback::InitiatorType::User);
    case.publish("v1.2.0");
    assert_eq!(applies(&case.work(60)), [(image("1.0.0"), false)]);
    assert_eq!(case.live(), image("1.0.0"));
}

#[rstest]
#[case::one_below(9, true)]
#[case::at_the_limit(10, false)]
#[case::above(11, false)]
fn no_more_rollouts_at_once_than_permitted(#[case] elsewhere: u32, #[case] moves: bool) {
    let mut case = Case::new();
    case.surroundings().rollouts_elsewhere = elsewhere;
    case.publish("v1.1.0");
    assert_eq!(writes_workload(&case.work(60)), moves);
    if !moves {
        assert_eq!(case.gate("v1.1.0"), Some(Gate::ConcurrencyLimit));
        let waiting = case.status().waiting.clone().unwrap();
        assert_eq!(waiting.reason.known(), Some(WaitReason::ConcurrencyLimit));
        case.surroundings().rollouts_elsewhere = 0;
        assert!(writes_workload(&case.work(60)));
    }
}

// --- Comparing.

#[rstest]
#[case::without_range("", false)]
#[case::with_range("^1", true)]
fn an_image_without_version_is_left_only_for_a_version_in_range(
    #[case] range: &str,
    #[case] moves: bool,
) {
    let mut case = Case::bare("edge");
    case.work(100);
    if !range.is_empty() {
        case.annotate(TargetAnnotation::Range, range);
    }
    assert_eq!(writes_workload(&case.work(100)), moves);
    if !moves {
        assert_eq!(case.stalled().as_deref(), Some("CannotCompare"));
        let message = case.message("Stalled");
        let command = "kubectl annotate -n shop deployment/web belay.dev/range='>=1.0.0'";
        assert!(message.contains(command), "{message}");
    }
}

#[test]
fn what_runs_is_compared_by_its_release_and_not_by_its_tag() {
    // The template makes one image tag of all releases of a channel.
    let mut case = Case::new();
    case.annotate(TargetAnnotation::TagTemplate, "stable");
    case.passes();
    assert_eq!(case.stalled().as_deref(), Some("InvalidConfig"));
    case.annotate(TargetAnnotation::TagTemplate, "{version}-alpine");
    case.serve("1.1.0-alpine", 'a');
    case.publish("v1.1.0");
    assert_eq!(applies(&case.work(100)), [(image("1.1.0-alpine"), false)]);
}

#[rstest]
#[case::other_id(8, Some("RepositoryReplaced"))]
#[case::same_id(7, None)]
fn another_repository_under_the_old_name_stops(#[case] id: i64, #[case] expected: Option<&str>) {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let Fact::Known { value: Forge::Found { repository_id, .. }, .. } = &mut case.observed.forge
    else {
        panic!()
    };
    *repository_id = id;
    assert_eq!(writes_workload(&case.work(100)), expected.is_none());
    assert_eq!(case.stalled().as_deref(), expected);
}

#[rstest]
#[case::not_found(Forge::NotFound, Some("RepositoryNotFound"), "Stalled")]
#[case::not_allowed(Forge::NotAllowed, Some("NotAllowed"), "Stalled")]
#[case::throttled(Forge::Throttled { until: at(1_800_010_000) }, None, "Ready")]
fn what_github_says_is_shown_and_moves_nothing(
    #[case] forge: Forge,
    #[case] stalled: Option<&str>,
    #[case] ready: &str,
) {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.passes();
    let mut case = Case::new();
    let is_throttled = matches!(forge, Forge::Throttled { .. });
    case.observed.forge = Fact::known(forge, at(case.now));
    assert_eq!(case.work(100), []);
    assert_eq!(
        (case.stalled().as_deref(), case.reason("Ready").as_deref()),
        (stalled, Some(ready))
    );
    let budget = case.status().forge.clone().map(|forge| forge.budget.to_string());
    assert_eq!(budget.as_deref(), Some(if is_throttled { "exhausted" } else { "ok" }));
}

// --- Refusals.

#[test]
fn an_apply_that_admission_denies_is_tried_again_now_and_then() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let denied = Refusal::Denied { message: "policy: no".to_owned() };
    case.refusals = vec![denied.clone(), denied];
    let steps = case.work(299);
    assert_eq!(applies(&steps).len(), 1);
    assert_eq!(case.stalled().as_deref(), Some("ApplyRefused"));
    assert!(case.message("Stalled").contains("policy: no"));
    assert_eq!(applies(&case.work(2)).len(), 1);
    assert_eq!(applies(&case.work(300)).len(), 1);
    assert_eq!((case.live(), case.stalled()), (image("1.1.0"), None));
}

#[test]
fn an_apply_that_failed_is_tried_again_more_and_more_slowly() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.refusals = vec![Refusal::Failed { message: "timed out".to_owned() }; 4];
    let mut waits = Vec::new();
    let mut last = case.now;
    while case.live() != image("1.1.0") {
        if writes_workload(&case.passes()) {
            waits.push(case.now - last);
            last = case.now;
        }
        case.wait(1);
    }
    assert_eq!(waits, [0, 15, 30, 60, 120]);
}

#[test]
fn a_refusal_counts_only_for_the_generation_it_was_given_for() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.refusals = vec![Refusal::Conflict { managers: vec!["auditor".to_owned()] }];
    case.work(100);
    assert_eq!(case.stalled().as_deref(), Some("FieldConflict"));
    case.changed();
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
}

#[test]
fn a_name_that_a_release_of_another_repository_has_is_not_taken() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.has_run("v1.1.0", -DAY, Some(-HOUR), None);
    let release = case.release_mut("v1.1.0");
    release.spec.config.revisions[0].source = Some("acme/other".to_owned());
    release.status.as_mut().unwrap().repository_id = Some(99);
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(case.stalled().as_deref(), Some("ReleaseNameTaken"));
    // A renamed repository keeps its id.
    case.release_mut("v1.1.0").status.as_mut().unwrap().repository_id = Some(7);
    assert!(writes_workload(&case.work(100)));
}

#[test]
fn a_release_left_by_a_crash_is_taken_up_again() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    while !case.has_release("v1.1.0") {
        case.pass();
    }
    // All memory is lost.
    case.observed.images.clear();
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
}

// --- The wrong order, which only tests ask for.

#[test]
fn with_the_intent_last_an_image_is_applied_that_no_release_names() {
    let mut case = Case::new();
    case.settings.intent_first = false;
    case.publish("v1.1.0");
    let mut steps = Vec::new();
    while !writes_workload(&steps) {
        steps.extend(case.pass().0.step);
    }
    assert!(!case.has_release("v1.1.0"));
    // Undisturbed it comes to the same end.
    case.work(200);
    assert_eq!(case.verdict("v1.1.0"), Some(belay_api::gates::Verdict::Healthy));
}

#[test]
fn with_the_intent_last_a_crash_is_never_made_up_for() {
    let mut case = Case::new();
    case.settings.intent_first = false;
    case.publish("v1.1.0");
    while !case.live().ends_with("1.1.0") {
        case.pass();
    }
    case.observed.images.clear();
    case.work(DAY);
    assert!(!case.has_release("v1.1.0"));
}

/// Pods are created between the apply and the next look; what they do counts from the apply on.
#[test]
fn an_activation_begins_with_its_apply_however_late_it_is_seen() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    while case.live() != image("1.1.0") {
        let _ = case.pass();
    }
    let applied = case.now;
    case.wait(7);
    case.passes();
    let (old, new) = (case.last("v1.0.0"), case.last("v1.1.0"));
    let ended = old.end_time.map(|time| time.0.as_second());
    assert_eq!((ended, new.start_time.0.as_second()), (Some(applied), applied));
}

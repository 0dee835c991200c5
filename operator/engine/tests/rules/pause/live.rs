//! How long a claim is kept, what becomes of one that is taken away, and what ends it.

use belay_api::{annotations::TargetAnnotation, gates::Verdict, rollback::InitiatorType};
use belay_engine::{
    observed::{Fact, Forge, PauseKind, Refusal},
    plan::{Look, Step},
};
use rstest::rstest;

use super::{claimed_for, claims, rolling};
use crate::{
    case::{Case, Fate, HOUR, image, name_of},
    keda::{brief, scaled_object},
};

const OURS: [(PauseKind, bool, bool); 1] = [(PauseKind::ScaleIn, true, false)];

#[test]
fn it_is_renewed_at_half() {
    let mut case = rolling();
    case.annotate(TargetAnnotation::Deadline, "2h");
    let start = case.now;
    case.passes();
    // It was claimed for 600 s of deadline; at once it is too short for two hours.
    let expires = |case: &mut Case| case.status().pause.clone().unwrap().expires.0.as_second();
    let lasts = 4 * HOUR + 300;
    assert_eq!(expires(&mut case), start + lasts);
    assert_eq!(brief(&case.work(2 * HOUR - 60)), [] as [&str; 0]);
    // One more new pod: the deadline begins anew.
    case.workload().rollout.updated = 2;
    case.changed();
    assert_eq!(brief(&case.work(60 + 149)), [] as [&str; 0]);
    assert_eq!(claims(&case.work(1)), claimed_for("v1.1.0", start));
    assert_eq!(expires(&mut case), start + lasts / 2 + lasts);
}

#[rstest]
#[case::the_key(|case: &mut Case| case.somebody_strips())]
#[case::all_of_it(|case: &mut Case| {
    case.object().claim = None;
    case.somebody_strips();
})]
#[case::the_object(|case: &mut Case| {
    case.keda.objects = vec![scaled_object("web")];
    case.object().uid = "uid-anew".to_owned();
    case.show_claims();
})]
fn what_is_taken_away_in_mid_rollout_is_claimed_again(#[case] take: fn(&mut Case)) {
    let mut case = rolling();
    case.wait(60);
    take(&mut case);
    assert_eq!(case.plan().look, [Look::Scaler]);
    let steps = case.passes();
    assert_eq!(brief(&steps), ["claim scale-in"]);
    assert_eq!(claims(&steps)[0].1, name_of("v1.1.0"));
    assert_eq!(case.pauses(), OURS);
    assert!(case.told.contains("PauseLost"));
    // It was not waited for.
    assert_eq!(case.reason("Progressing").as_deref(), Some("Rolling"));
}

#[test]
fn what_is_claimed_again_is_told_once_each_time() {
    let mut case = rolling();
    let mut told = 0;
    for _ in 0..3 {
        case.wait(20);
        case.somebody_strips();
        for _ in 0..10 {
            let (decided, _) = case.pass();
            told += decided.notices.iter().filter(|one| one.reason == "PauseLost").count();
        }
    }
    assert_eq!(told, 3);
}

#[test]
fn somebody_who_says_no_in_mid_rollout_is_not_fought() {
    let mut case = rolling();
    case.wait(60);
    case.somebody_pauses(PauseKind::ScaleIn, "false");
    let steps = case.work(120);
    assert_eq!(brief(&steps), [] as [&str; 0]);
    assert!(case.message("RolledUnpaused").starts_with("somebody else has set"));
    assert!(case.told.contains("RolledUnpaused"));
    assert_eq!(case.pauses(), [(PauseKind::ScaleIn, false, true)]);
}

#[test]
fn somebody_elses_pause_in_mid_rollout_serves() {
    let mut case = rolling();
    case.wait(60);
    case.somebody_pauses(PauseKind::ScaleIn, "true");
    case.complete();
    case.changed();
    case.work(300);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(case.pauses(), [(PauseKind::ScaleIn, false, true)]);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[test]
fn the_mode_may_be_changed_in_mid_rollout() {
    let mut case = rolling();
    case.wait(60);
    case.annotate(TargetAnnotation::Pause, "full");
    assert_eq!(brief(&case.passes()), ["claim full"]);
    assert_eq!(case.pauses(), [(PauseKind::Paused, true, false)]);
    assert!(!case.told.contains("PauseLost"));
}

/// What happens in mid-rollout, and that the pause goes with the next mutation.
#[rstest]
#[case::observe(|case: &mut Case| case.annotate(TargetAnnotation::Mode, "observe"))]
#[case::mode_none(|case: &mut Case| case.annotate(TargetAnnotation::Pause, "none"))]
#[case::unnamed(|case: &mut Case| case.strip(TargetAnnotation::ScaledObject))]
#[case::named_otherwise(|case: &mut Case| case.annotate(TargetAnnotation::ScaledObject, "other"))]
#[case::bad_configuration(|case: &mut Case| case.annotate(TargetAnnotation::Bake, "soon"))]
#[case::paused(|case: &mut Case| {
    case.workload().rollout.paused = true;
    case.changed();
})]
#[case::scaled_to_zero(|case: &mut Case| {
    let rollout = &mut case.workload().rollout;
    (rollout.wanted, rollout.replicas, rollout.updated, rollout.available) = (0, 0, 0, 0);
    case.changed();
})]
#[case::another_target_has_it(|case: &mut Case|
    case.surroundings().scaled_object_of = Some("Deployment/old".to_owned()))]
#[case::succeeded(|case: &mut Case| {
    case.complete();
    case.changed();
})]
fn it_is_dropped(#[case] change: fn(&mut Case)) {
    let mut case = rolling();
    case.wait(60);
    change(&mut case);
    let steps = case.passes();
    assert_eq!(brief(&steps), ["drop"]);
    assert_eq!(case.pauses(), []);
    // Nothing but that the activity or the success was recorded goes before.
    let before = steps.iter().position(|step| matches!(step, Step::DropPause { .. })).unwrap();
    assert!(before <= 1, "{steps:?}");
    assert_eq!(brief(&case.work(200)).first(), None);
}

#[test]
fn success_is_recorded_before_it_is_dropped() {
    let mut case = rolling();
    case.complete();
    case.changed();
    let steps = case.passes();
    let Some(Step::ReleaseStatus { status, .. }) = steps.first() else { panic!("{steps:?}") };
    assert!(status.progress.as_ref().unwrap().succeeded_time.is_some());
    assert!(matches!(steps[1], Step::DropPause { .. }), "{steps:?}");
}

#[test]
fn when_somebody_changes_the_image_it_goes_in_the_next_mutation() {
    let mut case = rolling();
    case.wait(60);
    case.write("kubectl-edit", false, &image("1.0.0"));
    let steps = case.passes();
    let Some(Step::ReleaseStatus { status, .. }) = steps.first() else { panic!("{steps:?}") };
    let last = status.activations.last().unwrap();
    assert_eq!(last.verdict.as_ref().unwrap().known(), Some(Verdict::Superseded));
    let brief = brief(&steps);
    assert_eq!(brief, ["drop"]);
    let dropped = steps.iter().position(|step| matches!(step, Step::DropPause { .. }));
    // The Release that took its place begins first, at most.
    assert!(dropped.unwrap() <= 3, "{steps:?}");
    assert_eq!(case.pauses(), []);
}

#[test]
fn a_workload_that_goes_on_after_a_stop_is_paused_again_without_waiting() {
    let mut case = rolling();
    case.wait(60);
    case.workload().rollout.paused = true;
    case.changed();
    assert_eq!(brief(&case.work(600)), ["drop"]);
    assert_eq!(case.reason("Progressing").as_deref(), Some("TargetPaused"));
    case.workload().rollout.paused = false;
    case.changed();
    assert_eq!(brief(&case.passes()), ["claim scale-in"]);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Rolling"));
    assert!(!case.told.contains("PauseLost"));
}

#[test]
fn one_claim_spans_a_failed_rollout_and_its_rollback() {
    let mut case = rolling();
    let steps = case.work(700);
    assert_eq!(brief(&steps), ["rollback", "apply 1.0.0"]);
    let release = case.status().pause.clone().unwrap().release;
    assert_eq!(release, name_of("v1.1.0"));
    case.complete();
    case.changed();
    assert_eq!(brief(&case.work(300)), ["drop"]);
    assert_eq!(case.verdict("v1.0.0"), Some(Verdict::Healthy));
}

#[test]
fn a_rollback_that_fails_drops_it_too() {
    let mut case = rolling();
    let steps = brief(&case.work(2_000));
    assert_eq!(steps[..2], ["rollback", "apply 1.0.0"]);
    assert_eq!(steps.last().map(String::as_str), Some("drop"));
    assert_eq!(case.stalled().as_deref(), Some("RollbackFailed"));
    assert_eq!(case.pauses(), []);
}

#[rstest]
#[case::as_asked(|case: &mut Case| case.annotate(TargetAnnotation::OnFailure, "stop"))]
#[case::with_nowhere_to_go(|case: &mut Case| case.releases().retain(|one|
    one.metadata.name != Some(name_of("v1.0.0"))))]
fn a_failure_that_stays_in_place_drops_it(#[case] change: fn(&mut Case)) {
    let mut case = rolling();
    change(&mut case);
    let steps = brief(&case.work(3_000));
    assert_eq!(steps, ["drop"]);
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
}

#[test]
fn a_persons_rollback_in_mid_rollout_keeps_it() {
    let mut case = rolling();
    case.ask_back("by-hand", "", InitiatorType::User);
    let steps = case.passes();
    assert_eq!(brief(&steps), ["apply 1.0.0"]);
    assert_eq!(case.status().pause.clone().unwrap().release, name_of("v1.1.0"));
    case.complete();
    case.changed();
    assert_eq!(brief(&case.work(300)), ["drop"]);
    assert_eq!(case.outcome("by-hand"), "DeploymentSucceeded");
}

#[test]
fn a_rollback_of_a_paused_workload_waits_without_a_pause() {
    let mut case = Case::scaled();
    case.publish("v1.1.0");
    case.work(300);
    case.workload().rollout.paused = true;
    case.changed();
    case.ask_back("by-hand", "", InitiatorType::User);
    assert_eq!(brief(&case.work(300)), [] as [&str; 0]);
    case.workload().rollout.paused = false;
    case.changed();
    assert_eq!(brief(&case.work(300)), ["claim scale-in", "apply 1.0.0", "drop"]);
}

/// What keeps the candidate back while its pause is awaited.
#[rstest]
#[case::a_hold(|case: &mut Case| case.annotate(TargetAnnotation::Hold, "true"))]
#[case::the_limit_of_rollouts(|case: &mut Case| case.surroundings().rollouts_elsewhere = 10)]
#[case::its_end(|case: &mut Case| {
    case.github().items.retain(|one| one.tag == "v1.0.0");
    case.github().latest = Some("v1.0.0".to_owned());
})]
#[case::a_repository_that_is_gone(|case: &mut Case|
    case.observed.forge = Fact::known(Forge::NotFound, crate::case::at(case.now)))]
fn a_claim_for_what_is_not_applied_after_all_is_dropped(#[case] change: fn(&mut Case)) {
    let mut case = Case::scaled();
    case.keda.is_down = true;
    case.publish("v1.1.0");
    assert_eq!(brief(&case.passes()), ["claim scale-in"]);
    change(&mut case);
    assert_eq!(brief(&case.passes()), ["drop"]);
    assert_eq!(case.pauses(), []);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Idle"));
}

#[test]
fn an_apply_that_is_denied_drops_it_and_one_that_failed_keeps_it() {
    for (refusal, expected) in [
        (
            Refusal::Denied { message: "no".to_owned() },
            &["claim scale-in", "apply 1.1.0", "drop"][..],
        ),
        (Refusal::Failed { message: "no".to_owned() }, &["claim scale-in", "apply 1.1.0"]),
    ] {
        let mut case = Case::scaled();
        case.refusals = vec![refusal];
        case.publish("v1.1.0");
        assert_eq!(brief(&case.passes()), expected);
    }
}

#[test]
fn until_github_has_answered_a_claim_for_a_candidate_is_kept_for_a_minute() {
    let mut case = Case::scaled();
    case.keda.is_down = true;
    case.publish("v1.1.0");
    let start = case.now;
    case.passes();
    let found = case.observed.forge.clone();
    let why = "not asked yet".to_owned();
    case.observed.forge = Fact::Unknown { why, read: crate::case::at(case.now) };
    assert_eq!(brief(&case.work(59)), [] as [&str; 0]);
    assert_eq!(case.pauses(), OURS);
    assert_eq!(case.plan().wake.unwrap().as_second(), start + 60);
    assert_eq!(brief(&case.work(1)), ["drop"]);
    case.observed.forge = found;
    assert_eq!(brief(&case.passes()), ["claim scale-in"]);
}

#[test]
fn a_drop_that_is_refused_stands_in_nobodys_way() {
    let mut case = rolling();
    case.keda.refusals = vec![Refusal::Denied { message: "no".to_owned() }; 3];
    case.fate = Fate::Succeeds;
    case.complete();
    case.changed();
    let start = case.now;
    let steps = brief(&case.work(200));
    assert_eq!(steps, ["drop"]);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    let message = "the pause of the ScaledObject web cannot be dropped: no";
    assert_eq!(case.message("ResumeUnproven"), message);
    assert!(case.status().pause.is_some());
    let steps = brief(&case.work(900));
    assert_eq!(steps, ["drop", "drop", "drop"]);
    assert_eq!(case.now - start, 1_100);
    assert_eq!(case.pauses(), []);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[test]
fn two_targets_with_one_scaled_object_do_not_share_it() {
    let mut case = Case::scaled();
    case.surroundings().scaled_object_of = Some("Deployment/old".to_owned());
    case.publish("v1.1.0");
    assert_eq!(brief(&case.work(300)), [] as [&str; 0]);
    assert_eq!(case.stalled().as_deref(), Some("DuplicateTarget"));
    let message = "Deployment/old has the ScaledObject web and is older; to follow this one too: \
                   another belay.dev/scaledobject";
    assert_eq!(case.message("Stalled"), message);
    // Its record is its own, and what runs is still said.
    assert_eq!(case.status().active, Some(name_of("v1.0.0")));
    case.strip(TargetAnnotation::ScaledObject);
    assert_eq!(brief(&case.work(300)), ["apply 1.1.0"]);
}

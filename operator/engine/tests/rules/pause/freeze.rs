//! Who is paused, and when: before any image is applied that moves pods.

use belay_api::{
    annotations::{PauseMode, TargetAnnotation},
    conditions::find,
    gates::WaitReason,
};
use belay_engine::{observed::PauseKind, plan::Look};
use rstest::rstest;

use super::{Way, claimed_for, claims};
use crate::{
    case::{Case, DAY, Fate, name_of},
    keda::{INSTANCE, brief},
};

#[rstest]
#[case::by_default(None, "claim scale-in")]
#[case::as_written(Some("scale-in"), "claim scale-in")]
#[case::in_full(Some("full"), "claim full")]
fn a_rollout_is_paused_and_the_pause_dropped_after_it(
    #[case] written: Option<&str>,
    #[case] claim: &str,
) {
    let mut case = Case::scaled();
    if let Some(mode) = written {
        case.annotate(TargetAnnotation::Pause, mode);
    }
    case.publish("v1.1.0");
    let start = case.now;
    let steps = case.work(300);
    assert_eq!(brief(&steps), [claim, "apply 1.1.0", "drop"]);
    assert_eq!(claims(&steps)[0].1, name_of("v1.1.0"));
    assert_eq!(claims(&steps)[0].2, start);
    assert_eq!(case.pauses(), []);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(case.status().pause, None);
    assert!(case.told.contains("Pausing") && case.told.contains("Resuming"));
}

#[rstest]
fn every_way_of_applying_an_image_is_paused(
    #[values(Way::Forward, Way::Reassert, Way::Restore, Way::Rollback, Way::SystemRollback)]
    way: Way,
) {
    let mut case = way.begin();
    let before = case.live();
    let steps = brief(&case.work(1_000));
    let claim = steps.iter().position(|step| step.starts_with("claim"));
    let apply = steps.iter().position(|step| step.starts_with("apply"));
    assert!(claim.is_some() && claim < apply, "{steps:?}");
    assert_ne!(case.live(), before);
    // No image moves pods unseen by KEDA, and in the end nothing is paused.
    assert_eq!(steps.last().map(String::as_str), Some("drop"), "{steps:?}");
    assert_eq!(case.pauses(), []);
}

#[rstest]
#[case::without_the_annotation(|case: &mut Case| case.strip(TargetAnnotation::ScaledObject))]
#[case::with_mode_none(|case: &mut Case| case.annotate(TargetAnnotation::Pause, "none"))]
#[case::without_replicas(|case: &mut Case| {
    case.workload().rollout.wanted = 0;
    case.complete();
    case.changed();
})]
fn nothing_is_paused(#[case] change: fn(&mut Case)) {
    let mut case = Case::scaled();
    change(&mut case);
    case.publish("v1.1.0");
    assert_eq!(brief(&case.work(300)), ["apply 1.1.0"]);
    assert_eq!(case.reason("RolledUnpaused"), None);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[rstest]
#[case::in_mode_observe(|case: &mut Case| case.annotate(TargetAnnotation::Mode, "observe"))]
#[case::when_held(|case: &mut Case| case.annotate(TargetAnnotation::Hold, "true"))]
#[case::when_the_workload_is_paused(|case: &mut Case| case.workload().rollout.paused = true)]
#[case::when_the_registry_lacks_the_image(|case: &mut Case| case.registry.clear())]
fn what_is_not_applied_is_not_paused(#[case] change: fn(&mut Case)) {
    let mut case = Case::scaled();
    case.publish("v1.1.0");
    change(&mut case);
    let steps = case.work(DAY);
    assert_eq!(brief(&steps), [] as [&str; 0]);
    assert!(case.observed.scaler.is_none(), "it was read for nothing");
}

#[test]
fn an_apply_that_moves_no_pod_is_not_paused() {
    let mut case = Case::scaled();
    // The Release runs already, under another hand.
    case.write("helm", false, &crate::case::image("1.0.0"));
    assert!(!brief(&case.work(1_000)).contains(&"claim scale-in".to_owned()));
}

#[test]
fn while_the_pause_is_awaited_the_status_says_so() {
    let mut case = Case::scaled();
    case.keda.is_down = true;
    case.publish("v1.1.0");
    let start = case.now;
    let steps = case.passes();
    assert_eq!(claims(&steps), claimed_for("v1.1.0", start));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Pausing"));
    assert_eq!(case.reason("Ready").as_deref(), Some("Progressing"));
    let waiting = case.status().waiting.clone().unwrap();
    assert_eq!(waiting.reason.known(), Some(WaitReason::PauseProof));
    assert_eq!(waiting.until.unwrap().0.as_second(), start + 30);
    let pause = case.status().pause.clone().unwrap();
    assert_eq!(pause.scaled_object, "web");
    assert_eq!((pause.mode.known(), pause.release), (Some(PauseMode::ScaleIn), name_of("v1.1.0")));
    // Twice the deadline and five minutes.
    assert_eq!(pause.expires.0.as_second(), start + 2 * 600 + 300);
    assert_eq!(case.status().candidates[0].tag, "v1.1.0");
    assert_eq!(case.plan().look, [Look::Scaler]);
    // Its Release says it too, from the write of its intent on.
    let status = case.release_mut("v1.1.0").status.clone().unwrap();
    assert_eq!(find(&status.conditions, "Ready").unwrap().reason, "Pausing");
}

#[test]
fn a_reading_proves_nothing_after_ten_seconds() {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    case.keda.is_down = true;
    case.publish("v1.1.0");
    case.passes();
    case.keda.is_down = false;
    assert_eq!(case.plan().look, [Look::Scaler]);
    case.look_at_scaler();
    assert!(case.plan().step.is_some());
    case.wait(11);
    let decided = case.plan();
    assert_eq!((decided.look, decided.step), (vec![Look::Scaler], None));
    assert_eq!(brief(&case.passes()), ["apply 1.1.0"]);
}

#[rstest]
#[case::paused(PauseKind::Paused, "true")]
#[case::paused_by_a_word(PauseKind::Paused, "banana")]
#[case::paused_by_a_number(PauseKind::Replicas, "0")]
#[case::scale_in(PauseKind::ScaleIn, "true")]
fn somebody_elses_pause_serves_and_stays(
    #[case] kind: PauseKind,
    #[case] value: &str,
    #[values("scale-in", "full")] mode: &str,
) {
    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Pause, mode);
    case.somebody_pauses(kind, value);
    case.publish("v1.1.0");
    assert_eq!(brief(&case.work(1_000)), ["apply 1.1.0"]);
    assert_eq!(case.pauses(), [(kind, false, true)]);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    for note in ["RolledUnpaused", "ResumeUnproven"] {
        assert_eq!(case.reason(note), None);
    }
}

#[rstest]
#[case::one_that_says_no(PauseKind::Paused, "false")]
#[case::one_that_says_no_in_go(PauseKind::Paused, "F")]
#[case::scale_out(PauseKind::ScaleOut, "true")]
fn what_does_not_hold_scale_in_is_no_pause(#[case] kind: PauseKind, #[case] value: &str) {
    let mut case = Case::scaled();
    case.somebody_pauses(kind, value);
    case.publish("v1.1.0");
    assert_eq!(brief(&case.work(1_000)), ["claim scale-in", "apply 1.1.0", "drop"]);
    assert_eq!(case.pauses(), [(kind, false, true)]);
}

#[test]
fn a_pause_that_somebody_shares_is_kept_by_the_other() {
    let mut case = super::rolling();
    case.object().pauses[0].is_others = true;
    case.fate = Fate::Succeeds;
    case.complete();
    case.changed();
    assert_eq!(brief(&case.work(300)), ["drop"]);
    assert_eq!(case.pauses(), [(PauseKind::ScaleIn, false, true)]);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[rstest]
#[case::the_operators_before("ops/other", "web", 600, true)]
#[case::another_operators("ops/other", "shop", 600, false)]
#[case::another_targets(INSTANCE, "shop", 600, false)]
#[case::one_that_is_over("ops/other", "web", -1, true)]
#[case::another_targets_that_is_over(INSTANCE, "shop", -1, true)]
fn a_claim_of_others_serves_while_it_lasts(
    #[case] instance: &str,
    #[case] target: &str,
    #[case] lasts: i64,
    #[case] is_claimed: bool,
) {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    let now = case.now;
    case.claimed(instance, target, "some", now - 60, now + lasts);
    // The watch shows what is claimed for this target alone.
    case.observed.claims.retain(|facts| facts.claim.as_ref().unwrap().target == "web");
    case.publish("v1.1.0");
    let steps = brief(&case.passes());
    assert_eq!(steps.contains(&"claim scale-in".to_owned()), is_claimed, "{steps:?}");
    assert_eq!(steps.last().map(String::as_str), Some("apply 1.1.0"), "{steps:?}");
}

#[test]
fn another_candidate_begins_the_claim_anew() {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    case.keda.is_down = true;
    case.publish("v1.1.0");
    case.passes();
    case.wait(20);
    case.publish("v1.2.0");
    let now = case.now;
    assert_eq!(claims(&case.passes()), claimed_for("v1.2.0", now));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Pausing"));
    case.keda.is_down = false;
    case.wait(1);
    assert_eq!(brief(&case.passes()), ["apply 1.2.0"]);
}

#[test]
fn another_mode_is_another_claim_with_its_own_proof() {
    let mut case = Case::scaled();
    case.keda.is_down = true;
    case.publish("v1.1.0");
    case.passes();
    case.wait(20);
    case.annotate(TargetAnnotation::Pause, "full");
    let steps = case.passes();
    assert_eq!(claims(&steps), [("full".to_owned(), name_of("v1.1.0"), case.now)]);
    assert_eq!(case.pauses(), [(PauseKind::Paused, true, false)]);
    case.keda.is_down = false;
    case.wait(1);
    assert_eq!(brief(&case.work(300)), ["apply 1.1.0", "drop"]);
}

#[test]
fn one_that_is_taken_away_meanwhile_is_claimed_again() {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    case.keda.is_down = true;
    case.publish("v1.1.0");
    let start = case.now;
    case.passes();
    case.wait(5);
    case.somebody_strips();
    assert_eq!(claims(&case.passes()), claimed_for("v1.1.0", start));
    assert!(case.told.contains("PauseLost"));
    // But not without end.
    case.wait(30);
    case.somebody_strips();
    assert_eq!(brief(&case.passes())[0], "apply 1.1.0");
    assert!(case.message("RolledUnpaused").contains("takes the pause"));
}

#[test]
fn a_claim_that_waits_long_is_renewed() {
    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Pause, "scale-in");
    case.annotate(TargetAnnotation::Deadline, "100s");
    case.keda.is_down = true;
    case.publish("v1.1.0");
    let start = case.now;
    let steps = case.work(1_100);
    // 500 s each, renewed at half.
    assert_eq!(brief(&steps).len(), 5, "{:?}", brief(&steps));
    assert!(claims(&steps).iter().all(|(_, _, since)| *since == start));
    assert!(case.status().pause.clone().unwrap().expires.0.as_second() > case.now);
}

//! Where scale-in cannot be held: a rollout waits or goes on, a Rollback goes on.

use belay_api::annotations::TargetAnnotation;
use belay_engine::{
    observed::{PauseKind, Refusal},
    plan::Look,
};
use rstest::rstest;

use super::Way;
use crate::{
    case::{Case, Fate, image},
    keda::brief,
};

fn denied() -> Refusal {
    Refusal::Denied { message: "admission says no".to_owned() }
}

fn conflict() -> Refusal {
    Refusal::Conflict { managers: vec!["argocd".to_owned()] }
}

fn failed() -> Refusal {
    Refusal::Failed { message: "timeout".to_owned() }
}

/// What hinders, the sentence that says so, after how many seconds nothing is waited for any more.
#[rstest]
#[case::no_keda(|case: &mut Case| case.keda.is_absent = true,
    "the cluster serves no ScaledObjects (KEDA is not installed), so web cannot be paused", 0)]
#[case::missing(|case: &mut Case| case.keda.objects.clear(), "there is no ScaledObject web", 0)]
#[case::deleted(|case: &mut Case| case.object().deleting = true,
    "the ScaledObject web is being deleted", 0)]
#[case::of_another_kind(|case: &mut Case| case.object().scales_kind = "StatefulSet".to_owned(),
    "the ScaledObject web scales StatefulSet web, not Deployment web", 0)]
#[case::of_another_workload(|case: &mut Case| case.object().scales_name = "api".to_owned(),
    "the ScaledObject web scales Deployment api, not Deployment web", 0)]
#[case::forbidden(|case: &mut Case| case.keda.unreadable = Some("403 forbidden".to_owned()),
    "the ScaledObject web cannot be read: 403 forbidden", 30)]
#[case::denied(|case: &mut Case| case.keda.refusals = vec![denied(); 200],
    "the pause of the ScaledObject web is refused: admission says no", 0)]
#[case::in_conflict(|case: &mut Case| case.keda.refusals = vec![conflict(); 200],
    "the pause of the ScaledObject web is refused: somebody else owns its annotations", 0)]
#[case::failed(|case: &mut Case| case.keda.refusals = vec![failed(); 200],
    "the pause of the ScaledObject web is refused: timeout", 30)]
#[case::keda_is_down(|case: &mut Case| case.keda.is_down = true,
    "the pause of the ScaledObject web was not proven within 30s: KEDA has not disabled scale-in \
     of its HPA", 30)]
#[case::somebody_says_no(|case: &mut Case| case.somebody_pauses(PauseKind::ScaleIn, "false"),
    "somebody else has set autoscaling.keda.sh/paused-scale-in to \"false\" on the ScaledObject \
     web", 0)]
fn what_hinders_a_pause(
    #[case] hinder: fn(&mut Case),
    #[case] sentence: &str,
    #[case] waits: i64,
    #[values(Way::Forward, Way::Reassert, Way::Restore, Way::Rollback, Way::SystemRollback)]
    way: Way,
    #[values(true, false)] is_written: bool,
) {
    let mut case = way.begin();
    if is_written {
        case.annotate(TargetAnnotation::Pause, "scale-in");
    }
    hinder(&mut case);
    case.fate = Fate::Hangs;
    let before = case.live();
    // The steps before, such as a person's revert that is waited for.
    if way == Way::Reassert {
        case.work(60);
    }
    case.passes();
    if waits > 0 {
        assert_eq!(case.live(), before);
        assert_eq!(case.reason("Progressing").as_deref(), Some("Pausing"));
        case.work(waits);
    }
    if is_written && !way.is_rollback() {
        assert_eq!(case.live(), before);
        assert_eq!(case.reason("Progressing").as_deref(), Some("CouldNotFreeze"));
        let message = case.message("Progressing");
        assert!(message.starts_with(sentence), "{message}");
        let command = "kubectl annotate -n shop deployment/web belay.dev/pause-";
        assert!(message.ends_with(command), "{message}");
        assert_eq!(case.reason("RolledUnpaused"), None);
        // It is looked at again.
        let wake = case.plan().wake.unwrap().as_second() - case.now;
        assert!((1..=30).contains(&wake), "{wake}");
    } else {
        assert_ne!(case.live(), before);
        assert_eq!(case.message("RolledUnpaused"), sentence);
        assert!(case.told.contains("RolledUnpaused"));
    }
}

#[rstest]
#[case::keda_is_installed_later(|case: &mut Case| case.keda.is_absent = true,
    |case: &mut Case| case.keda.is_absent = false)]
#[case::keda_comes_up_later(|case: &mut Case| case.keda.is_down = true,
    |case: &mut Case| case.keda.is_down = false)]
#[case::it_is_permitted_later(|case: &mut Case| case.keda.unreadable = Some("no".to_owned()),
    |case: &mut Case| case.keda.unreadable = None)]
fn what_waits_goes_on_when_the_pause_is_proven(
    #[case] hinder: fn(&mut Case),
    #[case] mend: fn(&mut Case),
) {
    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Pause, "scale-in");
    hinder(&mut case);
    case.publish("v1.1.0");
    case.work(3_600);
    assert_eq!(case.reason("Progressing").as_deref(), Some("CouldNotFreeze"));
    assert_eq!(case.live(), image("1.0.0"));
    mend(&mut case);
    let steps = brief(&case.work(300));
    assert_eq!(&steps[steps.len() - 2..], ["apply 1.1.0", "drop"]);
    assert_eq!(case.reason("RolledUnpaused"), None);
    assert_eq!(case.pauses(), []);
}

#[test]
fn what_waits_goes_on_when_the_annotation_is_removed() {
    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Pause, "scale-in");
    case.keda.is_absent = true;
    case.publish("v1.1.0");
    case.work(3_600);
    case.fate = Fate::Hangs;
    case.strip(TargetAnnotation::Pause);
    assert_eq!(brief(&case.passes()), ["apply 1.1.0"]);
}

#[test]
fn a_rollout_that_goes_on_says_so_as_long_as_it_lasts() {
    let mut case = Case::scaled();
    case.keda.is_absent = true;
    case.publish("v1.1.0");
    case.fate = Fate::Hangs;
    case.work(300);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Rolling"));
    assert!(case.reason("RolledUnpaused").is_some());
    case.complete();
    case.changed();
    case.work(300);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(case.reason("RolledUnpaused"), None);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[test]
fn it_is_said_before_the_image_is_applied_and_told_once() {
    let mut case = Case::scaled();
    case.keda.is_absent = true;
    case.publish("v1.1.0");
    let mut told = 0;
    for _ in 0..20 {
        let (decided, _) = case.pass();
        told += decided.notices.iter().filter(|one| one.reason == "RolledUnpaused").count();
        if case.live() == image("1.1.0") {
            break;
        }
    }
    assert_eq!(told, 1);
    assert!(case.reason("RolledUnpaused").is_some());
}

#[test]
fn the_claim_stays_and_may_take_hold_later() {
    let mut case = Case::scaled();
    case.keda.is_down = true;
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(60);
    assert_eq!(case.live(), image("1.1.0"));
    assert_eq!(case.pauses(), [(PauseKind::ScaleIn, true, false)]);
    case.complete();
    case.changed();
    case.work(10);
    assert_eq!(case.pauses(), []);
}

#[test]
fn what_is_missing_in_mid_rollout_is_looked_at_now_and_then() {
    let mut case = Case::scaled();
    case.keda.is_absent = true;
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.passes();
    assert_eq!(case.plan().look, []);
    case.wait(15);
    assert_eq!(case.plan().look, []);
    case.wait(16);
    assert_eq!(case.plan().look, [Look::Scaler]);
    case.keda.is_absent = false;
    assert_eq!(brief(&case.passes()), ["claim scale-in"]);
    assert!(!case.told.contains("PauseLost"));
}

#[rstest]
#[case::denied(denied(), 300)]
#[case::failed(failed(), 1)]
fn a_refused_claim_is_tried_again_later(#[case] refusal: Refusal, #[case] after: i64) {
    let mut case = Case::scaled();
    case.fate = Fate::Hangs;
    case.annotate(TargetAnnotation::Pause, "scale-in");
    case.keda.refusals = vec![refusal];
    case.publish("v1.1.0");
    let start = case.now;
    assert_eq!(brief(&case.passes()), ["claim scale-in"]);
    while case.pauses().is_empty() {
        assert!(case.now <= start + 400);
        case.wait(1);
        case.passes();
    }
    let took = case.now - start;
    assert!((after..after + 32).contains(&took), "{took}");
}

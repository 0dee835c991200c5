//! After success: autoscaling is seen to resume before the bake starts, or it is said that it was not.

use belay_api::{
    annotations::TargetAnnotation,
    gates::{Verdict, WaitReason},
};
use belay_engine::{
    observed::{HpaFacts, PauseKind},
    plan::Look,
};
use rstest::rstest;

use super::rolling;
use crate::{
    case::{Case, DAY, Fate, seconds},
    keda::{brief, scaled_object},
};

/// The rollout has succeeded and its pause is dropped; KEDA is down.
fn dropped() -> Case {
    let mut case = rolling();
    case.keda.is_down = true;
    case.complete();
    case.changed();
    assert_eq!(brief(&case.passes()), ["drop"]);
    case
}

fn is_baking(case: &mut Case) -> bool {
    has_begun_to_bake(case, "v1.1.0")
}

fn is_baking_back(case: &mut Case) -> bool {
    has_begun_to_bake(case, "v1.0.0")
}

fn has_begun_to_bake(case: &mut Case, tag: &str) -> bool {
    let progress = case.release_mut(tag).status.clone().unwrap().progress;
    progress.is_some_and(|progress| progress.bake_since.is_some())
}

#[test]
fn the_bake_starts_when_autoscaling_has_resumed() {
    let mut case = dropped();
    let start = case.now;
    assert_eq!(case.reason("Progressing").as_deref(), Some("Resuming"));
    let waiting = case.status().waiting.clone().unwrap();
    assert_eq!(waiting.reason.known(), Some(WaitReason::ResumeProof));
    assert_eq!(waiting.until.unwrap().0.as_second(), start + 30);
    assert_eq!(case.plan().look, [Look::Scaler]);
    case.wait(20);
    case.passes();
    assert!(!is_baking(&mut case));
    case.keda.is_down = false;
    case.passes();
    assert!(is_baking(&mut case));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Baking"));
    case.work(59);
    assert_eq!(case.verdict("v1.1.0"), None);
    case.work(1);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    assert_eq!(case.reason("ResumeUnproven"), None);
    assert!(!case.told.contains("ResumeUnproven"));
}

#[test]
fn without_proof_it_starts_after_half_a_minute_and_says_so_until_there_is() {
    let mut case = dropped();
    case.work(30);
    assert!(is_baking(&mut case));
    assert_eq!(case.reason("Progressing").as_deref(), Some("Baking"));
    let message = "the pause of the ScaledObject web was dropped, and KEDA has not been seen to \
                   resume";
    assert_eq!(case.message("ResumeUnproven"), message);
    assert!(case.told.contains("ResumeUnproven"));
    case.work(60);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    case.work(3_600);
    assert_eq!(case.message("ResumeUnproven"), message);
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    // Looked at every half minute.
    let wake = case.plan().wake.unwrap().as_second() - case.now;
    assert!((1..=30).contains(&wake), "{wake}");
    case.keda.is_down = false;
    case.work(30);
    assert_eq!(case.reason("ResumeUnproven"), None);
    assert_eq!(case.plan().look, []);
    assert_eq!(case.work(DAY), []);
}

/// What is read after the pause was dropped, and whether autoscaling goes on by it.
#[rstest]
#[case::as_it_was(None, Some((None, Some(3), Some(3))), true)]
#[case::by_the_servers_default(None, Some((Some("Max"), Some(3), Some(3))), true)]
#[case::as_its_spec_asks(Some("Min"), Some((Some("Min"), Some(3), Some(3))), true)]
#[case::not_as_its_spec_asks(Some("Min"), Some((None, Some(3), Some(3))), false)]
#[case::still_disabled(None, Some((Some("Disabled"), Some(3), Some(3))), false)]
#[case::disabled_by_its_spec(Some("Disabled"), Some((Some("Disabled"), Some(3), Some(3))), true)]
#[case::not_seen(None, Some((None, Some(3), Some(2))), false)]
#[case::made_anew_and_not_seen(None, Some((None, Some(1), None)), false)]
#[case::no_hpa(None, None, false)]
#[case::on_an_old_server(None, Some((None, None, None)), true)]
fn what_proves_it(
    #[case] spec: Option<&str>,
    #[case] hpa: Option<(Option<&str>, Option<i64>, Option<i64>)>,
    #[case] is_proven: bool,
) {
    let mut case = dropped();
    case.object().scale_down = spec.map(ToOwned::to_owned);
    case.object().hpa = hpa.map(|(policy, generation, observed_generation)| HpaFacts {
        scale_down: policy.map(ToOwned::to_owned),
        generation,
        observed_generation,
    });
    case.wait(3);
    case.passes();
    assert_eq!(is_baking(&mut case), is_proven);
}

/// What leaves nothing to be proven.
#[rstest]
#[case::a_pause_of_somebody_else(|case: &mut Case| case.somebody_pauses(PauseKind::Paused, "true"))]
#[case::keda_is_gone(|case: &mut Case| case.keda.is_absent = true)]
#[case::the_scaled_object_is_gone(|case: &mut Case| case.keda.objects.clear())]
#[case::it_is_being_deleted(|case: &mut Case| case.object().deleting = true)]
#[case::it_scales_something_else(|case: &mut Case| case.object().scales_name = "api".to_owned())]
#[case::it_is_not_named_any_more(|case: &mut Case| case.strip(TargetAnnotation::ScaledObject))]
#[case::nothing_is_to_be_paused(|case: &mut Case| case.annotate(TargetAnnotation::Pause, "none"))]
fn there_is_nothing_to_prove(#[case] change: fn(&mut Case)) {
    let mut case = dropped();
    change(&mut case);
    case.wait(1);
    case.passes();
    assert!(is_baking(&mut case));
    case.work(300);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    assert_eq!(case.reason("ResumeUnproven"), None);
}

/// What a Rollback brings back is paused, bakes, and is looked at in the same way.
#[test]
fn after_a_failure_and_its_rollback_it_is_proven_too() {
    let mut case = rolling();
    case.fate = Fate::Succeeds;
    case.work(599);
    case.keda.is_down = true;
    assert_eq!(brief(&case.work(1)), ["rollback", "apply 1.0.0", "drop"]);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Failed));
    assert!(!is_baking_back(&mut case));
    case.work(29);
    assert!(!case.told.contains("ResumeUnproven"));
    case.work(1);
    assert!(is_baking_back(&mut case));
    assert!(case.told.contains("ResumeUnproven"));
    case.work(60);
    assert_eq!(case.verdict("v1.0.0"), Some(Verdict::Healthy));
    assert!(case.reason("ResumeUnproven").is_some());
    case.keda.is_down = false;
    case.work(30);
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[test]
fn at_zero_replicas_there_is_nothing_to_prove() {
    let mut case = dropped();
    let rollout = &mut case.workload().rollout;
    (rollout.wanted, rollout.replicas, rollout.updated, rollout.available) = (0, 0, 0, 0);
    case.changed();
    case.work(300);
    assert_eq!(case.reason("ResumeUnproven"), None);
    assert_eq!(case.plan().look, []);
}

#[test]
fn a_rollout_that_was_not_paused_proves_nothing() {
    let mut case = Case::scaled();
    case.keda.unreadable = Some("forbidden".to_owned());
    case.publish("v1.1.0");
    case.work(300);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    assert_eq!(case.reason("ResumeUnproven"), None);
}

#[test]
fn a_restart_forgets_nothing_of_it() {
    let mut case = dropped();
    case.observed.scaler = None;
    assert!(!is_baking(&mut case));
    case.wait(10);
    case.passes();
    assert_eq!(case.reason("Progressing").as_deref(), Some("Resuming"));
    case.work(600);
    case.observed.scaler = None;
    case.passes();
    assert!(case.reason("ResumeUnproven").is_some());
}

#[test]
fn the_wait_is_no_unstable_bake() {
    let mut case = rolling();
    case.annotate(TargetAnnotation::Bake, "5s");
    case.annotate(TargetAnnotation::Deadline, "1s");
    case.keda.is_down = true;
    case.complete();
    case.changed();
    case.work(100);
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
    assert_eq!(seconds(30), case.settings.windows.pause_proof);
}

#[test]
fn another_object_of_that_name_is_looked_at_as_it_is() {
    let mut case = dropped();
    case.keda.objects = vec![scaled_object("web")];
    case.object().uid = "uid-anew".to_owned();
    case.wait(1);
    case.passes();
    assert!(is_baking(&mut case));
}

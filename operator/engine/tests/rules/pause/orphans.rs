//! Claims that nobody needs: of operators that died, of others, and pauses of an earlier operator.

use belay_api::{Duration, annotations::TargetAnnotation};
use belay_engine::{
    observed::{ClaimFacts, Observed},
    pause::Claim,
    plan::{Step, end_unfollowed_claim, plan},
    settings::Settings,
};
use rstest::rstest;

use crate::{
    case::{Case, at, name_of},
    keda::{INSTANCE, brief, facts_of, scaled_object},
};

/// Whose claim was found at a start, when it ends, and whether it goes.
#[rstest]
#[case::ours(INSTANCE, 900, true)]
#[case::ours_and_over(INSTANCE, -900, true)]
// The record names us, so the claims of the operator before us are ours.
#[case::of_the_operator_before("ops/other", 900, true)]
fn a_claim_that_is_not_live_is_dropped(
    #[case] instance: &str,
    #[case] lasts: i64,
    #[case] goes: bool,
) {
    let mut case = Case::scaled();
    let now = case.now;
    case.claimed(instance, "web", &name_of("v0.9.0"), now - 60, now + lasts);
    let steps = case.work(300);
    assert_eq!(brief(&steps) == ["drop"], goes, "{:?}", brief(&steps));
    assert_eq!(case.pauses().is_empty(), goes);
}

#[test]
fn one_that_nobody_can_read_is_dropped_if_our_manager_wrote_it() {
    let mut case = Case::scaled();
    let now = case.now;
    case.claimed(INSTANCE, "web", "x", now, now + 900);
    case.object().claim.as_mut().unwrap().claim = None;
    case.show_claims();
    assert_eq!(brief(&case.passes()), ["drop"]);

    case.claimed(INSTANCE, "web", "x", now, now + 900);
    case.object().claim.as_mut().unwrap().claim = None;
    case.object().pauses[0].is_ours = false;
    case.show_claims();
    assert_eq!(brief(&case.passes()), [] as [&str; 0]);
}

#[test]
fn one_on_another_scaled_object_is_dropped_even_in_mid_rollout() {
    let mut case = super::rolling();
    case.keda.objects.push(scaled_object("other"));
    case.annotate(TargetAnnotation::ScaledObject, "other");
    assert_eq!(brief(&case.passes()), ["drop", "claim scale-in"]);
    let claimed: Vec<_> = case.observed.claims.iter().map(|one| &one.scaled_object).collect();
    assert_eq!(claimed, ["other"]);
}

#[test]
fn while_another_operator_follows_the_target_its_claims_are_its_own() {
    let mut case = Case::scaled();
    let now = case.now;
    case.claimed("ops/other", "web", "x", now, now + 900);
    case.status().instance = Some("ops/other".to_owned());
    case.surroundings().held_leases = vec!["ops/other".to_owned()];
    assert_eq!(brief(&case.work(300)), [] as [&str; 0]);
}

#[test]
fn a_younger_twin_drops_nothing() {
    let mut case = super::rolling();
    case.surroundings().duplicate_of = Some("Deployment/old".to_owned());
    assert_eq!(brief(&case.work(300)), [] as [&str; 0]);
}

#[test]
fn what_is_not_known_drops_nothing() {
    let mut case = Case::scaled();
    let now = case.now;
    case.claimed(INSTANCE, "web", "x", now, now + 900);
    let why = "it could not be read".to_owned();
    case.observed.releases = belay_engine::observed::Fact::Unknown { why, read: at(now) };
    assert_eq!(case.plan().step, None);
}

fn marked(case: &mut Case, marks: &[&str]) {
    case.somebody_pauses(belay_engine::observed::PauseKind::Paused, "true");
    let mut facts = facts_of(case.object(), None, None);
    facts.marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
    case.object().claim = Some(facts);
    case.show_claims();
}

#[test]
fn a_pause_that_an_earlier_operator_marked_is_removed() {
    let mut case = Case::scaled();
    marked(&mut case, &["release.example.com/paused-by", "release.example.com/since"]);
    let steps = case.passes();
    let Some(Step::RemovePause { scaled_object, from, marks }) = steps.first() else {
        panic!("{steps:?}")
    };
    assert_eq!((scaled_object.as_str(), from.uid.as_str()), ("web", "uid-web"));
    assert_eq!(marks, &["release.example.com/paused-by", "release.example.com/since"]);
    assert_eq!(case.pauses(), []);
}

#[test]
fn marks_stay_while_a_claim_of_ours_is_live_and_while_we_only_observe() {
    let mut case = super::rolling();
    case.object().claim.as_mut().unwrap().marks = vec!["x".to_owned()];
    case.show_claims();
    assert_eq!(brief(&case.work(60)), [] as [&str; 0]);

    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Mode, "observe");
    marked(&mut case, &["x"]);
    assert_eq!(brief(&case.work(60)), [] as [&str; 0]);
}

fn claim(instance: &str) -> Claim {
    Claim {
        instance: instance.to_owned(),
        target: "web".to_owned(),
        release: "web-1".to_owned(),
        since: at(100),
    }
}

/// A claim of a target that no workload has, at second 1000.
#[rstest]
#[case::ours(Some(claim(INSTANCE)), Some(2_000), true, &[], "drop")]
#[case::ours_stripped(Some(claim(INSTANCE)), Some(2_000), false, &[], "drop")]
#[case::anothers(Some(claim("ops/other")), Some(2_000), true, &[], "")]
#[case::anothers_that_is_over(Some(claim("ops/other")), Some(1_000), true, &[], "drop")]
#[case::anothers_without_an_end(Some(claim("ops/other")), None, true, &[], "drop")]
#[case::unreadable(None, Some(2_000), true, &[], "drop")]
#[case::nobodys(None, None, false, &[], "")]
#[case::marked(None, None, false, &["x/by"], "remove")]
#[case::marked_and_ours(Some(claim(INSTANCE)), Some(2_000), true, &["x/by"], "drop")]
#[case::marked_and_anothers(Some(claim("ops/other")), Some(2_000), true, &["x/by"], "")]
fn of_a_target_that_no_workload_has(
    #[case] claim: Option<Claim>,
    #[case] expires: Option<i64>,
    #[case] has_key: bool,
    #[case] marks: &[&str],
    #[case] expected: &str,
) {
    let object = scaled_object("web");
    let facts = ClaimFacts {
        mode: has_key.then_some(belay_api::annotations::PauseMode::ScaleIn),
        marks: marks.iter().map(|mark| (*mark).to_owned()).collect(),
        ..facts_of(&object, claim, expires)
    };
    let step = end_unfollowed_claim(&facts, &Settings::default(), at(1_000));
    let from = match &step {
        Some(Step::DropPause { from, .. } | Step::RemovePause { from, .. }) => Some(from.clone()),
        _ => None,
    };
    if let Some(from) = from {
        assert_eq!((from.uid.as_str(), from.resource_version.as_str()), ("uid-web", "1"));
    }
    assert_eq!(brief(&step.into_iter().collect::<Vec<_>>()).join(" "), expected);
}

#[test]
fn what_was_recorded_before_there_were_pauses_can_still_be_replayed() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let mut facts = serde_json::to_value(&case.observed).unwrap();
    let mut settings = serde_json::to_value(&case.settings).unwrap();
    for key in ["scaler", "claims", "pauseRefused"] {
        assert!(facts.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    for key in ["pauseFieldManager", "pauseMarks"] {
        assert!(settings.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    assert!(settings["windows"].as_object_mut().unwrap().remove("pauseProof").is_some());
    let facts: Observed = serde_json::from_value(facts).unwrap();
    let settings: Settings = serde_json::from_value(settings).unwrap();
    assert_eq!(settings.windows.pause_proof, Duration::from_secs(30));
    assert_eq!(plan(&facts, &settings, at(case.now)), case.plan());
}

//! What proves that scale-in is held (components, section 3).

use belay_api::annotations::TargetAnnotation;
use belay_engine::observed::{HpaFacts, PauseKind, ScalerFacts};
use rstest::rstest;

use crate::{
    case::{Case, Fate},
    keda::brief,
};

fn hpa(policy: Option<&str>, generation: Option<i64>, observed: Option<i64>) -> HpaFacts {
    let scale_down = policy.map(ToOwned::to_owned);
    HpaFacts { scale_down, generation, observed_generation: observed }
}

const OFF: Option<&str> = Some("Disabled");

/// What was read after the claim, and whether it is applied under it.
#[rstest]
#[case::seen(Some(hpa(OFF, Some(2), Some(2))), true, 0, true)]
#[case::seen_later(Some(hpa(OFF, Some(2), Some(3))), true, 0, true)]
#[case::not_seen(Some(hpa(OFF, Some(2), Some(1))), true, 0, false)]
#[case::never_seen(Some(hpa(OFF, Some(1), None)), true, 0, false)]
#[case::not_disabled(Some(hpa(None, Some(2), Some(2))), true, 0, false)]
#[case::another_policy(Some(hpa(Some("Min"), Some(2), Some(2))), true, 0, false)]
#[case::no_hpa(None, true, 0, false)]
#[case::nobody_says_what_was_seen(Some(hpa(OFF, None, None)), true, 1, false)]
#[case::but_it_must_have_been_by_now(Some(hpa(OFF, None, None)), true, 2, true)]
#[case::not_disabled_on_an_old_server(Some(hpa(None, None, None)), true, 2, false)]
fn scale_in(
    #[case] hpa: Option<HpaFacts>,
    #[case] is_paused: bool,
    #[case] later: i64,
    #[case] is_proven: bool,
) {
    let is_applied = is_applied("scale-in", later, |object| {
        object.hpa = hpa;
        object.is_paused = is_paused;
    });
    assert_eq!(is_applied, is_proven);
}

#[rstest]
#[case::no_hpa(None, true, true)]
#[case::the_hpa_lives_on(Some(hpa(None, Some(1), Some(1))), true, false)]
#[case::held_by_a_pause_of_scale_in(Some(hpa(OFF, Some(2), Some(2))), true, false)]
#[case::not_reported(None, false, false)]
fn in_full(#[case] hpa: Option<HpaFacts>, #[case] is_paused: bool, #[case] is_proven: bool) {
    let is_applied = is_applied("full", 0, |object| {
        object.hpa = hpa;
        object.is_paused = is_paused;
    });
    assert_eq!(is_applied, is_proven);
}

/// Whether the image is applied at once, when KEDA has come as far as `change` says.
fn is_applied(mode: &str, later: i64, change: impl FnOnce(&mut ScalerFacts)) -> bool {
    let mut case = Case::scaled();
    case.annotate(TargetAnnotation::Pause, mode);
    case.keda.is_down = true;
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    assert_eq!(brief(&case.passes()), [format!("claim {mode}")]);
    change(case.object());
    case.wait(later);
    brief(&case.passes()) == ["apply 1.1.0"]
}

#[test]
fn the_annotation_must_still_be_there() {
    let mut case = Case::scaled();
    case.publish("v1.1.0");
    case.pass();
    while case.pauses().is_empty() {
        case.pass();
    }
    case.look_at_scaler();
    // KEDA has done it, and then it is taken away.
    case.object().pauses.clear();
    let object = case.object().clone();
    assert_eq!(object.hpa, Some(hpa(OFF, Some(2), Some(2))));
    case.keda.is_down = true;
    case.show_claims();
    case.look_at_scaler();
    assert_eq!(brief(&case.plan().step.into_iter().collect::<Vec<_>>()), ["claim scale-in"]);
}

#[test]
fn on_a_server_that_does_not_say_what_was_seen_it_takes_two_seconds() {
    let mut case = Case::scaled();
    case.keda.is_old = true;
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.passes();
    assert_eq!(case.pauses(), [(PauseKind::ScaleIn, true, false)]);
    assert_eq!(case.live(), crate::case::image("1.0.0"));
    case.wait(2);
    assert_eq!(brief(&case.passes()), ["apply 1.1.0"]);
}

//! What the registry says about a candidate's image (sections 3.2 and 3.5).

use belay_api::{
    annotations::TargetAnnotation,
    gates::{Gate, WaitReason},
};
use belay_engine::{
    observed::{Fact, ImageAnswer},
    plan::Look,
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, HOUR, at, digest, image},
};

fn waiting(case: &mut Case) -> Option<WaitReason> {
    case.status().waiting.clone()?.reason.known()
}

fn lacking(platforms: &[&str]) -> ImageAnswer {
    ImageAnswer::Present {
        digest: Some(digest('a')),
        missing_platforms: platforms.iter().map(|one| (*one).to_owned()).collect(),
    }
}

fn denied(secret: Option<&str>) -> ImageAnswer {
    ImageAnswer::Denied { secret: secret.map(ToOwned::to_owned) }
}

#[rstest]
#[case::missing(
    ImageAnswer::Missing,
    Gate::WaitingForImage,
    "does not have ghcr.io/acme/web:1.1.0",
    None,
    Some(WaitReason::ImageBackoff)
)]
#[case::denied_with_a_secret(
    denied(Some("pull")),
    Gate::RegistryDenied,
    "with the pull secret pull",
    None,
    None
)]
#[case::denied_without(denied(None), Gate::RegistryDenied, "without a pull secret", None, None)]
#[case::not_allowed(
    ImageAnswer::NotAllowed,
    Gate::RegistryDenied,
    "not permitted, or does not exist",
    Some("NotAllowed"),
    None
)]
#[case::throttled(
    ImageAnswer::Throttled { until: at(1_800_000_500) },
    Gate::RegistryUnavailable,
    "patience",
    None,
    Some(WaitReason::RegistryThrottled)
)]
#[case::lacks_platforms(
    lacking(&["linux/arm64"]),
    Gate::PlatformMissing,
    "lacks linux/arm64",
    None,
    None
)]
fn an_answer_is_a_gate(
    #[case] answer: ImageAnswer,
    #[case] gate: Gate,
    #[case] message: &str,
    #[case] stalled: Option<&str>,
    #[case] wait: Option<WaitReason>,
) {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.registry.insert(image("1.1.0"), answer);
    let steps = case.passes();
    assert_eq!(steps, []);
    assert_eq!(case.gate("v1.1.0"), Some(gate));
    let shown = case.status().candidates[0].message.clone().unwrap();
    assert!(shown.contains(message), "{shown}");
    assert_eq!((case.stalled().as_deref(), waiting(&mut case)), (stalled, wait));
    // What runs is none the worse for it.
    if stalled.is_none() {
        assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    }
}

#[test]
fn a_registry_that_cannot_be_reached_is_a_gate_and_is_asked_again() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let unknown = Fact::Unknown { why: "connection refused".to_owned(), read: at(case.now) };
    case.observed.images.insert(image("1.1.0"), unknown);
    assert_eq!(case.plan().look, []);
    case.pass();
    assert_eq!(case.gate("v1.1.0"), Some(Gate::RegistryUnavailable));
    case.wait(300);
    assert_eq!(case.plan().look, [Look::Image(image("1.1.0"))]);
    assert!(writes_workload(&case.work(1)));
}

#[test]
fn a_missing_image_is_asked_for_after_15_seconds_and_then_more_slowly_up_to_5_minutes() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.registry.remove(&image("1.1.0"));
    let mut times = Vec::new();
    let end = case.now + 2 * HOUR;
    while case.now < end {
        case.passes();
        let read = case.observed.images[&image("1.1.0")].read().as_second();
        if times.last() != Some(&read) {
            times.push(read);
        }
        case.now = case.plan().wake.unwrap().as_second();
    }
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[0], 15);
    assert!(waits.is_sorted() && waits.iter().all(|wait| (15..=300).contains(wait)), "{waits:?}");
    assert_eq!(waits.last(), Some(&300));
}

#[test]
fn a_host_is_not_asked_before_the_time_it_named() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let until = case.now + 500;
    case.registry.insert(image("1.1.0"), ImageAnswer::Throttled { until: at(until) });
    case.passes();
    assert_eq!(case.plan().wake, Some(at(until)));
    case.now = until - 1;
    assert_eq!(case.plan().look, []);
    case.now = until;
    assert_eq!(case.plan().look, [Look::Image(image("1.1.0"))]);
}

#[test]
fn an_old_answer_is_not_good_enough() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    let answer = case.registry[&image("1.1.0")].clone();
    case.observed.images.insert(image("1.1.0"), Fact::known(answer, at(case.now - 301)));
    let decided = case.plan();
    assert_eq!((decided.step, decided.look), (None, vec![Look::Image(image("1.1.0"))]));
}

#[test]
fn only_the_one_candidate_is_asked_for() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Range, "^1");
    for tag in ["v1.1.0", "v1.2.0", "v1.3.0"] {
        case.publish(tag);
    }
    let mut asked = Vec::new();
    for _ in 0..10 {
        asked.extend(case.pass().0.look);
    }
    assert_eq!(asked, [Look::Image(image("1.3.0"))]);
}

#[test]
fn with_a_range_a_missing_image_yields_after_an_hour_and_is_looked_at_again() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Range, "^1");
    case.publish("v1.1.0");
    case.publish("v1.2.0");
    case.registry.remove(&image("1.2.0"));
    assert!(!writes_workload(&case.work(HOUR - 1)));
    let steps = case.work(300);
    assert_eq!(applies(&steps), [(image("1.1.0"), false)]);
    case.work(HOUR);
    assert_eq!(case.gate("v1.2.0"), Some(Gate::WaitingForImage));
    case.serve("1.2.0", 'a');
    assert_eq!(applies(&case.work(300)), [(image("1.2.0"), false)]);
}

#[test]
fn what_yields_is_above_what_runs_or_nothing_moves() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Range, "^1");
    case.publish("v0.9.0");
    case.publish("v1.2.0");
    case.registry.remove(&image("1.2.0"));
    assert!(!writes_workload(&case.work(5 * HOUR)));
    assert_eq!(case.gate("v0.9.0"), Some(Gate::Range));
}

#[test]
fn without_a_range_nothing_takes_the_place_of_the_latest() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.publish("v1.2.0");
    case.registry.remove(&image("1.2.0"));
    assert!(!writes_workload(&case.work(5 * HOUR)));
    assert_eq!(case.gate("v1.2.0"), Some(Gate::WaitingForImage));
}

#[test]
fn a_tag_that_names_another_image_than_before_is_not_applied() {
    let mut case = Case::moved(3 * HOUR, Some(60));
    case.undo("v1.0.0");
    case.work(100);
    case.serve("1.1.0", 'b');
    case.annotate(TargetAnnotation::Allow, "v1.1.0");
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::TagMoved));
    assert!(case.message("TagMoved").contains(&digest('b')));
}

#[test]
fn where_it_may_be_skipped_the_registry_is_not_asked() {
    let mut case = Case::new();
    case.settings.image_check_skip = true;
    case.annotate(TargetAnnotation::ImageCheck, "skip");
    case.publish("v1.1.0");
    case.registry.clear();
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
    assert!(case.observed.images.is_empty());
}

#[test]
fn without_a_digest_none_is_written() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Digest, "true");
    case.publish("v1.1.0");
    let answer = ImageAnswer::Present { digest: None, missing_platforms: Vec::new() };
    case.registry.insert(image("1.1.0"), answer);
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::RegistryUnavailable));
}

//! What is no longer kept (sections 7 and 9).

use belay_api::{
    gates::Verdict,
    rollback::InitiatorType::{System, User},
};
use belay_engine::plan::Step;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

use crate::case::{Case, DAY, HOUR, at, image, name_of};

/// `count` healthy Releases, one a day; the last one is active.
fn many(count: i64) -> Case {
    let mut case = Case::bare(&version(count - 1));
    for number in 0..count {
        let start = -(count - number) * DAY;
        let end = (number + 1 < count).then_some(start + DAY);
        case.has_run(&tag(number), start, end, Some(Verdict::Healthy));
        case.publish(&tag(number));
    }
    case.mark_healthy(&tag(count - 1), Some(12 * HOUR));
    case.run(&tag(count - 1), -DAY);
    case
}

fn version(number: i64) -> String {
    format!("2.{number}.0")
}

fn tag(number: i64) -> String {
    format!("v{}", version(number))
}

fn deleted(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::DeleteRelease { name, .. } | Step::DeleteRollback { name, .. } => {
                Some(name.clone())
            }
            _ => None,
        })
        .collect()
}

#[rstest]
#[case::default(None, 32, 2, false)]
#[case::as_many_as_are_kept(None, 30, 0, false)]
#[case::written(Some("5"), 8, 3, false)]
#[case::zero(Some("0"), 32, 2, true)]
#[case::negative(Some("-3"), 32, 2, true)]
#[case::words(Some("few"), 32, 2, true)]
#[case::huge(Some("99999999999999999999999"), 32, 2, true)]
fn the_oldest_go_first_and_as_many_as_are_too_many(
    #[case] limit: Option<&str>,
    #[case] count: i64,
    #[case] gone: i64,
    #[case] is_noted: bool,
) {
    let mut case = many(count);
    case.surroundings().release_limit = limit.map(ToOwned::to_owned);
    let expected: Vec<_> = (0..gone).map(|number| name_of(&tag(number))).collect();
    assert_eq!(deleted(&case.work(DAY)), expected);
    let note = case.condition("ReleaseLimitInvalid");
    assert_eq!(note.is_some(), is_noted);
    if let (Some((_, message)), Some(limit)) = (note, limit) {
        assert!(message.contains(limit) && message.contains("30"), "{message}");
    }
}

#[test]
fn age_is_that_of_the_last_activation() {
    let mut case = many(4);
    case.has_run(&tag(0), -3 * HOUR, Some(-2 * HOUR), Some(Verdict::Healthy));
    case.surroundings().release_limit = Some("3".to_owned());
    assert_eq!(deleted(&case.passes()), [name_of(&tag(1))]);
}

/// Times are of whole seconds, and names are hashes.
#[rstest]
#[case::which_ended_first(true)]
#[case::or_has_the_lower_version(false)]
fn of_one_second_the_first_to_go_is_the_one(#[case] has_ends: bool) {
    let mut case = many(9);
    let now = case.now;
    for number in 0..8 {
        let status = case.release_mut(&tag(number)).status.as_mut().unwrap();
        let last = status.activations.last_mut().unwrap();
        last.start_time = Time(at(now - 5 * DAY));
        // Where there are ends to tell, the higher version ended first.
        let end = if has_ends { 4 * DAY + number } else { 4 * DAY };
        last.end_time = Some(Time(at(now - end)));
    }
    case.surroundings().release_limit = Some("3".to_owned());
    let mut expected: Vec<_> = (0..8).map(|number| name_of(&tag(number))).collect();
    if has_ends {
        expected.reverse();
    }
    expected.truncate(6);
    assert_eq!(deleted(&case.passes()), expected);
}

#[test]
fn the_active_one_and_the_newest_healthy_one_are_never_culled() {
    let mut case = many(5);
    case.surroundings().release_limit = Some("1".to_owned());
    // The active one has failed, and the one before it too.
    for number in [3, 4] {
        let status = case.release_mut(&tag(number)).status.as_mut().unwrap();
        status.activations.last_mut().unwrap().verdict = Some(Verdict::Failed.into());
    }
    case.annotate(belay_api::annotations::TargetAnnotation::OnFailure, "stop");
    case.work(100);
    assert!(case.has_release(&tag(4)) && case.has_release(&tag(2)));
    assert_eq!(case.releases().len(), 2);
}

#[test]
fn what_was_healthy_once_and_failed_since_is_not_the_newest_healthy_one() {
    let mut case = many(4);
    case.surroundings().release_limit = Some("1".to_owned());
    case.has_run(&tag(1), -3 * HOUR, Some(-2 * HOUR), Some(Verdict::Failed));
    let status = case.release_mut(&tag(3)).status.as_mut().unwrap();
    status.activations.last_mut().unwrap().verdict = Some(Verdict::Failed.into());
    case.annotate(belay_api::annotations::TargetAnnotation::OnFailure, "stop");
    case.work(100);
    assert!(case.has_release(&tag(2)) && !case.has_release(&tag(1)));
}

#[test]
fn what_a_block_left_is_kept_until_something_above_it_runs() {
    let mut case = many(4);
    case.ask_back("by-hand", &name_of(&tag(1)), User);
    case.work(HOUR);
    assert_eq!(case.live(), image(&version(1)));
    case.surroundings().release_limit = Some("1".to_owned());
    case.work(HOUR);
    // Between them nothing is needed; both ends are.
    assert!(case.has_release(&tag(3)) && case.has_release(&tag(1)));
    assert!(!case.has_release(&tag(2)) && !case.has_release(&tag(0)));
    case.publish("v2.9.0");
    case.work(HOUR);
    assert_eq!(case.live(), image("2.9.0"));
    assert!(!case.has_release(&tag(3)));
}

#[test]
fn what_a_waiting_rollback_names_is_kept() {
    let mut case = many(6);
    case.surroundings().release_limit = Some("2".to_owned());
    case.workload().rollout.paused = true;
    case.ask_back("waits", &name_of(&tag(0)), User);
    let gone = deleted(&case.work(60));
    assert!(!gone.contains(&name_of(&tag(0))), "{gone:?}");
    assert!(case.has_release(&tag(0)));
}

// --- Rollbacks.

/// So many of a person's Rollbacks, all rejected.
fn rejected(case: &mut Case, count: usize) {
    for number in 0..count {
        case.ask_back(&format!("r{number:02}"), "web-0000000", User);
        case.work(10);
    }
}

#[test]
fn ten_ended_rollbacks_are_kept_the_youngest_ones() {
    let mut case = many(3);
    rejected(&mut case, 13);
    let names: Vec<_> =
        case.rollbacks().iter().map(|one| one.metadata.name.clone().unwrap()).collect();
    let expected: Vec<_> = (3..13).map(|number| format!("r{number:02}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn one_that_tells_how_the_active_release_came_does_not_keep_others() {
    let mut case = many(3);
    case.ask_back("a-first", "", User);
    case.work(HOUR);
    rejected(&mut case, 13);
    assert_eq!(case.rollbacks().len(), 10);
    assert_eq!(case.outcome("a-first"), "DeploymentSucceeded");
}

#[test]
fn those_that_the_breaker_counts_are_kept_for_a_day() {
    let mut case = many(4);
    for number in 0..2 {
        case.ask_back(&format!("s{number}"), "", System);
        case.work(100);
    }
    // Another release takes the place of what they went to.
    case.publish("v2.9.0");
    case.annotate(belay_api::annotations::TargetAnnotation::Allow, "v2.9.0");
    case.work(200);
    rejected(&mut case, 13);
    assert!(case.rollbacks().iter().any(|one| one.metadata.name.as_deref() == Some("s0")));
    case.publish("v2.9.1");
    case.work(100);
    assert_eq!(case.stalled().as_deref(), Some("BreakerOpen"));
    case.work(2 * DAY);
    for number in 20..23 {
        case.ask_back(&format!("r{number}"), "web-0000000", User);
        case.work(10);
    }
    assert!(case.rollbacks().iter().all(|one| one.metadata.name.as_deref() != Some("s0")));
}

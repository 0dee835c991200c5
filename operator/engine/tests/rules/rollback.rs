//! Rollbacks: where they go, which goes first, attempts (section 7).

use belay_api::{
    annotations::TargetAnnotation,
    gates::{Gate, Verdict},
    reasons::{BlockedReason, Rejection},
    rollback::{
        Driver,
        InitiatorType::{System, User},
    },
};
use belay_engine::{
    observed::{Refusal, Registries},
    plan::foresee_rollback,
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, Fate, HOUR, at, held_by, image, name_of},
};

pub(crate) const OWN: &str = "by-hand";

fn rejection(case: &mut Case) -> Option<Rejection> {
    case.rollback(OWN).status?.rejection?.known()
}

/// 1.3.0 runs; before it came 1.0.0 (healthy), 1.1.0 (failed) and 1.2.0 (healthy).
pub(crate) fn history() -> Case {
    let mut case = Case::bare("1.3.0");
    case.has_run("v1.0.0", -9 * DAY, Some(-8 * DAY), Some(Verdict::Healthy));
    case.has_run("v1.1.0", -8 * DAY, Some(-7 * DAY), Some(Verdict::Failed));
    case.has_run("v1.2.0", -7 * DAY, Some(-6 * DAY), Some(Verdict::Healthy));
    case.has_run("v1.3.0", -6 * DAY, None, Some(Verdict::Healthy));
    case.mark_healthy("v1.3.0", Some(5 * DAY));
    case.run("v1.3.0", -6 * DAY);
    for tag in ["v1.1.0", "v1.2.0", "v1.3.0"] {
        case.publish(tag);
    }
    case.passes();
    case
}

// --- Where to.

#[rstest]
#[case::healthy("v1.2.0", false, Ok("1.2.0"))]
#[case::older("v1.0.0", false, Ok("1.0.0"))]
#[case::empty("", false, Ok("1.2.0"))]
#[case::not_healthy("v1.1.0", false, Err(Rejection::NotHealthy))]
#[case::not_healthy_but_forced("v1.1.0", true, Ok("1.1.0"))]
#[case::active("v1.3.0", false, Err(Rejection::AlreadyActive))]
#[case::active_and_forced("v1.3.0", true, Err(Rejection::AlreadyActive))]
#[case::unknown("v9.9.9", false, Err(Rejection::ReleaseNotFound))]
#[case::unknown_and_forced("v9.9.9", true, Err(Rejection::ReleaseNotFound))]
fn a_rollback_goes_where_it_may(
    #[case] to: &str,
    #[case] force: bool,
    #[case] expected: Result<&str, Rejection>,
) {
    let mut case = history();
    let name = if to.is_empty() { String::new() } else { name_of(to) };
    let named = Some(name.as_str()).filter(|name| !name.is_empty());
    let foreseen =
        foresee_rollback(&case.observed, &case.settings, at(case.now), named, force).unwrap();
    assert_eq!(foreseen.from, Some(name_of("v1.3.0")));
    assert_eq!(foreseen.to, expected.map(|version| name_of(&format!("v{version}"))));
    assert_eq!(foreseen.ways, [name_of("v1.2.0"), name_of("v1.0.0")]);
    case.ask_back(OWN, &name, User).force = force;
    let steps = case.work(200);
    match expected {
        Ok(version) => {
            assert_eq!(applies(&steps), [(image(version), false)]);
            assert_eq!(case.outcome(OWN), "DeploymentSucceeded");
            let status = case.rollback(OWN).status.unwrap();
            assert_eq!(status.from_release_ref.unwrap().name, name_of("v1.3.0"));
            assert!(!status.automatic && status.attempt_count == Some(1));
        }
        Err(expected) => {
            assert!(!writes_workload(&steps));
            assert_eq!(
                (case.outcome(OWN).as_str(), rejection(&mut case)),
                ("Rejected", Some(expected))
            );
            assert_eq!(case.stalled(), None);
        }
    }
}

#[test]
fn a_release_of_another_target_is_not_gone_to() {
    let mut case = history();
    let mut other = case.release_mut("v1.2.0").clone();
    other.metadata.name = Some("api-1234567".to_owned());
    other.spec.config.target_name = "api".to_owned();
    case.releases().push(other);
    case.ask_back(OWN, "api-1234567", User).force = true;
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(rejection(&mut case), Some(Rejection::OtherTarget));
}

#[test]
fn a_release_of_another_repository_is_not_gone_to_even_by_force() {
    let mut case = history();
    let images = &mut case.release_mut("v1.2.0").status.as_mut().unwrap().images;
    images[0].asked = "ghcr.io/evil/web:1.2.0".to_owned();
    images[0].stored = None;
    case.ask_back(OWN, &name_of("v1.2.0"), User).force = true;
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(rejection(&mut case), Some(Rejection::OtherRepository));
}

/// The same path on another host is no evidence that it is the same repository.
#[rstest]
#[case::another_host(|_: &mut Case| {}, true)]
#[case::asked_for_by_annotation(
    |case: &mut Case| case.annotate(TargetAnnotation::Image, "evil.example/acme/web"),
    false
)]
#[case::stored_elsewhere_by_admission(
    |case: &mut Case| {
        let images = &mut case.release_mut("v1.3.0").status.as_mut().unwrap().images;
        images[0].asked = "evil.example/acme/web:1.3.0".to_owned();
    },
    false
)]
#[case::listed(
    |case: &mut Case| {
        case.surroundings().registries = Registries::Listed { refused: Vec::new() };
    },
    false
)]
#[case::not_listed(
    |case: &mut Case| {
        let refused = vec!["evil.example/acme/web:1.2.0".to_owned()];
        case.surroundings().registries = Registries::Listed { refused };
    },
    true
)]
fn a_release_on_another_host_is_gone_to_only_if_that_is_permitted(
    #[values(true, false)] force: bool,
    #[case] change: fn(&mut Case),
    #[case] is_refused: bool,
) {
    let mut case = history();
    let images = &mut case.release_mut("v1.2.0").status.as_mut().unwrap().images;
    images[0].asked = "evil.example/acme/web:1.2.0".to_owned();
    images[0].stored = None;
    change(&mut case);
    case.ask_back(OWN, &name_of("v1.2.0"), User).force = force;
    let steps = case.work(200);
    if is_refused {
        assert!(!writes_workload(&steps));
        assert_eq!(rejection(&mut case), Some(Rejection::NotAllowed));
    } else {
        assert_eq!(applies(&steps), [("evil.example/acme/web:1.2.0".to_owned(), false)]);
    }
}

#[rstest]
#[case::not_forced(false)]
#[case::forced(true)]
fn a_blocked_release_is_gone_to_by_force_only(#[case] force: bool) {
    let mut case = history();
    case.ask_back("first", &name_of("v1.0.0"), User);
    case.work(200);
    assert_eq!(case.gate("v1.3.0"), Some(Gate::Blocked));
    case.ask_back(OWN, &name_of("v1.2.0"), User).force = force;
    case.work(200);
    // It lies between what was left and what was gone to.
    if force {
        assert_eq!(case.outcome(OWN), "DeploymentSucceeded");
    } else {
        assert_eq!(rejection(&mut case), Some(Rejection::Blocked));
    }
}

#[test]
fn an_empty_name_follows_the_chain_and_not_the_calendar() {
    let mut case = history();
    // 1.0.0 was active again after 1.2.0, but 1.3.0 came from 1.2.0.
    case.has_run("v1.0.0", -DAY, Some(-DAY + HOUR), Some(Verdict::Healthy));
    case.ask_back(OWN, "", User);
    assert_eq!(applies(&case.work(200)), [(image("1.2.0"), false)]);
}

#[test]
fn from_a_gap_in_the_chain_it_is_the_newest() {
    let mut case = history();
    case.has_run("v1.0.0", -DAY, Some(-DAY + HOUR), Some(Verdict::Healthy));
    let status = case.release_mut("v1.3.0").status.as_mut().unwrap();
    status.previous_release.as_mut().unwrap().release_ref.name = "web-0000000".to_owned();
    case.ask_back(OWN, "", User);
    assert_eq!(applies(&case.work(200)), [(image("1.0.0"), false)]);
}

#[test]
fn with_nothing_to_go_to_it_is_rejected() {
    let mut case = Case::new();
    case.ask_back(OWN, "", User);
    assert_eq!(case.work(100).len(), 1);
    assert_eq!(rejection(&mut case), Some(Rejection::NoReleaseToGoTo));
}

#[rstest]
#[case::github(Driver::Github)]
#[case::argocd(Driver::Argocd)]
fn other_drivers_are_refused_for_a_followed_target(#[case] driver: Driver) {
    let mut case = history();
    case.ask_back(OWN, "", User).driver = driver;
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(rejection(&mut case), Some(Rejection::Followed));
}

#[test]
fn the_driver_that_does_nothing_succeeds_under_its_own_id() {
    let mut case = history();
    case.ask_back(OWN, "", User).driver = Driver::Noop;
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(case.outcome(OWN), "DeploymentSucceeded");
    let status = case.rollback(OWN).status.unwrap();
    assert_eq!(status.deployment_id.as_deref(), Some("noop-shop-by-hand"));
}

#[test]
fn what_a_gitops_controller_owns_is_rejected() {
    let mut case = history();
    let now = case.now;
    case.workload().containers[0].held_by.push(held_by("argocd-controller", true, now));
    case.ask_back(OWN, "", User);
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(rejection(&mut case), Some(Rejection::ManagedByGitOps));
}

// --- Which one.

#[test]
fn the_older_one_goes_first_and_the_other_then() {
    let mut case = history();
    case.ask_back("zz", &name_of("v1.2.0"), User);
    case.wait(1);
    case.ask_back("aa", &name_of("v1.0.0"), User);
    assert_eq!(applies(&case.work(HOUR)), [(image("1.2.0"), false), (image("1.0.0"), false)]);
    assert_eq!(case.outcome("zz"), "DeploymentSucceeded");
}

#[test]
fn of_two_of_one_moment_the_name_decides() {
    let mut case = history();
    case.ask_back("zz", &name_of("v1.2.0"), User);
    case.ask_back("aa", &name_of("v1.0.0"), User);
    assert_eq!(applies(&case.passes()), [(image("1.0.0"), false)]);
}

#[test]
fn one_that_has_begun_is_not_overtaken() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back("zz", &name_of("v1.2.0"), User);
    case.work(10);
    case.ask_back("aa", &name_of("v1.0.0"), User);
    case.rollbacks().last_mut().unwrap().metadata.creation_timestamp = None;
    assert!(!writes_workload(&case.work(10)));
}

#[test]
fn a_person_pre_empts_a_forward_move() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.publish("v1.4.0");
    case.work(30);
    case.fate = Fate::Succeeds;
    case.ask_back(OWN, "", User);
    assert_eq!(applies(&case.work(100)), [(image("1.3.0"), false)]);
    assert_eq!(case.verdict("v1.4.0"), Some(Verdict::RolledBack));
    assert_eq!(case.block("v1.4.0").unwrap().reason, BlockedReason::Superseded);
    assert_eq!(case.outcome(OWN), "DeploymentSucceeded");
    assert!(!writes_workload(&case.work(DAY)));
}

#[test]
fn a_person_pre_empts_a_system_rollback() {
    let mut case = history();
    case.fate = Fate::Hangs;
    case.ask_back("system", "", System);
    case.work(10);
    assert_eq!(case.live(), image("1.2.0"));
    case.fate = Fate::Succeeds;
    case.ask_back(OWN, &name_of("v1.0.0"), User);
    case.work(100);
    assert_eq!(case.outcome("system"), "DeploymentSuperseded");
    assert_eq!((case.live(), case.outcome(OWN).as_str()), (image("1.0.0"), "DeploymentSucceeded"));
}

#[test]
fn what_was_left_is_blocked_before_the_image_goes() {
    let mut case = history();
    case.ask_back(OWN, &name_of("v1.0.0"), User);
    while case.live() == image("1.3.0") {
        let blocked = case.block("v1.3.0").is_some();
        let decided = case.plan();
        if matches!(decided.step, Some(belay_engine::plan::Step::Apply(_))) {
            assert!(blocked);
        }
        case.pass();
    }
    let block = case.block("v1.3.0").unwrap();
    assert_eq!((block.reason, block.to.unwrap().tag), (BlockedReason::RolledBack, "v1.0.0".into()));
    case.work(200);
    assert!(!writes_workload(&case.work(DAY)));
    case.publish("v1.3.1");
    assert_eq!(applies(&case.work(100)), [(image("1.3.1"), false)]);
}

// --- Force.

#[rstest]
#[case::held_since_before(-10, true)]
#[case::held_since_that_moment(0, true)]
#[case::held_since_later(10, false)]
fn it_is_forced_against_who_held_the_image_when_it_was_created(
    #[case] written: i64,
    #[case] forced: bool,
) {
    let mut case = history();
    let created = case.now;
    case.write("kubectl-edit", false, &image("1.0.7"));
    case.workload().containers[0].held_by = vec![held_by("kubectl-edit", false, created + written)];
    case.wait(10);
    case.passes();
    case.ask_back(OWN, &name_of("v1.0.0"), User);
    let metadata = &mut case.rollbacks().last_mut().unwrap().metadata;
    metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(created)));
    let steps = case.work(200);
    let all = applies(&steps);
    assert_eq!(all.first(), Some(&(image("1.0.0"), false)));
    assert_eq!(all.get(1).is_some_and(|(_, force)| *force), forced);
    if !forced {
        assert_eq!(case.outcome(OWN), "DeploymentFailed");
        assert_eq!(case.live(), image("1.0.7"));
    }
}

#[test]
fn a_system_rollback_is_forced_against_nobody_else() {
    let mut case = history();
    case.ask_back("system", "", System);
    case.refusals = vec![Refusal::Conflict { managers: vec!["kubectl-edit".to_owned()] }];
    let steps = case.work(100);
    assert_eq!(applies(&steps), [(image("1.2.0"), false)]);
    assert_eq!(case.outcome("system"), "DeploymentFailed");
}

// --- Attempts.

#[test]
fn an_attempt_is_counted_before_it_is_made_and_three_are_made() {
    let mut case = history();
    case.refusals = vec![Refusal::Failed { message: "timed out".to_owned() }; 9];
    case.ask_back(OWN, "", User);
    let start = case.now;
    let mut tries = Vec::new();
    for _ in 0..1_000 {
        let (decided, _) = case.pass();
        if let Some(belay_engine::plan::Step::Apply(intent)) = decided.step {
            let counted = case.rollback(OWN).status.unwrap().attempt_count;
            assert_eq!(intent.attempt, counted);
            tries.push(case.now - start);
        } else {
            case.wait(1);
        }
    }
    let [first, second, third] = tries.as_slice() else { panic!("{tries:?}") };
    assert!(*first < 10);
    // 15 s and 30 s, and up to a quarter more.
    assert!((15..=25).contains(&(second - first)), "{tries:?}");
    assert!((30..=45).contains(&(third - second)), "{tries:?}");
    assert_eq!(case.outcome(OWN), "DeploymentFailed");
    assert_eq!(case.stalled().as_deref(), Some("RollbackFailed"));
    assert!(case.message("Stalled").contains("timed out"));
}

#[test]
fn a_refusal_that_stays_is_not_tried_again() {
    let mut case = history();
    case.refusals = vec![Refusal::Denied { message: "policy: no".to_owned() }];
    case.ask_back(OWN, "", User);
    assert_eq!(applies(&case.work(HOUR)).len(), 1);
    assert_eq!(case.outcome(OWN), "DeploymentFailed");
    assert_eq!(case.stalled().as_deref(), Some("RollbackFailed"));
}

#[test]
fn after_a_failed_rollback_what_is_above_the_block_is_free() {
    let mut case = history();
    case.refusals = vec![Refusal::Denied { message: "policy: no".to_owned() }];
    case.ask_back(OWN, "", User);
    case.work(HOUR);
    assert!(case.block("v1.3.0").is_some());
    case.publish("v1.4.0");
    assert_eq!(applies(&case.work(100)), [(image("1.4.0"), false)]);
    assert_eq!(case.stalled(), None);
}

#[test]
fn an_apply_whose_answer_was_lost_is_found_again() {
    let mut case = history();
    case.ask_back(OWN, "", User);
    while case.live() == image("1.3.0") {
        case.pass();
    }
    case.observed.images.clear();
    case.observed.refused = None;
    let steps = case.work(200);
    assert!(!writes_workload(&steps));
    assert_eq!(case.outcome(OWN), "DeploymentSucceeded");
    assert_eq!(case.rollback(OWN).status.unwrap().attempt_count, Some(1));
}

//! Who may act, first sight and restore, leaving (sections 3.1, 3.3, 11).

use belay_api::annotations::TargetAnnotation;
use belay_engine::{
    observed::{Fact, Forge},
    plan::{Plan, Step},
};
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, HOUR, at, image},
};

const OTHER: &str = "other/belay";

/// A target that another operator has followed, and a release that waits.
fn of_another(held: bool) -> Case {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.status().instance = Some(OTHER.to_owned());
    if held {
        case.surroundings().held_leases = vec![OTHER.to_owned()];
    }
    case
}

#[test]
fn a_target_of_another_living_operator_is_left_alone_but_for_an_event() {
    let case = of_another(true);
    let Plan { step, status, look, pods, notices, .. } = case.plan();
    assert_eq!((step, status, look, pods), (None, None, Vec::new(), false));
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.is_warning && notice.reason == "AnotherOperator");
    assert!(notice.message.contains("belay.dev/adopt: instance=other/belay"), "{notice:?}");
}

#[test]
fn not_even_bad_configuration_is_said_in_anothers_record() {
    let mut case = of_another(true);
    case.annotate(TargetAnnotation::Bake, "soon");
    let Plan { step, status, notices, .. } = case.plan();
    assert_eq!((step, status), (None, None));
    assert_eq!(notices[0].reason, "InvalidConfig");
}

#[rstest]
#[case::the_lease_has_expired(false, "")]
#[case::a_third_ones_lease_is_held(false, "other/third")]
#[case::adopted(true, "")]
fn a_target_is_taken_over_and_that_is_written_first(#[case] held: bool, #[case] third: &str) {
    let mut case = of_another(held);
    if held {
        case.annotate(TargetAnnotation::Adopt, &format!("instance={OTHER}"));
    }
    if !third.is_empty() {
        case.surroundings().held_leases = vec![third.to_owned()];
    }
    let decided = case.plan();
    assert_eq!(decided.step, None);
    assert!(decided.notices.iter().any(|one| one.reason == "TakenOver"));
    let status = decided.status.unwrap();
    assert_eq!(status.instance.as_deref(), Some("belay/belay-operator"));
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
}

#[test]
fn leave_to_adopt_an_instance_names_it() {
    let mut case = of_another(true);
    case.annotate(TargetAnnotation::Adopt, "instance=other/third");
    assert_eq!((case.plan().step, case.plan().status), (None, None));
}

#[test]
fn a_second_workload_of_a_target_says_so_by_an_event() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.surroundings().duplicate_of = Some("Deployment/older".to_owned());
    let Plan { step, status, notices, .. } = case.plan();
    // The record is the older one's.
    assert_eq!((step, status), (None, None));
    assert_eq!(notices[0].reason, "DuplicateTarget");
    assert!(notices[0].message.contains("Deployment/older"));
    case.annotate(TargetAnnotation::Range, "1.2.3");
    assert_eq!((case.plan().step, case.plan().status), (None, None));
}

#[test]
fn nothing_is_done_before_it_is_written_whose_target_it_is() {
    let mut case = Case::bare("1.0.0");
    let first = case.plan();
    assert_eq!(first.step, None);
    assert_eq!(first.status.unwrap().instance.as_deref(), Some("belay/belay-operator"));
    case.pass();
    assert!(matches!(case.plan().step, Some(Step::CreateRelease(_))));
}

#[test]
fn observing_writes_the_status_alone() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Mode, "observe");
    case.publish("v1.1.0");
    case.ask_back("by-hand", "", belay_api::rollback::InitiatorType::User);
    assert_eq!(case.work(DAY), []);
    assert_eq!(case.gate("v1.1.0"), None);
    let wanted = case.status().wanted.clone().unwrap();
    assert_eq!(wanted.tag.as_deref(), Some("1.1.0"));
}

#[rstest]
#[case("bake", "soon")]
#[case("container", "worker")]
#[case("repo", "acme")]
#[case("target", "Not A Name")]
#[case("take-over", "kubectl-edit")]
#[case("take-over", "argocd-controller")]
#[case("scaledobject", "web")]
fn bad_configuration_is_named_with_key_and_value(#[case] name: &str, #[case] value: &str) {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.workload().annotations.insert(format!("belay.dev/{name}"), value.to_owned());
    assert_eq!(case.work(DAY), []);
    assert_eq!(case.stalled().as_deref(), Some("InvalidConfig"));
    let message = case.message("Stalled");
    assert!(message.starts_with(&format!("belay.dev/{name}: {value:?}: ")), "{message}");
    assert_eq!(case.reason("Ready").as_deref(), Some("Stalled"));
}

#[test]
fn misspelt_annotations_are_shown_and_stop_nothing() {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.workload().annotations.insert("belay.dev/rage".to_owned(), "^1".to_owned());
    case.workload().annotations.insert("belay.dev/team".to_owned(), "a".to_owned());
    case.workload().annotations.insert("belay.device/rage".to_owned(), "^1".to_owned());
    assert_eq!(applies(&case.work(100)), [(image("1.1.0"), false)]);
    assert_eq!(
        case.condition("UnknownAnnotation"),
        Some((
            "UnknownAnnotation".to_owned(),
            "belay.dev/rage is no annotation of Belay; is belay.dev/range meant?; belay.dev/team \
             is no annotation of Belay"
                .to_owned()
        ))
    );
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    case.workload().annotations.remove("belay.dev/rage");
    case.workload().annotations.remove("belay.dev/team");
    case.passes();
    assert_eq!(case.condition("UnknownAnnotation"), None);
}

// --- First sight.

#[rstest]
#[case::complete((2, 2, 2, 2), true)]
#[case::at_zero((0, 0, 0, 0), true)]
#[case::old_pods_are_left((2, 3, 2, 3), false)]
#[case::new_pods_are_not_available((2, 2, 2, 1), false)]
#[case::nothing_is_there((2, 0, 0, 0), false)]
fn what_runs_becomes_the_baseline_once_it_is_complete(
    #[case] (wanted, replicas, updated, available): (i32, i32, i32, i32),
    #[case] is_complete: bool,
) {
    let mut case = Case::bare("1.0.0");
    let rollout = &mut case.workload().rollout;
    rollout.wanted = wanted;
    (rollout.replicas, rollout.updated, rollout.available) = (replicas, updated, available);
    let steps = case.work(300);
    assert!(!writes_workload(&steps));
    assert_eq!(case.has_release("v1.0.0"), is_complete);
    if !is_complete {
        assert_eq!(steps, []);
        assert_eq!(case.reason("Progressing").as_deref(), Some("FirstSight"));
        assert!(case.plan().pods);
    } else if wanted == 0 {
        let healthy = case.release_mut("v1.0.0").status.clone().unwrap();
        let healthy = belay_api::conditions::find(&healthy.conditions, "Healthy").cloned().unwrap();
        assert_eq!((healthy.status.as_str(), healthy.reason.as_str()), ("Unknown", "ScaledToZero"));
    } else {
        assert_eq!(case.verdict("v1.0.0"), Some(belay_api::gates::Verdict::Healthy));
    }
}

#[test]
fn a_workload_that_is_broken_from_the_start_gets_the_next_release() {
    let mut case = Case::bare("1.0.0");
    case.hang();
    case.publish("v1.1.0");
    assert_eq!(case.work(599), []);
    assert_eq!(case.stalled(), None);
    let steps = case.work(1);
    assert_eq!(applies(&steps).last(), Some(&(image("1.1.0"), true)));
}

#[test]
fn a_broken_workload_without_a_newer_release_is_said_to_be_broken() {
    let mut case = Case::bare("1.0.0");
    case.hang();
    assert_eq!(case.work(HOUR), []);
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
    // What cannot be read in between does not start the clock anew.
    let now = at(case.now);
    let known = std::mem::replace(
        &mut case.observed.surroundings,
        Fact::Unknown { why: "because".to_owned(), read: now },
    );
    case.passes();
    assert_eq!(case.reason("Ready").as_deref(), Some("Unknown"));
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
    case.observed.surroundings = known;
    case.passes();
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
}

#[test]
fn a_paused_workload_is_no_baseline_and_not_broken() {
    let mut case = Case::bare("1.0.0");
    case.hang();
    case.workload().rollout.paused = true;
    assert_eq!(case.work(DAY), []);
    assert_eq!(case.stalled(), None);
    assert_eq!(case.reason("Progressing").as_deref(), Some("TargetPaused"));
}

#[test]
fn an_image_of_no_release_becomes_a_baseline_of_its_own() {
    let mut case = Case::bare("edge");
    case.work(100);
    assert!(case.has_release("edge"));
    let revision = case.release_mut("edge").config().revisions[0].clone();
    assert_eq!(revision.type_.as_deref(), Some("container_image"));
    assert_eq!(revision.source.as_deref(), Some("ghcr.io/acme/web"));
}

#[test]
fn without_github_there_is_no_baseline_yet() {
    let mut case = Case::bare("1.0.0");
    let now = at(case.now);
    let known = std::mem::replace(
        &mut case.observed.forge,
        Fact::Unknown { why: "GitHub cannot be reached".to_owned(), read: now },
    );
    assert_eq!(case.work(HOUR), []);
    case.observed.forge = Fact::known(Forge::Throttled { until: at(case.now + 60) }, now);
    assert_eq!(case.work(30), []);
    case.observed.forge = known;
    case.work(100);
    assert!(case.has_release("v1.0.0"));
}

#[test]
fn a_mirror_is_taken_for_the_repository_and_that_is_told() {
    let mut case = Case::bare("1.0.0");
    case.annotate(TargetAnnotation::Image, "ghcr.io/acme/web");
    let live = "mirror.local/acme/web:1.0.0".to_owned();
    case.workload().containers[0].live.image = live;
    case.work(100);
    assert!(case.told.contains("MirrorHost"), "{:?}", case.told);
    case.publish("v1.1.0");
    assert_eq!(applies(&case.work(100)).last(), Some(&(image("1.1.0"), true)));
}

#[test]
fn another_path_is_another_repository() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Image, "ghcr.io/acme/other");
    case.publish("v1.1.0");
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.stalled().as_deref(), Some("RepositoryDiffers"));
    assert!(!case.told.contains("MirrorHost"));
}

// --- Leaving.

#[test]
fn a_workload_that_is_no_longer_followed_loses_its_record_and_nothing_else() {
    let mut case = Case::new();
    case.strip(TargetAnnotation::Repo);
    let steps = case.work(DAY);
    assert_eq!(steps, [Step::DeleteTarget { uid: "uid-record".to_owned() }]);
    assert!(case.has_release("v1.0.0"));
}

#[test]
fn the_record_of_another_workload_stays() {
    let mut case = Case::new();
    case.strip(TargetAnnotation::Repo);
    case.status().workload.as_mut().unwrap().uid = "uid-of-another".to_owned();
    assert_eq!(case.plan(), Plan::default());
}

#[rstest]
#[case::gone(true)]
#[case::going(false)]
fn a_workload_that_goes_is_left(#[case] is_gone: bool) {
    let mut case = Case::new();
    case.publish("v1.1.0");
    case.workload().deleting = true;
    if is_gone {
        case.observed.workload = Fact::known(None, at(case.now));
    }
    assert_eq!(case.plan(), Plan::default());
}

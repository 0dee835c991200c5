//! Another workload under the same target: made anew, as by `helm uninstall` and `helm install`, or
//! a twin whose turn comes when the older one goes (sections 2 and 3.3).

use belay_api::{annotations::TargetAnnotation, gates::Verdict, release::ActivationWorkload};
use belay_engine::observed::Fact;
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, HOUR, at, held_by, image, name_of},
};

/// 1.1.0 was healthy, then the workload was made anew with 1.0.0.
fn made_anew(version: &str) -> Case {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    let now = case.now;
    let workload = case.workload();
    "uid-new".clone_into(&mut workload.uid);
    workload.created = at(now);
    workload.annotations.remove("belay.dev/release");
    workload.annotation_held_by.clear();
    workload.containers[0].live.image = image(version);
    workload.containers[0].held_by = vec![held_by("helm", false, now)];
    case.observed.target = Fact::known(None, at(now));
    case
}

#[test]
fn a_workload_that_came_back_lower_gets_the_good_release_back() {
    let mut case = made_anew("1.0.0");
    let steps = case.work(120);
    assert_eq!(applies(&steps), [(image("1.1.0"), false), (image("1.1.0"), true)]);
    assert!(case.told.contains("Restored"));
    assert_eq!(case.verdict("v1.0.0"), Some(Verdict::Superseded));
    let conditions = case.release_mut("v1.1.0").status.clone().unwrap().conditions;
    assert_eq!(belay_api::conditions::find(&conditions, "Active").unwrap().reason, "Restored");
    // Once.
    assert!(!writes_workload(&case.work(DAY)));
}

#[rstest]
#[case::higher("1.2.0")]
#[case::the_same("1.1.0")]
fn a_workload_that_came_back_no_lower_is_left(#[case] version: &str) {
    let mut case = made_anew(version);
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.live(), image(version));
}

#[rstest]
#[case::held(|case: &mut Case| case.annotate(TargetAnnotation::Hold, "true"))]
#[case::paused(|case: &mut Case| case.workload().rollout.paused = true)]
#[case::owned_by_gitops(|case: &mut Case| {
    let now = case.now;
    case.workload().containers[0].held_by = vec![held_by("argocd-controller", true, now)];
})]
#[case::not_complete(|case: &mut Case| {
    case.work(30);
    case.hang();
})]
fn what_speaks_against_a_move_speaks_against_restoring(#[case] change: fn(&mut Case)) {
    let mut case = made_anew("1.0.0");
    change(&mut case);
    assert!(!writes_workload(&case.work(60)));
}

/// Up to the first status: what is active is written down by then.
fn recorded(case: &mut Case) {
    while case.pass().0.step.is_some() {}
}

#[test]
fn a_workload_that_came_back_with_the_same_image_is_judged_again() {
    let mut case = made_anew("1.1.0");
    // Its first pods are not there yet.
    let rollout = &mut case.workload().rollout;
    (rollout.replicas, rollout.updated, rollout.available) = (1, 1, 0);
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(case.reason("Ready").as_deref(), Some("Progressing"));
    assert_eq!((case.last("v1.1.0").ordinal, case.verdict("v1.1.0")), (2, None));
    let first = case.release_mut("v1.1.0").status.clone().unwrap().activations.remove(0);
    assert_eq!(first.message.as_deref(), Some("the workload was made anew"));
    case.complete();
    assert!(!writes_workload(&case.work(30)));
    assert_eq!(case.reason("Ready").as_deref(), Some("Progressing"), "it bakes");
    assert!(!writes_workload(&case.work(100)));
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(case.verdict("v1.1.0"), Some(Verdict::Healthy));
}

#[test]
fn what_came_back_with_the_same_image_and_fails_is_left_in_place() {
    let mut case = made_anew("1.1.0");
    case.hang();
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.stalled().as_deref(), Some("Broken"));
    assert!(case.rollbacks().is_empty());
}

/// The older of two workloads is deleted an hour after 1.1.0 was applied to it. The younger one was
/// there all the while, with another image; whose record it is shows the uid alone.
fn twin(version: &str) -> Case {
    let mut case = made_anew(version);
    case.workload().created = at(case.now - 20 * DAY);
    // 1.1.0 ran on a workload that is known by its uid.
    for tag in ["v1.0.0", "v1.1.0"] {
        let status = case.release_mut(tag).status.as_mut().unwrap();
        for activation in &mut status.activations {
            activation.workload = Some(ActivationWorkload { uid: "uid-web".to_owned() });
        }
    }
    case
}

#[rstest]
#[case::by_helm("helm")]
#[case::by_a_person("kubectl-create")]
fn the_image_of_another_workload_is_no_move_back(#[case] manager: &str) {
    let mut case = twin("1.0.0");
    let now = case.now;
    case.workload().containers[0].held_by = vec![held_by(manager, false, now - HOUR)];
    case.annotate(TargetAnnotation::TakeOver, "helm");
    recorded(&mut case);
    case.work(30);
    assert_eq!(case.block("v1.1.0"), None);
    let ended = case.release_mut("v1.1.0").status.clone().unwrap().activations.remove(0);
    assert_eq!(ended.message.as_deref(), Some("the workload was made anew"));
    assert!(!case.told.contains("ImageChanged"), "{:?}", case.told);
}

#[test]
fn a_twin_gets_the_good_release_of_the_older_one() {
    let mut case = twin("1.0.0");
    let steps = case.work(120);
    assert_eq!(applies(&steps), [(image("1.1.0"), false), (image("1.1.0"), true)]);
    assert!(case.told.contains("Restored"));
    assert_eq!(case.block("v1.1.0"), None);
    assert_eq!(case.last("v1.1.0").workload.map(|one| one.uid), Some("uid-new".to_owned()));
    assert!(!writes_workload(&case.work(DAY)));
}

#[test]
fn a_twin_whose_older_one_a_person_had_changed_is_not_that_persons() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("kubectl-edit", false, &image("edge"));
    case.work(10);
    assert_eq!(case.last("v1.1.0").changed_by(), Some("kubectl-edit"));
    let now = case.now;
    let workload = case.workload();
    "uid-new".clone_into(&mut workload.uid);
    workload.created = at(now - 20 * DAY);
    workload.annotations.remove("belay.dev/release");
    workload.annotation_held_by.clear();
    workload.containers[0].live.image = image("1.0.0");
    workload.containers[0].held_by = vec![held_by("helm", false, now)];
    for tag in ["v1.0.0", "v1.1.0"] {
        let status = case.release_mut(tag).status.as_mut().unwrap();
        status.activations[0].workload = Some(ActivationWorkload { uid: "uid-web".to_owned() });
    }
    case.changed();
    let steps = case.work(120);
    assert_eq!(applies(&steps).last(), Some(&(image("1.1.0"), true)));
    assert!(case.told.contains("Restored") && !case.told.contains("ImageReverted"));
    assert_eq!((case.block("v1.1.0"), case.stalled()), (None, None));
    assert_eq!(case.status().active, Some(name_of("v1.1.0")));
}

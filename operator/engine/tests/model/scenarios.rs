//! Single stories in the same world, told step by step.

use belay_api::{
    conditions::{find, status as status_of},
    gates::{Gate, Verdict},
};
use belay_engine::{
    observed::Fact,
    plan::{Look, Step, plan},
};
use rstest::rstest;

use crate::{
    operator::{Crash, Did, kind},
    world::{REPOSITORY, World, at},
};

/// A world with two replicas of 1.0.0 that came with Helm, all of it settled.
pub(crate) fn world(annotations: &[(&str, &str)]) -> World {
    let mut world = World::new(3, false);
    world.mirrors = false;
    world.settings.scaled_objects = false;
    world.keda = crate::keda::Keda::default();
    for name in ["range", "on-failure", "scaledobject", "pause"] {
        world.annotate(name, None);
    }
    for (name, value) in annotations {
        world.annotate(name, Some(value));
    }
    world.settle();
    world
}

/// Passes, and the world between them, until nothing happens for `seconds`; the steps.
pub(crate) fn work(world: &mut World, seconds: i64) -> Vec<&'static str> {
    let end = world.now + seconds;
    let mut steps = Vec::new();
    for _ in 0..500 {
        world.settle();
        let (did, plan) = world.pass(Crash::Never).unwrap();
        steps.extend(plan.step.as_ref().map(kind));
        if did == Did::default() {
            if let Some(wake) =
                plan.wake.map(belay_engine::Timestamp::as_second).filter(|wake| *wake <= end)
            {
                world.now = wake.max(world.now + 1);
            } else {
                world.now = end;
                return steps;
            }
        }
    }
    panic!("no rest: {steps:?}");
}

fn stalled(world: &World) -> Option<String> {
    let conditions = &world.target()?.status.conditions;
    find(conditions, "Stalled").map(|condition| condition.reason.clone())
}

pub(crate) fn ready(world: &World) -> String {
    let conditions = &world.target().unwrap().status.conditions;
    find(conditions, "Ready").unwrap().reason.clone()
}

fn gate(world: &World, tag: &str) -> Option<Gate> {
    let candidates = &world.target().unwrap().status.candidates;
    candidates.iter().find(|one| one.tag == tag)?.gate.as_ref()?.known()
}

pub(crate) fn verdict(world: &World, tag: &str) -> Option<Verdict> {
    let release = world.releases().iter().find(|one| one.config().revisions[0].id == tag)?;
    release.status.as_ref()?.activations.last()?.verdict.as_ref()?.known()
}

pub(crate) fn image(version: &str) -> String {
    format!("{REPOSITORY}:{version}")
}

#[test]
fn what_runs_becomes_the_baseline_and_is_healthy_after_the_bake() {
    let mut world = world(&[]);
    let steps = work(&mut world, 100);
    assert_eq!(
        steps,
        [
            "step CreateRelease",
            // Its images; its activation; success; the verdict.
            "step ReleaseStatus",
            "step ReleaseStatus",
            "step ReleaseStatus",
            "step ReleaseStatus",
        ]
    );
    assert_eq!(verdict(&world, "v1.0.0"), Some(Verdict::Healthy));
    assert_eq!(ready(&world), "Ready");
    assert_eq!(work(&mut world, 100_000), [] as [&str; 0]);
}

#[test]
fn a_new_release_is_recorded_before_its_image_is_applied() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    let steps = work(&mut world, 100);
    assert_eq!(steps[..3], ["step CreateRelease", "step ReleaseStatus", "step Apply"]);
    // Helm owns the image: unforced first.
    assert_eq!(steps[3], "step Apply forced");
    assert_eq!(world.image(), image("1.1.0"));
    assert_eq!(verdict(&world, "v1.1.0"), Some(Verdict::Healthy));
}

#[rstest]
#[case::not_there("1.1.3")]
#[case::crashes("1.2.5")]
#[case::never_ready("1.4.7")]
fn a_release_that_fails_is_taken_back_once_and_blocked(#[case] version: &str) {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish(version, true);
    let steps = work(&mut world, 2_000);
    let count = |what| steps.iter().filter(|step| **step == what).count();
    assert_eq!(count("step CreateRollback"), 1, "{steps:?}");
    assert_eq!(world.image(), image("1.0.0"));
    assert_eq!(verdict(&world, &format!("v{version}")), Some(Verdict::Failed));
    assert_eq!(verdict(&world, "v1.0.0"), Some(Verdict::Healthy));
    assert_eq!(ready(&world), "RolledBack");
    assert_eq!(gate(&world, &format!("v{version}")), Some(Gate::Blocked));
    let rollback = world.rollbacks()[0].status.clone().unwrap();
    assert_eq!(status_of(&rollback.conditions, "Succeeded").to_string(), "True");
    assert_eq!(rollback.attempt_count, Some(1));

    // Above it is free; the same again is not.
    world.publish("1.9.0", true);
    work(&mut world, 100);
    assert_eq!(world.image(), image("1.9.0"));
}

#[test]
fn an_image_that_is_not_there_never_costs_more_than_45_seconds() {
    let mut world = world(&[]);
    work(&mut world, 100);
    let start = world.now;
    world.publish("1.1.3", true);
    let back = (0..200).find_map(|_| {
        world.settle();
        let (did, plan) = world.pass(Crash::Never).unwrap();
        let is_back = matches!(&plan.step, Some(Step::Apply(intent)) if intent.attempt.is_some());
        if did == Did::default() && !is_back {
            world.now = plan.wake.unwrap().as_second();
        }
        is_back.then_some(world.now)
    });
    let took = back.unwrap() - start;
    assert!(took <= 45, "{took} s");
}

#[test]
fn the_breaker_opens_after_two_rollbacks_in_a_day() {
    let mut world = world(&[]);
    work(&mut world, 100);
    for version in ["1.1.3", "1.2.5"] {
        world.publish(version, true);
        work(&mut world, 1_000);
    }
    world.publish("1.9.0", true);
    work(&mut world, 100);
    assert_eq!(stalled(&world).as_deref(), Some("BreakerOpen"));
    assert_eq!(world.image(), image("1.0.0"));
    work(&mut world, 90_000);
    assert_eq!(world.image(), image("1.9.0"));
}

#[test]
fn with_on_failure_stop_it_stays_and_the_next_release_fixes_it() {
    let mut world = world(&[("on-failure", "stop")]);
    work(&mut world, 100);
    world.publish("1.2.5", true);
    work(&mut world, 1_000);
    assert_eq!(stalled(&world).as_deref(), Some("Broken"));
    assert!(world.rollbacks().is_empty());
    assert_eq!(world.image(), image("1.2.5"));
    world.publish("1.3.0", true);
    work(&mut world, 100);
    assert_eq!(verdict(&world, "v1.3.0"), Some(Verdict::Healthy));
    assert_eq!(stalled(&world), None);
}

#[test]
fn an_image_that_comes_later_is_waited_for() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", false);
    work(&mut world, 500);
    assert_eq!(gate(&world, "v1.1.0"), Some(Gate::WaitingForImage));
    assert_eq!(world.image(), image("1.0.0"));
    world.registry.insert(image("1.1.0"));
    work(&mut world, 500);
    assert_eq!(world.image(), image("1.1.0"));
}

#[test]
fn with_a_range_a_missing_image_yields_after_an_hour() {
    let mut world = world(&[("range", "^1")]);
    work(&mut world, 100);
    world.publish("1.2.0", false);
    world.publish("1.1.0", true);
    work(&mut world, 3_000);
    assert_eq!(world.image(), image("1.0.0"));
    work(&mut world, 1_000);
    assert_eq!(world.image(), image("1.1.0"));
    world.registry.insert(image("1.2.0"));
    work(&mut world, 1_000);
    assert_eq!(world.image(), image("1.2.0"));
}

#[test]
fn helm_is_answered_three_times_and_then_left_alone() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    // Beyond the time in which taking it back by hand is meant.
    work(&mut world, 4_000);
    let mut waits = Vec::new();
    for _ in 0..4 {
        world.write_image("helm", &image("1.0.0"));
        let start = world.now;
        for _ in 0..200 {
            world.settle();
            let (did, plan) = world.pass(Crash::Never).unwrap();
            if world.image() == image("1.1.0") {
                waits.push(world.now - start);
                break;
            }
            if did == Did::default() {
                match plan.wake.map(belay_engine::Timestamp::as_second) {
                    Some(wake) if wake < start + 4_000 => world.now = wake,
                    _ => break,
                }
            }
        }
        work(&mut world, 4_000);
    }
    assert_eq!(waits, [60, 120, 240]);
    assert_eq!(stalled(&world).as_deref(), Some("TugOfWar"));
    assert_eq!(world.image(), image("1.0.0"));
}

#[test]
fn helm_rollback_of_a_young_release_is_respected() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 100);
    world.write_image("helm", &image("1.0.0"));
    work(&mut world, 10_000);
    assert_eq!(world.image(), image("1.0.0"));
    assert_eq!(gate(&world, "v1.1.0"), Some(Gate::Blocked));
    world.publish("1.2.0", true);
    work(&mut world, 100);
    assert_eq!(world.image(), image("1.2.0"));
}

#[test]
fn a_persons_image_stays_until_it_is_adopted() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 100);
    world.write_image("kubectl-edit", &image("1.0.0"));
    world.publish("1.2.0", true);
    work(&mut world, 100_000);
    assert_eq!(world.image(), image("1.0.0"));
    assert_eq!(stalled(&world).as_deref(), Some("ChangedByPerson"));
    let adopt = format!("kubectl-edit={}", image("1.0.0"));
    world.annotate("adopt", Some(&adopt));
    work(&mut world, 100);
    assert_eq!(world.image(), image("1.2.0"));
    assert_eq!(stalled(&world), None);
}

#[test]
fn a_gitops_controller_is_never_fought() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 100);
    world.write_image("argocd-controller", &image("1.0.0"));
    let steps = work(&mut world, 100_000);
    assert!(steps.iter().all(|step| !step.contains("Apply")), "{steps:?}");
    assert_eq!(stalled(&world).as_deref(), Some("ManagedByGitOps"));
}

#[test]
fn a_held_target_stays_and_a_released_one_moves() {
    let mut world = world(&[("hold", "true")]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 1_000);
    assert_eq!(world.image(), image("1.0.0"));
    assert_eq!((ready(&world).as_str(), gate(&world, "v1.1.0")), ("Held", Some(Gate::Hold)));
    world.annotate("hold", None);
    work(&mut world, 100);
    assert_eq!(world.image(), image("1.1.0"));
}

#[test]
fn allow_frees_a_blocked_release_once() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.2.5", true);
    work(&mut world, 1_000);
    world.annotate("allow", Some("v1.2.5"));
    let steps = work(&mut world, 1_000);
    // Tried once more, failed again, taken back again.
    assert!(steps.contains(&"step CreateRollback"), "{steps:?}");
    assert_eq!(world.rollbacks().len(), 2);
    let steps = work(&mut world, 100_000);
    assert!(steps.iter().all(|step| !step.contains("Apply")), "{steps:?}");
}

#[test]
fn a_moved_tag_is_not_applied() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 100);
    world.write_image("helm", &image("1.0.0"));
    work(&mut world, 100);
    world.annotate("allow", Some("v1.1.0"));
    world.moved.insert(image("1.1.0"));
    world.seen.images.clear();
    work(&mut world, 1_000);
    assert_eq!(gate(&world, "v1.1.0"), Some(Gate::TagMoved));
    assert_eq!(world.image(), image("1.0.0"));
}

#[test]
fn a_workload_that_came_back_lower_gets_the_good_release_back() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    work(&mut world, 100);
    world.made_anew();
    let steps = work(&mut world, 200);
    assert!(steps.contains(&"step Apply"), "{steps:?}");
    assert_eq!(world.image(), image("1.1.0"));
    let release = world.releases().iter().find(|one| one.config().revisions[0].id == "v1.1.0");
    let conditions = release.unwrap().status.clone().unwrap().conditions;
    assert_eq!(find(&conditions, "Active").unwrap().reason, "Restored");
}

#[test]
fn an_automatic_rollback_asks_the_registry_and_survives_its_outage() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.2.5", true);
    // Up to the failure, then the registry is gone.
    for _ in 0..100 {
        world.settle();
        let (did, plan) = world.pass(Crash::Never).unwrap();
        if matches!(plan.step, Some(Step::CreateRollback(_))) {
            break;
        }
        if did == Did::default() {
            world.now = plan.wake.unwrap().as_second();
        }
    }
    world.forget();
    world.registry_is_down = true;
    let (_, plan) = world.pass(Crash::Never).unwrap();
    assert_eq!(plan.look, [Look::Image(image("1.0.0"))]);
    assert_eq!(plan.step, None);
    work(&mut world, 100);
    assert_eq!(world.image(), image("1.0.0"));
}

#[rstest]
#[case("belay.dev/bake", "soon")]
#[case("belay.dev/scaledobject", "web")]
#[case("belay.dev/range", "1.2.3")]
fn bad_configuration_is_named_and_nothing_is_written(#[case] key: &str, #[case] value: &str) {
    let mut world = world(&[]);
    world.deployment.annotations.insert(key.to_owned(), value.to_owned());
    assert_eq!(work(&mut world, 1_000), [] as [&str; 0]);
    let conditions = &world.target().unwrap().status.conditions;
    let stalled = find(conditions, "Stalled").unwrap();
    assert_eq!(stalled.reason, "InvalidConfig");
    assert!(stalled.message.starts_with(&format!("{key}: {value:?}: ")), "{}", stalled.message);
}

#[test]
fn observe_writes_nothing_but_the_status() {
    let mut world = world(&[("mode", "observe")]);
    world.publish("1.1.0", true);
    assert_eq!(work(&mut world, 1_000), [] as [&str; 0]);
    assert_eq!(world.target().unwrap().status.candidates[0].tag, "v1.1.0");
}

#[test]
fn a_workload_that_is_no_longer_followed_loses_its_record() {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.annotate("repo", None);
    assert_eq!(work(&mut world, 100), ["step DeleteTarget"]);
    assert_eq!(world.target(), None);
}

#[rstest]
#[case(0)]
#[case(1)]
#[case(2)]
#[case(3)]
#[case(4)]
fn what_could_not_be_read_moves_nothing(#[case] fact: u8) {
    let mut world = world(&[]);
    work(&mut world, 100);
    world.publish("1.1.0", true);
    let now = at(world.now);
    world.show_workload();
    let mut observed = world.seen.clone();
    let why = "it could not be read".to_owned();
    match fact {
        0 => observed.workload = Fact::Unknown { why, read: now },
        1 => observed.target = Fact::Unknown { why, read: now },
        2 => observed.releases = Fact::Unknown { why, read: now },
        3 => observed.rollbacks = Fact::Unknown { why, read: now },
        _ => observed.surroundings = Fact::Unknown { why, read: now },
    }
    let plan = plan(&observed, &world.settings, now);
    assert_eq!((plan.step, plan.look), (None, Vec::new()));
    if let Some(status) = plan.status {
        assert_eq!(status_of(&status.conditions, "Ready").to_string(), "Unknown");
    }
}

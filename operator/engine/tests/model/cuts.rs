//! Rollouts that are paused, cut at every step: the operator dies, KEDA goes down, somebody takes the
//! pause or the ScaledObject away. Whatever it was, it ends as it would have without, and no pause is
//! left behind.

use belay_engine::plan::Plan;
use rstest::rstest;

use crate::{
    keda::ScaledObject,
    operator::{Crash, Did},
    scenarios::{image, ready, verdict, work, world},
    world::{Person, World},
};

const FAILS: &str = "1.4.7";

/// What happens, with KEDA beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// 1.1.0 is rolled out.
    Roll,
    /// 1.4.7 gets stuck and is rolled back.
    Stuck,
    /// A person undoes 1.4.7 in mid-rollout.
    Undo,
    /// A person asks for a Rollback in mid-rollout.
    Rollback,
}

/// What cuts in, at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Crash(Crash),
    /// KEDA goes down, and comes back in the end.
    KedaDown,
    /// KEDA goes down for half a minute and more.
    KedaRestarts,
    Stripped,
    StrippedOfAll,
    Deleted,
    MadeAnew,
    PointedElsewhere,
    /// The annotation of the workload names another ScaledObject.
    NamedOtherwise,
    /// A person pauses it too, by apply, or on his own.
    Shared,
    Paused,
}

fn begin(story: Story, mode: Option<&str>) -> World {
    let mut world = world(&[]);
    world.settings.scaled_objects = true;
    world.keda.objects = vec![ScaledObject::new("web", 1), ScaledObject::new("other", 2)];
    world.annotate("scaledobject", Some("web"));
    world.annotate("pause", mode);
    work(&mut world, 100);
    let version = if story == Story::Roll { "1.1.0" } else { FAILS };
    world.publish(version, true);
    world
}

/// One sub-step of everybody but the operator.
fn tick(world: &mut World) -> bool {
    let mut moved = world.controller_observes();
    moved |= world.controller_acts();
    moved |= world.kubelet();
    moved |= world.count();
    if moved {
        world.touch(false);
    }
    world.keda_acts() || moved
}

fn cut_in(world: &mut World, cut: Cut) {
    world.version += 1;
    let version = world.version;
    let object = world.object_mut("web");
    match cut {
        Cut::Crash(_) => {}
        Cut::KedaDown | Cut::KedaRestarts => world.keda.is_down = true,
        Cut::Stripped | Cut::StrippedOfAll => {
            if let Some(object) = object {
                object.keys.clear();
                if cut == Cut::StrippedOfAll {
                    object.claim = None;
                }
                object.changed(version);
            }
        }
        Cut::Deleted => world.keda.objects.clear(),
        Cut::MadeAnew => world.keda.objects = vec![ScaledObject::new("web", 7)],
        Cut::PointedElsewhere => {
            if let Some(object) = object {
                object.scales = "api";
                object.changed(version);
            }
        }
        Cut::NamedOtherwise => {
            world.annotate("scaledobject", Some("other"));
            world.seen.scaler = None;
        }
        Cut::Shared | Cut::Paused => {
            if let Some(object) = object {
                for key in &mut object.keys {
                    key.is_others = true;
                }
                if cut == Cut::Paused {
                    object.keys.push(belay_engine::observed::PauseKey {
                        kind: belay_engine::observed::PauseKind::Replicas,
                        value: "2".to_owned(),
                        is_ours: false,
                        is_others: true,
                    });
                }
                object.changed(version);
            }
        }
    }
}

/// Tells a story to its end, with a cut at one pass; how many passes it took.
fn tell(world: &mut World, story: Story, cut: Option<(u32, Cut)>) -> Result<u32, String> {
    let end = world.now + 2 * 3_600;
    let mut has_acted = false;
    let mut back = i64::MAX;
    for pass in 0..3_000 {
        let moved = tick(world);
        if !has_acted && is_active(world, FAILS) {
            has_acted = true;
            person_acts(world, story);
        }
        let now = cut.filter(|(at, _)| *at == pass).map(|(_, cut)| cut);
        if let Some(cut) = now {
            cut_in(world, cut);
            if cut == Cut::KedaRestarts {
                back = world.now + 40;
            }
        }
        if world.now >= back {
            world.keda.is_down = false;
        }
        let crash = match now {
            Some(Cut::Crash(crash)) => crash,
            _ => Crash::Never,
        };
        let (did, plan) = world.pass(crash)?;
        if moved || did != Did::default() || now.is_some() {
            continue;
        }
        match next(&plan, world.now, back).filter(|next| *next <= end) {
            Some(next) => world.now = next,
            None => return Ok(pass),
        }
    }
    Err("it does not end".to_owned())
}

/// Whether the operator has written down that this version runs.
fn is_active(world: &World, version: &str) -> bool {
    let tag = format!("v{version}");
    let is_of = |one: &&belay_api::Release| one.config().revisions[0].id == tag;
    let release = world.releases().iter().find(is_of);
    let status = release.and_then(|release| release.status.as_ref());
    status.is_some_and(|status| status.activations.last().is_some_and(|one| one.end_time.is_none()))
}

fn next(plan: &Plan, now: i64, back: i64) -> Option<i64> {
    let wake = plan.wake.map(|wake| wake.as_second().max(now + 1));
    [wake, (back > now && back < i64::MAX).then_some(back)].into_iter().flatten().min()
}

fn person_acts(world: &mut World, story: Story) {
    match story {
        Story::Roll | Story::Stuck => {}
        Story::Undo => {
            let name = world.releases().iter().find(|one| one.config().revisions[0].id == "v1.0.0");
            let name = name.and_then(|release| release.metadata.name.clone());
            world.write_image("kubectl", &image("1.0.0"));
            world.deployment.release = name;
            world.deployment.release_by = ["kubectl".to_owned()].into();
            world.by_person = Some(Person::Undo);
        }
        Story::Rollback => world.ask_back("web-by-hand", String::new(), false),
    }
}

/// What must be so in the end, whatever cut in.
fn came_to(world: &World, story: Story) -> Result<(), String> {
    let wanted = if story == Story::Roll { "1.1.0" } else { "1.0.0" };
    if world.image() != image(wanted) {
        return Err(format!("{} runs", world.image()));
    }
    let (ready, verdict) = (ready(world), verdict(world, &format!("v{wanted}")));
    if !["Ready", "RolledBack"].contains(&ready.as_str())
        || verdict != Some(belay_api::gates::Verdict::Healthy)
    {
        return Err(format!("{ready}, {verdict:?}: {:?}", world.target()));
    }
    world.check_rest()?;
    for object in &world.keda.objects {
        let is_held = object.keys.iter().any(|key| key.is_ours) || object.claim.is_some();
        let is_theirs = object.keys.iter().any(|key| key.is_others);
        let is_free = object.hpa.is_some_and(|hpa| !hpa.is_disabled) && object.loop_runs;
        if is_held || !(is_free || is_theirs) {
            return Err(format!("autoscaling does not go on: {object:?}"));
        }
    }
    Ok(())
}

#[rstest]
fn wherever_it_is_cut_it_ends_as_it_would_have_and_no_pause_stays(
    #[values(Story::Roll, Story::Stuck, Story::Undo, Story::Rollback)] story: Story,
    #[values(None, Some("scale-in"), Some("full"))] mode: Option<&str>,
    #[values(
        Cut::Crash(Crash::BeforeTheStep),
        Cut::Crash(Crash::AfterTheStep),
        Cut::KedaRestarts,
        Cut::Stripped,
        Cut::StrippedOfAll,
        Cut::MadeAnew,
        Cut::NamedOtherwise,
        Cut::Shared,
        Cut::Paused
    )]
    cut: Cut,
) {
    let mut reference = begin(story, mode);
    let passes = tell(&mut reference, story, None).unwrap();
    came_to(&reference, story).unwrap();
    assert!(reference.met.contains_key("step ClaimPause"));
    for at in 0..=passes {
        let mut world = begin(story, mode);
        let end = tell(&mut world, story, Some((at, cut))).and_then(|_| came_to(&world, story));
        assert_eq!(end, Ok(()), "{story:?} {mode:?} {cut:?} at {at}");
    }
}

/// Where scale-in can be held no more, a rollout goes on unless `pause` was written.
#[rstest]
fn without_keda_it_goes_on_by_default_and_a_rollback_always(
    #[values(Story::Roll, Story::Stuck, Story::Undo, Story::Rollback)] story: Story,
    #[values(Cut::KedaDown, Cut::Deleted, Cut::PointedElsewhere)] cut: Cut,
    #[values(None, Some("scale-in"))] mode: Option<&str>,
) {
    let mut reference = begin(story, mode);
    let passes = tell(&mut reference, story, None).unwrap();
    for at in 0..=passes {
        let mut world = begin(story, mode);
        tell(&mut world, story, Some((at, cut))).unwrap();
        let waits = world.met.contains_key("Progressing CouldNotFreeze");
        assert!(mode.is_some() || !waits, "{story:?} {cut:?} at {at}");
        // KEDA comes back, or what it was comes back.
        world.keda.is_down = false;
        match world.object_mut("web") {
            Some(object) if object.scales != "web" => {
                object.scales = "web";
                world.version += 1;
                let version = world.version;
                world.object_mut("web").unwrap().changed(version);
            }
            Some(_) => {}
            None => world.keda.objects = vec![ScaledObject::new("web", 9)],
        }
        let end = tell(&mut world, story, None).and_then(|_| came_to(&world, story));
        assert_eq!(end, Ok(()), "{story:?} {mode:?} {cut:?} at {at}");
    }
}

//! A small world (a Deployment controller in its real sub-steps, kubelet, GitHub, a registry,
//! people and tools, a clock, crashes) in which the plan is carried out step by step. After every
//! step the rules hold that must never be broken; at the end the world is left alone, comes to rest,
//! and then 50 passes write nothing.
//!
//! `BELAY_MODEL_SEED=N` runs one sequence and prints what happens; `BELAY_MODEL_SEQUENCES=N` sets
//! how many are run (20,000 unless set; long runs set more), `BELAY_MODEL_FIRST=N` the first seed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod actors;
mod cuts;
mod deployment;
mod keda;
mod operator;
mod pauses;
mod rules;
mod scenarios;
mod world;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use belay_engine::settings::Settings;
use world::World;

const SEQUENCES: u64 = 20_000;
const MOVES: u32 = 40;

/// What so many sequences must come to.
const MUST_MEET: &[&str] = &[
    "ChangedByAdmission ChangedByAdmission",
    "Held Mismatch",
    "Held OnHold",
    "Progressing Baking",
    "Progressing CouldNotFreeze",
    "Progressing FirstSight",
    "Progressing ImageReverted",
    "Progressing Pausing",
    "Progressing Resuming",
    "Progressing RollingBack",
    "Progressing TargetPaused",
    "Ready RolledBack",
    "ResumeUnproven ResumeUnproven",
    "RolledUnpaused RolledUnpaused",
    "Stalled ApplyRefused",
    "Stalled BreakerOpen",
    "Stalled Broken",
    "Stalled ChangedByPerson",
    "Stalled FieldConflict",
    "Stalled ManagedByGitOps",
    "Stalled RollbackFailed",
    "Stalled TugOfWar",
    "block RolledBack",
    "block RolledBackByHelm",
    "block RolledBackByPerson",
    "block RolloutFailed",
    "block Superseded",
    "gate Blocked",
    "gate InFlight",
    "gate TagMoved",
    "gate WaitingForImage",
    "rollback DeadlineExceeded",
    "rollback DeploymentSucceeded",
    "rollback DeploymentSuperseded",
    "rollback Retrying",
    "step Apply forced",
    "step ClaimPause",
    "step CreateRollback",
    "step DropPause",
    "told PauseLost",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// One sequence; what it must not do is its error.
fn run(seed: u64, is_shown: bool, settings: &Settings) -> (World, Result<(), String>) {
    let mut world = World::new(seed, is_shown);
    world.settings = Settings { scaled_objects: true, ..settings.clone() };
    if !settings.intent_first {
        // The wrong order is one of images and Releases; pauses have no part in it.
        world.annotate("scaledobject", None);
    }
    let result =
        (0..MOVES).try_for_each(|_| world.random_move()).and_then(|()| world.come_to_rest());
    (world, result)
}

/// What many sequences came to.
#[derive(Default)]
struct Sum {
    passes: u64,
    met: BTreeMap<String, u32>,
    broken: Vec<String>,
}

impl Sum {
    fn add(&mut self, seed: u64, (world, result): (World, Result<(), String>)) {
        self.passes += u64::from(world.passes);
        for (what, count) in world.met {
            *self.met.entry(what).or_default() += count;
        }
        if let Err(error) = result {
            self.broken.push(format!("BELAY_MODEL_SEED={seed}: {error}"));
        }
    }
}

/// Runs the sequences of these seeds on all cores, until ten have broken a rule.
fn run_all(seeds: std::ops::RangeInclusive<u64>, is_shown: bool, settings: &Settings) -> Sum {
    let next = AtomicU64::new(*seeds.start());
    let sum = Mutex::new(Sum::default());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > *seeds.end() || sum.lock().unwrap().broken.len() >= 10 {
                        return;
                    }
                    let came_to = run(seed, is_shown, settings);
                    sum.lock().unwrap().add(seed, came_to);
                }
            });
        }
    });
    sum.into_inner().unwrap()
}

#[test]
fn whatever_happens_the_rules_hold_and_the_world_comes_to_rest() {
    let one = number("BELAY_MODEL_SEED");
    let sequences = number("BELAY_MODEL_SEQUENCES").unwrap_or(SEQUENCES);
    let first = number("BELAY_MODEL_FIRST").unwrap_or(1);
    let seeds = one.map_or(first..=first + (sequences - 1), |seed| seed..=seed);
    let sum = run_all(seeds, one.is_some(), &Settings::default());
    println!("{sequences} sequences, {} passes; {:#?}", sum.passes, sum.met);
    assert!(sum.broken.is_empty(), "{}", sum.broken.join("\n"));
    // Rules that are never put to the test say nothing.
    if sequences >= SEQUENCES && one.is_none() {
        let missing: Vec<_> =
            MUST_MEET.iter().filter(|what| !sum.met.contains_key(**what)).collect();
        assert!(missing.is_empty(), "never met: {missing:?}");
    }
}

#[test]
fn with_the_intent_last_rules_are_broken() {
    let settings = Settings { intent_first: false, ..Settings::default() };
    let sum = run_all(1..=200, false, &settings);
    assert!(sum.broken.len() >= 10, "{:?}", sum.broken);
    // What is applied first of all waits for no pause either.
    let about_that = ["an image without a Release", "applied without a reading"];
    let is_about_that = |error: &String| about_that.iter().any(|words| error.contains(words));
    assert!(sum.broken.iter().all(is_about_that), "{:?}", sum.broken);
}

//! A small world (a Deployment controller in its real sub-steps, kubelet, GitHub, a registry,
//! people and tools, a clock, crashes) in which the plan is carried out step by step. After every
//! step the rules hold that must never be broken; at the end the world is left alone, comes to rest,
//! and then 50 passes write nothing.
//!
//! `BELAY_MODEL_SEED=N` runs one sequence and prints what happens; `BELAY_MODEL_SEQUENCES=N` sets
//! how many are run.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod actors;
mod operator;
mod rules;
mod scenarios;
mod world;

use std::collections::BTreeMap;

use world::World;

const SEQUENCES: u64 = 2_000;
const MOVES: u32 = 40;

/// What 2,000 sequences must come to.
const MUST_SEE: &[&str] = &[
    "ChangedByAdmission ChangedByAdmission",
    "Held Mismatch",
    "Held OnHold",
    "Progressing Baking",
    "Progressing FirstSight",
    "Progressing ImageReverted",
    "Progressing RollingBack",
    "Progressing TargetPaused",
    "Ready RolledBack",
    "Stalled ApplyRefused",
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
    "gate WaitingForImage",
    "rollback DeadlineExceeded",
    "rollback DeploymentSucceeded",
    "rollback DeploymentSuperseded",
    "rollback Retrying",
    "step Apply forced",
    "step CreateRollback",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn run(seed: u64, is_shown: bool) -> (World, Result<(), String>) {
    let mut world = World::new(seed, is_shown);
    let result =
        (0..MOVES).try_for_each(|_| world.random_move()).and_then(|()| world.come_to_rest());
    (world, result)
}

#[test]
fn whatever_happens_the_rules_hold_and_the_world_comes_to_rest() {
    let sequences = number("BELAY_MODEL_SEQUENCES").unwrap_or(SEQUENCES);
    let one = number("BELAY_MODEL_SEED");
    let seeds = one.map_or(1..=sequences, |seed| seed..=seed);
    let mut broken = Vec::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut passes = 0;
    for seed in seeds {
        let (world, result) = run(seed, one.is_some());
        passes += world.passes;
        for (what, count) in world.seen {
            *seen.entry(what).or_default() += count;
        }
        if let Err(error) = result {
            broken.push(format!("BELAY_MODEL_SEED={seed}: {error}"));
            if broken.len() == 10 {
                break;
            }
        }
    }
    println!("{passes} passes; {seen:#?}");
    // Rules that are never put to the test say nothing.
    if sequences >= SEQUENCES && one.is_none() {
        let missing: Vec<_> = MUST_SEE.iter().filter(|what| !seen.contains_key(**what)).collect();
        assert!(missing.is_empty(), "never seen: {missing:?}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

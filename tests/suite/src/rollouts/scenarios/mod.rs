//! The scenarios: each shows something that rollouts were judged wrongly by.

mod bake;
mod failing;
mod good;
mod paused;
mod refused;
mod rollback;
mod scaling;

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};
use belay_testkit::Cluster;
use futures::future::LocalBoxFuture;

use super::{recording::Recording, replay::rollouts, stage::Stage, traps::Trap};

/// A recording with fewer moments than this shows nothing.
pub const MIN_MOMENTS: usize = 20;
/// Some traps stand open for milliseconds: so often a scenario is played until it shows them.
const ATTEMPTS: u32 = 5;

/// A scenario.
pub struct Scenario {
    /// Its name, which is the file's.
    pub name: &'static str,
    /// What it shows, in words for people.
    pub about: &'static str,
    /// Where it is played.
    pub bed: Bed,
    /// What its rollouts must show; the install is rollout 0.
    pub traps: &'static [(usize, Trap)],
    play: Play,
}

type Play = for<'s, 'c> fn(&'s Stage<'c>) -> LocalBoxFuture<'s, Result<()>>;

/// The cluster that a scenario needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bed {
    /// With a scheduler and nodes of kwok.
    Nodes,
    /// Without kwok, which keeps every node alive.
    NodesMayDie,
}

/// How many nodes of kwok the scenarios share: one for all, and one each for those that fill it.
pub const NODES: u32 = 3;

/// All scenarios.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    [
        good::SCENARIOS,
        failing::SCENARIOS,
        rollback::SCENARIOS,
        refused::SCENARIOS,
        scaling::SCENARIOS,
        paused::SCENARIOS,
        bake::SCENARIOS,
    ]
    .into_iter()
    .flatten()
}

impl Scenario {
    /// Plays it until the recording shows what it must.
    ///
    /// # Errors
    /// What went wrong the last time.
    pub async fn record(&self, cluster: &Cluster) -> Result<Recording> {
        let mut attempt = 1;
        loop {
            match self.record_once(cluster).await {
                Ok(recording) => return Ok(recording),
                Err(error) if attempt < ATTEMPTS => {
                    eprintln!("{} is played again: {error:#}", self.name);
                    attempt += 1;
                }
                Err(error) => {
                    let name = self.name;
                    return Err(error.context(format!("record {name} {ATTEMPTS} times")));
                }
            }
        }
    }

    async fn record_once(&self, cluster: &Cluster) -> Result<Recording> {
        let stage = Stage::open(cluster, self.name).await?;
        let recording = self.record_on(&stage).await;
        if recording.is_err() {
            // What is left would stand in the way of the next attempt.
            stage.clear().await?;
        }
        recording
    }

    async fn record_on(&self, stage: &Stage<'_>) -> Result<Recording> {
        (self.play)(stage).await?;
        let recording = stage.end(self.name, self.about).await?;
        self.check(&recording)?;
        Ok(recording)
    }

    /// Checks that a recording is of this scenario and shows what it must.
    ///
    /// # Errors
    /// What it does not show.
    pub fn check(&self, recording: &Recording) -> Result<()> {
        ensure!(recording.head.scenario == self.name, "it is of {}", recording.head.scenario);
        let count = recording.moments.len();
        ensure!(count >= MIN_MOMENTS, "it has {count} moments, fewer than {MIN_MOMENTS}");
        let rollouts = rollouts(recording)?;
        for (number, trap) in self.traps {
            let rollout = rollouts
                .get(*number)
                .with_context(|| format!("it has {} rollouts", rollouts.len()))?;
            ensure!(trap.is_shown_by(rollout), "rollout {number} does not show {trap:?}");
        }
        Ok(())
    }
}

/// A name of a cluster-wide object that no other scenario has.
fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

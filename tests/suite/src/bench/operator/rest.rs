//! A thousand targets over a hundred repositories, at rest.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use belay_testkit::wait;

use super::{
    counts::{resident, ticks, writes},
    scene::{Scene, Size},
};

const TARGETS: usize = 1000;
const REPOSITORIES: usize = 100;
/// What must pass quietly before the measurement.
const QUIET: Duration = Duration::from_mins(2);
/// What is measured.
const REST: Duration = Duration::from_mins(5);
/// From one look at the memory to the next.
const LOOK: Duration = Duration::from_secs(5);

/// What one run showed.
#[derive(Debug, Clone, Copy)]
struct Rest {
    /// The most memory that was resident at any look, in bytes.
    memory: f64,
    writes: f64,
    /// Per cent of one core.
    cpu: f64,
    /// Per cent of the requests to GitHub that were not answered with 304.
    other_polls: f64,
    ready: Duration,
}

/// All figures of this file come from one run, which takes ten minutes.
fn rest() -> Result<Rest> {
    static RUN: OnceLock<Result<Rest, String>> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let run = wait::block_on(measure());
        run.map_err(anyhow::Error::from).and_then(|run| run).map_err(|error| format!("{error:#}"))
    });
    run.clone().map_err(|error| anyhow!(error))
}

async fn measure() -> Result<Rest> {
    let size = Size { targets: TARGETS, repositories: REPOSITORIES, options: Vec::new(), bake: 10 };
    let scene = Scene::start(size).await?;
    let (first, _) = scene.operator().await?;
    scene.healthy("v1.0.0").await?;
    // What a restart costs is what counts on call: all objects are there.
    drop(first);
    let (operator, ready) = scene.operator().await?;
    // A figure at rest needs time to pass.
    let mut looks = tokio::time::interval(LOOK);
    let quiet = Instant::now();
    while quiet.elapsed() < QUIET {
        looks.tick().await;
    }
    let mark = scene.github.mark();
    let (before, begun) = (ticks(operator.id())?, Instant::now());
    let written = writes(&scene.client).await?;
    let mut memory = 0.0_f64;
    while begun.elapsed() < REST {
        looks.tick().await;
        memory = memory.max(resident(operator.id())?);
    }
    let took = begun.elapsed();
    let cpu = ticks(operator.id())? - before;
    let written = writes(&scene.client).await? - written;
    let log = scene.github.log().since(mark);
    let (all, unchanged) = (log.len(), log.count(|request| request.status == Some(304)));
    anyhow::ensure!(all >= REPOSITORIES, "only {all} requests came to GitHub in {took:?}");
    let share = |part: usize| f64::from(u32::try_from(part).unwrap_or(u32::MAX));
    Ok(Rest {
        memory,
        writes: written,
        cpu: cpu / took.as_secs_f64(),
        other_polls: 100.0 * share(all - unchanged) / share(all),
        ready,
    })
}

/// Resident memory of the operator.
///
/// # Errors
/// Why it could not be measured.
pub fn rest_memory() -> Result<Vec<f64>> {
    Ok(vec![rest()?.memory])
}

/// Writes to the API server but for the renewal of the Lease.
///
/// # Errors
/// Why they could not be counted.
pub fn rest_writes() -> Result<Vec<f64>> {
    Ok(vec![rest()?.writes])
}

/// Per cent of one core.
///
/// # Errors
/// Why it could not be measured.
pub fn rest_cpu() -> Result<Vec<f64>> {
    Ok(vec![rest()?.cpu])
}

/// Per cent of the requests to GitHub that are answered with anything but 304.
///
/// # Errors
/// Why they could not be counted.
pub fn other_polls() -> Result<Vec<f64>> {
    Ok(vec![rest()?.other_polls])
}

/// From the start of the program to ready.
///
/// # Errors
/// Why it is not.
pub fn ready() -> Result<Vec<Duration>> {
    Ok(vec![rest()?.ready])
}

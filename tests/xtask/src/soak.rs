//! Long runs: what CI does with a fixed seed and once, here with fresh seeds and again and again.

use std::{
    process::ExitCode,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};

use crate::{
    cargo::Cargo,
    groups::{self, Building, Selection},
};

/// Sequences of the operator's model that a soak runs at least, however long they take.
const SEQUENCES: u64 = 2_000_000;
/// Those of one round.
const SEQUENCES_AT_ONCE: u64 = 200_000;

/// Alternates fuzzing, the operator's model and whole test runs until the time is over and the model
/// has run its sequences, or something fails.
pub(crate) fn run(cargo: &Cargo, minutes: u64) -> Result<ExitCode> {
    let start = Instant::now();
    let limit = Duration::from_mins(minutes);
    let seconds = (minutes * 60 / 8).clamp(10, 900);
    let first = fresh_seed()?;
    let (mut rounds, mut sequences) = (0, 0);
    while start.elapsed() < limit || sequences < SEQUENCES {
        let code = cargo.fuzz("all", seconds, None)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        cargo.model(first + sequences, SEQUENCES_AT_ONCE)?;
        sequences += SEQUENCES_AT_ONCE;
        if start.elapsed() < limit {
            let code = groups::run(cargo, &Selection::default(), Building::start())?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
        }
        rounds += 1;
    }
    println!(
        "soak: {rounds} rounds, {sequences} sequences of the model from seed {first}, in {} min \
         without a failure",
        start.elapsed().as_secs() / 60,
    );
    Ok(ExitCode::SUCCESS)
}

/// A seed that no soak before had, and with room above it.
fn fresh_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("read the clock")?;
    // Three million apart from those of the second before.
    Ok(now.as_secs() * 3_000_000)
}

//! Long runs: what CI does with a fixed seed and once, here with fresh seeds and again and again.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    cargo::Cargo,
    groups::{self, Building, Selection},
};

/// Alternates fuzzing and whole test runs until the time is over or something fails.
pub(crate) fn run(cargo: &Cargo, minutes: u64) -> Result<ExitCode> {
    let start = Instant::now();
    let limit = Duration::from_mins(minutes);
    let seconds = (minutes * 60 / 8).clamp(10, 900);
    let mut rounds = 0;
    while start.elapsed() < limit {
        let code = cargo.fuzz("all", seconds, None)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        let code = groups::run(cargo, &Selection::default(), Building::start())?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        rounds += 1;
    }
    println!("soak: {rounds} rounds in {} min without a failure", start.elapsed().as_secs() / 60);
    Ok(ExitCode::SUCCESS)
}

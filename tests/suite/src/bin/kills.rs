//! Kills the operator program while many targets roll with KEDA. Run by `cargo xtask soak --kills`.

use std::{
    io::Write as _,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, ensure};
use belay_suite::kills::Soak;
use clap::Parser;

/// Kills the operator program while many targets roll.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many targets roll side by side.
    #[arg(long, default_value_t = 20)]
    targets: usize,
    /// How many releases each of them gets.
    #[arg(long, default_value_t = 50)]
    releases: usize,
    /// The shortest life of the operator, in milliseconds.
    #[arg(long, default_value_t = 5_000)]
    shortest: usize,
    /// The longest, in milliseconds.
    #[arg(long, default_value_t = 30_000)]
    longest: usize,
    /// Where the random numbers start; from the clock if not given. Printed first.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match kill(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn kill(arguments: &Arguments) -> Result<()> {
    let Arguments { targets, releases, shortest, longest, seed } = *arguments;
    ensure!(shortest < longest, "the shortest life is not below the longest");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = seed.unwrap_or(now.as_secs());
    let mut out = std::io::stdout();
    writeln!(out, "kills: seed {seed}")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let soak = Soak { targets, releases, life: shortest..longest, seed };
    let outcome = runtime.block_on(soak.run())?;
    writeln!(out, "kills: {outcome}")?;
    Ok(())
}

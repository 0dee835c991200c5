//! Runs a fuzz target. Run by `cargo xtask fuzz`.

use std::{
    io,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use belay_suite::fuzz::{Files, Options, TARGETS, run};
use clap::Parser;

/// Stands for every target.
const ALL: &str = "all";

/// Runs a fuzz target.
#[derive(Debug, Parser)]
struct Arguments {
    /// The target, or `all` for one after the other.
    name: String,
    /// How long to run each.
    #[arg(long, value_name = "N")]
    seconds: u64,
    /// Where the random numbers start; from the clock if not given. Printed first.
    #[arg(long)]
    seed: Option<u64>,
    /// A folder with `corpus/`, `crashes/` and `dictionary` instead of the committed one.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
}

fn main() -> ExitCode {
    match fuzz(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn fuzz(arguments: Arguments) -> Result<()> {
    let Arguments { name, seconds, seed, corpus } = arguments;
    let targets: Vec<_> =
        TARGETS.into_iter().filter(|(own, _)| name == ALL || *own == name).collect();
    if targets.is_empty() {
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        bail!("there is no target {name}; there are: {}, or {ALL}", names.join(", "));
    }
    for target in targets {
        let files = match &corpus {
            Some(folder) => Files::in_folder(folder),
            None => Files::committed(target.0),
        };
        let options = Options {
            time: Duration::from_secs(seconds),
            seed: seed.unwrap_or_else(of_the_clock),
            files,
        };
        run(target, &options, &mut io::stdout())?;
    }
    Ok(())
}

/// A seed that differs from run to run.
fn of_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() ^ u64::from(now.subsec_nanos()).rotate_left(32)
}

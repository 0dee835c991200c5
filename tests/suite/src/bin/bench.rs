//! Measures the figures that have a goal. Run by `cargo xtask bench`, which builds it in release.

use std::{io, process::ExitCode};

use anyhow::Result;
use belay_suite::bench::run::{FIGURES, Options, raw_folder, refuse_debug_build, run};
use clap::Parser;

/// Measures the figures that have a goal.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only figures whose name starts with this.
    #[arg(long, value_name = "PREFIX")]
    only: Option<String>,
    /// One JSON document on standard output, and nothing else there.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> Result<()> {
    refuse_debug_build(cfg!(debug_assertions))?;
    let Arguments { only, json } = arguments;
    run(&FIGURES, &Options { only, json }, &raw_folder(), &mut io::stdout().lock())
}

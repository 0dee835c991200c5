//! Runs one program for `cargo xtask bench` and prints what it used: see `belay_suite::bench::meter`.

use std::{env, process::ExitCode};

use anyhow::{Context as _, Result};
use belay_suite::bench::meter;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<()> {
    let mut words = env::args_os().skip(1);
    let mut word = || words.next().context("usage: meter INPUT OUTPUT PROGRAM [ARGUMENT]...");
    let (input, output, program) = (word()?, word()?, word()?);
    let arguments: Vec<_> = words.collect();
    let usage = meter::run(input.as_ref(), output.as_ref(), &program, &arguments)?;
    println!("{}", serde_json::to_string(&usage).context("print the measurement")?);
    Ok(())
}

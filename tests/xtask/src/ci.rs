//! What CI runs, and the static half of it.

use std::{path::Path, process::ExitCode, time::Instant};

use anyhow::{Context as _, Result};
use belay_components::Components;
use xtask::checks;

use crate::{cargo::Cargo, generate, groups};

/// Static checks, then all tests, with the target folder in the cache.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let start = Instant::now();
    let cache = Components::from_env()?.cache().clone();
    let cargo = Cargo::new(root).with_target(cache.cargo_target());
    // Go's builds take longest on a new machine: they start first. The tests wait for them.
    let building = groups::Building::start();
    check(&cargo)?;
    let statics = start.elapsed();
    let code = groups::run(&cargo, &groups::Selection::default(), building)?;
    println!(
        "static checks {:.1} min, all {:.1} min",
        statics.as_secs_f64() / 60.0,
        start.elapsed().as_secs_f64() / 60.0
    );
    Ok(code)
}

/// Everything that can be said without running anything.
pub(crate) fn check(cargo: &Cargo) -> Result<ExitCode> {
    cargo.ok(&["fmt", "--all", "--check"])?;
    let findings = checks::run_all(cargo.root()).context("run the static checks")?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    anyhow::ensure!(findings.is_empty(), "{} findings", findings.len());
    cargo.ok(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    generate::run(cargo, true)?;
    println!("static checks passed");
    Ok(ExitCode::SUCCESS)
}

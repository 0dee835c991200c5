//! Packs `kubectl-release` and writes krew's manifest. Run by `cargo xtask dist`, which builds it in
//! release.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use belay_suite::dist;
use clap::Parser;

/// Packs `kubectl-release` and writes krew's manifest.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where both go, instead of `dist` beside the folder of this program.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    ensure!(!cfg!(debug_assertions), "this is a debug build: run `cargo xtask dist`");
    let own = std::env::current_exe().context("find the program that runs here")?;
    let beside = own.parent().and_then(Path::parent).context("this program lies in no folder")?;
    let out = Arguments::parse().out.unwrap_or_else(|| beside.join("dist"));
    let program = own.with_file_name(dist::Platform::here()?.program());
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    for path in dist::write(&out, tag, &program)? {
        writeln!(io::stdout(), "wrote {}", path.display())?;
    }
    Ok(())
}

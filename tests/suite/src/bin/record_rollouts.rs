//! `cargo xtask record-rollouts`: plays the scenarios of rollouts on a real control plane, and writes
//! down what its controllers did.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use belay_suite::rollouts::{
    recording::{MAX_BYTES, Recording, folder},
    scenarios::{self, Bed, NODES, Scenario},
};
use belay_testkit::{Cluster, cluster::Options};
use clap::Parser;
use futures::StreamExt as _;

/// So many scenarios are played at once.
const AT_ONCE: usize = 12;

/// Records rollouts of a real control plane.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only scenarios whose name starts with this.
    #[arg(long, value_name = "PREFIX")]
    only: Option<String>,
    /// Writes the files here, instead of over those that the tests replay.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match record(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn record(arguments: Arguments) -> Result<()> {
    let out = arguments.out.unwrap_or_else(folder);
    let prefix = arguments.only.unwrap_or_default();
    let wanted: Vec<_> = scenarios::all().filter(|one| one.name.starts_with(&prefix)).collect();
    ensure!(!wanted.is_empty(), "no scenario's name starts with {prefix:?}");
    let start = Instant::now();
    let on = |bed| wanted.iter().copied().filter(move |one| one.bed == bed).collect::<Vec<_>>();
    let (nodes, may_die) = (on(Bed::Nodes), on(Bed::NodesMayDie));
    let (one, other) = tokio::try_join!(
        record_all(Bed::Nodes, &nodes, &out),
        record_all(Bed::NodesMayDie, &may_die, &out),
    )?;
    let failed = [one, other].concat();
    ensure!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        wanted.len(),
        failed.join("\n")
    );
    let bytes = size(&out)?;
    ensure!(bytes <= MAX_BYTES, "{} holds {bytes} bytes, more than {MAX_BYTES}", out.display());
    let (count, seconds) = (wanted.len(), start.elapsed().as_secs());
    println!("{count} recorded in {seconds} s; {} holds {bytes} bytes", out.display());
    Ok(())
}

/// Records scenarios that share a cluster, and returns what failed.
async fn record_all(bed: Bed, wanted: &[&Scenario], out: &Path) -> Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let options = match bed {
        Bed::Nodes => Options { nodes: NODES, ..Options::default() },
        Bed::NodesMayDie => Options::without_nodes(),
    };
    let cluster = &Cluster::start(options).await?;
    let mut ended = futures::stream::iter(wanted)
        .map(|scenario| async move {
            let recording = scenario.record(cluster).await?;
            recording.write(out)?;
            anyhow::Ok((scenario.name, recording.moments.len()))
        })
        .buffer_unordered(AT_ONCE);
    let mut failed = Vec::new();
    while let Some(result) = ended.next().await {
        match result {
            Ok((name, moments)) => println!("{name}: {moments} moments"),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    Ok(failed)
}

/// The size of all recordings of a folder.
fn size(folder: &Path) -> Result<u64> {
    let names = Recording::scenarios(folder)?;
    let sizes = names.iter().map(|name| {
        let path = Recording::file(folder, name);
        let metadata = path.metadata().with_context(|| format!("look at {}", path.display()))?;
        Ok(metadata.len())
    });
    sizes.sum()
}

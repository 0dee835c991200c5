//! `cargo xtask`: every task of a contributor and of CI, and nothing that needs another tool.

mod cargo;
mod chart_crds;
mod ci;
mod generate;
mod groups;
mod soak;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use crate::{cargo::Cargo, groups::Group};

/// Tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", version, about)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs the tests, all groups or one, and prints time and count for each.
    Test {
        /// Only this group.
        #[arg(long, value_enum)]
        group: Option<Group>,
        /// Only tests whose name contains this; counts are then not compared with the floor.
        #[arg(long)]
        filter: Option<String>,
        /// Raises the floor of test counts to what ran.
        #[arg(long, conflicts_with_all = ["group", "filter"])]
        bless: bool,
    },
    /// What CI runs: static checks, then all tests. The target folder is kept in the cache.
    Ci,
    /// Static checks alone: format, lints, dependencies, generated files, links, honest tests.
    Check,
    /// Long runs that do not fit into CI: fresh seeds, many repetitions.
    Soak {
        /// How long, in minutes; in any case until the operator's model has run 2 million sequences.
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Only this: 1,000 releases over 20 targets with KEDA, while the operator program is killed every
        /// 5 to 30 seconds.
        #[arg(long, conflicts_with = "minutes")]
        kills: bool,
    },
    /// A control plane to work with: `up`, `down`, `status`.
    #[command(disable_help_flag = true)]
    Cluster {
        /// Passed on; see `cargo xtask cluster help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The scripted GitHub: serve it, publish, edit and withdraw releases.
    #[command(disable_help_flag = true)]
    Github {
        /// Passed on; see `cargo xtask github help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Shows what Belay is for on real components, tells what happens and why, and takes everything
    /// down.
    Demo {
        /// Options of the demo: `cargo xtask demo --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Writes generated files, or checks that they are current.
    Generate {
        /// Only compares.
        #[arg(long)]
        check: bool,
    },
    /// Measures figures in a release build.
    Bench {
        /// Only figures whose name starts with this.
        #[arg(long)]
        only: Option<String>,
        /// Prints one JSON document and nothing else on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Packs `kubectl-release` of a release build for this platform, and writes krew's manifest.
    Dist {
        /// Where both go, instead of `dist` in cargo's target folder.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Feeds mutated inputs to a target, after its corpus and its old crashes.
    Fuzz {
        /// The target, for example `ownership`, or `all`.
        name: String,
        /// How long, for each.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Repeats a run.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Computes the plan of a file that the operator's /debug/targets/NAMESPACE/NAME answered, prints
    /// it, and says whether it is the one that was recorded.
    Replay {
        /// The file.
        file: PathBuf,
    },
    /// Plays the scenarios of rollouts on a real control plane, and writes down what its controllers
    /// did, for the tests to replay.
    RecordRollouts {
        /// Only scenarios whose name starts with this.
        #[arg(long)]
        only: Option<String>,
        /// Writes the files here, instead of over those that the tests replay.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Builds every component that is not in the cache yet.
    Components,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let root = root()?;
    let cargo = Cargo::new(&root);
    match task {
        Task::Test { group, filter, bless } => {
            let selection = groups::Selection { group, filter, bless };
            groups::run(&cargo, &selection, groups::Building::start())
        }
        Task::Ci => ci::run(&root),
        Task::Check => ci::check(&cargo),
        Task::Soak { kills: true, .. } => cargo.kills(),
        Task::Soak { minutes, .. } => soak::run(&cargo, minutes),
        Task::Cluster { arguments } => cargo.testbed("cluster", &arguments),
        Task::Github { arguments } => cargo.testbed("github", &arguments),
        Task::Demo { arguments } => {
            groups::ensure_components()?;
            cargo.demo(&arguments)
        }
        Task::Generate { check } => generate::run(&cargo, check),
        Task::Bench { only, json } => cargo.bench(only.as_deref(), json),
        Task::Dist { out } => cargo.dist(out.as_deref()),
        Task::Fuzz { name, seconds, seed } => cargo.fuzz(&name, seconds, seed),
        Task::Replay { file } => cargo.replay(&file),
        Task::RecordRollouts { only, out } => {
            cargo.record_rollouts(only.as_deref(), out.as_deref())
        }
        Task::Components => {
            groups::ensure_components()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The top of the work tree.
fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .context("tests/xtask has no grandparent")
}

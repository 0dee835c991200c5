//! `testbed`: a control plane to work with, and a scripted GitHub to publish releases on.
//!
//! `cargo xtask cluster …` runs it; it is a binary of its own so that xtask stays small.

use std::process::ExitCode;

use belay_testkit::{github::command::GithubCommand, standing};
use clap::{Parser, Subcommand};

/// Runs and asks a test bed.
#[derive(Debug, Parser)]
#[command(name = "testbed", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A control plane that outlives the command.
    #[command(subcommand)]
    Cluster(standing::ClusterCommand),
    /// The scripted GitHub.
    #[command(subcommand)]
    Github(GithubCommand),
    /// Starts one component, prints process ids, and waits to be killed: for tests of the clean-up.
    #[command(hide = true)]
    Hold,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Cluster(command) => standing::run(command),
        Command::Github(command) => belay_testkit::github::command::run(command),
        Command::Hold => standing::hold(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

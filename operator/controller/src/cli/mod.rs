//! The command line of `belay-operator`.
//!
//! Each option has an environment variable and its default in one place, here; the reference is
//! generated from this. What the options mean together is [`crate::config`]'s.

mod annotations;
mod explain;
mod release_pauses;
mod run;
mod values;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use clap::{
    Arg, Command as Clap, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::Resettable,
};
use reqwest::Url;

pub(crate) use self::values::registry_host;
pub use self::{
    annotations::AnnotationFlags,
    explain::{Explain, Output},
    release_pauses::ReleasePauses,
    run::{LogArguments, LogFormat, Run, ScopeKind},
    values::InvalidValue,
};

/// Moves the images of annotated Deployments to the newest GitHub release, watches each rollout, and
/// takes it back when it fails.
///
/// Each option has an environment variable, shown beside it. Exit codes: 0; 1 failed; 2 usage.
#[derive(Debug, Parser)]
#[command(name = "belay-operator", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Follows the annotated workloads of a cluster, or of one namespace, until it is told to stop
    ///
    /// It connects as kubeconfig says, if there is one, else as the pod's ServiceAccount.
    Run(Box<Run>),
    /// Reads the releases of a repository once, and says of each why it would or would not be taken
    ///
    /// Annotations are given as options: --range '^1' stands for the annotation range. No cluster is
    /// asked, and no registry.
    Explain(Box<Explain>),
    /// Ends every pause of a ScaledObject that an operator has claimed, and prints one line for each
    ///
    /// The operator should not run meanwhile: see --stop. Without KEDA there is nothing to end. Exit
    /// code 1 means that pauses are left; they are named.
    ReleasePauses(Box<ReleasePauses>),
    /// Computes the plan of a file that /debug/targets/NAMESPACE/NAME answered
    #[command(hide = true)]
    Replay(Replay),
}

/// `replay`
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// How GitHub is reached.
#[derive(Debug, Clone, clap::Args)]
pub struct GithubArguments {
    /// The base of GitHub's API; https://HOST/api/v3 for GitHub Enterprise Server
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://api.github.com",
        value_parser = values::api,
        env = "BELAY_GITHUB_URL"
    )]
    pub github_url: Url,

    /// A file with a token, read anew before each use; without one GitHub answers 60 requests an
    /// hour, for public repositories
    #[arg(long, value_name = "FILE", env = "BELAY_GITHUB_TOKEN_FILE")]
    pub github_token_file: Option<PathBuf>,

    /// Certificates (PEM) of authorities that are trusted for GitHub, beside the system's
    #[arg(long, value_name = "FILE", env = "BELAY_GITHUB_CA_FILE")]
    pub github_ca_file: Option<PathBuf>,
}

impl Cli {
    /// Reads the command line and the variables.
    ///
    /// # Errors
    /// What clap prints: an error of usage, the help, the version.
    pub fn parse_from<I, T>(arguments: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let matches = Self::definition().try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches)
    }

    /// An error of usage that clap cannot see by itself, printed as clap prints its own.
    pub fn usage_error(subcommand: &str, message: impl std::fmt::Display) -> clap::Error {
        let mut command = Self::definition();
        command.build();
        let command = command.find_subcommand_mut(subcommand);
        let kind = clap::error::ErrorKind::ValueValidation;
        match command {
            Some(command) => command.error(kind, message),
            None => clap::Error::raw(kind, message),
        }
    }

    fn definition() -> Clap {
        Self::command().mut_subcommands(|command| command.mut_args(without_empty_variable))
    }
}

/// Manifests often set a variable to nothing, which then is as good as not set.
fn without_empty_variable(argument: Arg) -> Arg {
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let unset = argument.get_env().is_some_and(is_empty);
    if unset { argument.env(Resettable::Reset) } else { argument }
}

#[cfg(test)]
mod tests;

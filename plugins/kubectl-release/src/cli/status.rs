//! `status`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::output::OutputArgs;

/// Arguments of `status`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl release status                 all targets of the namespace
  kubectl release status -A              all targets
  kubectl release status web             one target
  kubectl release status web -w          follow it until it stands still
  kubectl release status web --until rolled-out --timeout 10m
  kubectl release status -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'

Exit codes: 3 for a target that is Failed, RolledBack or Stalled; with --exit-code for each that is
not Ready; 124 if --timeout passed.")]
pub struct StatusArgs {
    /// Name of the target; all of the namespace without one
    pub name: Option<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Labels that the ReleaseTarget must have
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// Statuses to list: status=Stalled, status!=Ready, status=Stalled,Failed
    #[arg(long, value_name = "status=WORD[,WORD]", conflicts_with = "name")]
    pub status_selector: Option<String>,
    /// No headers
    #[arg(long)]
    pub no_headers: bool,
    /// Older revisions too
    #[arg(long)]
    pub all_revisions: bool,
    /// Follow it
    #[arg(short, long)]
    pub watch: bool,
    /// With -w on a list: draw the table anew instead of appending rows
    #[arg(long, requires = "watch")]
    pub refresh: bool,
    /// Follow it until it is so
    #[arg(long, value_enum, requires = "name", value_name = "CONDITION")]
    pub until: Option<Until>,
    /// How long to follow it at most
    #[arg(long, value_parser = crate::cli::duration, value_name = "DURATION")]
    pub timeout: Option<Duration>,
    /// End with 3 unless everything shown is Ready
    #[arg(long)]
    pub exit_code: bool,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `--until` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// What should run does run and was judged healthy
    Ready,
    /// A person holds it, and nothing is under way
    Held,
    /// Every replica runs the new image; it may still have to hold
    RolledOut,
}

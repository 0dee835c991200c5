//! `rollback`.

use std::time::Duration;

use clap::Args;

use super::change::ChangeArgs;

/// Arguments of `rollback`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl release rollback web                 to the last healthy Release
  kubectl release rollback web --to 1.9.1      to a tag
  kubectl release rollback web --to -2         two Releases back
  kubectl release rollback web --hold --yes --wait=5m")]
pub struct RollbackArgs {
    /// Names of the targets: one, unless --yes is given
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// All targets of the namespace; needs --yes
    #[arg(long, requires = "yes")]
    pub all: bool,
    /// All targets with these labels; needs --yes
    #[arg(short = 'l', long, value_name = "LABELS", requires = "yes")]
    pub selector: Option<String>,
    /// Where to: a Release, a tag, or -N for N Releases back
    #[arg(long, value_name = "RELEASE|TAG|-N", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Stay there: hold the target at that tag
    #[arg(long)]
    pub hold: bool,
    /// Go there even if that Release is unhealthy or blocked
    #[arg(long)]
    pub force: bool,
    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Follow it to its end
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "30m",
        value_parser = crate::cli::duration,
        value_name = "DURATION"
    )]
    pub wait: Option<Duration>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How it is written, and said.
    #[command(flatten)]
    pub change: ChangeArgs,
}

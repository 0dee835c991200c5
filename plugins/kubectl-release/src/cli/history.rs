//! `history`.

use clap::Args;

use super::output::OutputArgs;

/// Arguments of `history`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kubectl release history web
  kubectl release history web --limit 5
  kubectl release history web --diff -1,-2            the newest against the one before
  kubectl release history web --diff web-2b7e1f0,web-4f1c0a9")]
pub struct HistoryArgs {
    /// Name of the target
    pub name: String,
    /// Show what differs between the pod templates of two Releases: names, or -1 for the newest
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub diff: Option<String>,
    /// How many Releases at most
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// No headers
    #[arg(long)]
    pub no_headers: bool,
    /// With --diff: end with 1 if something differs, and with more if that cannot be said
    #[arg(long, requires = "diff")]
    pub exit_code: bool,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

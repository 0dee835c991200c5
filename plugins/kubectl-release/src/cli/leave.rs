//! `leave`.

use clap::Args;

use super::change::ChangeArgs;

/// Arguments of `leave`.
#[derive(Debug, Clone, Args)]
pub struct LeaveArgs {
    /// Name of the target
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub name: Option<String>,
    /// All targets of the namespace
    #[arg(long)]
    pub all: bool,
    /// With --all: in all namespaces
    #[arg(short = 'A', long, requires = "all")]
    pub all_namespaces: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How it is written, and said.
    #[command(flatten)]
    pub change: ChangeArgs,
}

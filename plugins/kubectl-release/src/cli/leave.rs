//! `leave`.

use clap::Args;

use super::{output::OutputArgs, rollback::DryRun};

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
    /// Only say what would be done
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value_t,
        default_missing_value = "client",
        value_name = "WHERE"
    )]
    pub dry_run: DryRun,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

//! `adopt`.

use clap::Args;

use super::{output::OutputArgs, rollback::DryRun};

/// Arguments of `adopt`.
#[derive(Debug, Clone, Args)]
pub struct AdoptArgs {
    /// Name of the target
    pub name: String,
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

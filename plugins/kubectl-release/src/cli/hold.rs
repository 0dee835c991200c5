//! `hold` and `resume`.

use clap::Args;

use super::{output::OutputArgs, rollback::DryRun};

/// Arguments of `hold`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// Name of the target
    pub name: String,
    /// The tag to stay at; without one, forward moves just stop
    pub tag: Option<String>,
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
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// Name of the target
    pub name: String,
    /// A blocked tag that may be tried once more
    #[arg(long, value_name = "TAG")]
    pub allow: Option<String>,
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

//! What all verbs that change something take.

use clap::{Args, ValueEnum};

use super::output::OutputArgs;

/// What is written with `--dry-run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DryRun {
    /// Everything: no dry run
    #[default]
    None,
    /// Nothing: what would be done is said
    Client,
    /// Nothing, but the API server is asked whether it would accept it
    Server,
}

/// Arguments of a change.
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
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

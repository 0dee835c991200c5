//! `version`.

use clap::Args;

use super::output::OutputArgs;

/// Arguments of `version`.
#[derive(Debug, Clone, Args)]
pub struct VersionArgs {
    /// That of the plugin alone; no server is asked
    #[arg(long)]
    pub client: bool,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

//! `why`.

use clap::Args;

use super::output::OutputArgs;

/// Arguments of `why`.
#[derive(Debug, Clone, Args)]
pub struct WhyArgs {
    /// Name of the target
    pub name: String,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

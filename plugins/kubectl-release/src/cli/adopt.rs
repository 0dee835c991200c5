//! `adopt`.

use clap::Args;

use super::change::ChangeArgs;

/// Arguments of `adopt`.
#[derive(Debug, Clone, Args)]
pub struct AdoptArgs {
    /// Name of the target
    pub name: String,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How it is written, and said.
    #[command(flatten)]
    pub change: ChangeArgs,
}

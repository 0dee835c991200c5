//! `hold` and `resume`.

use clap::Args;

use super::change::ChangeArgs;

/// Arguments of `hold`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// Name of the target
    pub name: String,
    /// The tag to stay at; without one, forward moves just stop
    pub tag: Option<String>,
    /// How it is written, and said.
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// Arguments of `resume`.
#[derive(Debug, Clone, Args)]
pub struct ResumeArgs {
    /// Name of the target
    pub name: String,
    /// A blocked tag that may be tried once more
    #[arg(long, value_name = "TAG")]
    pub allow: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How it is written, and said.
    #[command(flatten)]
    pub change: ChangeArgs,
}

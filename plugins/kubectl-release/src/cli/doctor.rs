//! `doctor`.

use clap::Args;

use super::output::OutputArgs;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = crate::facts::doctor::HELP)]
pub struct DoctorArgs {
    /// Name of a target; all of the namespace without one
    pub name: Option<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Labels that the ReleaseTarget must have
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

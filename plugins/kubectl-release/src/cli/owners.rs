//! `owners`.

use std::path::PathBuf;

use clap::Args;

use super::output::OutputArgs;

/// Arguments of `owners`.
#[derive(Debug, Clone, Args)]
pub struct OwnersArgs {
    /// The object: a target's name, KIND/NAME, or KIND and NAME
    #[arg(value_name = "OBJECT", num_args = 0..=2)]
    pub object: Vec<String>,
    /// Objects in files, or - for standard input
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with = "object")]
    pub filename: Vec<PathBuf>,
    /// The field: image, or a path such as .spec.template.spec.containers[name="app"].image
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// YAML with the owner of each line
    #[arg(long, conflicts_with = "path")]
    pub blame: bool,
    /// With --blame: the whole object instead of spec.template
    #[arg(long, requires = "blame")]
    pub all: bool,
    /// End with 3 unless this manager alone owns the field: MANAGER or MANAGER/Apply
    #[arg(long, value_name = "MANAGER", requires = "path")]
    pub expect: Option<String>,
    /// No headers
    #[arg(long)]
    pub no_headers: bool,
    /// Format.
    #[command(flatten)]
    pub output: OutputArgs,
}

//! `belay-operator explain`

use belay_engine::{annotations::RepoSlug, image::is_tag};
use clap::{Args, ValueEnum};

use super::{AnnotationFlags, GithubArguments, InvalidValue};

/// `explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The GitHub repository, as the annotation repo names it
    #[arg(value_name = "OWNER/NAME", value_parser = repository)]
    pub repository: RepoSlug,

    /// The tag of the image that runs; without it, everything is newer than what runs
    #[arg(long, value_name = "TAG", value_parser = tag)]
    pub running: Option<String>,

    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,

    /// How GitHub is reached.
    #[command(flatten)]
    pub github: GithubArguments,

    /// The annotations.
    #[command(flatten)]
    pub annotations: AnnotationFlags,
}

/// `--output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// One JSON object.
    Json,
}

fn repository(text: &str) -> Result<RepoSlug, InvalidValue> {
    text.parse().map_err(|_| InvalidValue::new("expected OWNER/NAME"))
}

fn tag(text: &str) -> Result<String, InvalidValue> {
    if is_tag(text) {
        return Ok(text.to_owned());
    }
    let rule = "expected the tag of an image: at most 128 letters, digits, '_', '.' and '-'";
    Err(InvalidValue::new(rule))
}

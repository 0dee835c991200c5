//! The command line (specification of the plugin, sections "Verbs" and C).

pub mod adopt;
pub mod change;
pub mod cluster;
pub mod completion;
pub mod doctor;
pub mod history;
pub mod hold;
pub mod leave;
pub mod output;
pub mod owners;
pub mod rollback;
pub mod status;
pub mod version;
pub mod why;

use std::time::Duration;

use belay_api::AnnotationPrefix;
use clap::{CommandFactory as _, Parser, Subcommand};

use self::{cluster::ClusterArgs, output::StyleArgs};
use crate::exit::Exit;

const EXAMPLES: &str = "\
Read:
  status       what runs, what should run, and what stands in the way
  history      the Releases of a target, newest first
  owners       who owns each field of an object
Change:
  rollback     go back to an earlier Release
  hold         stop forward moves
  resume       follow new releases again
  adopt        let Belay take the image over from the manager that has it now
  leave        hand the image back to Helm
Diagnose:
  why          the chain of decisions, and its first broken link
  doctor       checks of the installation and of every target
  version      versions of plugin and operator
  completion   completion for shells

Examples:
  kubectl release status -A
  kubectl release status web -n shop -w
  kubectl release rollback web
  kubectl release owners web --path image
";

/// What ends the help.
const DOCUMENTATION: &str = "Documentation: https://github.com/belay-dev/belay/tree/main/docs";

/// What follows the options in the help.
fn after_help() -> String {
    let codes = Exit::ALL.iter().filter(|exit| **exit != Exit::ClosedPipe);
    let codes: Vec<_> =
        codes.map(|exit| format!("  {:<4} {}", exit.code(), exit.describe())).collect();
    format!("{EXAMPLES}\nExit codes:\n{}\n\n{DOCUMENTATION}", codes.join("\n"))
}

/// Shows what image a workload runs, what it should run, who owns the field and why it does not
/// move; rolls back safely next to Helm.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-release",
    version,
    disable_version_flag = true,
    after_help = after_help(),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What applies to every verb.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What applies to every verb.
#[derive(Debug, Clone, clap::Args)]
pub struct GlobalArgs {
    /// Where and as whom.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How it looks.
    #[command(flatten)]
    pub style: StyleArgs,
    /// Prefix of Belay's annotations; by default what the ReleaseTarget says, else belay.dev
    #[arg(long, global = true, value_name = "PREFIX", help_heading = "Global")]
    pub annotation_prefix: Option<AnnotationPrefix>,
    /// Say more about errors; kubectl's levels are accepted
    #[arg(
        short = 'v',
        long = "v",
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_value = "0",
        default_missing_value = "1",
        hide_default_value = true,
        value_name = "LEVEL",
        help_heading = "Global"
    )]
    pub verbosity: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show what runs, what should run, and what stands in the way
    #[command(aliases = ["get", "ls"])]
    Status(status::StatusArgs),
    /// List the Releases of a target, newest first
    #[command(alias = "hist")]
    History(history::HistoryArgs),
    /// Go back to an earlier Release, after a plan and a confirmation
    #[command(alias = "undo")]
    Rollback(rollback::RollbackArgs),
    /// Stop forward moves of a target
    Hold(hold::HoldArgs),
    /// Follow new releases again
    Resume(hold::ResumeArgs),
    /// Let Belay take the image over, once, from the manager that has it now
    Adopt(adopt::AdoptArgs),
    /// Hand the image back to Helm, without a rollout
    Leave(leave::LeaveArgs),
    /// Show who owns the fields of an object
    #[command(alias = "who")]
    Owners(owners::OwnersArgs),
    /// Show the chain of decisions about a target, and its first broken link
    Why(why::WhyArgs),
    /// Check the installation and every target
    Doctor(doctor::DoctorArgs),
    /// Show the versions of plugin and operator
    Version(version::VersionArgs),
    /// Print completion for kubectl or a shell
    Completion(completion::CompletionArgs),
    /// What kubectl's completion asks
    #[command(name = "__complete", hide = true)]
    Complete(completion::CompleteArgs),
}

/// Usage, verbs and examples first; they would be far above the many options that kubectl has.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}{after-help}

{all-args}";

/// The command line under that name, as people read its help. The verbs stand in groups there.
pub fn for_people(name: &'static str) -> clap::Command {
    Cli::command()
        .bin_name(name)
        .override_usage(format!("{name} VERB [OPTIONS]"))
        .help_template(HELP)
        .mut_subcommands(|verb| verb.help_template(HELP).hide(true))
}

/// A duration of Go: `10s`, `1m30s`, `500ms`; a bare number counts seconds.
///
/// # Errors
/// It is none.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration such as 30s, 5m or 1h30m");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let letters = tail.find(|c: char| !c.is_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        for_people("kubectl release").debug_assert();
    }

    #[test]
    fn the_help_has_each_verb_once_and_examples_before_options() {
        let mut command = for_people("kubectl release");
        let help = command.render_help().to_string();
        let verbs = Cli::command();
        for verb in verbs.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let line = format!("\n  {} ", verb.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}{help}");
        }
        let at = |text: &str| help.find(text).unwrap();
        assert!(at("Usage: kubectl release VERB") < at("\nRead:"));
        assert!(at("\nExamples:") < at("\nOptions:"));
    }

    #[rstest]
    #[case("10s", 10_000)]
    #[case("1m30s", 90_000)]
    #[case("1.5h", 5_400_000)]
    #[case("500ms", 500)]
    #[case("0", 0)]
    #[case("7", 7_000)]
    fn a_duration_is_read_as_go_does(#[case] text: &str, #[case] milliseconds: u128) {
        assert_eq!(duration(text).unwrap().as_millis(), milliseconds);
    }

    #[rstest]
    fn what_is_none_is_refused(#[values("", "x", "1y", "-1s", "s", "1e400s", "1..s")] text: &str) {
        duration(text).unwrap_err();
    }
}

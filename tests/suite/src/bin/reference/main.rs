//! Prints what `cargo xtask generate` writes about the programs below `docs/reference/`: one JSON
//! object of file names and texts.

mod command_line;
mod exits;
mod metrics;
mod plugin;
mod rbac;

use std::{collections::BTreeMap, fmt::Write as _, io::Write as _};

use anyhow::Result;
use belay_post_renderer::report::Report;
use clap::CommandFactory as _;

use self::command_line::{about, heading, table};

fn main() -> Result<()> {
    let files = BTreeMap::from([
        ("belay.md", post_renderer()?),
        ("belay-operator.md", operator()?),
        ("belay-report.schema.json", schema()?),
        ("doctor-checks.md", plugin::checks()?),
        ("exit-codes.md", exits::page()?),
        ("kubectl-release.md", plugin::page()?),
        ("metrics.md", metrics::page()?),
        ("rbac.md", rbac::page()?),
    ]);
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&files)?)?;
    Ok(())
}

/// The JSON Schema of `--report json`.
fn schema() -> Result<String> {
    let schema = schemars::schema_for!(Report);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// The command line of `belay`.
fn post_renderer() -> Result<String> {
    let mut command = belay_post_renderer::program::cli::Cli::command();
    command.build();
    let mut page = heading(1, command.get_name());
    page.push_str(&about(&command));
    writeln!(
        page,
        "An option wins over its variable. [The guide](../guide/post-renderer.md) says how to use \
         them; [a schema](belay-report.schema.json) describes what `--report json` prints.\n"
    )?;
    page.push_str(&table(command.get_arguments()));
    Ok(page)
}

/// The command line of `belay-operator`.
fn operator() -> Result<String> {
    let mut command = belay_operator::cli::Cli::command();
    command.build();
    let mut page = heading(1, command.get_name());
    page.push_str(&about(&command));
    writeln!(
        page,
        "An option wins over its variable; a variable that is empty is not set. The chart sets them by \
         its values. [Metrics](metrics.md) are served at `--health-bind`.\n"
    )?;
    for command in command.get_subcommands() {
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        let name = format!("belay-operator {}", command.get_name());
        page.push_str(&heading(2, &name));
        page.push_str(&about(command));
        let (annotations, options): (Vec<_>, Vec<_>) = command
            .get_arguments()
            .partition(|argument| argument.get_help_heading() == Some("Annotations"));
        page.push_str(&table(options));
        if !annotations.is_empty() {
            writeln!(
                page,
                "\nEach [annotation of a workload](annotations.md) is an option of the same name, but \
                 `repo`: `--range '^1'` stands for `range`, `--prereleases` alone for \
                 `prereleases: \"true\"`."
            )?;
        }
        page.push('\n');
    }
    Ok(page.trim_end().to_owned() + "\n")
}

#[cfg(test)]
mod tests;

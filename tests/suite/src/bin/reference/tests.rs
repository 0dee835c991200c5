//! Pages are whole, and no row breaks a table.

use super::*;

/// Rows of all tables; each must have so many bars.
fn rows(page: &str, bars: usize) -> Vec<&str> {
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for row in &rows {
        assert_eq!(row.replace("\\|", "").matches('|').count(), bars, "{row}");
    }
    rows
}

#[test]
fn every_option_of_the_post_renderer_has_its_row() {
    let page = post_renderer().unwrap();
    let options = belay_post_renderer::program::cli::Cli::command().get_arguments().count();
    // clap adds `--help` and `--version` when the command is built.
    assert_eq!(rows(&page, 5).len(), options + 2);
    let mode = "| `--mode auto\\|preserve\\|strip` | `BELAY_MODE` | `auto` | ";
    assert!(page.contains(mode), "{page}");
}

#[test]
fn every_option_of_the_operator_has_its_row_but_annotations() {
    let page = operator().unwrap();
    let rows = rows(&page, 5);
    for row in [
        "| `--scope cluster\\|namespace` | `BELAY_SCOPE` | `cluster` | ",
        "| `--check-platforms true\\|false` | `BELAY_CHECK_PLATFORMS` | `true` | ",
        "| `--admin-bind IP:PORT` | `BELAY_ADMIN_BIND` | `127.0.0.1:8081` | ",
        "| `OWNER/NAME` | – | – | ",
        "| `-o`, `--output table\\|json` | – | `table` | ",
    ] {
        assert!(rows.iter().any(|one| one.starts_with(row)), "{row} is not in {page}");
    }
    assert!(!page.contains("--tag-pattern"), "annotations have a page of their own");
    assert!(!page.contains("replay"), "it is for contributors");
}

#[test]
fn every_metric_has_its_row() {
    let page = metrics::page().unwrap();
    assert_eq!(rows(&page, 5).len(), belay_operator::metrics::ALL.len());
    let row = "| `belay_rollback_terminal_total` | counter | `status`, `namespace`, `driver`, \
               `initiator_type` | ";
    assert!(page.contains(row), "{page}");
}

#[test]
fn every_verb_and_option_of_the_plugin_is_on_its_page_once() {
    let page = plugin::page().unwrap();
    let rows = rows(&page, 5);
    for row in [
        "| `-n`, `--namespace NAME` | – | – | ",
        "| `--request-timeout DURATION` | – | `10s` | ",
        "| `--until ready\\|held\\|rolled-out` | – | – | ",
        "| `--wait[=DURATION]` | – | – | ",
        "| `--to RELEASE\\|TAG\\|-N` | – | – | ",
        "| `-o`, `--output FORMAT` | – | – | ",
    ] {
        assert!(rows.iter().any(|one| one.starts_with(row)), "{row} is not in {page}");
    }
    let contexts = rows.iter().filter(|row| row.contains("--context ")).count();
    assert_eq!(contexts, 1, "an option of every verb is told once");
    for verb in ["status", "history", "rollback", "hold", "resume", "adopt", "leave", "owners"] {
        assert!(page.contains(&format!("## `kubectl release {verb}`\n")), "{verb}");
    }
    assert!(!page.contains("__complete"), "it is for shells");
    assert!(page.contains("Also `hist`."), "{page}");
}

#[test]
fn every_check_of_doctor_has_its_row() {
    let page = plugin::checks().unwrap();
    let checks = kubectl_release::facts::doctor::Check::ALL.len();
    assert_eq!(rows(&page, 3).len(), checks);
    assert!(page.contains("| `RL001` | The API server serves Belay's kinds"), "{page}");
}

#[test]
fn every_exit_code_has_its_row_and_stands_in_the_help() {
    let page = exits::page().unwrap();
    let all: usize = exits::programs().iter().map(|(_, _, codes)| codes.len()).sum();
    assert_eq!(rows(&page, 3).len(), all);
    // One sentence of the help names the codes of these two.
    let help =
        [belay_post_renderer::program::cli::Cli::command(), belay_operator::cli::Cli::command()];
    for (command, (name, _, codes)) in help.iter().zip(exits::programs()) {
        let about = command.get_long_about().unwrap().to_string();
        let (_, told) = about.split_once("Exit codes: ").unwrap();
        let told: Vec<_> = told.split("; ").filter_map(|one| one[..1].parse::<u8>().ok()).collect();
        let codes: Vec<_> = codes.iter().map(|(code, _)| *code).collect();
        assert_eq!(told, codes, "{name}");
    }
    assert!(page.contains("| `124` | --timeout passed |"), "{page}");
}

#[test]
fn the_schema_describes_the_report() {
    let schema: serde_json::Value = serde_json::from_str(&schema().unwrap()).unwrap();
    assert_eq!(schema["title"], "Report");
    assert!(schema["properties"]["decisions"]["items"].is_object(), "{schema}");
}

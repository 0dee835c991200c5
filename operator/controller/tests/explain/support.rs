//! A scripted GitHub and the program.

use std::process::{Command, Output, Stdio};

use belay_testkit::github::{GitHub, NewRelease};
use serde_json::Value;

pub(crate) const REPO: &str = "acme/web";

/// A GitHub that has `acme/web` with these releases, the last one the latest.
pub(crate) fn github(tags: &[&str]) -> GitHub {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    for tag in tags {
        github.publish(REPO, NewRelease::new(*tag)).unwrap();
        // Each is a minute younger than the one before.
        github.advance(std::time::Duration::from_mins(1));
    }
    github
}

/// Runs the program with these words behind `explain`.
pub(crate) fn explain(github: &GitHub, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_belay-operator"))
        .args(["explain", "--github-url", github.base_url()])
        .args(words)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What it prints for people.
pub(crate) fn table(github: &GitHub, words: &[&str]) -> String {
    let output = explain(github, words);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.is_empty(), "{} {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// What it prints for programs.
pub(crate) fn json(github: &GitHub, words: &[&str]) -> Value {
    let text = table(github, &[words, &["-o", "json"]].concat());
    serde_json::from_str(&text).unwrap()
}

/// The candidates as `tag gate`, and the chosen tag.
pub(crate) fn candidates(explained: &Value) -> (Vec<String>, Option<&str>) {
    let candidates = explained["candidates"].as_array().unwrap();
    let word = |one: &Value| {
        let gate = one["gate"].as_str().unwrap_or("free");
        format!("{} {gate}", one["tag"].as_str().unwrap())
    };
    (candidates.iter().map(word).collect(), explained["chosen"].as_str())
}

/// What it says on standard error, and its exit code.
pub(crate) fn failure(github: &GitHub, words: &[&str]) -> (String, Option<i32>) {
    let output = explain(github, words);
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

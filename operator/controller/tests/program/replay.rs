//! `replay`, which `cargo xtask replay` starts.

use std::{
    collections::BTreeMap,
    process::{Command, Output, Stdio},
};

use belay_engine::{
    observed::{Fact, Handicaps, Observed},
    settings::Settings,
};
use belay_operator::replay::DebugFile;
use rstest::rstest;
use serde_json::{Value, json};

/// A target whose workload is gone.
fn file() -> Value {
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    let unknown = || "not read".to_owned();
    let observed = Observed {
        namespace: "shop".to_owned(),
        workload: Fact::known(None, now),
        target: Fact::known(None, now),
        releases: Fact::known(Vec::new(), now),
        rollbacks: Fact::known(Vec::new(), now),
        forge: Fact::Unknown { why: unknown(), read: now },
        images: BTreeMap::new(),
        scaler: None,
        claims: Vec::new(),
        pause_refused: None,
        pods: Fact::known(Vec::new(), now),
        surroundings: Fact::Unknown { why: unknown(), read: now },
        refused: None,
        handicaps: Handicaps::default(),
    };
    serde_json::to_value(DebugFile::of(observed, Settings::default(), now)).unwrap()
}

fn replay(text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("debug.json");
    std::fs::write(&path, text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_belay-operator"))
        .arg("replay")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[rstest]
#[case::same(|_: &mut Value| {}, 0, "the same as recorded\n")]
#[case::none(|file: &mut Value| file["plan"] = Value::Null, 0, "no plan was recorded\n")]
#[case::different(|file: &mut Value| file["plan"]["pods"] = json!(true), 1,
    "DIFFERENT from what was recorded\n")]
fn the_plan_is_printed_and_compared(
    #[case] change: fn(&mut Value),
    #[case] code: i32,
    #[case] verdict: &str,
) {
    let mut file = file();
    let plan = file["plan"].clone();
    change(&mut file);
    let output = replay(&file.to_string());
    assert_eq!(output.status.code(), Some(code));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), verdict);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, plan);
}

#[test]
fn what_is_no_debug_file_is_an_error() {
    let output = replay("not found\n");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("debug.json: read the debug file: "), "{text}");
}

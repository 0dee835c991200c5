//! What is read as metrics is what the definitions say, and no more.

use std::collections::{BTreeMap, BTreeSet};

use belay_adapters::forge::Quota;
use belay_api::reasons::StalledReason;

use super::*;

/// Metrics in which every series there can be has been touched.
fn full() -> Metrics {
    let metrics = Metrics::new();
    metrics.reconciled("settled", Duration::from_millis(2));
    metrics.wrote("Release", "conflict");
    metrics.release_ended(Verdict::Healthy);
    metrics.rollback_ended(&RollbackEnded {
        status: SucceededReason::DeploymentSucceeded,
        namespace: "shop",
        driver: Driver::Native,
        initiator: InitiatorType::User,
        completion: Duration::from_secs(42),
        retries: 1,
    });
    metrics.registry_asked("throttled");
    metrics.tug_of_war();
    metrics.pause_proof(PauseProof::Resumed);
    metrics.pause_proven_after(Duration::from_millis(200));
    metrics.sample_with(|| Sample {
        targets: 7,
        stalled: BTreeMap::from([(StalledReason::TugOfWar, 3)]),
        pauses: 2,
        pauses_overdue: 1,
        forge: ForgeSample {
            polls: 10,
            requests: 20,
            not_modified: 19,
            quota: Some(Quota { limit: 5000, remaining: 4000, reset: jiff::Timestamp::UNIX_EPOCH }),
            last_success: "2026-03-01T12:00:00Z".parse().ok(),
        },
    });
    metrics
}

/// Labels of the series, by name of the metric.
fn series(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut series = BTreeMap::<_, BTreeSet<_>>::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            current = rest.split(' ').next().unwrap().to_owned();
            series.entry(current.clone()).or_default();
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&current), "{line} is not of {current}");
            let labels =
                line.split_once('{').map_or("", |(_, rest)| rest.split('}').next().unwrap());
            let names =
                labels.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
            let names = names.filter(|name| name != "le");
            series.get_mut(&current).unwrap().extend(names);
        }
    }
    series
}

#[test]
fn what_is_read_is_what_is_defined() {
    let defined: BTreeMap<String, BTreeSet<String>> = ALL
        .iter()
        .map(|one| {
            (one.name.to_owned(), one.labels.iter().map(|label| (*label).to_owned()).collect())
        })
        .collect();
    assert_eq!(defined.len(), ALL.len(), "a name is there twice");
    assert_eq!(series(&full().text()), defined);
}

#[test]
fn types_and_meanings_are_those_of_the_definitions() {
    let text = full().text();
    for Definition { name, kind, help, .. } in ALL {
        let lines = format!("# HELP {name} {help}.\n# TYPE {name} {}\n", kind.as_str());
        assert!(text.contains(&lines), "{lines} is not in\n{text}");
    }
}

#[test]
fn values_are_those_that_were_told() {
    let text = full().text();
    for line in [
        "belay_rollback_terminal_total{status=\"DeploymentSucceeded\",namespace=\"shop\",\
         driver=\"native\",initiator_type=\"user\"} 1",
        "belay_targets 7",
        "belay_targets_stalled{reason=\"TugOfWar\"} 3",
        "belay_targets_stalled{reason=\"Broken\"} 0",
        "belay_forge_not_modified_total 19",
        "belay_forge_budget_remaining 4000",
        "belay_forge_last_success_timestamp_seconds 1772366400",
        "belay_write_total{kind=\"Release\",outcome=\"conflict\"} 1",
        concat!("belay_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_completion_of_a_rollback_is_told_from_5_seconds_to_an_hour() {
    let text = full().text();
    let bounds: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("belay_rollback_completion_duration_seconds_bucket"))
        .filter_map(|rest| Some(rest.split_once("le=\"")?.1.split_once('"')?.0.to_owned()))
        .collect();
    assert_eq!(bounds.first().map(String::as_str), Some("5"));
    assert_eq!(bounds.iter().rev().nth(1).map(String::as_str), Some("3600"));
}

#[test]
fn what_is_not_known_is_absent_and_not_zero() {
    let metrics = Metrics::new();
    assert!(!metrics.text().contains("belay_targets"));
    metrics.sample_with(Sample::default);
    let text = metrics.text();
    assert!(text.contains("\nbelay_targets 0\n"), "{text}");
    assert!(!text.contains("belay_forge_budget"), "{text}");
    assert!(!text.contains("last_success"), "{text}");
}

#[test]
fn names_and_labels_are_prometheus_own_spelling() {
    let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    for Definition { name, labels, kind, help } in ALL {
        assert!(name.starts_with("belay_") && is_word(name), "{name}");
        assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
        assert!(labels.iter().all(|label| is_word(label)), "{name}");
        assert!(!help.ends_with('.') && !help.contains('|'), "{help}");
    }
}

//! A file is replayed to what was decided.

use std::collections::BTreeMap;

use belay_engine::{
    observed::{Fact, Forge, Handicaps, Surroundings, TargetRecord, WorkloadFacts},
    selection::GithubReleases,
};
use k8s_openapi::api::apps::v1::Deployment;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-03-01T12:00:00Z";

/// A target at first sight, of which the operator makes a baseline.
fn file() -> DebugFile {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-03-01T11:00:00Z",
            "annotations": { "belay.dev/repo": "acme/web" },
        },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "spec": { "containers": [
                { "name": "app", "image": "ghcr.io/acme/web:1.0.0" },
            ]}},
        },
        "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        },
    }))
    .unwrap();
    let now: Timestamp = NOW.parse().unwrap();
    let forge = Forge::Found {
        repository_id: 1,
        releases: GithubReleases::default(),
        is_anonymous: true,
        is_low: false,
    };
    let observed = Observed {
        namespace: "shop".to_owned(),
        workload: Fact::known(Some(WorkloadFacts::of(&deployment, "belay.dev/release")), now),
        target: Fact::known(None, now),
        releases: Fact::known(Vec::new(), now),
        rollbacks: Fact::known(Vec::new(), now),
        forge: Fact::known(forge, now),
        images: BTreeMap::new(),
        scaler: None,
        claims: Vec::new(),
        pause_refused: None,
        pods: Fact::known(Vec::new(), now),
        surroundings: Fact::known(Surroundings::default(), now),
        refused: None,
        handicaps: Handicaps::default(),
    };
    // Its first plan only writes down that it is followed.
    let settings = Settings::default();
    let status = *plan(&observed, &settings, now).status.unwrap();
    let target = Fact::known(Some(TargetRecord { uid: "t".to_owned(), status }), now);
    let later = now + jiff::SignedDuration::from_secs(60);
    DebugFile::of(Observed { target, ..observed }, settings, later)
}

fn written(change: impl FnOnce(&mut Value)) -> String {
    let mut file = serde_json::to_value(file()).unwrap();
    change(&mut file);
    file.to_string()
}

#[test]
fn the_example_has_a_step() {
    let plan = serde_json::to_value(file().plan).unwrap();
    assert!(plan["step"]["createRelease"].is_object(), "{plan:#}");
}

#[rstest]
#[case::as_it_was(|_: &mut Value| {}, Agreement::Same)]
#[case::no_plan(|file: &mut Value| drop(file.as_object_mut().unwrap().remove("plan")),
    Agreement::NothingRecorded)]
#[case::null(|file: &mut Value| file["plan"] = Value::Null, Agreement::NothingRecorded)]
#[case::another_plan(|file: &mut Value| file["plan"]["step"] = Value::Null, Agreement::Different)]
#[case::another_world(|file: &mut Value| {
    file["observed"]["workload"]["known"]["value"]["annotations"] = json!({});
}, Agreement::Different)]
#[case::more_than_we_know(|file: &mut Value| file["comment"] = json!("seen on Monday"),
    Agreement::Same)]
fn a_file_is_compared_with_what_it_recorded(
    #[case] change: fn(&mut Value),
    #[case] expected: Agreement,
) {
    let replayed = replay(&written(change)).unwrap();
    assert_eq!(replayed.agreement, expected);
}

#[test]
fn what_is_computed_is_what_the_engine_decides() {
    let file = file();
    let text = serde_json::to_string(&file).unwrap();
    let expected = serde_json::to_value(plan(&file.observed, &file.settings, file.now)).unwrap();
    assert_eq!(replay(&text).unwrap().computed, expected);
}

#[rstest]
#[case("")]
#[case("{}")]
#[case("not found\n")]
#[case(r#"{"observed":null,"settings":{},"now":"2026-03-01T12:00:00Z"}"#)]
fn what_is_no_debug_file_is_an_error(#[case] text: &str) {
    let error = replay(text).unwrap_err();
    assert!(matches!(error, ReplayError::Read(_)), "{error:?}");
}

//! What the objects look like in JSON: nothing null, nothing empty, nothing lost.

use belay_api::{
    AutomatedRollbackPolicy, Release, ReleaseTarget, Rollback, policy::PolicyStatus,
    release::ReleaseStatus, rollback::RollbackStatus, target::TargetStatus,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

fn condition() -> Value {
    json!({
        "type": "Ready", "status": "True", "reason": "Healthy", "message": "runs",
        "lastTransitionTime": "2026-11-30T06:00:00Z", "observedGeneration": 3,
    })
}

fn release() -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Release",
        "metadata": { "name": "web-c4c1645", "namespace": "shop" },
        "config": {
            "targetName": "web",
            "revisions": [{
                "name": "application", "id": "v1.9.2", "source": "acme/web", "type": "github",
                "metadata": {
                    "author": "alice", "branch": "main", "message": "fix", "url": "https://x/y",
                },
            }],
            "workloadRef": { "kind": "Deployment", "name": "web", "container": "app" },
        },
        "status": {
            "signature": "c4c1645e7f",
            "images": [{
                "container": "init:migrate", "asked": "ghcr.io/acme/web:1.9.2",
                "stored": "mirror/acme/web:1.9.2", "digest": format!("sha256:{}", "a".repeat(64)),
            }],
            "repositoryID": 9_007_199_254_740_993_i64,
            "activations": [{
                "ordinal": 1, "startTime": "2026-11-30T06:00:00Z",
                "endTime": "2026-11-30T07:00:00Z", "initiator": "GitHub v1.9.2",
                "verdict": "Superseded", "message": "ChangedBy:kubectl-edit",
                "workload": { "uid": "b3f4a1c2-0000-4000-8000-000000000001" },
            }],
            "previousRelease": {
                "releaseRef": { "target": "web", "name": "web-3fe6a64" },
                "transitionTime": "2026-11-30T06:00:00Z",
            },
            "progress": {
                "updated": 2, "available": 1, "old": 1,
                "wanted": 3, "lastProgressTime": "2026-11-30T06:00:00Z",
                "succeededTime": "2026-11-30T06:00:00Z", "bakeSince": "2026-11-30T06:00:00Z",
                "bakeTotal": "45s", "brokenSince": "2026-11-30T06:00:00Z",
            },
            "conditions": [condition()],
        },
    })
}

fn rollback() -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Rollback",
        "metadata": { "name": "web-c4c1645-to-3fe6a64", "namespace": "shop" },
        "spec": {
            "toReleaseRef": { "target": "web", "name": "web-3fe6a64" },
            "reason": "errors at checkout",
            "initiatedBy": { "principal": "alice", "type": "user" },
            "driver": "argocd",
            "deploymentOptions": { "a": { "b": [1, null, "c"] }, "d": false },
            "force": true,
            "timeout": "1h30m",
        },
        "status": {
            "fromReleaseRef": { "target": "web", "name": "web-c4c1645" },
            "toReleaseRef": { "target": "web", "name": "web-3fe6a64" },
            "attemptCount": 2,
            "nextAttemptTime": "2026-11-30T06:00:00Z",
            "startTime": "2026-11-30T06:00:00Z",
            "completionTime": "2026-11-30T06:00:00Z",
            "deploymentID": "17",
            "deploymentURL": "https://x/17",
            "automatic": true,
            "rejection": "ManagedByGitOps",
            "message": "m",
            "conditions": [condition()],
        },
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "AutomatedRollbackPolicy",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "targetName": "web",
            "enabled": false,
            "trigger": { "conditionType": "Healthy", "conditionStatus": "False" },
            "rollbackTemplate": {
                "metadata": { "labels": { "team": "shop" }, "annotations": { "a/b": "c" } },
                "spec": {
                    "driver": "noop", "deploymentOptions": { "x": [1] }, "timeout": "45m",
                },
            },
        },
        "status": {
            "lastAutomatedRollbackTime": "2026-11-30T06:00:00Z",
            "latchedFor": "web-c4c1645",
            "conditions": [condition()],
        },
    })
}

fn target() -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "ReleaseTarget",
        "metadata": { "name": "web", "namespace": "shop" },
        "status": {
            "instance": "belay-system/belay-operator",
            "annotationPrefix": "belay.dev",
            "workload": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1",
            },
            "containers": ["app", "init:migrate"],
            "current": {
                "image": "r/web:1.9.2", "tag": "1.9.2",
                "digest": format!("sha256:{}", "b".repeat(64)), "release": "web-c4c1645",
            },
            "wanted": {
                "image": "r/web:2.0.0", "tag": "2.0.0", "release": "web-3fe6a64",
                "since": "2026-11-30T06:00:00Z",
            },
            "candidates": [{
                "tag": "v2.0.0", "gate": "WaitingForImage", "message": "not there",
                "since": "2026-11-30T06:00:00Z",
            }],
            "active": "web-c4c1645",
            "hold": "1.9.2",
            "blocked": [{
                "from": "v2.0.0", "to": "v1.9.2", "reason": "RolledBackByHelm",
                "until": "2026-11-30T07:00:00Z", "count": 2,
            }],
            "reverts": [{
                "manager": "helm", "value": "r/web:1.9.1", "time": "2026-11-30T06:00:00Z",
            }],
            "pause": {
                "scaledObject": "web", "mode": "scale-in", "release": "web-3fe6a64",
                "expires": "2026-11-30T07:00:00Z",
            },
            "waiting": { "reason": "ImageBackoff", "until": "2026-11-30T06:05:00Z" },
            "forge": { "budget": "exhausted", "resetTime": "2026-11-30T07:00:00Z" },
            "conditions": [condition()],
        },
    })
}

/// Reads `json` as `T` and writes it again.
fn through<T: Serialize + DeserializeOwned>(json: &Value) -> serde_json::Result<Value> {
    let object: T = serde_json::from_value(json.clone())?;
    serde_json::to_value(object)
}

#[test]
fn an_object_with_every_field_is_read_and_written_unchanged() {
    assert_eq!(through::<Release>(&release()).unwrap(), release());
    assert_eq!(through::<Rollback>(&rollback()).unwrap(), rollback());
    assert_eq!(through::<AutomatedRollbackPolicy>(&policy()).unwrap(), policy());
    assert_eq!(through::<ReleaseTarget>(&target()).unwrap(), target());
}

/// A fixture that leaves a field out would prove nothing: each property of a CRD's schema must be
/// in it.
#[test]
fn the_fixtures_have_every_field_of_the_crds() {
    fn missing(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match value.get(name) {
                Some(value) => missing(inner, value, &path, found),
                None => found.push(path),
            }
        }
        if let Some(items) = schema.get("items") {
            missing(items, &value[0], path, found);
        }
    }

    let mut found = Vec::new();
    let objects = [release(), rollback(), policy(), target()];
    for (crd, object) in
        belay_api::crd::all(&belay_api::AnnotationPrefix::default()).iter().zip(objects)
    {
        let crd = serde_json::to_value(crd).unwrap();
        assert_eq!(crd["spec"]["names"]["kind"], object["kind"]);
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        missing(schema, &object, object["kind"].as_str().unwrap(), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_empty_status_is_an_empty_object() {
    assert_eq!(serde_json::to_value(ReleaseStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(RollbackStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(PolicyStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(TargetStatus::default()).unwrap(), json!({}));
}

/// Fields that a server-side apply names are owned, also where they say nothing.
#[test]
fn what_is_not_set_is_not_written() {
    fn without_optional<T: Serialize + DeserializeOwned>(object: &Value, status: &Value) {
        let mut object = object.clone();
        object["status"] = status.clone();
        assert_eq!(&through::<T>(&object).unwrap()["status"], status);
    }

    let time = "2026-11-30T06:00:00Z";
    without_optional::<Release>(
        &release(),
        &json!({
            "images": [{ "container": "app", "asked": "r/web:1" }],
            "activations": [{ "ordinal": 1, "startTime": time }],
            "progress": {},
        }),
    );
    without_optional::<Rollback>(&rollback(), &json!({ "message": "m" }));
    without_optional::<AutomatedRollbackPolicy>(&policy(), &json!({ "latchedFor": "x" }));
    without_optional::<ReleaseTarget>(
        &target(),
        &json!({
            "current": {},
            "wanted": {},
            "candidates": [{ "tag": "v1" }],
            "blocked": [{ "from": "v1", "reason": "RolledBack" }],
            "waiting": { "reason": "ConcurrencyLimit" },
            "forge": { "budget": "ok" },
        }),
    );
}

#[test]
fn defaults_are_filled_in_when_read() {
    let rollback: Rollback = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Rollback", "metadata": {},
        "spec": {
            "toReleaseRef": { "target": "web" },
            "reason": "r",
            "initiatedBy": { "principal": "alice", "type": "user" },
        },
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_value(&rollback.spec).unwrap(),
        json!({
            "toReleaseRef": { "target": "web" },
            "reason": "r",
            "initiatedBy": { "principal": "alice", "type": "user" },
            "driver": "native",
            "timeout": "30m",
        })
    );

    let policy: AutomatedRollbackPolicy = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "AutomatedRollbackPolicy", "metadata": {},
        "spec": { "targetName": "web", "enabled": true },
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_value(&policy.spec).unwrap(),
        json!({
            "targetName": "web",
            "enabled": true,
            "trigger": { "conditionType": "RollbackRequired", "conditionStatus": "True" },
        })
    );
}

#[test]
fn a_status_of_a_newer_operator_is_read() {
    let mut newer = target();
    newer["status"]["candidates"][0]["gate"] = json!("Eclipse");
    newer["status"]["waiting"]["reason"] = json!("Moonrise");
    newer["status"]["orbit"] = json!({ "x": 1 });
    let read = through::<ReleaseTarget>(&newer).unwrap();
    assert_eq!(read["status"]["candidates"][0]["gate"], "Eclipse");
    assert_eq!(read["status"]["waiting"]["reason"], "Moonrise");
}

#[test]
fn the_signature_follows_from_the_configuration() {
    let object: Release = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "metadata": {},
        "config": {
            "targetName": "test-target",
            "revisions": [
                { "name": "database", "id": "def456", "type": "git" },
                { "name": "application", "id": "abc123", "metadata": { "author": "alice" } },
            ],
        },
    }))
    .unwrap();
    assert_eq!(object.config().signature().as_str(), "3fe6a64d52");
}

#[test]
fn a_rollback_has_ended_once_succeeded_is_known() {
    let mut status = RollbackStatus::default();
    assert!(!status.is_terminal());
    for (word, ended) in [("Unknown", false), ("True", true), ("False", true)] {
        let mut condition = condition();
        condition["type"] = json!("Succeeded");
        condition["status"] = json!(word);
        status.conditions = vec![serde_json::from_value(condition).unwrap()];
        assert_eq!(status.is_terminal(), ended, "{word}");
    }
}

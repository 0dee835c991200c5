//! What the stores say after a series of events.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;

pub(super) struct Bench {
    pub(super) stores: Stores,
    rung: Arc<Mutex<Vec<String>>>,
}

pub(super) fn bench() -> Bench {
    let rung: Arc<Mutex<Vec<String>>> = Arc::default();
    let ring = rung.clone();
    let change: Change = Box::new(move |key: &Key| ring.lock().unwrap().push(key.to_string()));
    Bench { stores: stores(change), rung }
}

fn stores(change: Change) -> Stores {
    let settings = belay_engine::settings::Settings {
        pause_marks: vec!["old.example/paused".to_owned()],
        ..belay_engine::settings::Settings::default()
    };
    Stores::new(settings.prefix.clone(), PauseKeys::of(&settings), change)
}

impl Bench {
    pub(super) fn rung(&self) -> Vec<String> {
        std::mem::take(&mut *self.rung.lock().unwrap())
    }

    fn seen(&self, name: &str) -> Seen {
        self.stores.look(&Key::new("shop", name))
    }
}

fn deployment(name: &str, version: u32, created: &str, annotations: &[(&str, &str)]) -> Deployment {
    let annotations: serde_json::Map<String, Value> =
        annotations.iter().map(|(key, value)| (format!("belay.dev/{key}"), json!(value))).collect();
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
            "creationTimestamp": format!("2026-01-{created}T00:00:00Z"),
            "annotations": annotations,
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"spec": {"containers": [{"name": "app", "image": "ghcr.io/acme/web:1"}]}},
        },
    }))
    .unwrap()
}

fn release(target: &str, tag: &str, version: u32, status: &Value) -> Release {
    serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release",
        "metadata": {
            "name": format!("{target}-{tag}"), "namespace": "shop", "uid": format!("uid-{tag}"),
            "resourceVersion": version.to_string(),
            "annotations": {"belay.dev/blocked": json!({
                "from": {"tag": tag}, "reason": "RolloutFailed", "count": 1, "ordinal": 1,
            }).to_string()},
        },
        "config": {
            "targetName": target,
            "revisions": [{"name": "application", "id": tag, "source": "acme/web"}],
        },
        "status": status,
    }))
    .unwrap()
}

fn target(name: &str, workload: &str) -> ReleaseTarget {
    serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "ReleaseTarget",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"},
        "status": {"workload": {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": workload, "uid": "uid",
        }},
    }))
    .unwrap()
}

fn rolling(reason: &str, verdict: Option<&str>) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let mut activation = json!({"ordinal": 1, "startTime": time});
    if let Some(verdict) = verdict {
        activation["verdict"] = json!(verdict);
        activation["endTime"] = json!(time);
    }
    json!({
        "activations": [activation],
        "conditions": [{
            "type": "Ready", "status": "Unknown", "reason": reason, "message": "",
            "lastTransitionTime": time,
        }],
    })
}

const FOLLOWED: &[(&str, &str)] = &[("repo", "acme/web")];
const AS_WEB: &[(&str, &str)] = &[("repo", "acme/web"), ("target", "web")];

#[test]
fn only_followed_workloads_are_kept() {
    let bench = bench();
    deployment("web", 1, "01", FOLLOWED).put(&bench.stores);
    deployment("other", 1, "01", &[]).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"]);
    assert!(bench.seen("web").workload.is_some() && bench.seen("other").workload.is_none());
    deployment("web", 2, "01", &[]).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"], "what is followed no more is looked at once more");
    assert!(bench.seen("web").workload.is_none());
}

#[test]
fn an_older_version_never_replaces_a_newer_one() {
    let bench = bench();
    deployment("web", 7, "01", FOLLOWED).put(&bench.stores);
    bench.rung();
    deployment("web", 6, "01", &[("repo", "acme/old")]).put(&bench.stores);
    deployment("web", 7, "01", FOLLOWED).put(&bench.stores);
    assert!(bench.rung().is_empty(), "nothing is new");
    let repo = bench.seen("web").workload.unwrap().repo.clone().unwrap();
    assert_eq!(repo.as_str(), "acme/web");
}

#[test]
fn of_two_workloads_with_one_target_the_younger_names_the_older() {
    let bench = bench();
    deployment("young", 1, "02", AS_WEB).put(&bench.stores);
    bench.rung();
    deployment("web", 2, "01", FOLLOWED).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web", "shop/young"], "both are looked at");
    assert_eq!(bench.seen("young").duplicate_of.as_deref(), Some("Deployment/web"));
    assert_eq!(bench.seen("web").duplicate_of, None);
    Deployment::remove(&bench.stores, "shop", "web");
    assert!(bench.rung().contains(&"shop/young".to_owned()));
    assert_eq!(bench.seen("young").duplicate_of, None);
}

#[test]
fn the_objects_of_a_target_ring_for_its_workload() {
    let bench = bench();
    deployment("web", 1, "01", FOLLOWED).put(&bench.stores);
    bench.rung();
    release("web", "v1", 1, &json!({})).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"]);
    assert_eq!(bench.seen("web").releases.len(), 1);
    Release::remove(&bench.stores, "shop", "web-v1");
    assert_eq!(bench.rung(), ["shop/web"]);
    assert!(bench.seen("web").releases.is_empty());
}

#[test]
fn a_record_under_another_name_is_a_former_one() {
    let bench = bench();
    target("web", "web").put(&bench.stores);
    target("old", "web").put(&bench.stores);
    assert!(bench.rung().iter().all(|key| key == "shop/web"));
    deployment("web", 1, "01", FOLLOWED).put(&bench.stores);
    let seen = bench.seen("web");
    assert_eq!(seen.target.unwrap().metadata.name.as_deref(), Some("web"));
    let former = |workload: &str| -> Vec<String> {
        let former = bench.seen(workload).former;
        former.iter().map(|one| one.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(former("web"), ["old"]);
    // It says another one now, then it goes.
    let mut moved = target("old", "api");
    moved.metadata.resource_version = Some("2".to_owned());
    moved.put(&bench.stores);
    deployment("api", 1, "02", FOLLOWED).put(&bench.stores);
    assert_eq!((former("web"), former("api")), (vec![], vec!["old".to_owned()]));
    ReleaseTarget::remove(&bench.stores, "shop", "old");
    assert_eq!(former("api"), [] as [String; 0]);
}

#[test]
fn rollouts_and_failures_elsewhere_are_those_of_other_targets() {
    let bench = bench();
    deployment("web", 1, "01", FOLLOWED).put(&bench.stores);
    deployment("api", 1, "01", FOLLOWED).put(&bench.stores);
    release("web", "v1", 1, &rolling("Rolling", None)).put(&bench.stores);
    release("api", "v1", 2, &rolling("Rolling", None)).put(&bench.stores);
    release("job", "v2", 3, &rolling("Failed", Some("Failed"))).put(&bench.stores);
    let seen = bench.seen("web");
    let rolling: Vec<_> = seen.rolling_elsewhere.iter().map(|(_, target)| target.clone()).collect();
    assert_eq!(rolling, ["api"]);
    assert_eq!(seen.failed_elsewhere, ["v2"]);
}

/// Counts how often others hear that they may go on.
fn freed(bench: &Bench) -> Arc<Mutex<u32>> {
    let freed: Arc<Mutex<u32>> = Arc::default();
    let count = freed.clone();
    bench.stores.when_freed(move || *count.lock().unwrap() += 1);
    freed
}

#[test]
fn a_rollout_whose_workload_is_gone_takes_no_place() {
    let bench = bench();
    let freed = freed(&bench);
    for name in ["web", "api", "job"] {
        deployment(name, 1, "01", FOLLOWED).put(&bench.stores);
        release(name, "v1", 1, &rolling("Rolling", None)).put(&bench.stores);
    }
    assert_eq!(bench.seen("web").rolling_elsewhere.len(), 2);
    Deployment::remove(&bench.stores, "shop", "api");
    assert_eq!(bench.seen("web").rolling_elsewhere.len(), 1);
    deployment("job", 2, "01", &[]).put(&bench.stores);
    assert!(bench.seen("web").rolling_elsewhere.is_empty());
    assert_eq!(*freed.lock().unwrap(), 2, "others may go on, and hear so");
    deployment("other", 1, "01", &[]).put(&bench.stores);
    Deployment::remove(&bench.stores, "shop", "other");
    assert_eq!(*freed.lock().unwrap(), 2, "what nobody follows concerns nobody");
}

#[test]
fn others_hear_when_a_rollout_ends() {
    let bench = bench();
    let freed = freed(&bench);
    release("web", "v1", 1, &rolling("Rolling", None)).put(&bench.stores);
    release("web", "v1", 2, &rolling("Rolling", None)).put(&bench.stores);
    assert_eq!(*freed.lock().unwrap(), 0);
    release("web", "v1", 3, &rolling("Baking", None)).put(&bench.stores);
    assert_eq!(*freed.lock().unwrap(), 1, "a complete rollout takes no place");
    release("web", "v1", 4, &rolling("Healthy", Some("Healthy"))).put(&bench.stores);
    assert_eq!(*freed.lock().unwrap(), 2, "a success elsewhere counts");
}

fn rollback(target: &str, name: &str, version: u32, status: &Value) -> Rollback {
    serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Rollback",
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
        },
        "spec": {
            "toReleaseRef": {"target": target}, "reason": "because",
            "initiatedBy": {"principal": "alice", "type": "user"},
        },
        "status": status,
    }))
    .unwrap()
}

impl Bench {
    fn unfollowed(&self, target: &str) -> Vec<String> {
        let all = self.stores.unfollowed(&("shop".to_owned(), target.to_owned()));
        all.iter().map(|one| one.metadata.name.clone().unwrap()).collect()
    }
}

#[test]
fn a_rollback_of_a_target_that_nobody_has_is_looked_at_by_its_own_name() {
    let bench = bench();
    release("web", "v1", 1, &json!({})).put(&bench.stores);
    assert!(bench.rung().is_empty(), "Releases of such a target are others' business");
    rollback("web", "back", 2, &json!({})).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"]);
    assert_eq!(bench.unfollowed("web"), ["back"]);
    deployment("shop", 3, "01", AS_WEB).put(&bench.stores);
    assert!(bench.unfollowed("web").is_empty(), "somebody has it now");
    bench.rung();
    Deployment::remove(&bench.stores, "shop", "shop");
    assert_eq!(bench.unfollowed("web"), ["back"]);
    let ended = json!({"conditions": [{
        "type": "Succeeded", "status": "False", "reason": "Rejected", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    rollback("web", "back", 4, &ended).put(&bench.stores);
    assert!(bench.unfollowed("web").is_empty(), "it has ended");
}

#[test]
fn the_record_of_an_operator_with_another_prefix_is_left_alone() {
    let bench = bench();
    let mut record = target("web", "web");
    let status = record.status.as_mut().unwrap();
    status.annotation_prefix = Some("other.example".to_owned());
    record.clone().put(&bench.stores);
    assert!(bench.seen("web").former.is_empty());
    record.status.as_mut().unwrap().annotation_prefix = Some("belay.dev".to_owned());
    record.metadata.resource_version = Some("2".to_owned());
    record.put(&bench.stores);
    assert_eq!(bench.seen("web").former.len(), 1, "it is followed no more");
}

#[test]
fn while_there_is_a_record_rollbacks_wait_and_are_looked_at_when_it_goes() {
    let bench = bench();
    target("web", "other").put(&bench.stores);
    rollback("web", "back", 2, &json!({})).put(&bench.stores);
    assert!(bench.unfollowed("web").is_empty());
    bench.rung();
    ReleaseTarget::remove(&bench.stores, "shop", "web");
    assert_eq!(bench.rung(), ["shop/web"]);
    assert_eq!(bench.unfollowed("web"), ["back"]);
}

//! What the stores keep of ScaledObjects, and whom a change concerns.

use rstest::rstest;
use serde_json::{Value, json};

use super::{
    tests::{Bench, bench},
    *,
};

const SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const OWNER: &str = "belay.dev/pause-owner";
const MARK: &str = "old.example/paused";

impl Bench {
    fn claims(&self, workload: &str) -> Vec<String> {
        let seen = self.stores.look(&Key::new("shop", workload));
        seen.claims.iter().map(|claim| claim.scaled_object.clone()).collect()
    }

    fn unfollowed_claims(&self, name: &str) -> Vec<String> {
        let claims = self.stores.unfollowed_claims(&("shop".to_owned(), name.to_owned()));
        claims.iter().map(|claim| claim.scaled_object.clone()).collect()
    }

    fn follow(&self, name: &str, version: u32, day: u32, annotations: &[(&str, &str)]) {
        let mut all = json!({ "belay.dev/repo": "acme/web" });
        for (key, value) in annotations {
            all[format!("belay.dev/{key}")] = json!(value);
        }
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {
                "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
                "resourceVersion": version.to_string(), "annotations": all,
                "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
            },
            "spec": { "selector": {}, "template": {} },
        }))
        .unwrap();
        deployment.put(&self.stores);
    }
}

fn owner(target: &str) -> String {
    json!({
        "instance": "belay/belay-operator", "target": target, "release": "r",
        "since": "2026-01-01T00:00:00Z",
    })
    .to_string()
}

/// A ScaledObject with these annotations, which our manager owns.
fn scaled_object(name: &str, version: u32, annotations: &Value) -> ScaledObject {
    let fields: serde_json::Map<_, _> = annotations
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| (format!("f:{key}"), json!({})))
        .collect();
    serde_json::from_value(json!({ "metadata": {
        "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1,
        "resourceVersion": version.to_string(), "annotations": annotations,
        "managedFields": [{
            "manager": "belay-operator-pause", "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": "keda.sh/v1alpha1",
            "fieldsV1": { "f:metadata": { "f:annotations": fields } },
        }],
    } }))
    .unwrap()
}

fn claimed(name: &str, version: u32, target: &str) -> ScaledObject {
    scaled_object(name, version, &json!({ SCALE_IN: "true", OWNER: owner(target) }))
}

#[test]
fn a_claim_belongs_to_its_target_wherever_the_workload_points_now() {
    let bench = bench();
    bench.follow("web", 1, 1, &[("scaledobject", "other")]);
    bench.rung();
    claimed("web-scaler", 1, "web").put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"]);
    assert_eq!(bench.claims("web"), ["web-scaler"]);
    // KEDA writes its status.
    claimed("web-scaler", 2, "web").put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"], "a drop needs the newest version");
    claimed("web-scaler", 1, "web").put(&bench.stores);
    assert_eq!(bench.rung(), [""; 0], "an older version changes nothing");
    scaled_object("web-scaler", 3, &json!({})).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"]);
    assert_eq!(bench.claims("web"), [""; 0]);
    scaled_object("web-scaler", 4, &json!({})).put(&bench.stores);
    assert_eq!(bench.rung(), [""; 0], "it is nobody's business any more");
}

#[test]
fn of_a_scaled_object_without_a_claim_only_what_matters_rings() {
    let bench = bench();
    bench.follow("web", 1, 1, &[("scaledobject", "web-scaler")]);
    bench.rung();
    let object = |version, annotations: &Value| {
        let mut object = scaled_object("web-scaler", version, annotations);
        object.metadata.managed_fields = None;
        object
    };
    object(1, &json!({})).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"], "it is new");
    object(2, &json!({ "team": "a" })).put(&bench.stores);
    assert_eq!(bench.rung(), [""; 0]);
    object(3, &json!({ SCALE_IN: "true" })).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"], "a person pauses it");
    assert_eq!(bench.claims("web"), [""; 0]);
    let mut changed = object(4, &json!({ SCALE_IN: "true" }));
    changed.metadata.generation = Some(2);
    changed.put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web"], "its spec is another");
    ScaledObject::remove(&bench.stores, "shop", "web-scaler");
    assert_eq!(bench.rung(), ["shop/web"], "it goes");
    ScaledObject::remove(&bench.stores, "shop", "web-scaler");
    assert_eq!(bench.rung(), [""; 0]);
}

#[test]
fn a_claim_outlives_its_target_under_a_key_of_its_own() {
    let bench = bench();
    bench.follow("web", 1, 1, &[("target", "shop-web")]);
    claimed("web-scaler", 1, "shop-web").put(&bench.stores);
    assert_eq!(bench.unfollowed_claims("shop-web"), [""; 0]);
    bench.rung();
    // The target is renamed: nobody has the old one any more.
    bench.follow("web", 2, 1, &[("target", "renamed")]);
    assert_eq!(bench.rung(), ["shop/web", "shop/shop-web"]);
    assert_eq!(bench.claims("web"), [""; 0]);
    assert_eq!(bench.unfollowed_claims("shop-web"), ["web-scaler"]);
    assert_eq!(bench.stores.claimed(), [Key::new("shop", "shop-web")]);
    Deployment::remove(&bench.stores, "shop", "web");
    claimed("web-scaler", 2, "shop-web").put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web", "shop/shop-web"]);
}

#[rstest]
#[case::unreadable(json!({ SCALE_IN: "true", OWNER: "?" }))]
#[case::marks(json!({ MARK: "" }))]
#[test]
fn what_names_no_target_is_the_business_of_whoever_has_the_object(#[case] annotations: Value) {
    let bench = bench();
    scaled_object("web-scaler", 1, &annotations).put(&bench.stores);
    assert_eq!(bench.rung(), ["shop/web-scaler"]);
    assert_eq!(bench.unfollowed_claims("web-scaler"), ["web-scaler"]);
    bench.follow("web", 1, 1, &[("scaledobject", "web-scaler")]);
    assert_eq!(bench.claims("web"), ["web-scaler"]);
    assert_eq!(bench.unfollowed_claims("web-scaler"), [""; 0]);
    bench.rung();
    bench.follow("web", 2, 1, &[]);
    assert_eq!(bench.rung(), ["shop/web", "shop/web-scaler"]);
    assert_eq!(bench.unfollowed_claims("web-scaler"), ["web-scaler"]);
}

#[test]
fn of_two_targets_with_one_scaled_object_the_older_has_it() {
    let bench = bench();
    bench.follow("new", 1, 9, &[("scaledobject", "shared")]);
    bench.rung();
    bench.follow("old", 1, 1, &[("scaledobject", "shared")]);
    assert_eq!(bench.rung(), ["shop/new", "shop/old"]);
    let of = |name: &str| bench.stores.look(&Key::new("shop", name)).scaled_object_of;
    assert_eq!((of("new"), of("old")), (Some("Deployment/old".to_owned()), None));
    Deployment::remove(&bench.stores, "shop", "old");
    assert_eq!(bench.rung(), ["shop/old", "shop/new"]);
    assert_eq!(of("new"), None);
}

#[test]
fn a_claim_of_two_workloads_is_the_older_ones() {
    let bench = bench();
    bench.follow("new", 1, 9, &[("target", "web")]);
    bench.follow("old", 1, 1, &[("target", "web")]);
    claimed("web-scaler", 1, "web").put(&bench.stores);
    assert_eq!((bench.claims("new"), bench.claims("old")), (vec![], vec!["web-scaler".to_owned()]));
}

//! What an apply of a body owns. The real API server's word on the same bodies is in the suite.

use belay_ownership::{
    Schema,
    claim::{BodyError, fields_of},
};
use rstest::rstest;
use serde_json::{Value, json};

fn paths(body: &Value, schema: Schema) -> Vec<String> {
    fields_of(body, schema).unwrap().iter().map(|wanted| wanted.path.to_string()).collect()
}

#[test]
fn an_image_claim_is_the_item_its_name_and_the_image() {
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "uid": "u", "resourceVersion": "7",
                      "annotations": { "belay.dev/release": "web-1" } },
        "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": "a:2" }] } } },
    });
    assert_eq!(
        paths(&body, Schema::Deployment),
        [
            ".metadata.annotations['belay.dev/release']",
            ".spec.template.spec.containers[name=\"app\"]",
            ".spec.template.spec.containers[name=\"app\"].image",
            ".spec.template.spec.containers[name=\"app\"].name",
        ]
    );
}

#[rstest]
#[case::an_atomic_list(json!({ "tolerations": [{ "key": "a" }] }), &[".tolerations"])]
#[case::an_atomic_map(json!({ "nodeSelector": { "a": "b" } }), &[".nodeSelector"])]
#[case::an_atomic_item(json!({ "imagePullSecrets": [{ "name": "s" }] }), &[".imagePullSecrets[name=\"s\"]"])]
#[case::an_empty_keyed_list(json!({ "containers": [] }), &[])]
#[case::an_empty_map(json!({ "securityContext": {} }), &[".securityContext"])]
#[case::a_default_in_a_key(
    json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 80 }] }] }),
    &[
        ".containers[name=\"a\"]",
        ".containers[name=\"a\"].name",
        ".containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"]",
        ".containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
    ]
)]
fn the_pod_template_follows_its_schema(#[case] pod: Value, #[case] expected: &[&str]) {
    let body = json!({ "spec": { "template": { "spec": pod } } });
    let found = paths(&body, Schema::Deployment);
    let found: Vec<_> =
        found.iter().map(|path| path.strip_prefix(".spec.template.spec").unwrap()).collect();
    assert_eq!(found, expected);
}

#[test]
fn finalizers_are_a_set_and_unknown_lists_are_wholes() {
    let body =
        json!({ "metadata": { "finalizers": ["b", "a"] }, "spec": { "triggers": [{ "x": 1 }] } });
    assert_eq!(
        paths(&body, Schema::Metadata),
        [".metadata.finalizers[=\"a\"]", ".metadata.finalizers[=\"b\"]", ".spec.triggers"]
    );
}

#[test]
fn an_item_without_its_key_is_refused() {
    let body = json!({ "spec": { "template": { "spec": { "containers": [{ "image": "a" }] } } } });
    let error = fields_of(&body, Schema::Deployment).unwrap_err();
    let expected =
        "list the fields of an apply: an item of .spec.template.spec.containers lacks its key";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_body_nested_too_deep_is_refused() {
    let body = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert_eq!(fields_of(&body, Schema::Metadata).unwrap_err(), BodyError::TooDeep);
}

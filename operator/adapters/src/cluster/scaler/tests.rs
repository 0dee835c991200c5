//! What is read of a ScaledObject, and what its annotations mean.

use belay_api::annotations::PauseMode;
use belay_engine::{
    observed::{HpaFacts, PauseKey, PauseKind, Scaler, ScalerFacts},
    settings::Settings,
};
use kube::api::ObjectMeta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{PauseKeys, Scalers};
use crate::{
    Clock,
    cluster::{
        Class, WriteError,
        fake::{Answer, Server},
    },
};

const OWNER: &str = "belay.dev/pause-owner";
const EXPIRES: &str = "belay.dev/pause-expires";
const SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const PAUSED: &str = "autoscaling.keda.sh/paused";
const US: &str = "belay-operator-pause";

fn keys() -> PauseKeys {
    let marks = vec!["old.example/paused-by".to_owned()];
    PauseKeys::of(&Settings { pause_marks: marks, ..Settings::default() })
}

fn entry(manager: &str, operation: &str, keys: &[&str]) -> Value {
    let fields: serde_json::Map<_, _> =
        keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
    json!({
        "manager": manager, "operation": operation, "apiVersion": "keda.sh/v1alpha1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:metadata": { "f:annotations": fields } },
    })
}

/// Metadata with these annotations, all with the value `true`, and entries.
fn metadata(annotations: &[&str], entries: &[Value]) -> Value {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|key| ((*key).to_owned(), json!("true"))).collect();
    json!({
        "name": "web-scaler", "namespace": "shop", "uid": "s-1", "resourceVersion": "12",
        "annotations": annotations, "managedFields": entries,
    })
}

fn meta(value: Value) -> ObjectMeta {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_claim_says_whose_it_is_until_when_and_how() {
    let mut object = metadata(
        &[SCALE_IN, OWNER, EXPIRES],
        &[entry(US, "Apply", &[SCALE_IN, OWNER, EXPIRES]), entry("kubectl", "Update", &["team"])],
    );
    object["annotations"][OWNER] = json!(
        "{\"instance\":\"belay/op\",\"target\":\"web\",\"release\":\"web-1\",\
         \"since\":\"2026-01-01T00:00:00Z\"}"
    );
    object["annotations"][EXPIRES] = json!("2026-01-01T01:00:00Z");
    let found = keys().claim(&meta(object)).unwrap();
    assert_eq!(found.claim.unwrap().target, "web");
    assert_eq!(found.expires, Some("2026-01-01T01:00:00Z".parse().unwrap()));
    assert_eq!(found.mode, Some(PauseMode::ScaleIn));
    let object =
        (found.scaled_object.as_str(), found.uid.as_str(), found.resource_version.as_str());
    assert_eq!(object, ("web-scaler", "s-1", "12"));
}

#[rstest]
#[case::nothing(&[], &[], false, None)]
#[case::a_persons_pause(&[PAUSED], &[entry("kubectl", "Update", &[PAUSED])], false, None)]
// Somebody has applied what he once read.
#[case::a_copy_of_a_claim(
    &[SCALE_IN, OWNER], &[entry("kubectl", "Apply", &[SCALE_IN, OWNER])], false, None
)]
#[case::of_our_name_but_no_apply(&[SCALE_IN], &[entry(US, "Update", &[SCALE_IN])], false, None)]
#[case::unreadable(&[SCALE_IN, OWNER], &[entry(US, "Apply", &[SCALE_IN, OWNER])], true, Some(PauseMode::ScaleIn))]
#[case::owner_taken_away(&[SCALE_IN], &[entry(US, "Apply", &[SCALE_IN])], true, Some(PauseMode::ScaleIn))]
#[case::pause_taken_away(&[OWNER], &[entry(US, "Apply", &[OWNER])], true, None)]
#[case::full(&[PAUSED, OWNER], &[entry(US, "Apply", &[PAUSED, OWNER])], true, Some(PauseMode::Full))]
#[case::shared(
    &[SCALE_IN, OWNER],
    &[entry(US, "Apply", &[SCALE_IN, OWNER]), entry("kubectl", "Apply", &[SCALE_IN])],
    true, Some(PauseMode::ScaleIn)
)]
#[case::of_an_operator_with_another_prefix(
    &[SCALE_IN, "other.example/pause-owner"],
    &[entry(US, "Apply", &[SCALE_IN, "other.example/pause-owner"])], false, None
)]
#[case::of_two_operators(
    &[SCALE_IN, OWNER, "other.example/pause-owner"],
    &[entry(US, "Apply", &[SCALE_IN, OWNER, "other.example/pause-owner"])],
    true, Some(PauseMode::ScaleIn)
)]
#[case::marks_of_an_earlier_operator(&[PAUSED, "old.example/paused-by"], &[], true, None)]
#[test]
fn what_our_manager_owns_is_a_claim(
    #[case] annotations: &[&str],
    #[case] entries: &[Value],
    #[case] is_claim: bool,
    #[case] mode: Option<PauseMode>,
) {
    let found = keys().claim(&meta(metadata(annotations, entries)));
    assert_eq!(found.is_some(), is_claim);
    let found = found.unwrap_or_else(|| {
        keys().claim(&meta(metadata(&[OWNER], &[entry(US, "Apply", &[OWNER])]))).unwrap()
    });
    assert_eq!(found.mode, mode);
    // "true" is no claim that can be read.
    assert_eq!(found.claim, None);
}

fn key(kind: PauseKind, is_ours: bool, is_others: bool) -> PauseKey {
    PauseKey { kind, value: "true".to_owned(), is_ours, is_others }
}

#[rstest]
#[case::ours(&[entry(US, "Apply", &[SCALE_IN])], key(PauseKind::ScaleIn, true, false))]
#[case::shared(
    &[entry(US, "Apply", &[SCALE_IN]), entry("kubectl", "Apply", &[SCALE_IN])],
    key(PauseKind::ScaleIn, true, true)
)]
#[case::a_persons(&[entry("kubectl", "Update", &[SCALE_IN])], key(PauseKind::ScaleIn, false, true))]
#[case::nobodys(&[], key(PauseKind::ScaleIn, false, true))]
#[case::perhaps_shared(
    &[
        entry(US, "Apply", &[SCALE_IN]),
        json!({ "manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2" }),
    ],
    key(PauseKind::ScaleIn, true, true)
)]
#[test]
fn a_pause_has_owners(#[case] entries: &[Value], #[case] expected: PauseKey) {
    assert_eq!(keys().pauses(&meta(metadata(&[SCALE_IN, "team"], entries))), [expected]);
}

async fn read(answers: Vec<Answer>) -> (Result<Scaler, WriteError>, Vec<String>) {
    let server = Server::answering(answers);
    let scalers = Scalers::new(server.client(), Clock::machine(), keys());
    let found = scalers.read("shop", "web-scaler").await;
    (found, server.lines())
}

fn not_found(name: &str) -> Answer {
    Answer::refusal(404, "NotFound", "not found", json!({ "name": name }))
}

fn scaled_object() -> Value {
    json!({
        "metadata": metadata(&[SCALE_IN], &[entry(US, "Apply", &[SCALE_IN])]),
        "spec": {
            "scaleTargetRef": { "name": "web" },
            "advanced": { "horizontalPodAutoscalerConfig": {
                "behavior": { "scaleDown": { "selectPolicy": "Min" } },
            } },
        },
        "status": {
            "hpaName": "keda-hpa-web",
            "conditions": [{ "type": "Ready", "status": "True" }, { "type": "Paused", "status": "True" }],
        },
    })
}

fn found(scaler: Scaler) -> ScalerFacts {
    match scaler {
        Scaler::Found(facts) => *facts,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_scaled_object_is_read_and_then_the_hpa_that_it_names() {
    let hpa = json!({
        "metadata": { "name": "keda-hpa-web", "generation": 3 },
        "spec": { "behavior": { "scaleDown": { "selectPolicy": "Disabled" } } },
        "status": { "observedGeneration": 2 },
    });
    let (scaler, lines) = read(vec![Answer::ok(&scaled_object()), Answer::ok(&hpa)]).await;
    assert_eq!(
        lines,
        [
            "GET /apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/web-scaler",
            "GET /apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/keda-hpa-web",
        ]
    );
    let facts = found(scaler.unwrap());
    assert_eq!((facts.scales_kind.as_str(), facts.scales_name.as_str()), ("Deployment", "web"));
    assert_eq!(facts.pauses, [key(PauseKind::ScaleIn, true, false)]);
    assert!(facts.is_paused && !facts.deleting);
    assert_eq!(facts.scale_down.as_deref(), Some("Min"));
    let hpa = HpaFacts {
        scale_down: Some("Disabled".to_owned()),
        generation: Some(3),
        observed_generation: Some(2),
    };
    assert_eq!(facts.hpa, Some(hpa));
}

#[tokio::test]
async fn an_hpa_that_is_gone_is_absent_and_one_that_cannot_be_read_is_not() {
    let (scaler, _) = read(vec![Answer::ok(&scaled_object()), not_found("keda-hpa-web")]).await;
    assert_eq!(found(scaler.unwrap()).hpa, None);
    let no = Answer::refusal(403, "Forbidden", "no", json!({ "name": "keda-hpa-web" }));
    let (scaler, _) = read(vec![Answer::ok(&scaled_object()), no]).await;
    let error = scaler.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
    assert_eq!(error.to_string(), "read HorizontalPodAutoscaler shop/keda-hpa-web");
}

#[tokio::test]
async fn no_object_no_keda_and_no_answer_are_three_things() {
    let (scaler, _) = read(vec![not_found("web-scaler")]).await;
    assert_eq!(scaler.unwrap(), Scaler::Missing);
    let page = Answer::Of(404, Vec::new(), "404 page not found\n".to_owned());
    let (scaler, _) = read(vec![page]).await;
    assert_eq!(scaler.unwrap(), Scaler::NoKeda);
    let (scaler, _) = read(vec![Answer::refusal(503, "", "later", json!({}))]).await;
    let error = scaler.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert_eq!(error.to_string(), "read ScaledObject shop/web-scaler");
}

#[rstest]
#[case::no_spec_and_no_status(json!({ "metadata": { "name": "web-scaler" } }), "Deployment", "")]
#[case::of_other_forms(
    json!({ "metadata": {}, "spec": [1], "status": { "hpaName": 7, "conditions": "no" } }),
    "Deployment", ""
)]
#[case::of_another_kind(
    json!({ "spec": { "scaleTargetRef": { "kind": "StatefulSet", "name": "db" } } }),
    "StatefulSet", "db"
)]
#[case::of_another_groups_kind(
    json!({ "spec": { "scaleTargetRef": {
        "apiVersion": "example.com/v1", "kind": "Deployment", "name": "web",
    } } }),
    "example.com/v1 Deployment", "web"
)]
#[case::of_apps(
    json!({ "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "name": "web" } } }),
    "Deployment", "web"
)]
#[tokio::test]
async fn whatever_form_it_has_it_is_read(
    #[case] object: Value,
    #[case] kind: &str,
    #[case] name: &str,
) {
    let (scaler, lines) = read(vec![Answer::ok(&object)]).await;
    let facts = found(scaler.unwrap());
    assert_eq!((facts.scales_kind.as_str(), facts.scales_name.as_str()), (kind, name));
    assert_eq!((facts.hpa, facts.claim, facts.pauses.len()), (None, None, 0));
    assert_eq!(lines.len(), 1);
}

#[test]
fn only_annotations_of_pauses_matter() {
    let keys = keys();
    let ours = [SCALE_IN, PAUSED, OWNER, EXPIRES, "old.example/paused-by"];
    assert!(ours.iter().all(|key| keys.is_of_pauses(key)));
    assert!(!keys.is_of_pauses("kubectl.kubernetes.io/last-applied-configuration"));
}

//! What is sent for each step, and how answers to an apply are read.

#![expect(clippy::needless_pass_by_value, reason = "json! literals read better without a &")]

use std::error::Error as _;

use belay_api::{
    Release, ReleaseTarget,
    release::{ReleaseConfig, ReleaseFields, ReleaseStatus, Revision},
    rollback::RollbackStatus,
    target::TargetStatus,
};
use belay_engine::{
    annotations::ContainerName,
    observed::{Refusal, WorkloadFacts},
    plan::{IntendedImage, Intent, Precondition, Step},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ObjectMeta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Done, Place, Writer, WriterSettings};
use crate::{
    Clock,
    cluster::{
        Class,
        fake::{Answer, Asked, Server},
    },
};

const RELEASES: &str = "/apis/belay.dev/v1alpha1/namespaces/shop/releases";
const TARGETS: &str = "/apis/belay.dev/v1alpha1/namespaces/shop/releasetargets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";

fn writer(server: &Server) -> Writer {
    let settings = WriterSettings {
        prefix: "example.com".parse().unwrap(),
        field_manager: "mover".to_owned(),
        ..WriterSettings::default()
    };
    Writer::new(server.client(), Clock::machine(), settings)
}

fn workload() -> WorkloadFacts {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7" },
    }))
    .unwrap();
    WorkloadFacts::of(&deployment, "example.com/release")
}

fn place(workload: &WorkloadFacts) -> Place<'_> {
    Place { namespace: "shop", target: "web-target", workload: Some(workload) }
}

fn from() -> Precondition {
    Precondition { uid: "r-1".to_owned(), resource_version: "12".to_owned() }
}

fn release() -> Release {
    let revision = Revision { name: "application".into(), id: "v1".into(), ..Revision::default() };
    let config = ReleaseConfig {
        target_name: "web-target".into(),
        revisions: vec![revision],
        workload_ref: None,
    };
    Release {
        metadata: ObjectMeta { name: Some("web-target-1234567".into()), ..ObjectMeta::default() },
        spec: ReleaseFields { config },
        status: None,
    }
}

fn intent(force: bool) -> Intent {
    let image = |is_init, name: &str, image: &str| IntendedImage {
        container: ContainerName { is_init, name: name.into() },
        image: image.into(),
    };
    Intent {
        from: Precondition { uid: "u-1".into(), resource_version: "7".into() },
        generation: 3,
        images: vec![image(false, "app", "r/web:2"), image(true, "migrate", "r/web:2")],
        release: "web-target-1234567".into(),
        force,
        attempt: None,
    }
}

async fn act(answer: Answer, step: Step) -> (Result<Done, super::WriteError>, Asked) {
    let server = Server::answering([answer]);
    let workload = workload();
    let done = writer(&server).act(place(&workload), &step).await;
    let mut asked = server.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    (done, asked.remove(0))
}

fn release_answer() -> Value {
    let mut answer = serde_json::to_value(release()).unwrap();
    answer["metadata"]["resourceVersion"] = json!("13");
    answer
}

#[tokio::test]
async fn a_release_is_created_strictly_and_in_its_place() {
    let step = Step::CreateRelease(Box::new(release()));
    let (done, asked) = act(Answer::of(201, &release_answer()), step).await;
    assert_eq!(asked.line, format!("POST {RELEASES}"));
    assert_eq!(asked.query, ["fieldManager=belay-operator-status", "fieldValidation=Strict"]);
    assert_eq!(asked.body, serde_json::to_value(release()).unwrap());
    let Done::Release(created) = done.unwrap() else { panic!("another kind") };
    assert_eq!(created.metadata.resource_version.as_deref(), Some("13"));
}

#[tokio::test]
async fn one_that_exists_is_no_error() {
    let answer = Answer::refusal(409, "AlreadyExists", "exists", json!({}));
    let (done, _) = act(answer, Step::CreateRelease(Box::new(release()))).await;
    assert_eq!(done.unwrap(), Done::Exists);
}

#[tokio::test]
async fn a_status_is_replaced_as_a_whole_and_only_in_what_it_was_decided_from() {
    let status = ReleaseStatus { repository_id: Some(5), ..ReleaseStatus::default() };
    let expected = serde_json::to_value(&status).unwrap();
    let name = "web-target-1234567".to_owned();
    let step = Step::ReleaseStatus { name, from: from(), status: Box::new(status) };
    let (done, asked) = act(Answer::ok(&release_answer()), step).await;
    assert!(matches!(done, Ok(Done::Release(_))), "{done:?}");
    assert_eq!(asked.line, format!("PUT {RELEASES}/web-target-1234567/status"));
    assert_eq!(asked.query, ["fieldManager=belay-operator-status", "fieldValidation=Strict"]);
    let body = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release",
        "metadata": {
            "name": "web-target-1234567", "namespace": "shop",
            "uid": "r-1", "resourceVersion": "12",
        },
        "status": expected,
    });
    assert_eq!(asked.body, body);
}

#[tokio::test]
async fn a_stale_status_is_a_conflict_that_names_the_object() {
    let status = Box::new(RollbackStatus::default());
    let step = Step::RollbackStatus { name: "back".to_owned(), from: from(), status };
    let answer = Answer::refusal(409, "Conflict", "the object has been modified", json!({}));
    let (done, asked) = act(answer, step).await;
    let error = done.unwrap_err();
    assert_eq!(error.class(), Class::Conflict);
    assert_eq!(error.to_string(), "write the status of Rollback shop/back");
    assert!(error.source().unwrap().to_string().contains("has been modified"));
    assert_eq!(asked.line.split('/').next_back(), Some("status"));
}

#[tokio::test]
async fn a_block_is_one_annotation_under_the_prefix() {
    let step = Step::BlockRelease { name: "r".to_owned(), from: from(), value: "{}".to_owned() };
    let (done, asked) = act(Answer::ok(&release_answer()), step).await;
    assert!(matches!(done, Ok(Done::Release(_))), "{done:?}");
    assert_eq!(asked.line, format!("PATCH {RELEASES}/r"));
    assert_eq!(asked.content_type, "application/merge-patch+json");
    let body = json!({ "metadata": {
        "uid": "r-1", "resourceVersion": "12", "annotations": { "example.com/blocked": "{}" },
    } });
    assert_eq!(asked.body, body);
}

#[rstest]
#[case::gone_now(Answer::ok(&json!({ "kind": "Status", "status": "Success" })))]
#[case::gone_before(Answer::refusal(404, "NotFound", "", json!({ "name": "r" })))]
#[tokio::test]
async fn a_deleted_object_is_gone(#[case] answer: Answer) {
    let step = Step::DeleteRelease { name: "r".to_owned(), from: from() };
    let (done, asked) = act(answer, step).await;
    assert_eq!(done.unwrap(), Done::Deleted);
    assert_eq!(asked.line, format!("DELETE {RELEASES}/r"));
    assert_eq!(asked.body, json!({ "preconditions": { "uid": "r-1", "resourceVersion": "12" } }));
}

#[tokio::test]
async fn a_target_is_deleted_by_its_uid_alone() {
    let step = Step::DeleteTarget { uid: "t-1".to_owned() };
    let (done, asked) = act(Answer::ok(&json!({})), step).await;
    assert_eq!(done.unwrap(), Done::Deleted);
    assert_eq!(asked.line, format!("DELETE {TARGETS}/web-target"));
    assert_eq!(asked.body, json!({ "preconditions": { "uid": "t-1" } }));
}

#[rstest]
#[case::unforced(false, &["fieldManager=mover", "fieldValidation=Strict"])]
#[case::forced(true, &["fieldManager=mover", "fieldValidation=Strict", "force=true"])]
#[tokio::test]
async fn an_apply_holds_images_and_annotation_and_nothing_else(
    #[case] force: bool,
    #[case] query: &[&str],
) {
    let (_, asked) = act(Answer::ok(&applied(exactly())), Step::Apply(intent(force))).await;
    assert_eq!(asked.line, format!("PATCH {DEPLOYMENTS}/web"));
    assert_eq!(asked.content_type, "application/apply-patch+yaml");
    assert_eq!(asked.query, query);
    let body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7",
            "annotations": { "example.com/release": "web-target-1234567" },
        },
        "spec": { "template": { "spec": {
            "initContainers": [{ "name": "migrate", "image": "r/web:2" }],
            "containers": [{ "name": "app", "image": "r/web:2" }],
        } } },
    });
    assert_eq!(asked.body, body);
}

#[tokio::test]
async fn no_list_is_named_that_has_no_image() {
    let mut intent = intent(false);
    intent.images.truncate(1);
    let (_, asked) = act(Answer::ok(&applied(exactly())), Step::Apply(intent)).await;
    let pod = &asked.body["spec"]["template"]["spec"];
    assert_eq!(*pod, json!({ "containers": [{ "name": "app", "image": "r/web:2" }] }));
}

/// The fields of the intent, as managedFields name them.
fn exactly() -> Value {
    let item = json!({ ".": {}, "f:name": {}, "f:image": {} });
    json!({
        "f:metadata": { "f:annotations": { "f:example.com/release": {} } },
        "f:spec": { "f:template": { "f:spec": {
            "f:containers": { "k:{\"name\":\"app\"}": item },
            "f:initContainers": { "k:{\"name\":\"migrate\"}": item },
        } } },
    })
}

fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

/// The answer to an apply, in which our manager owns these fields.
fn applied(fields: Value) -> Value {
    let helm = entry("helm", "Update", json!({ "f:spec": { "f:replicas": {} } }));
    with_entries(vec![helm, entry("mover", "Apply", fields)])
}

fn with_entries(entries: Vec<Value>) -> Value {
    json!({ "metadata": { "name": "web", "managedFields": entries } })
}

async fn surprise_in(answer: &Value) -> Option<String> {
    let (done, _) = act(Answer::ok(answer), Step::Apply(intent(false))).await;
    let Done::Applied { workload, surprise } = done.unwrap() else { panic!("not applied") };
    assert_eq!(workload.metadata.name.as_deref(), Some("web"));
    surprise
}

#[tokio::test]
async fn the_fields_of_the_intent_are_no_surprise() {
    assert_eq!(surprise_in(&applied(exactly())).await, None);
}

#[tokio::test]
async fn each_field_more_or_less_is_a_surprise() {
    let mut more = exactly();
    more["f:spec"]["f:replicas"] = json!({});
    let text = surprise_in(&applied(more.clone())).await.unwrap();
    assert_eq!(text, "mover also holds .spec.replicas");

    let mut less = more;
    let containers = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"app\"}";
    less.pointer_mut(containers).unwrap().as_object_mut().unwrap().remove("f:image");
    let text = surprise_in(&applied(less)).await.unwrap();
    let expected = "mover also holds .spec.replicas and does not hold \
                    .spec.template.spec.containers[name=\"app\"].image";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn an_entry_that_is_missing_or_cannot_be_read_is_a_surprise() {
    let updated = with_entries(vec![entry("mover", "Update", exactly())]);
    let text = surprise_in(&updated).await.unwrap();
    assert_eq!(text, "there is no entry of mover in managedFields");
    let broken = applied(json!({ "f:spec": 5 }));
    let text = surprise_in(&broken).await.unwrap();
    assert!(text.starts_with("the entry of mover cannot be read: "), "{text}");
}

fn conflict_cause(message: &str) -> Value {
    let field = ".spec.template.spec.containers[name=\"app\"].image";
    json!({ "reason": "FieldManagerConflict", "message": message, "field": field })
}

#[rstest]
#[case::managers(
    409, "Conflict", "Apply failed with 2 conflicts",
    json!({ "causes": [
        conflict_cause("conflict with \"helm\" using apps/v1 at 2026-11-27T02:00:00Z"),
        conflict_cause("conflict with \"argocd-controller\""),
        conflict_cause("conflict with \"helm\" with subresource \"status\" using apps/v1"),
    ] }),
    Some(Refusal::Conflict { managers: vec!["argocd-controller".into(), "helm".into()] })
)]
#[case::in_words_of_a_later_version(
    409, "Conflict", "", json!({ "causes": [conflict_cause("someone else has it")] }),
    Some(Refusal::Conflict { managers: vec!["someone else has it".into()] })
)]
#[case::a_policy(
    422, "Invalid", "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'x' says no",
    json!({ "name": "web" }),
    Some(Refusal::Denied {
        message: "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'x' says no".into(),
    })
)]
#[case::a_webhook(
    403, "Forbidden", "admission webhook \"w\" denied the request: no", json!({}),
    Some(Refusal::Denied { message: "admission webhook \"w\" denied the request: no".into() })
)]
#[case::a_webhook_without_a_code(
    400, "", "admission webhook \"w\" denied the request: no", json!({}),
    Some(Refusal::Denied { message: "admission webhook \"w\" denied the request: no".into() })
)]
#[case::no_right(
    403, "Forbidden", "User \"op\" cannot patch resource \"deployments\"", json!({ "name": "web" }),
    Some(Refusal::Denied { message: "User \"op\" cannot patch resource \"deployments\"".into() })
)]
#[case::stale(409, "Conflict", "the object has been modified", json!({ "name": "web" }), None)]
#[case::made_anew(
    422, "Invalid", "", json!({ "causes": [{ "field": "metadata.uid", "reason": "FieldValueInvalid" }] }),
    None
)]
#[case::gone(404, "NotFound", "", json!({ "name": "web" }), None)]
#[case::gone_and_no_right_to_create(
    403, "Forbidden", "User \"op\" cannot create resource \"deployments\"", json!({}), None
)]
#[tokio::test]
async fn a_refused_apply_is_an_answer_or_the_world_has_moved(
    #[case] code: u16,
    #[case] reason: &str,
    #[case] message: &str,
    #[case] details: Value,
    #[case] expected: Option<Refusal>,
) {
    let answer = Answer::refusal(code, reason, message, details);
    let (done, _) = act(answer, Step::Apply(intent(false))).await;
    if let Some(refusal) = expected {
        assert_eq!(done.unwrap(), Done::Refused(refusal));
    } else {
        let error = done.unwrap_err();
        assert_eq!(error.class(), Class::Conflict, "{error}");
        assert_eq!(error.to_string(), "apply images to Deployment shop/web");
    }
}

#[rstest]
#[case::throttled(429, "throttled")]
#[case::unavailable(503, "unavailable")]
#[case::of_a_webhook_that_cannot_be_reached(500, "unavailable")]
#[tokio::test]
async fn an_apply_that_may_go_well_later_is_an_error(#[case] code: u16, #[case] category: &str) {
    let answer = Answer::refusal(code, "", "failed calling webhook", json!({}));
    let (done, _) = act(answer, Step::Apply(intent(false))).await;
    assert_eq!(done.unwrap_err().category(), category);
}

#[tokio::test]
async fn without_a_workload_nothing_is_sent() {
    let server = Server::default();
    let place = Place { namespace: "shop", target: "web-target", workload: None };
    let writer = writer(&server);
    let error = writer.act(place, &Step::Apply(intent(false))).await.unwrap_err();
    assert_eq!(error.class(), Class::Bug);
    let status = TargetStatus::default();
    let error = writer.write_target(place, None, &status).await.unwrap_err();
    assert_eq!(error.class(), Class::Bug);
    assert!(server.lines().is_empty());
}

fn target(owner_uid: &str, version: &str) -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "ReleaseTarget",
        "metadata": {
            "name": "web-target", "namespace": "shop", "uid": "t-1", "resourceVersion": version,
            "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner_uid },
            ],
        },
    })
}

#[rstest]
#[case::none(None, &["POST", "PUT"])]
#[case::of_this_workload(Some("u-1"), &["PUT"])]
#[case::of_an_earlier_workload(Some("u-0"), &["PATCH", "PUT"])]
#[tokio::test]
async fn a_target_is_made_the_workloads_before_its_status_is_written(
    #[case] owner: Option<&str>,
    #[case] verbs: &[&str],
) {
    let versions = ["20", "21"];
    let answers = verbs.iter().zip(versions).map(|(_, it)| Answer::ok(&target("u-1", it)));
    let server = Server::answering(answers);
    let existing: Option<ReleaseTarget> =
        owner.map(|owner| serde_json::from_value(target(owner, "19")).unwrap());
    let status = TargetStatus { hold: Some("true".into()), ..TargetStatus::default() };
    let workload = workload();
    let written =
        writer(&server).write_target(place(&workload), existing.as_ref(), &status).await.unwrap();
    let asked = server.asked();
    let found: Vec<_> = asked.iter().filter_map(|it| it.line.split(' ').next()).collect();
    assert_eq!(found, verbs);
    let owner = json!([
        { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1" },
    ]);
    let first = &asked[0].body["metadata"];
    if verbs.len() > 1 {
        assert_eq!(first["ownerReferences"], owner);
    }
    if verbs[0] == "PATCH" {
        assert_eq!((&first["uid"], &first["resourceVersion"]), (&json!("t-1"), &json!("19")));
    }
    let last = asked.last().unwrap();
    assert_eq!(last.line, format!("PUT {TARGETS}/web-target/status"));
    assert_eq!(last.query, ["fieldManager=belay-operator-status", "fieldValidation=Strict"]);
    let read = if verbs.len() > 1 { "20" } else { "19" };
    assert_eq!(last.body["metadata"]["resourceVersion"], read);
    assert_eq!(last.body["status"], json!({ "hold": "true" }));
    assert_eq!(written.metadata.uid.as_deref(), Some("t-1"));
}

#[tokio::test]
async fn a_target_that_appears_meanwhile_is_a_conflict() {
    let server = Server::answering([Answer::refusal(409, "AlreadyExists", "exists", json!({}))]);
    let workload = workload();
    let status = TargetStatus::default();
    let written = writer(&server).write_target(place(&workload), None, &status).await;
    assert_eq!(written.unwrap_err().class(), Class::Conflict);
}

//! What is sent to ScaledObjects.

use belay_api::annotations::PauseMode;
use belay_engine::{
    observed::Refusal,
    pause::Claim,
    plan::{PauseIntent, Precondition, Step},
    settings::Settings,
};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Done, Place, Writer, WriterSettings};
use crate::{
    Clock,
    cluster::{
        Class, PauseKeys,
        fake::{Answer, Asked, Server},
    },
};

const SCALED_OBJECT: &str = "PATCH /apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects/web-scaler";

fn writer(server: &Server) -> Writer {
    let settings = Settings {
        prefix: "example.com".parse().unwrap(),
        pause_field_manager: "pauser".to_owned(),
        ..Settings::default()
    };
    let pause = PauseKeys::of(&settings);
    let settings = WriterSettings { pause, ..WriterSettings::default() };
    Writer::new(server.client(), Clock::machine(), settings)
}

async fn act(
    answer: Answer,
    step: Step,
) -> (Result<Done, crate::cluster::WriteError>, Option<Asked>) {
    let server = Server::answering([answer]);
    // A claim outlives its workload.
    let place = Place { namespace: "shop", target: "web", workload: None };
    let done = writer(&server).act(place, &step).await;
    (done, server.asked().into_iter().next())
}

fn from() -> Precondition {
    Precondition { uid: "s-1".to_owned(), resource_version: "12".to_owned() }
}

fn claim(mode: PauseMode) -> Step {
    Step::ClaimPause(PauseIntent {
        scaled_object: "web-scaler".to_owned(),
        from: from(),
        mode,
        claim: Claim {
            instance: "belay/op".to_owned(),
            target: "web".to_owned(),
            release: "web-1234567".to_owned(),
            since: "2026-01-01T00:00:00Z".parse().unwrap(),
        },
        expires: "2026-01-01T00:25:00Z".parse().unwrap(),
    })
}

fn answer() -> Answer {
    let metadata = json!({ "name": "web-scaler", "namespace": "shop", "resourceVersion": "13" });
    Answer::ok(&json!({ "metadata": metadata, "spec": { "whatever": [1] }, "status": 5 }))
}

fn metadata(annotations: Option<Value>) -> Value {
    let mut metadata = json!({
        "name": "web-scaler", "namespace": "shop", "uid": "s-1", "resourceVersion": "12",
    });
    if let Some(annotations) = annotations {
        metadata["annotations"] = annotations;
    }
    json!({ "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata })
}

#[rstest]
#[case::scale_in(PauseMode::ScaleIn, "autoscaling.keda.sh/paused-scale-in")]
#[case::full(PauseMode::Full, "autoscaling.keda.sh/paused")]
#[tokio::test]
async fn a_claim_is_three_annotations_and_never_forced(#[case] mode: PauseMode, #[case] key: &str) {
    let (done, asked) = act(answer(), claim(mode)).await;
    let Done::Paused(object) = done.unwrap() else { panic!("another kind") };
    assert_eq!(object.metadata.resource_version.as_deref(), Some("13"));
    let asked = asked.unwrap();
    assert_eq!(asked.line, SCALED_OBJECT);
    assert_eq!(asked.content_type, "application/apply-patch+yaml");
    assert_eq!(asked.query, ["fieldManager=pauser", "fieldValidation=Strict"]);
    let owner = "{\"instance\":\"belay/op\",\"target\":\"web\",\"release\":\"web-1234567\",\
                 \"since\":\"2026-01-01T00:00:00Z\"}";
    let annotations = json!({
        key: "true",
        "example.com/pause-owner": owner,
        "example.com/pause-expires": "2026-01-01T00:25:00Z",
    });
    assert_eq!(asked.body, metadata(Some(annotations)));
}

#[tokio::test]
async fn a_claim_that_pauses_nothing_is_not_sent() {
    let (done, asked) = act(answer(), claim(PauseMode::None)).await;
    assert_eq!(done.unwrap_err().class(), Class::Bug);
    assert_eq!(asked, None);
}

#[tokio::test]
async fn a_drop_names_nothing_but_the_object_it_was_decided_from() {
    let step = Step::DropPause { scaled_object: "web-scaler".to_owned(), from: from() };
    let (done, asked) = act(answer(), step).await;
    assert!(matches!(done, Ok(Done::Paused(_))), "{done:?}");
    let asked = asked.unwrap();
    assert_eq!((asked.line.as_str(), &asked.body), (SCALED_OBJECT, &metadata(None)));
    assert_eq!(asked.query, ["fieldManager=pauser", "fieldValidation=Strict"]);
}

#[tokio::test]
async fn an_earlier_operators_pause_goes_with_its_marks_and_nothing_else() {
    let marks = vec!["old.example/by".to_owned()];
    let step = Step::RemovePause { scaled_object: "web-scaler".to_owned(), from: from(), marks };
    let (done, asked) = act(answer(), step).await;
    assert!(matches!(done, Ok(Done::Paused(_))), "{done:?}");
    let asked = asked.unwrap();
    assert_eq!(asked.line, SCALED_OBJECT);
    assert_eq!(asked.content_type, "application/merge-patch+json");
    let expected = json!({ "metadata": {
        "uid": "s-1", "resourceVersion": "12",
        "annotations": {
            "autoscaling.keda.sh/paused": null,
            "autoscaling.keda.sh/paused-scale-in": null,
            "autoscaling.keda.sh/paused-replicas": null,
            "old.example/by": null,
        },
    } });
    assert_eq!(asked.body, expected);
}

#[rstest]
#[case::policy(422, "Invalid", "no", json!({}), Some(Refusal::Denied { message: "no".into() }))]
#[case::no_right(
    403, "Forbidden", "cannot patch resource", json!({ "name": "web-scaler" }),
    Some(Refusal::Denied { message: "cannot patch resource".into() })
)]
#[case::somebody_elses_value(
    409, "Conflict", "",
    json!({ "causes": [{
        "reason": "FieldManagerConflict", "message": "conflict with \"kubectl\"",
        "field": ".metadata.annotations.autoscaling.keda.sh/paused",
    }] }),
    Some(Refusal::Conflict { managers: vec!["kubectl".into()] })
)]
#[case::stale(409, "Conflict", "modified", json!({ "name": "web-scaler" }), None)]
#[case::made_anew(409, "Conflict", "uid mismatch", json!({ "name": "web-scaler" }), None)]
#[case::gone_and_no_right_to_create(
    403, "Forbidden", "User \"op\" cannot create resource \"scaledobjects\"", json!({}), None
)]
#[tokio::test]
async fn a_refused_claim_is_an_answer_or_the_world_has_moved(
    #[case] code: u16,
    #[case] reason: &str,
    #[case] message: &str,
    #[case] details: Value,
    #[case] expected: Option<Refusal>,
) {
    let answer = Answer::refusal(code, reason, message, details);
    let (done, _) = act(answer, claim(PauseMode::ScaleIn)).await;
    if let Some(refusal) = expected {
        assert_eq!(done.unwrap(), Done::Refused(refusal));
    } else {
        let error = done.unwrap_err();
        assert_eq!(error.class(), Class::Conflict, "{error}");
        assert_eq!(error.to_string(), "claim the pause of ScaledObject shop/web-scaler");
    }
}

#[tokio::test]
async fn without_keda_a_write_may_go_well_later() {
    let answer = Answer::Of(404, Vec::new(), "404 page not found".to_owned());
    let step = Step::DropPause { scaled_object: "web-scaler".to_owned(), from: from() };
    let (done, _) = act(answer, step).await;
    assert_eq!(done.unwrap_err().class(), Class::Transient);
}

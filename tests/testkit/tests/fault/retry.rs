//! The layer is below kube's retries.

use std::time::Duration;

use belay_testkit::fault::{self, Answer, Calls, Fault, FaultPlan, Nth};
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    client::{Body, retry::RetryPolicy},
};
use tower::{Layer as _, ServiceBuilder, retry::RetryLayer};

use crate::support::{Fake, Server};

fn unavailable() -> Answer {
    Answer::kubernetes(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "try later")
}

#[tokio::test]
async fn each_retry_is_a_call_of_its_own() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Only(1), Fault::Answer(unavailable()));
    plan.inject(Calls::any(), Nth::Only(2), Fault::AnswerAfter(unavailable()));
    let client = fault::client(server.config(), &plan, true).unwrap();
    let map = Api::<ConfigMap>::default_namespaced(client).get("web").await.unwrap();
    assert_eq!(map.metadata.name.as_deref(), Some("web"));
    assert_eq!(
        plan.trace().to_string(),
        "\
GET v1 configmaps shop/web → not sent, answer 503
GET v1 configmaps shop/web #2 → 200, answer 503 after
GET v1 configmaps shop/web #3 → 200
"
    );
    assert_eq!(server.arrived().len(), 2);
}

#[tokio::test]
async fn without_retries_the_first_answer_is_the_last() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Only(1), Fault::Answer(unavailable()));
    let client = fault::client(server.config(), &plan, false).unwrap();
    let reply = Api::<ConfigMap>::default_namespaced(client).get("web").await;
    assert!(matches!(reply, Err(kube::Error::Api(status)) if status.code == 503));
    assert_eq!(plan.trace().calls().len(), 1);
    assert_eq!(server.arrived().len(), 0);
}

#[tokio::test]
async fn the_number_of_retries_is_the_tests_choice() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Every, Fault::Answer(unavailable()));
    let (least, most) = (Duration::from_millis(1), Duration::from_millis(2));
    let policy = RetryPolicy::new(least, most, 4, true).unwrap();
    let client = fault::client_with(server.config(), &plan, Some(policy)).unwrap();
    let reply = Api::<ConfigMap>::default_namespaced(client).get("web").await;
    assert!(matches!(reply, Err(kube::Error::Api(status)) if status.code == 503));
    assert_eq!(plan.trace().calls().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_as_long_as_the_answer_says() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    let answer = unavailable().header(RETRY_AFTER, HeaderValue::from_static("30"));
    plan.inject(Calls::any(), Nth::First(2), Fault::Answer(answer));
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .service(plan.kubernetes().layer(fake.clone()));
    let client = Client::new(service, "shop");
    let start = tokio::time::Instant::now();
    let request = http::Request::get("/api/v1/nodes/n1").body(Body::empty()).unwrap();
    assert_eq!(client.send(request).await.unwrap().status(), StatusCode::OK);
    assert_eq!(start.elapsed(), Duration::from_mins(1));
    assert_eq!((plan.trace().calls().len(), fake.count()), (3, 1));
}

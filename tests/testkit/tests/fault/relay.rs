//! The relay: what it passes on, and what becomes of the connections of a process that ended.

use belay_testkit::fault::{Calls, Fault, FaultPlan, Nth, Relay};
use http::StatusCode;
use rstest::rstest;

use crate::support::{OBJECT, Server, in_time};

/// A server, a plan, and a relay between its clients and the server.
async fn behind_a_relay() -> (Server, FaultPlan, Relay) {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    let host = server.url.trim_start_matches("http://");
    let relay = Relay::start(&plan, host).await.unwrap();
    plan.alias(host, "github");
    (server, plan, relay)
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_is_answered() {
    let (server, plan, relay) = behind_a_relay().await;
    let http = reqwest::Client::new();
    let url = format!("{}/repos/acme/web/releases?per_page=100", relay.url());
    let request = http.post(url).header("authorization", "token t").body("{}");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.text().await.unwrap(), OBJECT);
    assert_eq!(
        server.arrived(),
        ["POST /repos/acme/web/releases?per_page=100 authorization: token t"]
    );
    assert_eq!(
        plan.trace().to_string(),
        "POST github/repos/acme/web/releases per_page=100 → 200\n"
    );
}

#[tokio::test]
async fn the_answer_to_a_head_has_the_length_and_no_body() {
    let (_server, _plan, relay) = behind_a_relay().await;
    let answer = reqwest::Client::new().head(relay.url()).send().await.unwrap();
    let length = answer.headers()["content-length"].to_str().unwrap().to_owned();
    assert_eq!(length, OBJECT.len().to_string());
    assert_eq!(answer.text().await.unwrap(), "");
}

#[rstest]
#[case::before(Fault::CrashBefore, 1)]
#[case::after(Fault::CrashAfter, 2)]
#[tokio::test]
async fn a_call_that_crashed_is_never_answered_and_the_next_process_is_at_the_same_address(
    #[case] fault: Fault,
    #[case] arrived: usize,
) {
    let (server, plan, relay) = behind_a_relay().await;
    plan.inject(Calls::any(), Nth::Only(2), fault);
    let old = reqwest::Client::new();
    old.get(relay.url()).send().await.unwrap();
    // The connection that the first one left open.
    let crashed = in_time(old.get(relay.url()).send()).await;
    assert!(crashed.is_err());
    assert!(plan.has_crashed());
    assert_eq!(server.arrived().len(), arrived);
    // Not even a new connection is served before the next process begins.
    assert!(in_time(old.get(relay.url()).send()).await.is_err());
    assert_eq!(server.arrived().len(), arrived);
    plan.restart();
    let answer = reqwest::Client::new().get(relay.url()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(plan.trace().calls().last().map(|call| call.process), Some(2));
}

#[tokio::test]
async fn where_nobody_listens_the_connection_breaks() {
    let plan = FaultPlan::new();
    let relay = Relay::start(&plan, "127.0.0.1:1").await.unwrap();
    assert!(in_time(reqwest::Client::new().get(relay.url()).send()).await.is_err());
    let refused = plan.trace().to_string();
    assert_eq!(refused, "GET 127.0.0.1:1/ → error\n");
}

#[tokio::test]
async fn what_is_no_host_is_refused() {
    let refused = Relay::start(&FaultPlan::new(), "http://github").await.unwrap_err();
    assert_eq!(refused.to_string(), "could not make a client for a relay to http://github");
}

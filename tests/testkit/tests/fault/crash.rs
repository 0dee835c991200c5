//! The end of a process, and the beginning of the next.

use std::{convert::Infallible, sync::Arc};

use belay_testkit::{
    fault::{self, Calls, Fault, FaultPlan, Nth, ReqwestService, Verb},
    wait::{self, SOON},
};
use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use rstest::rstest;
use serde_json::json;
use tokio::sync::Notify;
use tower::{Layer as _, Service as _};

use crate::support::{Fake, Server, applies, apply, endless, get, in_time, try_call};

/// A process that makes three calls and then is done.
async fn operator(client: Client) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    maps.get("web").await?;
    let patch = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    maps.patch("web", &PatchParams::apply("belay").force(), &patch).await?;
    maps.delete("old", &DeleteParams::default()).await?;
    Ok(())
}

#[rstest]
#[case::before(
    Fault::CrashBefore,
    4,
    "\
GET v1 configmaps shop/web → 200
PATCH(apply) v1 configmaps shop/web fieldManager=belay force=true → not sent, crash before
-- process 2
GET v1 configmaps shop/web #2 → 200
PATCH(apply) v1 configmaps shop/web #2 fieldManager=belay force=true → 200
DELETE v1 configmaps shop/old → 200
"
)]
#[case::after(
    Fault::CrashAfter,
    5,
    "\
GET v1 configmaps shop/web → 200
PATCH(apply) v1 configmaps shop/web fieldManager=belay force=true → 200, crash after
-- process 2
GET v1 configmaps shop/web #2 → 200
PATCH(apply) v1 configmaps shop/web #2 fieldManager=belay force=true → 200
DELETE v1 configmaps shop/old → 200
"
)]
#[tokio::test]
async fn a_process_is_dropped_and_started_again(
    #[case] fault: Fault,
    #[case] arrived: usize,
    #[case] expected: &str,
) {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any().writes(), Nth::Only(1), fault);
    loop {
        let client = fault::client(server.config(), &plan, true).unwrap();
        tokio::select! {
            done = operator(client) => break done.unwrap(),
            () = in_time(plan.crashed()) => plan.restart(),
        }
    }
    assert_eq!(plan.trace().to_string(), expected);
    assert_eq!(server.arrived().len(), arrived);
}

#[tokio::test]
async fn nothing_is_sent_by_any_client_of_a_crashed_process() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any().verb(Verb::Delete), Nth::Only(1), Fault::CrashAfter);
    let client = fault::client(server.config(), &plan, true).unwrap();
    let mut github = plan.http().layer(ReqwestService(reqwest::Client::new()));
    let release = || Request::get(format!("{}/releases", server.url)).body(Bytes::new()).unwrap();
    assert_eq!(github.call(release()).await.unwrap().status(), StatusCode::OK);
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let deleting = maps.clone();
    let crashing = tokio::spawn(async move {
        let _ = deleting.delete("old", &DeleteParams::default()).await;
    });
    in_time(plan.crashed()).await;
    assert!(plan.has_crashed());

    // A call in the connection pool of each client, and one through a layer made after the crash.
    let kube = tokio::spawn(async move { maps.get("web").await.map(|_| ()) });
    let http = tokio::spawn(github.call(release()));
    let late = fault::client(server.config(), &plan, true).unwrap();
    let late = tokio::spawn(operator(late));

    // The next process is served on the same machine meanwhile.
    plan.restart();
    let client = fault::client(server.config(), &plan, true).unwrap();
    operator(client).await.unwrap();
    let paths: Vec<String> = server.arrived();
    assert_eq!(
        paths,
        [
            "GET /releases",
            "DELETE /api/v1/namespaces/shop/configmaps/old?",
            "GET /api/v1/namespaces/shop/configmaps/web",
            "PATCH /api/v1/namespaces/shop/configmaps/web?&force=true&fieldManager=belay",
            "DELETE /api/v1/namespaces/shop/configmaps/old?",
        ]
    );
    assert_eq!(plan.trace().calls().len(), paths.len());
    assert!(!crashing.is_finished() && !kube.is_finished());
    assert!(!http.is_finished() && !late.is_finished());
}

#[tokio::test]
async fn a_call_in_flight_dies_with_its_process() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    let client = fault::client(server.config(), &plan, false).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    server.close();
    let call = tokio::spawn(async move { maps.get("web").await.map(|_| ()) });
    server.wait_for(1).await;
    plan.crash();
    server.open();
    plan.restart();
    let client = fault::client(server.config(), &plan, false).unwrap();
    Api::<ConfigMap>::namespaced(client, "shop").get("web").await.unwrap();
    assert!(!call.is_finished());
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    wait::until("the first call to be given up", SOON, || async {
        let trace = plan.trace().to_string();
        let expected = "GET v1 configmaps shop/web → dropped\n-- process 2\n\
                        GET v1 configmaps shop/web #2 → 200\n";
        if trace == expected { Ok(()) } else { Err(trace) }
    })
    .await
    .unwrap();
}

#[test]
fn a_call_that_was_made_but_not_begun_is_not_sent() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    let mut service = fake.below(&plan);
    let begun_late = service.call(get("/version"));
    plan.crash();
    assert!(begun_late.now_or_never().is_none());
    assert_eq!(fake.count(), 0);
}

#[test]
fn the_connection_of_a_call_in_flight_is_closed_at_the_crash() {
    let plan = FaultPlan::new();
    let held = Arc::new(());
    let service = {
        let held = held.clone();
        tower::service_fn(move |_: Request<Bytes>| {
            let held = held.clone();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok::<_, Infallible>(Response::new(http_body_util::Empty::<Bytes>::new()))
            }
        })
    };
    let mut service = plan.kubernetes().layer(service);
    let mut call = service.call(get("/version"));
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(Arc::strong_count(&held), 3);
    plan.crash();
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(Arc::strong_count(&held), 2);
}

#[tokio::test]
async fn an_open_watch_falls_silent_at_the_crash() {
    let plan = FaultPlan::new();
    let go_on = Arc::new(Notify::new());
    let service = {
        let go_on = go_on.clone();
        tower::service_fn(move |_: Request<Bytes>| {
            let go_on = go_on.clone();
            let second = async move {
                go_on.notified().await;
                Ok::<_, Infallible>(http_body::Frame::data(Bytes::from("second")))
            };
            let first = std::future::ready(Ok(http_body::Frame::data(Bytes::from("first"))));
            let frames = futures::stream::StreamExt::chain(
                futures::stream::once(first),
                futures::stream::once(second),
            );
            let body = http_body_util::StreamBody::new(frames).boxed_unsync();
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        })
    };
    let watch = "/api/v1/pods?watch=true";
    let mut service = plan.kubernetes().layer(service);
    let open = async |service: &mut fault::Faulty<_>| {
        let mut body = service.call(get(watch)).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        body
    };
    let mut alive = open(&mut service).await;
    go_on.notify_one();
    assert_eq!(alive.frame().await.unwrap().unwrap().into_data().unwrap(), "second");

    let mut silent = open(&mut service).await;
    plan.crash();
    go_on.notify_one();
    assert!(silent.frame().now_or_never().is_none());
}

#[tokio::test]
async fn a_body_without_an_end_is_passed_on_frame_by_frame() {
    let plan = FaultPlan::new();
    let service = tower::service_fn(|_: Request<Bytes>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(endless("one".into()).boxed_unsync())))
    });
    let mut body =
        plan.kubernetes().layer(service).call(get("/api/v1/pods?watch=true")).await.unwrap();
    let frame = body.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "one");
    assert!(body.body_mut().frame().now_or_never().is_none());
}

#[test]
fn a_crash_hits_once_though_the_call_comes_again() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    plan.inject(applies(), Nth::Only(2), Fault::CrashBefore);
    let mut first = fake.below(&plan);
    assert!(try_call(&mut first, apply()).is_some());
    assert!(try_call(&mut first, apply()).is_none());
    plan.restart();
    assert!(!plan.has_crashed());
    let mut second = fake.below(&plan);
    assert!(try_call(&mut second, apply()).is_some());
    assert!(try_call(&mut second, apply()).is_some());
    assert!(try_call(&mut first, apply()).is_none());
    assert_eq!(fake.count(), 3);
}

#[test]
fn a_restart_ends_a_process_that_has_not_crashed() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    let mut old = fake.below(&plan);
    let crashed = plan.crashed();
    plan.restart();
    assert!(try_call(&mut old, apply()).is_none());
    assert!(try_call(&mut fake.below(&plan), apply()).is_some());
    // A wait that has not begun is for the process there is now.
    assert!(crashed.now_or_never().is_none());
}

#[tokio::test]
async fn everyone_who_waits_hears_of_a_crash() {
    let plan = FaultPlan::new();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let plan = plan.clone();
            tokio::spawn(async move { plan.crashed().await })
        })
        .collect();
    tokio::task::yield_now().await;
    plan.crash();
    for waiting in waiting {
        in_time(waiting).await.unwrap();
    }
    plan.crashed().now_or_never().unwrap();
}

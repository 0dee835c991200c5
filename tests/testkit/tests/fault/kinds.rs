//! Each kind of fault, as kube's client and an HTTP client meet it.

use std::{error::Error as StdError, io, time::Duration};

use belay_testkit::{
    fault::{self, Answer, Calls, End, Fault, FaultPlan, Nth, Outcome, ReqwestService},
    wait::{self, SOON},
};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{HeaderValue, Request, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};
use rstest::rstest;
use serde_json::json;
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{Fake, OBJECT, Server, get, in_time};

/// What the caller sees.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// The whole answer of the server.
    Object,
    /// Another status.
    Refused(u16),
    /// No answer but an I/O error of this kind.
    NoAnswer(io::ErrorKind),
    /// An answer whose body breaks with an I/O error of this kind.
    BrokenBody(io::ErrorKind),
    /// An answer that is too short.
    ShortBody,
    /// Nothing.
    Nothing,
}

fn throttled() -> Answer {
    Answer::kubernetes(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "slow down")
        .header(RETRY_AFTER, HeaderValue::from_static("7"))
}

fn timed_out() -> Answer {
    Answer::kubernetes(StatusCode::GATEWAY_TIMEOUT, "Timeout", "took too long")
}

fn cut(after_bytes: u64, end: End) -> Fault {
    Fault::Truncate { after_bytes, end }
}

/// The I/O error at the root of an error.
fn io_kind(error: &(dyn StdError + 'static)) -> io::ErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind();
        }
        cause = error.source();
    }
    panic!("no I/O error in {error:?}")
}

/// Runs a call to its end, or until the trace shows that no more is to come.
async fn outcome(plan: &FaultPlan, call: impl Future<Output = Seen> + Send + 'static) -> Seen {
    let call = tokio::spawn(call);
    let stuck = wait::until("the call to end", SOON, || async {
        let silent = plan.trace().calls().iter().any(|call| {
            call.outcome != Outcome::InFlight
                && matches!(
                    call.fault,
                    Some(
                        Fault::Hang
                            | Fault::HangAfter
                            | Fault::CrashBefore
                            | Fault::CrashAfter
                            | Fault::Truncate { end: End::Stall, .. }
                    )
                )
        });
        if silent || call.is_finished() { Ok(silent) } else { Err(plan.trace()) }
    })
    .await
    .unwrap();
    if stuck {
        // Room for a wrong answer to come through.
        let late = tokio::time::timeout(Duration::from_millis(50), call).await;
        return late.map_or(Seen::Nothing, Result::unwrap);
    }
    call.await.unwrap()
}

#[rstest]
#[case(Fault::Pass, 1, Seen::Object)]
#[case(Fault::CrashBefore, 0, Seen::Nothing)]
#[case(Fault::CrashAfter, 1, Seen::Nothing)]
#[case(Fault::Answer(throttled()), 0, Seen::Refused(429))]
#[case(Fault::AnswerAfter(timed_out()), 1, Seen::Refused(504))]
#[case(Fault::Hang, 0, Seen::Nothing)]
#[case(Fault::HangAfter, 1, Seen::Nothing)]
#[case(Fault::Reset, 0, Seen::NoAnswer(io::ErrorKind::ConnectionReset))]
#[case(Fault::ResetAfter, 1, Seen::NoAnswer(io::ErrorKind::ConnectionReset))]
#[case(cut(9, End::Error), 1, Seen::BrokenBody(io::ErrorKind::UnexpectedEof))]
#[case(cut(0, End::Error), 1, Seen::BrokenBody(io::ErrorKind::UnexpectedEof))]
#[case(cut(9999, End::Error), 1, Seen::BrokenBody(io::ErrorKind::UnexpectedEof))]
#[case(cut(9, End::Eof), 1, Seen::ShortBody)]
#[case(cut(0, End::Eof), 1, Seen::ShortBody)]
#[case(cut(9999, End::Eof), 1, Seen::Object)]
#[case(cut(9, End::Stall), 1, Seen::Nothing)]
#[tokio::test]
async fn each_fault_reaches_a_kube_client(
    #[case] fault: Fault,
    #[case] arrived: usize,
    #[case] expected: Seen,
) {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Only(1), fault);
    let client = fault::client(server.config(), &plan, false).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let patch = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    let call = async move {
        match maps.patch("web", &PatchParams::apply("belay"), &patch).await {
            Ok(map) => {
                assert_eq!(map.metadata.name.as_deref(), Some("web"));
                Seen::Object
            }
            Err(kube::Error::Api(status)) => Seen::Refused(status.code),
            Err(kube::Error::SerdeError(_)) => Seen::ShortBody,
            Err(kube::Error::Service(error)) => match io_kind(&*error) {
                io::ErrorKind::UnexpectedEof => Seen::BrokenBody(io::ErrorKind::UnexpectedEof),
                kind => Seen::NoAnswer(kind),
            },
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(outcome(&plan, call).await, expected);
    let line = "PATCH /api/v1/namespaces/shop/configmaps/web?&fieldManager=belay";
    assert_eq!(server.arrived(), vec![line; arrived]);
}

#[rstest]
#[case(Fault::Pass, 1, Seen::Object)]
#[case(Fault::CrashBefore, 0, Seen::Nothing)]
#[case(Fault::CrashAfter, 1, Seen::Nothing)]
#[case(Fault::Answer(throttled()), 0, Seen::Refused(429))]
#[case(Fault::AnswerAfter(timed_out()), 1, Seen::Refused(504))]
#[case(Fault::Hang, 0, Seen::Nothing)]
#[case(Fault::HangAfter, 1, Seen::Nothing)]
#[case(Fault::Reset, 0, Seen::NoAnswer(io::ErrorKind::ConnectionReset))]
#[case(Fault::ResetAfter, 1, Seen::NoAnswer(io::ErrorKind::ConnectionReset))]
#[case(cut(9, End::Error), 1, Seen::BrokenBody(io::ErrorKind::UnexpectedEof))]
#[case(cut(9, End::Eof), 1, Seen::ShortBody)]
#[case(cut(9, End::Stall), 1, Seen::Nothing)]
#[tokio::test]
async fn each_fault_reaches_an_http_client(
    #[case] fault: Fault,
    #[case] arrived: usize,
    #[case] expected: Seen,
) {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Only(1), fault);
    let service = plan.http().layer(ReqwestService(reqwest::Client::new()));
    let request =
        Request::post(format!("{}/repos/acme/web", server.url)).body(Bytes::from("{}")).unwrap();
    let call = async move {
        let response = match service.oneshot(request).await {
            Ok(response) => response,
            Err(error) => return Seen::NoAnswer(io_kind(&*error)),
        };
        // As code that works with reqwest's own types does it.
        let response = reqwest::Response::from(response.map(reqwest::Body::wrap));
        match (response.status().as_u16(), response.bytes().await) {
            (200, Ok(body)) if body == OBJECT => Seen::Object,
            (200, Ok(body)) => {
                assert_eq!(body, OBJECT[..9]);
                Seen::ShortBody
            }
            (200, Err(error)) => Seen::BrokenBody(io_kind(&error)),
            (other, Ok(body)) => {
                assert!(body.starts_with(b"{\"apiVersion\":\"v1\",\"kind\":\"Status\""));
                Seen::Refused(other)
            }
            (other, Err(error)) => panic!("{other} {error:?}"),
        }
    };
    assert_eq!(outcome(&plan, call).await, expected);
    assert_eq!(server.arrived(), vec!["POST /repos/acme/web"; arrived]);
}

#[tokio::test]
async fn an_answer_has_its_own_headers_and_body() {
    let plan = FaultPlan::new();
    let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS)
        .header(RETRY_AFTER, HeaderValue::from_static("7"))
        .body("slow down");
    plan.inject(Calls::any(), Nth::Every, Fault::Answer(answer));
    let response = Fake::default().below(&plan).call(get("/version")).await.unwrap();
    assert_eq!(response.headers()[RETRY_AFTER], "7");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "slow down");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_ends_with_the_callers_own_timeout() {
    let plan = FaultPlan::new();
    plan.inject(Calls::any(), Nth::Only(1), Fault::Hang);
    plan.inject(Calls::any(), Nth::Only(2), Fault::HangAfter);
    let fake = Fake::default();
    let mut service = fake.below(&plan);
    for sent in [0, 1] {
        let start = tokio::time::Instant::now();
        let patience = Duration::from_hours(1);
        let call = tokio::time::timeout(patience, service.call(get("/version")));
        assert!(call.await.is_err());
        assert_eq!(start.elapsed(), patience);
        assert_eq!(fake.count(), sent);
    }
    assert!(service.call(get("/version")).await.is_ok());
}

/// The one event that the server sends, with its newline.
const EVENT: u64 = OBJECT.len() as u64 + r#"{"type":"ADDED","object":}"#.len() as u64 + 1;

#[rstest]
#[case(EVENT, End::Error, 1)]
#[case(EVENT, End::Eof, 1)]
#[case(EVENT, End::Stall, 1)]
#[case(EVENT / 2, End::Error, 0)]
#[case(EVENT / 2, End::Eof, 0)]
#[case(EVENT / 2, End::Stall, 0)]
#[tokio::test]
async fn a_watch_breaks_off(#[case] after_bytes: u64, #[case] end: End, #[case] events: usize) {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    plan.inject(Calls::any(), Nth::Only(1), cut(after_bytes, end));
    let client = fault::client(server.config(), &plan, false).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    for _ in 0..events {
        let event = watch.try_next().await.unwrap();
        assert!(matches!(event, Some(WatchEvent::Added(_))), "{event:?}");
    }
    if end == End::Stall {
        let last = tokio::time::timeout(Duration::from_millis(50), watch.try_next()).await;
        assert!(last.is_err(), "{last:?}");
    } else {
        // kube takes a broken connection for the end of a watch.
        let last = in_time(watch.try_next()).await;
        assert!(matches!(last, Ok(None)), "{last:?}");
    }
    assert_eq!(plan.trace().calls().len(), 1);
}

#[rstest]
#[case(0, "")]
#[case(1, "a")]
#[case(5, "abcde")]
#[case(6, "abcdef")]
#[case(7, "abcdef")]
#[case(u64::MAX, "abcdef")]
#[tokio::test]
async fn a_body_of_many_frames_is_cut_at_the_byte(#[case] after_bytes: u64, #[case] rest: &str) {
    for end in [End::Eof, End::Error] {
        let plan = FaultPlan::new();
        plan.inject(Calls::any(), Nth::Every, cut(after_bytes, end));
        let service = tower::service_fn(|_: Request<Bytes>| {
            let frames = ["ab", "", "cde", "f"].map(|data| {
                Ok::<_, io::Error>(http_body::Frame::data(Bytes::from_static(data.as_bytes())))
            });
            let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
            std::future::ready(Ok::<_, io::Error>(http::Response::new(body)))
        });
        let mut service = plan.kubernetes().layer(service);
        let mut body = service.call(get("/version")).await.unwrap().into_body();
        let mut got = Vec::new();
        let last = loop {
            match body.frame().await {
                Some(Ok(frame)) => got.extend_from_slice(&frame.into_data().unwrap()),
                Some(Err(error)) => break Some(io_kind(&*error)),
                None => break None,
            }
        };
        assert_eq!(got, rest.as_bytes());
        assert_eq!(last, (end == End::Error).then_some(io::ErrorKind::UnexpectedEof));
        assert!(body.frame().await.is_none(), "nothing follows the end");
    }
}

#[tokio::test]
async fn a_whole_body_keeps_its_exact_size() {
    let plan = FaultPlan::new();
    let response = Fake::default().below(&plan).call(get("/version")).await.unwrap();
    let hint = http_body::Body::size_hint(response.body());
    assert_eq!(hint.exact(), Some(OBJECT.len() as u64));
}

#[rstest]
#[case(End::Error, 9, false)]
#[case(End::Error, 9999, false)]
#[case(End::Eof, 9, true)]
#[case(End::Eof, 9999, true)]
#[case(End::Stall, 9, false)]
#[tokio::test]
async fn a_body_that_will_be_cut_promises_neither_size_nor_end(
    #[case] end: End,
    #[case] after_bytes: u64,
    #[case] over: bool,
) {
    let plan = FaultPlan::new();
    plan.inject(Calls::any(), Nth::Every, cut(after_bytes, end));
    let response = Fake::default().below(&plan).call(get("/version")).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(http_body::Body::size_hint(&body).exact(), None);
    body.frame().await.unwrap().unwrap();
    assert_eq!(http_body::Body::is_end_stream(&body), over);
}

#[tokio::test]
async fn the_layer_takes_any_request_body() {
    let plan = FaultPlan::new();
    let mut service = Fake::default().below(&plan);
    let response = service.call(Request::new(Full::<Bytes>::default())).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let response = service.call(Request::new(vec![1_u16])).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_url_that_reqwest_does_not_take_is_an_error() {
    let mut service = ReqwestService(reqwest::Client::new());
    assert!(
        service.call(Request::get("/relative").body("").unwrap()).await.unwrap_err().is_builder()
    );
}

#[tokio::test]
async fn a_base_url_with_a_path_is_understood() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    let mut config = server.config();
    config.cluster_url = format!("{}/k8s/clusters/c-1", server.url).parse().unwrap();
    let client = fault::client(config, &plan, false).unwrap();
    Api::<ConfigMap>::default_namespaced(client).get("web").await.unwrap();
    assert_eq!(plan.trace().to_string(), "GET v1 configmaps shop/web → 200\n");
    assert_eq!(server.arrived(), ["GET /k8s/clusters/c-1/api/v1/namespaces/shop/configmaps/web"]);
}

#[tokio::test]
async fn requests_are_authenticated_above_the_layer() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    let mut config = server.config();
    config.auth_info.token = Some("hunter2".to_owned().into());
    let client = fault::client(config, &plan, true).unwrap();
    Api::<ConfigMap>::default_namespaced(client).get("web").await.unwrap();
    let line = "GET /api/v1/namespaces/shop/configmaps/web authorization: Bearer hunter2";
    assert_eq!(server.arrived(), [line]);
    assert!(!format!("{:?}", plan.trace()).contains("hunter2"), "a trace has no headers");
}

#[tokio::test]
async fn a_server_that_is_silent_for_too_long_is_a_timeout() {
    let (server, plan) = (Server::start().await, FaultPlan::new());
    let mut config = server.config();
    config.read_timeout = Some(Duration::from_millis(50));
    let client = fault::client(config, &plan, true).unwrap();
    server.close();
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let reply = in_time(maps.get("web")).await;
    assert_eq!(io_kind(&reply.unwrap_err()), io::ErrorKind::TimedOut);
    assert_eq!(plan.trace().to_string(), "GET v1 configmaps shop/web → error\n");
}

#[tokio::test]
async fn a_configuration_that_kube_does_not_take_is_an_error() {
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.root_cert = Some(vec![b"no certificate".to_vec()]);
    let error = fault::client(config, &FaultPlan::new(), true).err().unwrap();
    assert_eq!(error.to_string(), "could not make a client for https://127.0.0.1:1/");
    assert!(error.source().is_some());
}

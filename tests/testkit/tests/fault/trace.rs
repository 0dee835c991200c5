//! What a run leaves to look at.

use belay_testkit::fault::{Answer, Calls, End, Fault, FaultPlan, Nth, Outcome, Verb};
use bytes::Bytes;
use http::{Request, StatusCode};
use rstest::rstest;
use tower::{Layer as _, Service as _};

use crate::support::{Fake, OBJECT, applies, apply, get, request, try_call};

#[test]
fn a_run_reads_as_one_line_per_call() {
    let plan = FaultPlan::new();
    plan.alias("127.0.0.1:39401", "github");
    let fake = Fake::default();
    let mut kube = fake.below(&plan);
    let mut github = plan.http().layer(fake.clone());
    let watch = "/apis/apps/v1/deployments?watch=true&resourceVersion=812&timeoutSeconds=290\
                 &labelSelector=app%3Dweb";
    try_call(&mut kube, get("/apis/apps/v1/deployments?limit=500&continue=abc"));
    try_call(&mut kube, get(watch));
    try_call(&mut github, get("http://127.0.0.1:39401/repos/acme/web/releases?per_page=9&page=2"));
    try_call(&mut kube, apply());
    plan.inject(applies(), Nth::Only(1), Fault::CrashAfter);
    try_call(&mut kube, apply());
    plan.restart();
    try_call(&mut fake.below(&plan), apply());
    assert_eq!(
        plan.trace().to_string(),
        "\
LIST apps/v1 deployments limit=500 → 200
WATCH apps/v1 deployments labelSelector=app=web → 200
GET github/repos/acme/web/releases per_page=9 page=2 → 200
PATCH(apply) apps/v1 deployments shop/web fieldManager=belay force=true → 200
PATCH(apply) apps/v1 deployments shop/web #2 fieldManager=belay force=true → 200, crash after
-- process 2
PATCH(apply) apps/v1 deployments shop/web #3 fieldManager=belay force=true → 200
"
    );
}

#[rstest]
#[case(Fault::Pass, "200", Some(200))]
#[case(Fault::CrashBefore, "not sent, crash before", None)]
#[case(Fault::CrashAfter, "200, crash after", None)]
#[case(Fault::Answer(Answer::new(StatusCode::CONFLICT)), "not sent, answer 409", Some(409))]
#[case(
    Fault::AnswerAfter(Answer::new(StatusCode::GATEWAY_TIMEOUT)),
    "200, answer 504 after",
    Some(504)
)]
#[case(Fault::Hang, "not sent, hang", None)]
#[case(Fault::HangAfter, "200, hang after", None)]
#[case(Fault::Reset, "not sent, reset", None)]
#[case(Fault::ResetAfter, "200, reset after", None)]
#[case(
    Fault::Truncate { after_bytes: 3, end: End::Eof },
    "200, end after 3 bytes",
    Some(200)
)]
fn a_call_says_what_the_server_said_and_what_the_caller_got(
    #[case] fault: Fault,
    #[case] line: &str,
    #[case] answered: Option<u16>,
) {
    let plan = FaultPlan::new();
    plan.inject(Calls::any(), Nth::Every, fault);
    try_call(&mut Fake::default().below(&plan), get("/version"));
    let trace = plan.trace();
    let [call] = trace.calls() else { panic!("{trace}") };
    assert_eq!(call.to_string(), format!("GET /version → {line}"));
    assert_eq!(call.answered().map(|status| status.as_u16()), answered);
}

#[test]
fn a_call_that_was_given_up_is_told_from_one_that_still_runs() {
    let plan = FaultPlan::new();
    let service = tower::service_fn(|_: Request<Bytes>| {
        std::future::pending::<Result<http::Response<http_body_util::Empty<Bytes>>, std::io::Error>>(
        )
    });
    let mut service = plan.kubernetes().layer(service);
    let call = service.call(get("/version"));
    assert_eq!(plan.trace().to_string(), "GET /version → in flight\n");
    drop(call);
    assert_eq!(plan.trace().to_string(), "GET /version → dropped\n");
}

#[test]
fn a_connection_that_fails_is_the_callers_error_and_in_the_trace() {
    let plan = FaultPlan::new();
    plan.inject(Calls::any(), Nth::Only(2), Fault::ResetAfter);
    plan.inject(
        Calls::any(),
        Nth::Only(3),
        Fault::AnswerAfter(Answer::new(StatusCode::GATEWAY_TIMEOUT)),
    );
    plan.inject(Calls::any(), Nth::Only(4), Fault::CrashAfter);
    let service = tower::service_fn(|_: Request<Bytes>| {
        let error = std::io::Error::other("no route to host");
        std::future::ready(Err::<http::Response<http_body_util::Empty<Bytes>>, _>(error))
    });
    let mut service = plan.kubernetes().layer(service);
    for _ in 0..3 {
        let reply = futures::FutureExt::now_or_never(service.call(get("/version"))).unwrap();
        assert_eq!(reply.unwrap_err().to_string(), "no route to host");
    }
    assert!(futures::FutureExt::now_or_never(service.call(get("/version"))).is_none());
    assert!(plan.has_crashed());
    let trace = plan.trace();
    assert!(trace.calls().iter().all(|call| call.answered().is_none()));
    assert_eq!(trace.calls()[0].outcome, Outcome::Failed("no route to host".into()));
    assert_eq!(trace.calls()[3].to_string(), "GET /version #4 → error, crash after");
}

#[test]
fn questions_to_a_trace_are_answered_in_order() {
    let plan = FaultPlan::new();
    let mut service = Fake::default().below(&plan);
    let status = "/apis/apps/v1/namespaces/shop/deployments/web/status";
    for request in [get("/version"), apply(), request("PUT", status, ""), get("/version"), apply()]
    {
        try_call(&mut service, request);
    }
    plan.restart();
    try_call(&mut Fake::default().below(&plan), apply());
    let trace = plan.trace();
    let writes = trace.writes();
    let verbs: Vec<String> = writes.calls().iter().map(|call| call.id.verb.to_string()).collect();
    assert_eq!(verbs, ["PATCH(apply)", "UPDATE", "PATCH(apply)", "PATCH(apply)"]);
    assert_eq!(trace.count(&applies()), 3);
    assert_eq!(trace.count(&Calls::any().resource("deployments/status")), 1);
    assert_eq!(trace.of(&Calls::any().verb(Verb::Get)).calls().len(), 0);
    assert_eq!(trace.of(&Calls::any().path("/version")).calls().len(), 2);
    assert_eq!(trace.process(2).calls().len(), 1);
    assert!(trace.faults().calls().is_empty());
}

#[test]
fn bodies_are_kept_on_demand_up_to_a_limit() {
    let create = |body: &'static str| {
        Request::post("/api/v1/namespaces/shop/configmaps").body(Bytes::from(body)).unwrap()
    };
    let plan = FaultPlan::new();
    let mut service = Fake::default().below(&plan);
    try_call(&mut service, create(OBJECT));
    plan.keep_bodies(1024);
    try_call(&mut service, create(OBJECT));
    plan.keep_bodies(10);
    try_call(&mut service, create(OBJECT));
    let trace = plan.trace();
    let [off, whole, cut] = trace.calls() else { panic!("{trace}") };
    assert_eq!((&off.body, off.object_name()), (&None, None));
    assert_eq!(whole.body.as_deref(), Some(OBJECT.as_bytes()));
    assert_eq!(whole.object_name().as_deref(), Some("web"));
    assert_eq!(cut.body.as_deref(), Some(&OBJECT.as_bytes()[..10]));
    assert_eq!(cut.object_name(), None);
}

#[test]
fn bodies_of_all_clients_are_readable() {
    let plan = FaultPlan::new();
    plan.keep_bodies(1024);
    let fake = Fake::default();
    let mut service = fake.below(&plan);
    let post = || Request::post("/api/v1/namespaces/shop/configmaps");
    let bytes = OBJECT.as_bytes().to_vec();
    drop(service.call(post().body(kube::client::Body::from(bytes.clone())).unwrap()));
    drop(service.call(post().body(reqwest::Body::from(bytes.clone())).unwrap()));
    drop(service.call(post().body(http_body_util::Full::<Bytes>::from(bytes)).unwrap()));
    let trace = plan.trace();
    let names: Vec<_> = trace.calls().iter().map(belay_testkit::fault::Call::object_name).collect();
    assert_eq!(names, vec![Some("web".to_owned()); 3]);
}

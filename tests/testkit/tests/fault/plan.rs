//! Which call meets which fault.

use belay_testkit::fault::{Answer, Calls, End, Fault, FaultPlan, Nth, PatchKind, Verb, plans_for};
use http::StatusCode;
use rstest::rstest;

use crate::support::{Fake, applies, apply, get, id, request, try_call};

fn refusal() -> Fault {
    Fault::Answer(Answer::new(StatusCode::SERVICE_UNAVAILABLE))
}

#[rstest]
#[case(Nth::Only(1), [503, 200, 200, 200])]
#[case(Nth::Only(3), [200, 200, 503, 200])]
#[case(Nth::Only(0), [200, 200, 200, 200])]
#[case(Nth::Only(9), [200, 200, 200, 200])]
#[case(Nth::From(1), [503, 503, 503, 503])]
#[case(Nth::From(3), [200, 200, 503, 503])]
#[case(Nth::First(0), [200, 200, 200, 200])]
#[case(Nth::First(2), [503, 503, 200, 200])]
#[case(Nth::Every, [503, 503, 503, 503])]
fn the_count_chooses_among_the_calls_that_match(#[case] nth: Nth, #[case] statuses: [u16; 4]) {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    plan.inject(applies(), nth, refusal());
    let mut service = fake.below(&plan);
    let seen = statuses.map(|_| {
        // Calls in between that do not match are not counted.
        assert_eq!(try_call(&mut service, get("/version")), Some(Ok(StatusCode::OK)));
        try_call(&mut service, apply()).unwrap().unwrap().as_u16()
    });
    assert_eq!(seen, statuses);
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(fake.count(), passed + statuses.len());
}

#[test]
fn the_first_rule_whose_turn_it_is_decides_and_all_count() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    plan.inject(applies(), Nth::Only(1), Fault::Pass);
    plan.inject(Calls::any(), Nth::First(2), refusal());
    plan.inject(Calls::any(), Nth::Only(3), Fault::Reset);
    let mut service = fake.below(&plan);
    let statuses = [(); 4].map(|()| try_call(&mut service, apply()).unwrap());
    assert_eq!(
        statuses,
        [
            Ok(StatusCode::OK),
            Ok(StatusCode::SERVICE_UNAVAILABLE),
            Err("connection reset by peer".into()),
            Ok(StatusCode::OK)
        ]
    );
}

#[test]
fn rules_come_and_go_during_a_run() {
    let (plan, fake) = (FaultPlan::new(), Fake::default());
    let mut service = fake.below(&plan);
    assert_eq!(try_call(&mut service, apply()), Some(Ok(StatusCode::OK)));
    plan.inject(Calls::any(), Nth::Every, refusal());
    assert_eq!(try_call(&mut service, apply()), Some(Ok(StatusCode::SERVICE_UNAVAILABLE)));
    plan.clear();
    assert_eq!(try_call(&mut service, apply()), Some(Ok(StatusCode::OK)));
}

#[rstest]
#[case(Calls::any(), true)]
#[case(Calls::any().writes(), true)]
#[case(Calls::any().verb(Verb::Patch(PatchKind::Apply)), true)]
#[case(Calls::any().verb(Verb::Patch(PatchKind::Merge)), false)]
#[case(Calls::any().group("apps"), true)]
#[case(Calls::any().group(""), false)]
#[case(Calls::any().resource("deployments"), true)]
#[case(Calls::any().resource("deployments/status"), false)]
#[case(Calls::any().resource("deploy"), false)]
#[case(Calls::any().namespace("shop"), true)]
#[case(Calls::any().namespace("shop2"), false)]
#[case(Calls::any().name("web"), true)]
#[case(Calls::any().name("web").namespace("other"), false)]
#[case(Calls::any().host("api.github.com"), false)]
#[case(Calls::any().path("/apis"), false)]
#[case(Calls::same_as(&id(&apply())), true)]
#[case(Calls::same_as(&id(&get("/api/v1/pods"))), false)]
#[case(Calls::same_as(&id(&get("/apis/apps/v1/namespaces/shop/deployments/web"))), false)]
#[case(Calls::same_as(&id(&apply())).name("other"), false)]
fn a_set_of_calls_holds_what_fits_in_every_respect(#[case] calls: Calls, #[case] fits: bool) {
    assert_eq!(calls.contains(&id(&apply())), fits, "{calls}");
}

#[rstest]
#[case("/apis/apps/v1/namespaces/shop/deployments/web/status", "deployments/status", true)]
#[case("/apis/apps/v1/namespaces/shop/deployments/web/status", "deployments", false)]
#[case("/apis/apps/v1/namespaces/shop/deployments/web/scale", "deployments/status", false)]
fn a_subresource_is_asked_for_by_its_own_name(
    #[case] uri: &str,
    #[case] resource: &str,
    #[case] fits: bool,
) {
    assert_eq!(Calls::any().resource(resource).contains(&id(&get(uri))), fits);
}

#[rstest]
#[case(Calls::any().host("github"), true)]
#[case(Calls::any().host("registry"), false)]
#[case(Calls::any().path("/repos/acme/"), true)]
#[case(Calls::any().path("/repos/acme/web/releases/latest"), false)]
#[case(Calls::any().resource("releases"), false)]
#[case(Calls::any().writes(), false)]
fn calls_to_other_servers_are_told_by_host_and_path(#[case] calls: Calls, #[case] fits: bool) {
    let request = get("http://github/repos/acme/web/releases?page=2");
    assert_eq!(calls.contains(&belay_testkit::fault::CallId::http(&request)), fits);
}

#[test]
fn a_reference_run_gives_one_plan_for_each_call_and_fault() {
    let (reference, fake) = (FaultPlan::new(), Fake::default());
    let run = |plan: &FaultPlan| {
        let mut service = fake.below(plan);
        let calls = [get("/api/v1/pods?watch=true"), apply(), apply(), get("/version")];
        calls.map(|request| try_call(&mut service, request))
    };
    let undisturbed = run(&reference);
    let faults = [Fault::CrashBefore, refusal()];
    let plans = plans_for(&reference.trace(), &faults);
    let names: Vec<String> = plans.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "crash before: number 1 of WATCH v1 pods",
            "answer 503: number 1 of WATCH v1 pods",
            "crash before: number 1 of PATCH(apply) apps/v1 deployments shop/web",
            "answer 503: number 1 of PATCH(apply) apps/v1 deployments shop/web",
            "crash before: number 2 of PATCH(apply) apps/v1 deployments shop/web",
            "answer 503: number 2 of PATCH(apply) apps/v1 deployments shop/web",
            "crash before: number 1 of GET /version",
            "answer 503: number 1 of GET /version",
        ]
    );
    for (index, plan) in plans.iter().enumerate() {
        let disturbed = run(plan);
        let place = index / faults.len();
        assert_eq!(disturbed[..place], undisturbed[..place], "{plan}");
        assert_ne!(disturbed[place], undisturbed[place], "{plan}");
        assert_eq!(plan.trace().faults().calls().len(), 1, "{plan}");
        assert_eq!(plan.has_crashed(), index % 2 == 0, "{plan}");
    }
    let writes = plans_for(&reference.trace().writes(), &faults);
    assert_eq!(writes.len(), 4);
}

#[test]
fn a_plan_finds_its_call_in_another_namespace_and_another_order() {
    let reference = FaultPlan::new();
    reference.alias("shop", "NS");
    let mut service = Fake::default().below(&reference);
    try_call(&mut service, get("/version"));
    try_call(&mut service, apply());
    let [plan] = plans_for(&reference.trace().writes(), &[refusal()]).try_into().unwrap();

    plan.alias("test-7", "NS");
    let mut service = Fake::default().below(&plan);
    let uri = "/apis/apps/v1/namespaces/test-7/deployments/web";
    let apply = request("PATCH", uri, "application/apply-patch+yaml");
    assert_eq!(try_call(&mut service, apply), Some(Ok(StatusCode::SERVICE_UNAVAILABLE)));
    assert_eq!(try_call(&mut service, get("/version")), Some(Ok(StatusCode::OK)));
    assert_eq!(
        plan.trace().to_string(),
        "PATCH(apply) apps/v1 deployments NS/web → not sent, answer 503\nGET /version → 200\n"
    );
}

#[test]
fn a_plan_says_what_it_does() {
    let plan = FaultPlan::new();
    assert_eq!(plan.to_string(), "no faults");
    plan.inject(applies().namespace("shop").name("web"), Nth::From(2), Fault::HangAfter);
    let cut = Fault::Truncate { after_bytes: 9, end: End::Error };
    plan.inject(Calls::any().host("github").path("/repos").writes(), Nth::First(3), cut);
    plan.inject(Calls::any(), Nth::Every, Fault::Reset);
    assert_eq!(
        plan.to_string(),
        "hang after: number 2 and later of PATCH(apply) deployments namespace=shop name=web; \
         error after 9 bytes: the first 3 of writes host=github path=/repos; \
         reset: every of all calls"
    );
}

//! Rollbacks of a target that no workload has (section 7).

use belay_api::{
    Rollback,
    conditions::find,
    reasons::Rejection,
    rollback::{Driver, InitiatorType::User, RollbackStatus},
};
use belay_engine::plan::{Step, end_unfollowed};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

use crate::case::{Case, at};

fn rollback(driver: Driver) -> Rollback {
    let mut case = Case::new();
    case.ask_back("by-hand", "", User).driver = driver;
    case.rollback("by-hand")
}

fn end(rollback: &Rollback) -> RollbackStatus {
    let step = end_unfollowed(rollback, "shop", at(7));
    let Some(Step::RollbackStatus { name, from, status }) = step else { panic!("{step:?}") };
    assert_eq!((name.as_str(), from.uid.as_str()), ("by-hand", "uid-by-hand"));
    *status
}

#[rstest]
#[case::native(Driver::Native, "Rejected", Some(Rejection::NotFollowed))]
#[case::noop(Driver::Noop, "DeploymentSucceeded", None)]
#[case::github(Driver::Github, "Rejected", Some(Rejection::NotAllowed))]
#[case::argocd(Driver::Argocd, "Rejected", Some(Rejection::NotAllowed))]
fn it_ends_in_words_that_say_why(
    #[case] driver: Driver,
    #[case] outcome: &str,
    #[case] rejection: Option<Rejection>,
) {
    let status = end(&rollback(driver));
    assert!(status.is_terminal());
    assert_eq!(find(&status.conditions, "Succeeded").unwrap().reason, outcome);
    assert_eq!(status.rejection.as_ref().and_then(belay_api::Open::known), rejection);
    assert_eq!(status.completion_time, Some(Time(at(7))));
    assert!(!status.message.unwrap().is_empty());
    let id = (driver == Driver::Noop).then_some("noop-shop-by-hand");
    assert_eq!(status.deployment_id.as_deref(), id);
}

#[test]
fn one_that_had_begun_has_failed() {
    let mut rollback = rollback(Driver::Native);
    rollback.status =
        Some(RollbackStatus { start_time: Some(Time(at(1))), ..RollbackStatus::default() });
    let status = end(&rollback);
    assert_eq!(find(&status.conditions, "Succeeded").unwrap().reason, "DeploymentFailed");
    assert_eq!((status.rejection, status.start_time), (None, Some(Time(at(1)))));
}

#[test]
fn one_that_has_ended_stays_as_it_is() {
    let mut rollback = rollback(Driver::Native);
    rollback.status = Some(end(&rollback));
    assert_eq!(end_unfollowed(&rollback, "shop", at(9)), None);
}

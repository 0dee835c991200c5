use belay_api::{
    conditions::{ConditionStatus, State as _, TargetState},
    gates::Gate,
    reasons::{HeldReason, ProgressingReason, StalledReason, TargetReadyReason},
    target::{CandidateStatus, Current, TargetStatus},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rstest::rstest;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn condition(state: impl Into<TargetState>, message: &str) -> Condition {
    state.into().condition(ConditionStatus::True, message, None, Time(at(0)))
}

fn status(conditions: Vec<Condition>, candidates: &[(&str, Option<Gate>)]) -> TargetStatus {
    TargetStatus {
        conditions,
        current: Some(Current { tag: Some("0.4.0".to_owned()), ..Current::default() }),
        candidates: candidates
            .iter()
            .map(|(tag, gate)| CandidateStatus {
                tag: (*tag).to_owned(),
                gate: gate.map(Into::into),
                message: None,
                since: None,
            })
            .collect(),
        ..TargetStatus::default()
    }
}

fn of(status: &TargetStatus) -> Chain {
    let ground = Ground {
        namespace: "shop",
        name: "cart",
        status,
        live: None,
        followed: &[],
        active: None,
        source: "GitHub acme/cart, range ^0.5",
        trouble: None,
        fallen: None,
        now: at(1020),
    };
    chain(&ground, None)
}

fn broken(chain: &Chain) -> Option<(Step, Icon)> {
    chain.links.iter().find(|link| link.icon != Icon::Good).map(|link| (link.step, link.icon))
}

#[rstest]
#[case::conflict(StalledReason::FieldConflict, Step::Apply)]
#[case::person(StalledReason::ChangedByPerson, Step::Apply)]
#[case::config(StalledReason::InvalidConfig, Step::Policy)]
#[case::breaker(StalledReason::BreakerOpen, Step::Release)]
#[case::broken(StalledReason::Broken, Step::Rollout)]
#[case::rollback(StalledReason::RollbackFailed, Step::Health)]
fn what_stalls_breaks_its_link(#[case] reason: StalledReason, #[case] step: Step) {
    let status = status(
        vec![condition(TargetReadyReason::Stalled, ""), condition(reason, "words")],
        &[("v0.5.1", None), ("v0.6.0-rc1", Some(Gate::Prerelease))],
    );
    let chain = of(&status);
    assert_eq!(broken(&chain), Some((step, Icon::Bad)));
    assert_eq!(chain.title, "shop/cart has not moved to v0.5.1 for 17m; it runs 0.4.0.");
    assert!(chain.links.iter().any(|link| link.text == format!("{reason}: words")));
    assert!(!chain.next.is_empty() && chain.next.iter().all(|next| !next.contains("{t}")));
    let after = chain.links.iter().filter(|link| link.step > step);
    assert!(after.clone().all(|link| link.icon == Icon::None));
}

#[rstest]
#[case(Gate::Blocked, Step::Release)]
#[case(Gate::Age, Step::Release)]
#[case(Gate::WaitingForImage, Step::Image)]
fn a_gate_breaks_its_link(#[case] gate: Gate, #[case] step: Step) {
    let ready = condition(TargetReadyReason::Ready, "");
    let chain = of(&status(vec![ready], &[("v0.6.0", Some(Gate::Range)), ("v0.5.1", Some(gate))]));
    assert_eq!(broken(&chain), Some((step, Icon::Bad)));
    assert_eq!(
        chain.links[0].text,
        "selected v0.5.1 (GitHub acme/cart, range ^0.5; v0.6.0 ignored: Range)"
    );
    if gate == Gate::Blocked {
        assert_eq!(chain.next[0], "kubectl release resume cart --allow v0.5.1");
    }
}

#[rstest]
#[case(ProgressingReason::Rolling, Step::Rollout, Icon::Busy)]
#[case(ProgressingReason::Baking, Step::Health, Icon::Busy)]
#[case(ProgressingReason::QuotaExceeded, Step::Rollout, Icon::Bad)]
fn what_is_under_way_is_at_its_link(
    #[case] reason: ProgressingReason,
    #[case] step: Step,
    #[case] icon: Icon,
) {
    let conditions = vec![condition(TargetReadyReason::Progressing, ""), condition(reason, "")];
    assert_eq!(broken(&of(&status(conditions, &[("v0.5.1", None)]))), Some((step, icon)));
}

#[test]
fn a_hold_is_no_error() {
    let held = vec![condition(TargetReadyReason::Held, ""), condition(HeldReason::OnHold, "")];
    let chain = of(&status(held, &[("v0.5.1", Some(Gate::Hold))]));
    assert_eq!(broken(&chain), Some((Step::Release, Icon::Idle)));
    assert_eq!(chain.next, ["kubectl release resume cart"]);
}

#[test]
fn nothing_is_broken_where_all_is_well() {
    let ready = condition(TargetReadyReason::Ready, "");
    let chain = of(&status(vec![ready], &[("v0.4.0", Some(Gate::Lower))]));
    assert_eq!(broken(&chain), None);
    assert_eq!(chain.title, "shop/cart runs 0.4.0, as it should.");
    assert_eq!((chain.cause, chain.next.len()), (None, 0));
}

#[test]
fn words_of_a_newer_operator_are_shown_as_they_are() {
    let mut stalled = condition(StalledReason::Broken, "because");
    stalled.reason = "NewWord".to_owned();
    let chain = of(&status(vec![condition(TargetReadyReason::Stalled, ""), stalled], &[]));
    assert_eq!(broken(&chain), Some((Step::Apply, Icon::Bad)));
    assert!(chain.links.iter().any(|link| link.text == "NewWord: because"));
}

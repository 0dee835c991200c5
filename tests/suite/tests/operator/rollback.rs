//! Rollbacks that a person asks for: where they go, and what they are refused for (operator
//! specification, section 7).

use anyhow::{Context as _, Result};
use belay_api::{
    NamedValue as _,
    gates::Gate,
    reasons::{Rejection, StalledReason},
    rollback::Driver,
};
use belay_suite::operator::{Bed, condition};
use serde_json::json;

use crate::support::{
    ask_for, ended, following_to, gated, kubectl, polls, release, release_name, roll, rollback,
    scale, stalled, target, told, wait_for_activation, wait_for_release, wait_for_rollback,
    wait_for_target, wired,
};

#[tokio::test]
async fn a_named_rollback_goes_there_and_blocks_what_lies_between() -> Result<()> {
    let bed = Bed::new("named").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0", "v1.3.0"]).await?;
    let (to, from) =
        (release_name(&bed, "web", "v1.0.0").await?, release_name(&bed, "web", "v1.3.0").await?);
    ask_for(&bed, rollback("web-back", &to), |_| {}).await?;
    let end = ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let name = |reference: Option<belay_api::release::ReleaseRef>| reference.map(|one| one.name);
    assert_eq!(name(end.from_release_ref), Some(from));
    assert_eq!(name(end.to_release_ref), Some(to));
    assert_eq!((end.attempt_count, end.automatic), (Some(1), false));
    assert!(end.start_time.is_some() && end.completion_time >= end.start_time);
    let left = wait_for_release(&bed, "web", "v1.3.0", ("Blocked", "True", "RolledBack")).await?;
    let conditions = left.status.unwrap_or_default().conditions;
    assert_eq!(condition(&conditions, "Active").map(|one| &*one.reason), Some("RolledBack"));
    let again = wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    assert_eq!(again.initiator.as_deref(), Some("alice"));
    told(&bed, "RollingBack", &["v1.3.0", "v1.0.0"]).await?;
    told(&bed, "RolledBack", &["v1.0.0"]).await?;
    let block = target(&bed, "web").await?.blocked;
    let block = block.first().map(|one| (one.from.clone(), one.to.clone()));
    assert_eq!(block, Some(("v1.3.0".to_owned(), Some("v1.0.0".to_owned()))));
    // Between both, published since: refused. Above: followed.
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", Gate::Blocked).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    roll(&bed, "v1.4.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn without_a_name_it_goes_to_the_last_that_was_healthy() -> Result<()> {
    let bed = Bed::new("latest").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.release("v1.2.0+no-pull").await?;
    // It fails, and Belay itself goes back to v1.1.0.
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    roll(&bed, "v1.3.0").await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"), "not the one that failed");
    ask_for(&bed, rollback("web-further", ""), |_| {}).await?;
    ended(&bed, "web-further", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    ask_for(&bed, rollback("web-too-far", ""), |_| {}).await?;
    let end = ended(&bed, "web-too-far", "Rejected").await?;
    let rejection = end.rejection.and_then(|one| one.known());
    assert_eq!(rejection, Some(Rejection::NoReleaseToGoTo));
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

#[tokio::test]
async fn what_cannot_be_gone_to_is_refused_in_words() -> Result<()> {
    let bed = Bed::new("rejected").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.create(&bed.workload("api", "1.0.0").annotation("belay.dev/hold", "true"), "helm").await?;
    bed.wait_for_healthy("api", "v1.0.0").await?;
    bed.release("v1.2.0+no-pull").await?;
    wait_for_release(&bed, "web", "v1.2.0+no-pull", ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    // v1.1.0 becomes one that was healthy and is refused.
    let first = release_name(&bed, "web", "v1.0.0").await?;
    ask_for(&bed, rollback("web-back", &first), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    let name = async |target: &str, tag: &str| release_name(&bed, target, tag).await;
    let cases = [
        ("unknown", "web-0000000".to_owned(), Driver::Native, Rejection::ReleaseNotFound),
        ("active", first, Driver::Native, Rejection::AlreadyActive),
        ("other", name("api", "v1.0.0").await?, Driver::Native, Rejection::OtherTarget),
        ("failed", name("web", "v1.2.0+no-pull").await?, Driver::Native, Rejection::NotHealthy),
        ("blocked", name("web", "v1.1.0").await?, Driver::Native, Rejection::Blocked),
        ("github", name("web", "v1.1.0").await?, Driver::Github, Rejection::Followed),
        ("argocd", name("web", "v1.1.0").await?, Driver::Argocd, Rejection::Followed),
        ("nowhere", String::new(), Driver::Native, Rejection::NoReleaseToGoTo),
    ];
    for (id, to, driver, expected) in cases {
        let id = format!("web-{id}");
        ask_for(&bed, rollback(&id, &to), |spec| spec.driver = driver).await?;
        let end = ended(&bed, &id, "Rejected").await?;
        assert_eq!(end.rejection.and_then(|one| one.known()), Some(expected), "{id}");
        assert_eq!(end.message.as_deref(), Some(expected.describe()), "{id}");
        assert_eq!(end.attempt_count, None, "{id}");
        told(&bed, "RollbackFailed", &["Warning", expected.describe()]).await?;
    }
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    assert_eq!(bed.live("api").await?, bed.image("1.0.0"));
    operator.stop().await
}

#[tokio::test]
async fn force_goes_to_a_blocked_release() -> Result<()> {
    let bed = Bed::new("forced").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Blocked", "True", "RolledBack")).await?;
    let blocked = release_name(&bed, "web", "v1.1.0").await?;
    ask_for(&bed, rollback("web-forth", &blocked), |spec| spec.force = true).await?;
    ended(&bed, "web-forth", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    operator.stop().await
}

/// A Rollback that fails is not answered by another one, and a newer release gets the target out.
#[tokio::test]
async fn a_rollback_that_fails_stays_where_it_is() -> Result<()> {
    let bed = Bed::new("failsback").await?;
    let operator = bed.following(wired(|_| {})).await?;
    bed.release("v1.1.0+no-pull").await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    let bad = release_name(&bed, "web", "v1.1.0+no-pull").await?;
    ask_for(&bed, rollback("web-bad", &bad), |spec| spec.force = true).await?;
    let end = ended(&bed, "web-bad", "DeploymentFailed").await?;
    let message = end.message.unwrap_or_default();
    assert!(message.contains("pull"), "{message}");
    let message = stalled(&bed, "web", StalledReason::RollbackFailed).await?;
    assert!(message.contains("v1.1.0+no-pull"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0_no-pull"));
    let all = bed.rollbacks().list(&kube::api::ListParams::default()).await?;
    assert_eq!(all.items.len(), 2, "one of the operator's, one of alice's");
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

/// The image that a person has set was there when the Rollback was asked for: it is what is left.
#[tokio::test]
async fn a_rollback_takes_the_image_of_who_held_it_when_it_was_asked_for() -> Result<()> {
    let bed = Bed::new("takes").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let image = format!("app={}", bed.image("1.1.5"));
    kubectl(&bed, &["set", "image", "deployment/web", &image]).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    let to = release_name(&bed, "web", "v1.0.0").await?;
    ask_for(&bed, rollback("web-back", &to), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_takes_no_image_that_a_person_set_later() -> Result<()> {
    let bed = Bed::new("later").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let paused = |on: bool| json!({ "spec": { "paused": on } });
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    let asked = ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    let asked = asked.metadata.creation_timestamp.context("no time")?.0;
    wait_for_rollback(&bed, "web-back", "waits", |status| {
        let progress = condition(&status.conditions, "InProgress")?;
        (progress.reason == "TargetPaused").then_some(())
    })
    .await?;
    // Times of both have whole seconds.
    bed.wait("the next second", || async {
        let now = jiff::Timestamp::now();
        anyhow::ensure!(now.as_second() > asked.as_second(), "{now}");
        Ok(())
    })
    .await?;
    let by_hand = bed.image("1.1.5");
    kubectl(&bed, &["set", "image", "deployment/web", &format!("app={by_hand}")]).await?;
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    let end = ended(&bed, "web-back", "DeploymentFailed").await?;
    let message = end.message.unwrap_or_default();
    assert!(message.contains("kubectl-set"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, by_hand);
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_of_what_a_gitops_controller_owns_is_refused() -> Result<()> {
    let bed = Bed::new("gitopsback").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.set_image("web", &bed.image("1.1.5"), "argocd-controller").await?;
    stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    let end = ended(&bed, "web-back", "Rejected").await?;
    assert_eq!(end.rejection.and_then(|one| one.known()), Some(Rejection::ManagedByGitOps));
    assert_eq!(bed.live("web").await?, bed.image("1.1.5"));
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_at_zero_replicas_ends_at_once() -> Result<()> {
    let bed = Bed::new("zeroback").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    scale(&bed, "web", 0).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    let end = ended(&bed, "web-back", "DeploymentSucceeded").await?;
    let message = end.message.unwrap_or_default();
    assert!(message.contains("no replicas"), "{message}");
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    wait_for_release(&bed, "web", "v1.0.0", ("Ready", "Unknown", "ScaledToZero")).await?;
    scale(&bed, "web", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    operator.stop().await
}

/// The API server refuses changes of an ended Rollback; the operator does not even try.
#[tokio::test]
async fn an_ended_rollback_never_changes() -> Result<()> {
    let bed = Bed::new("terminal").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    let before = bed.rollbacks().get("web-back").await?;
    roll(&bed, "v1.2.0").await?;
    ask_for(&bed, rollback("web-again", ""), |_| {}).await?;
    ended(&bed, "web-again", "DeploymentSucceeded").await?;
    assert_eq!(bed.rollbacks().get("web-back").await?, before);
    operator.stop().await
}

#[tokio::test]
async fn of_ended_rollbacks_the_last_ten_are_kept() -> Result<()> {
    let bed = Bed::new("tenback").await?;
    let operator = bed.following(wired(|_| {})).await?;
    for number in 10..23 {
        let id = format!("web-{number}");
        ask_for(&bed, rollback(&id, "web-0000000"), |_| {}).await?;
        ended(&bed, &id, "Rejected").await?;
    }
    let left = bed
        .wait("ten Rollbacks", || async {
            let all = bed.rollbacks().list(&kube::api::ListParams::default()).await?;
            let names = all.items.into_iter().filter_map(|one| one.metadata.name);
            let names: Vec<String> = names.collect();
            anyhow::ensure!(names.len() <= 10, "{names:?}");
            Ok(names)
        })
        .await?;
    let expected: Vec<String> = (13..23).map(|number| format!("web-{number}")).collect();
    assert_eq!(left, expected);
    polls(&bed, 4).await?;
    let all = bed.rollbacks().list(&kube::api::ListParams::default()).await?;
    assert_eq!(all.items.len(), 10);
    operator.stop().await
}

/// A target that no workload has: what waited for ever before says so now, and the workload that comes
/// afterwards finds nothing that would move it.
#[tokio::test]
async fn a_rollback_of_a_target_that_nobody_has_is_rejected() -> Result<()> {
    let bed = Bed::new("nobody").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.deployments().delete("web", &kube::api::DeleteParams::default()).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ask_for(&bed, rollback("shop-back", ""), |spec| spec.to_release_ref.target = "shop".to_owned())
        .await?;
    for name in ["web-back", "shop-back"] {
        let end = ended(&bed, name, "Rejected").await?;
        assert_eq!(end.rejection.map(|it| it.to_string()), Some("NotFollowed".to_owned()));
    }
    bed.create(&bed.web("1.1.0"), "helm").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    operator.stop().await
}

/// What a Rollback shows while the target is held: it works, and the hold is said.
#[tokio::test]
async fn a_hold_does_not_stop_a_persons_rollback() -> Result<()> {
    let bed = Bed::new("heldback").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.annotate("web", "hold", json!("true")).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    wait_for_target(&bed, "web", "held", |status| {
        let held = condition(&status.conditions, "Held")?;
        (held.reason == "OnHold" && status.hold.as_deref() == Some("true")).then_some(())
    })
    .await?;
    assert_eq!(
        release(&bed, "web", "v1.1.0").await?.status.unwrap_or_default().activations.len(),
        1
    );
    operator.stop().await
}

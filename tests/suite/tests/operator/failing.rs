//! Releases that fail: fixing forward, the breaker, the other targets of a namespace, and rollouts
//! that wait for each other (operator specification, sections 3.4, 3.8 and 3.9).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use belay_api::{
    Release,
    gates::{Gate, Verdict, WaitReason},
    reasons::StalledReason,
};
use belay_suite::operator::{Bed, Running, active, reason};
use kube::api::ListParams;
use serde_json::json;

use crate::support::{
    ask_for, ended, following_to, gated, going_on, polls, release, release_name, roll, rollback,
    stalled, told, wait_for_activation, wait_for_release, wait_for_target, wired,
};

/// With `on-failure: stop` a failed release stays, and a newer one may start.
#[tokio::test]
async fn a_release_that_was_left_broken_is_fixed_forward() -> Result<()> {
    let bed = Bed::new("forward").await?;
    let operator = bed.following(wired(|_| {})).await?;
    bed.annotate("web", "on-failure", json!("stop")).await?;
    bed.release("v1.1.0+no-pull").await?;
    let message = stalled(&bed, "web", StalledReason::Broken).await?;
    assert!(message.contains("v1.1.0+no-pull"), "{message}");
    wait_for_release(&bed, "web", "v1.1.0+no-pull", ("Blocked", "True", "RolloutFailed")).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0_no-pull"));
    assert_eq!(bed.rollbacks().list(&ListParams::default()).await?.items, []);
    roll(&bed, "v1.1.1").await?;
    going_on(&bed, "web").await?;
    operator.stop().await
}

/// The first release that Belay ever moves to fails, and there is nothing healthy to go back to.
#[tokio::test]
async fn without_anything_to_go_back_to_a_failure_stays() -> Result<()> {
    let bed = Bed::new("noback").await?;
    bed.release("v1.0.0+never-ready").await?;
    bed.create(&bed.web("1.0.0_never-ready").annotation("belay.dev/deadline", "2s"), "helm")
        .await?;
    let operator = bed.operator()?;
    stalled(&bed, "web", StalledReason::Broken).await?;
    bed.release("v1.1.0+no-pull").await?;
    wait_for_release(&bed, "web", "v1.1.0+no-pull", ("Blocked", "True", "RolloutFailed")).await?;
    let message = stalled(&bed, "web", StalledReason::Broken).await?;
    assert!(message.contains("no Release to go back to"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0_no-pull"));
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

/// argoproj/argo-rollouts#3331: a revision that came while another one was under way left both
/// stuck.
#[tokio::test]
async fn a_release_that_comes_while_another_rolls_waits_for_its_verdict() -> Result<()> {
    let bed = Bed::new("meanwhile").await?;
    let operator = bed.following(wired(|_| {})).await?;
    bed.annotate("web", "deadline", json!("4s")).await?;
    bed.release("v1.1.0+never-ready").await?;
    wait_for_activation(&bed, "web", "v1.1.0+never-ready", 1).await?;
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", Gate::InFlight).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0_never-ready"));
    bed.wait_for_healthy("web", "v1.2.0").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.2.0"));
    let failed = release(&bed, "web", "v1.1.0+never-ready").await?.status.unwrap_or_default();
    let verdict = failed.activations.last().and_then(|last| last.verdict.as_ref()?.known());
    assert_eq!(verdict, Some(Verdict::Failed));
    let all = bed.releases().list(&ListParams::default()).await?.items;
    assert_eq!(all.iter().filter(|one| active(one)).count(), 1);
    operator.stop().await
}

#[tokio::test]
async fn after_two_rollbacks_in_a_day_only_what_is_allowed_starts() -> Result<()> {
    let bed = Bed::new("breaker").await?;
    let operator = bed.following(wired(|_| {})).await?;
    for (round, tag) in [(2, "v1.1.0+no-pull"), (3, "v1.2.0+no-pull")] {
        bed.release(tag).await?;
        wait_for_activation(&bed, "web", "v1.0.0", round).await?;
        wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    }
    bed.release("v1.3.0").await?;
    let message = stalled(&bed, "web", StalledReason::BreakerOpen).await?;
    assert!(message.contains("belay.dev/allow: v1.3.0"), "{message}");
    told(&bed, "BreakerOpen", &["Warning", "24 hours"]).await?;
    let until = wait_for_target(&bed, "web", "waits for the breaker", |status| {
        let waiting = status.waiting.as_ref()?;
        (waiting.reason.known() == Some(WaitReason::BreakerOpen)).then(|| waiting.until.clone())?
    })
    .await?;
    let hours = until.0.duration_since(jiff::Timestamp::now()).as_hours();
    assert!((22..=24).contains(&hours), "{hours} h");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    bed.annotate("web", "allow", json!("v1.3.0")).await?;
    bed.wait_for_image("web", &bed.image("1.3.0")).await?;
    bed.wait_for_healthy("web", "v1.3.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn an_allowed_release_may_be_tried_once() -> Result<()> {
    let bed = Bed::new("allow").await?;
    let operator = bed.following(wired(|_| {})).await?;
    let tag = "v1.1.0+no-pull";
    bed.release(tag).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    bed.annotate("web", "allow", json!(tag)).await?;
    // Tried, failed, and back again.
    wait_for_activation(&bed, "web", "v1.0.0", 3).await?;
    let tried = release(&bed, "web", tag).await?.status.unwrap_or_default().activations;
    assert_eq!(tried.len(), 2, "{tried:?}");
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    polls(&bed, 6).await?;
    // The same value is used up, until it was absent.
    let tried = release(&bed, "web", tag).await?.status.unwrap_or_default().activations;
    assert_eq!(tried.len(), 2, "{tried:?}");
    gated(&bed, "web", tag, Gate::Blocked).await?;
    operator.stop().await
}

#[tokio::test]
async fn allow_counts_again_after_it_was_absent() -> Result<()> {
    let bed = Bed::new("allowagain").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let back = |round: i64| {
        let bed = &bed;
        async move {
            let name = format!("web-back-{round}");
            let first = release_name(bed, "web", "v1.0.0").await?;
            let rollback = rollback(&name, &first);
            ask_for(bed, rollback, |_| {}).await?;
            ended(bed, &name, "DeploymentSucceeded").await?;
            gated(bed, "web", "v1.1.0", Gate::Blocked).await
        }
    };
    back(1).await?;
    bed.annotate("web", "allow", json!("v1.1.0")).await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    back(2).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"), "that leave was used");
    bed.annotate("web", "allow", json!(null)).await?;
    // It must be seen absent.
    bed.wait("the use of allow to be forgotten", || async {
        let left = release(&bed, "web", "v1.1.0").await?;
        let block = left.metadata.annotations.unwrap_or_default().remove("belay.dev/blocked");
        let block = block.unwrap_or_default();
        ensure!(!block.contains("allowed"), "{block}");
        Ok(())
    })
    .await?;
    bed.annotate("web", "allow", json!("v1.1.0")).await?;
    wait_for_activation(&bed, "web", "v1.1.0", 3).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_release_that_failed_on_one_target_is_not_started_on_the_next() -> Result<()> {
    let bed = Bed::new("elsewhere").await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let api = bed.workload("api", "1.0.0").annotation("belay.dev/hold", "true");
    bed.create(&api, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.wait_for_healthy("api", "v1.0.0").await?;
    bed.release("v1.1.0+no-pull").await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    bed.annotate("api", "hold", json!(null)).await?;
    gated(&bed, "api", "v1.1.0+no-pull", Gate::FailedElsewhere).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("api").await?, bed.image("1.0.0"));
    // What is newer has not failed, and what is allowed may.
    bed.release("v1.2.0").await?;
    bed.wait_for_healthy("api", "v1.2.0").await?;
    bed.wait_for_healthy("web", "v1.2.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn so_many_rollouts_at_once_as_are_permitted() -> Result<()> {
    let bed = Bed::new("limit").await?;
    bed.release("v1.0.0").await?;
    let slow = |name: &str| bed.workload(name, "1.0.0").pod_annotation("testbed/start", "2s");
    for name in ["one", "two", "three"] {
        bed.create(&slow(name), "helm").await?;
    }
    let wiring = wired(|settings| settings.max_concurrent_rollouts = 1);
    let operator = Running::start(&bed, wiring)?;
    for name in ["one", "two", "three"] {
        bed.wait_for_healthy(name, "v1.0.0").await?;
    }
    bed.release("v1.1.0").await?;
    let (most, has_waited) = (AtomicUsize::new(0), AtomicBool::new(false));
    bed.wait("all three to run v1.1.0", || async {
        let releases = bed.releases().list(&ListParams::default()).await?.items;
        let rolling = releases.iter().filter(|release| is_rolling(release)).count();
        most.fetch_max(rolling, Ordering::Relaxed);
        let targets = bed.targets().list(&ListParams::default()).await?.items;
        let waiting = targets.iter().filter(|target| {
            let waiting = target.status.as_ref().and_then(|status| status.waiting.as_ref());
            waiting.and_then(|one| one.reason.known()) == Some(WaitReason::ConcurrencyLimit)
        });
        has_waited.fetch_or(waiting.count() > 0, Ordering::Relaxed);
        let healthy = releases.iter().filter(|release| is_healthy(release, "v1.1.0")).count();
        ensure!(healthy == 3, "{healthy} of 3");
        Ok(())
    })
    .await?;
    assert_eq!((most.into_inner(), has_waited.into_inner()), (1, true));
    operator.stop().await
}

fn is_rolling(release: &Release) -> bool {
    let conditions = release.status.clone().unwrap_or_default().conditions;
    active(release) && reason(&conditions, "Ready") == "Rolling"
}

fn is_healthy(release: &Release, tag: &str) -> bool {
    let conditions = release.status.clone().unwrap_or_default().conditions;
    release.config().revisions.iter().any(|one| one.id == tag)
        && reason(&conditions, "Healthy") == "Baked"
}

/// Names of Releases and Rollbacks are made of it, and have 253 characters at most.
#[tokio::test]
async fn a_target_of_the_longest_name_is_rolled_and_taken_back() -> Result<()> {
    let bed = Bed::new("long").await?;
    let target = ["a".repeat(60), "b".repeat(60), "c".repeat(60), "d".repeat(62)].join(".");
    assert_eq!(target.len(), 245);
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/target", &target), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy(&target, "v1.0.0").await?;
    bed.release("v1.1.0+no-pull").await?;
    let tag = "v1.1.0+no-pull";
    wait_for_release(&bed, &target, tag, ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, &target, "v1.0.0", 2).await?;
    wait_for_release(&bed, &target, "v1.0.0", ("Healthy", "True", "Baked")).await?;
    let all = bed.rollbacks().list(&ListParams::default()).await?.items;
    assert_eq!(all.len(), 1);
    bed.release("v1.2.0").await?;
    bed.wait_for_healthy(&target, "v1.2.0").await?;
    operator.stop().await
}

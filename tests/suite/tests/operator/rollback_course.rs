//! What becomes of a Rollback on its way: waiting, pre-empting, being tried again, coming too late
//! (operator specification, sections 4.2 and 7).

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    Duration,
    gates::{Gate, Verdict},
    reasons::StalledReason,
    rollback::InitiatorType,
};
use belay_suite::operator::{Bed, condition};
use belay_testkit::fault::{Answer, Calls, Fault, FaultPlan, Nth, PatchKind, Verb};
use http::StatusCode;
use kube::api::ListParams;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{
    ask_for, ended, following_to, gated, going_on, live, polls, release, release_name, retag, roll,
    rollback, stalled, traced, wait_for_activation, wait_for_release, wait_for_rollback, wired,
};

fn paused(on: bool) -> Value {
    json!({ "spec": { "paused": on } })
}

/// Waits until a Rollback says what it does.
async fn doing(bed: &Bed, name: &str, reason: &str) -> Result<()> {
    wait_for_rollback(bed, name, reason, |status| {
        let progress = condition(&status.conditions, "InProgress")?;
        (progress.reason == reason).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_persons_rollback_pre_empts_a_release_that_is_rolling() -> Result<()> {
    let bed = Bed::new("preempt").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.release("v1.2.0+never-ready").await?;
    wait_for_activation(&bed, "web", "v1.2.0+never-ready", 1).await?;
    let to = release_name(&bed, "web", "v1.0.0").await?;
    ask_for(&bed, rollback("web-back", &to), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let left = release(&bed, "web", "v1.2.0+never-ready").await?.status.unwrap_or_default();
    let verdict = left.activations.last().and_then(|last| last.verdict.as_ref()?.known());
    assert_eq!(verdict, Some(Verdict::RolledBack), "{:?}", left.activations);
    let blocked = ("Blocked", "True", "Superseded");
    wait_for_release(&bed, "web", "v1.2.0+never-ready", blocked).await?;
    // Nobody but alice has rolled back, and nothing goes forward again.
    polls(&bed, 4).await?;
    assert_eq!(bed.rollbacks().list(&ListParams::default()).await?.items.len(), 1);
    gated(&bed, "web", "v1.2.0+never-ready", Gate::Blocked).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

/// A failed release is taken back by Belay, which a person overtakes.
#[tokio::test]
async fn a_persons_rollback_pre_empts_the_operators_own() -> Result<()> {
    let bed = Bed::new("overtake").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let first = release_name(&bed, "web", "v1.0.0").await?;
    bed.release("v1.2.0+never-ready").await?;
    wait_for_activation(&bed, "web", "v1.2.0+never-ready", 1).await?;
    // Its deadline passes while nothing can roll, so that the Rollback stands still.
    bed.annotate("web", "deadline", json!("1s")).await?;
    let own = bed
        .wait("a Rollback of the operator's", || async {
            let all = bed.rollbacks().list(&ListParams::default()).await?.items;
            let own =
                all.into_iter().find(|one| one.spec.initiated_by.type_ == InitiatorType::System);
            own.and_then(|one| one.metadata.name).context("none")
        })
        .await?;
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    ask_for(&bed, rollback("web-back", &first), |_| {}).await?;
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    bed.annotate("web", "deadline", json!("20s")).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let own = bed.rollbacks().get(&own).await?.status.unwrap_or_default();
    assert!(own.is_terminal(), "{own:?}");
    operator.stop().await
}

#[tokio::test]
async fn of_two_rollbacks_the_older_goes_first() -> Result<()> {
    let bed = Bed::new("queue").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0", "v1.2.0"]).await?;
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    let (one, two) =
        (release_name(&bed, "web", "v1.1.0").await?, release_name(&bed, "web", "v1.0.0").await?);
    // By name the second would come first.
    ask_for(&bed, rollback("web-z", &one), |_| {}).await?;
    doing(&bed, "web-z", "TargetPaused").await?;
    ask_for(&bed, rollback("web-a", &two), |_| {}).await?;
    polls(&bed, 4).await?;
    let waiting = bed.rollbacks().get("web-a").await?.status.unwrap_or_default();
    assert_eq!(waiting.start_time, None, "{waiting:?}");
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    let first = ended(&bed, "web-z", "DeploymentSucceeded").await?;
    let second = ended(&bed, "web-a", "DeploymentSucceeded").await?;
    assert!(second.start_time >= first.completion_time, "{first:?} {second:?}");
    assert_eq!(second.from_release_ref.map(|from| from.name), Some(one));
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

/// kubernetes#36427: time in which nothing can roll was counted.
#[tokio::test]
async fn while_the_workload_is_paused_a_rollback_waits_and_uses_no_attempt() -> Result<()> {
    let bed = Bed::new("paused").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    doing(&bed, "web-back", "TargetPaused").await?;
    polls(&bed, 4).await?;
    let status = bed.rollbacks().get("web-back").await?.status.unwrap_or_default();
    assert_eq!((status.attempt_count, status.is_terminal()), (None, false));
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    let end = ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(end.attempt_count, Some(1));
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    assert_eq!(live_paused(&bed).await?, json!(false), "not Belay's to change");
    operator.stop().await
}

async fn live_paused(bed: &Bed) -> Result<Value> {
    let paused = live(bed, "web").await?["spec"]["paused"].take();
    Ok(if paused.is_null() { json!(false) } else { paused })
}

#[tokio::test]
async fn a_rollback_that_cannot_begin_in_time_ends() -> Result<()> {
    let bed = Bed::new("timeout").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    let short = Duration::from_secs(2);
    ask_for(&bed, rollback("web-back", ""), |spec| spec.timeout = short).await?;
    let end = ended(&bed, "web-back", "DeadlineExceeded").await?;
    assert!(end.message.unwrap_or_default().contains("2s"));
    assert_eq!(end.attempt_count, None);
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"), "it is over");
    // What was never begun has moved and blocked nothing.
    going_on(&bed, "web").await?;
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_that_does_not_end_in_time_has_failed() -> Result<()> {
    let bed = Bed::new("slow").await?;
    let operator = bed.following(wired(|_| {})).await?;
    bed.annotate("web", "on-failure", json!("stop")).await?;
    bed.annotate("web", "deadline", json!("2s")).await?;
    bed.release("v1.1.0+never-ready").await?;
    stalled(&bed, "web", StalledReason::Broken).await?;
    bed.annotate("web", "deadline", json!("1h")).await?;
    roll(&bed, "v1.2.0").await?;
    let bad = release_name(&bed, "web", "v1.1.0+never-ready").await?;
    let request = rollback("web-bad", &bad);
    ask_for(&bed, request, |spec| {
        spec.force = true;
        spec.timeout = Duration::from_secs(4);
    })
    .await?;
    let end = ended(&bed, "web-bad", "DeadlineExceeded").await?;
    assert_eq!(end.attempt_count, Some(1));
    stalled(&bed, "web", StalledReason::RollbackFailed).await?;
    // What it has begun is still under way, and keeps nothing waiting.
    roll(&bed, "v1.3.0").await?;
    operator.stop().await
}

fn applies() -> Calls {
    Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments")
}

fn unavailable() -> Fault {
    Fault::Answer(Answer::kubernetes(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "no"))
}

#[rstest]
#[case::once(1, Some(2), "DeploymentSucceeded")]
#[case::always(u32::MAX, Some(3), "DeploymentFailed")]
#[tokio::test]
async fn a_rollback_is_tried_three_times_at_most(
    #[case] failures: u32,
    #[case] attempts: Option<i32>,
    #[case] outcome: &str,
) -> Result<()> {
    let bed = Bed::new("attempts").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(|_| {});
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = following_to(&bed, wiring, &["v1.1.0"]).await?;
    let before = plan.trace().count(&applies());
    plan.inject(applies(), Nth::First(failures), unavailable());
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    let end = ended(&bed, "web-back", outcome).await?;
    assert_eq!(end.attempt_count, attempts, "{end:?}");
    plan.clear();
    if outcome == "DeploymentFailed" {
        let message = end.message.unwrap_or_default();
        assert!(message.contains("503") || message.contains("no"), "{message}");
        let made = plan.trace().count(&applies()) - before;
        assert_eq!(made, 3, "{}", plan.trace().of(&applies()));
        stalled(&bed, "web", StalledReason::RollbackFailed).await?;
        assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
        roll(&bed, "v1.2.0").await?;
    } else {
        assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    }
    operator.stop().await
}

/// realestate-com-au/tagfish#14: the tag was changed and the digest left, or the other way round,
/// and what ran was neither.
#[tokio::test]
async fn a_tag_that_names_another_image_by_now_is_gone_back_to_by_digest() -> Result<()> {
    let bed = Bed::new("moved").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let good = release(&bed, "web", "v1.1.0").await?.status.unwrap_or_default();
    let good = good.images.first().and_then(|image| image.digest.clone()).context("no digest")?;
    let other = bed.push("v9.9.9").await?;
    retag(&bed, "9.9.9", "1.1.0").await?;
    assert_ne!(good, other);
    bed.release("v1.2.0+no-pull").await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    let repository = bed.image("");
    let repository = repository.trim_end_matches(':');
    bed.wait_for_image("web", &format!("{repository}@{good}")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    // It is still v1.1.0, and what follows is compared with that.
    polls(&bed, 4).await?;
    roll(&bed, "v1.3.0").await?;
    operator.stop().await
}

/// Of the operator's own Rollbacks there is one for each activation, named after it, however often
/// its beginning is repeated.
#[tokio::test]
async fn a_failed_activation_is_answered_by_one_rollback() -> Result<()> {
    let bed = Bed::new("one").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    bed.release("v1.2.0+crash-loop").await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    let failed = release_name(&bed, "web", "v1.2.0+crash-loop").await?;
    let all = bed.rollbacks().list(&ListParams::default()).await?.items;
    let [only] = all.as_slice() else { anyhow::bail!("{} Rollbacks", all.len()) };
    let name = only.metadata.name.clone().unwrap_or_default();
    let hash = failed.trim_start_matches("web-").to_owned();
    ensure!(name == format!("web-{hash}-failed-1"), "{name} for {failed}");
    assert_eq!(only.spec.initiated_by.type_, InitiatorType::System);
    let end = ended(&bed, &name, "DeploymentSucceeded").await?;
    assert!(end.automatic);
    operator.stop().await
}

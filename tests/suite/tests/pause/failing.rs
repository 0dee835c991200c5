//! Rollouts that fail, are undone, or end in another way: one pause from the first to the last of it,
//! and none afterwards.

use anyhow::{Result, ensure};
use belay_api::reasons::StalledReason;
use belay_suite::{
    keda::Change,
    operator::{
        condition,
        support::{ask_for, ended, release_name, roll, rollback, stalled, told},
    },
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{SCALED, Scene, WEB, WORKLOAD, claim, image, impatient, wired};

#[tokio::test]
async fn one_claim_spans_a_failed_rollout_and_its_rollback() -> Result<()> {
    let (scene, operator) = Scene::following("spans", wired(|_| ())).await?;
    scene.release("v1.1.0+no-pull").await?;
    scene.wait_for_image(WEB, &scene.image("1.1.0_no-pull")).await?;
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    scene.until_dropped().await?;
    let failed = release_name(&scene, WEB, "v1.1.0+no-pull").await?;
    let claims: Vec<Value> = scene.claims()?.into_iter().flatten().collect();
    ensure!(claims.len() == 1 && claims[0]["release"] == failed, "{claims:?}");
    // It was dropped after the Rollback had ended, not between the two.
    let log = &scene.scaling.log;
    let claimed = log.first(0, SCALED, "claimed", |one| claim(one).is_some()).await?;
    let dropped = log.first(claimed.version, SCALED, "dropped", |one| claim(one).is_none()).await?;
    let old = scene.image("1.0.0");
    let is_back = |one: &Change| image(one) == old;
    let back = log.first(claimed.version, WORKLOAD, "back", is_back).await?;
    ensure!(back.version > claimed.version && back.version < dropped.version);
    let rollbacks = scene.rollbacks().list(&ListParams::default()).await?.items;
    ensure!(rollbacks.len() == 1, "{} Rollbacks", rollbacks.len());
    scene.scaling.metric(WEB, 5);
    scene.scaling.until_replicas(WEB, 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_failed_rollout_that_stays_is_not_paused_any_more() -> Result<()> {
    let (scene, operator) = Scene::following_as(
        "stop",
        wired(|_| ()),
        |workload| workload.annotation("belay.dev/on-failure", "stop"),
        |object| object,
    )
    .await?;
    scene.release("v1.1.0+no-pull").await?;
    stalled(&scene, WEB, StalledReason::Broken).await?;
    scene.until_dropped().await?;
    assert_eq!(scene.live(WEB).await?, scene.image("1.1.0_no-pull"));
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_in_mid_rollout_is_paused_until_it_has_ended() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("undone").await?;
    scene.rolling("1.1.0").await?;
    ask_for(&scene, rollback("web-back", ""), |_| ()).await?;
    ended(&scene, "web-back", "DeploymentSucceeded").await?;
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.until_dropped().await?;
    let claims = scene.claims()?;
    ensure!(claims.iter().flatten().count() >= 1, "{claims:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_rollback_of_a_healthy_release_is_paused_too() -> Result<()> {
    let (scene, operator) = Scene::following("back", wired(|_| ())).await?;
    roll(&scene, "v1.1.0").await?;
    let before = scene.claims()?.len();
    ask_for(&scene, rollback("web-back", ""), |_| ()).await?;
    ended(&scene, "web-back", "DeploymentSucceeded").await?;
    scene.until_dropped().await?;
    ensure!(scene.claims()?.len() > before, "it was not paused");
    operator.stop().await
}

/// What was asked for in writing holds a rollout, and no Rollback.
#[tokio::test]
async fn a_rollback_does_not_wait_for_keda() -> Result<()> {
    let (scene, operator) = Scene::following_as(
        "outage",
        impatient(),
        |workload| workload.annotation("belay.dev/pause", "scale-in"),
        |object| object,
    )
    .await?;
    roll(&scene, "v1.1.0").await?;
    scene.until_dropped().await?;
    scene.scaling.keda.kill();
    ask_for(&scene, rollback("web-back", ""), |_| ()).await?;
    ended(&scene, "web-back", "DeploymentSucceeded").await?;
    told(&scene, "RolledUnpaused", &["Warning", WEB]).await?;
    scene.until_dropped().await?;
    operator.stop().await
}

/// How a rollout ends before it is judged.
#[derive(Debug, Clone, Copy)]
enum End {
    /// A person sets another image.
    Changed,
    /// The workload goes.
    Deleted,
    /// The workload is followed no more.
    Unfollowed,
    /// Its annotations cannot be read any more.
    Unreadable,
    /// It is only observed from now on.
    Observed,
    /// It is not to be paused any more.
    Unpaused,
    /// It names no ScaledObject any more.
    Unnamed,
}

#[rstest]
#[case::changed_by_a_person(End::Changed)]
#[case::deleted(End::Deleted)]
#[case::unfollowed(End::Unfollowed)]
#[case::unreadable(End::Unreadable)]
#[case::only_observed(End::Observed)]
#[case::not_to_be_paused(End::Unpaused)]
#[case::without_its_scaled_object(End::Unnamed)]
#[tokio::test]
async fn a_rollout_that_ends_in_another_way_leaves_no_pause(#[case] end: End) -> Result<()> {
    let (scene, operator) = Scene::rolling_long("ends").await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    match end {
        End::Changed => scene.set_image(WEB, &scene.image("0.9.0"), "kubectl-edit").await?,
        End::Deleted => {
            scene.deployments().delete(WEB, &DeleteParams::background()).await?;
        }
        End::Unfollowed => scene.annotate(WEB, "repo", Value::Null).await?,
        End::Unreadable => scene.annotate(WEB, "bake", json!("soon")).await?,
        End::Observed => scene.annotate(WEB, "mode", json!("observe")).await?,
        End::Unpaused => scene.annotate(WEB, "pause", json!("none")).await?,
        End::Unnamed => scene.annotate(WEB, "scaledobject", Value::Null).await?,
    }
    scene.until_dropped().await?;
    let annotations = scene.scaling.objects().get(WEB).await?.annotations().clone();
    ensure!(!annotations.keys().any(|key| key.contains("pause")), "{annotations:?}");
    operator.stop().await
}

/// A hold stops what comes next; what is under way keeps its pause until it ends.
#[tokio::test]
async fn a_hold_in_mid_rollout_keeps_the_pause_to_its_end() -> Result<()> {
    let (scene, operator) = Scene::following("hold", wired(|_| ())).await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.annotate(WEB, "hold", json!("true")).await?;
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.until_dropped().await?;
    let claims: Vec<Value> = scene.claims()?.into_iter().flatten().collect();
    ensure!(claims.len() == 1, "{claims:?}");
    let release = scene.wait_for_healthy(WEB, "v1.0.0").await?;
    let conditions = release.status.unwrap_or_default().conditions;
    ensure!(condition(&conditions, "Active").is_some_and(|one| one.status == "True"));
    operator.stop().await
}

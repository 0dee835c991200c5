//! The other ways of pausing, and workloads that are not paused at all.

use anyhow::{Result, ensure};
use belay_suite::{
    keda::{Change, FULL, MANAGER},
    operator::{
        Running,
        support::{going_on, release, roll, wait_for_release},
    },
};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::scene::{EXPIRES, HPA, OWNER, SCALED, Scene, WEB, WORKLOAD, claim, image, wired};

#[tokio::test]
async fn a_full_pause_takes_the_hpa_away_before_the_rollout() -> Result<()> {
    let (scene, operator) = Scene::following_as(
        "full",
        wired(|_| ()),
        |workload| workload.annotation("belay.dev/pause", "full"),
        |object| object,
    )
    .await?;
    roll(&scene, "v1.1.0").await?;
    let (log, new) = (&scene.scaling.log, scene.image("1.1.0"));
    let claimed = log.first(0, SCALED, "claimed", |one| claim(one).is_some()).await?;
    assert_eq!(claimed.object["metadata"]["annotations"][FULL], "true");
    let gone = log.first(claimed.version, HPA, "gone", |one| one.gone).await?;
    let moved = log.first(0, WORKLOAD, "moved", |one| image(one) == new).await?;
    let dropped = |one: &Change| claim(one).is_none();
    let dropped = log.first(claimed.version, SCALED, "dropped", dropped).await?;
    let order = [claimed.version, gone.version, moved.version, dropped.version];
    assert!(order.is_sorted(), "{order:?}");
    scene.scaling.until_resumed(WEB).await?;
    scene.scaling.metric(WEB, 5);
    scene.scaling.until_replicas(WEB, 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn without_a_pause_nothing_is_claimed() -> Result<()> {
    let (scene, operator) = Scene::following_as(
        "none",
        wired(|_| ()),
        |workload| workload.annotation("belay.dev/pause", "none"),
        |object| object,
    )
    .await?;
    roll(&scene, "v1.1.0").await?;
    assert_eq!(scene.claims()?, [None]);
    operator.stop().await
}

#[tokio::test]
async fn at_zero_replicas_nothing_is_claimed_and_the_release_is_set() -> Result<()> {
    let scene = Scene::new("zero").await?;
    scene.release("v1.0.0").await?;
    scene.create(&scene.scaled("1.0.0"), "helm").await?;
    scene.scaling.settle(&scene.scaling.of(WEB).replicas(0, 4)).await?;
    scene.scaling.until_replicas(WEB, 0).await?;
    let operator = Running::start(&scene, wired(|_| ()))?;
    let asleep = ("Healthy", "Unknown", "ScaledToZero");
    wait_for_release(&scene, WEB, "v1.0.0", asleep).await?;
    scene.release("v1.1.0").await?;
    wait_for_release(&scene, WEB, "v1.1.0", asleep).await?;
    assert_eq!(scene.live(WEB).await?, scene.image("1.1.0"));
    assert_eq!(scene.claims()?, [None]);
    // It can wake up at any time, and is judged then: that is held still as every rollout is.
    scene.scaling.metric(WEB, 15);
    scene.scaling.until_replicas(WEB, 2).await?;
    scene.wait_for_healthy(WEB, "v1.1.0").await?;
    scene.until_dropped().await?;
    operator.stop().await
}

/// As if half of its time had gone by.
#[tokio::test]
async fn a_claim_whose_time_runs_out_is_renewed_while_it_rolls() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("renewed").await?;
    scene.rolling("1.1.0").await?;
    let before = scene.until_claimed(WEB).await?;
    let object = scene.scaling.objects().get(WEB).await?;
    let mut body = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": { "name": WEB, "annotations": object.metadata.annotations },
    });
    let soon = Timestamp::now() + SignedDuration::from_secs(120);
    body["metadata"]["annotations"][EXPIRES] = json!(soon.to_string());
    if let Some(annotations) = body["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| key.contains("pause"));
    }
    let params = PatchParams::apply(MANAGER);
    scene.scaling.objects().patch(WEB, &params, &Patch::Apply(body)).await?;
    // Two deadlines of five minutes, and five minutes.
    let late = Timestamp::now() + SignedDuration::from_mins(14);
    scene
        .wait("the claim to be renewed", || async {
            let expires = scene.scaling.annotation(WEB, EXPIRES).await?.unwrap_or_default();
            ensure!(expires.parse::<Timestamp>()? > late, "{expires}");
            Ok(())
        })
        .await?;
    assert_eq!(scene.until_claimed(WEB).await?, before);
    ensure!(scene.scaling.annotation(WEB, OWNER).await?.is_some());
    operator.stop().await
}

#[tokio::test]
async fn an_unpaused_workload_is_paused_again_when_its_rollout_goes_on() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("stopped").await?;
    scene.rolling("1.1.0").await?;
    let first = scene.until_claimed(WEB).await?;
    scene.patch(WEB, "kubectl", &json!({ "spec": { "paused": true } })).await?;
    scene.until_dropped().await?;
    scene.patch(WEB, "kubectl", &json!({ "spec": { "paused": false } })).await?;
    let second = scene.until_claimed(WEB).await?;
    assert_eq!(first["release"], second["release"]);
    scene.scaling.until_frozen(WEB).await?;
    operator.stop().await
}

#[tokio::test]
async fn each_rollout_has_a_claim_of_its_own() -> Result<()> {
    let (scene, operator) = Scene::following("twice", wired(|_| ())).await?;
    for tag in ["v1.1.0", "v1.2.0"] {
        roll(&scene, tag).await?;
        scene.until_dropped().await?;
    }
    going_on(&scene, WEB).await?;
    let mut wanted = Vec::new();
    for tag in ["v1.1.0", "v1.2.0"] {
        wanted.push(release(&scene, WEB, tag).await?.metadata.name.unwrap_or_default());
    }
    let claims = scene.claims()?;
    let of: Vec<_> = claims.iter().flatten().map(|one| one["release"].clone()).collect();
    assert_eq!(of, wanted);
    operator.stop().await
}

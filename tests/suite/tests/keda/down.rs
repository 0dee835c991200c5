//! KEDA that is dead for a while, and ScaledObjects that go.

use anyhow::{Result, ensure};
use belay_suite::keda::{FULL, MANAGER, SCALE_IN, condition, scale_down};
use belay_testkit::wait;
use kube::api::DeleteParams;
use rstest::rstest;

use crate::scene::{SCALED, Scene, WEB, paused};

/// An annotation alone proves nothing: with KEDA dead the HPA goes on scaling in.
#[tokio::test]
async fn a_pause_while_keda_is_dead_has_no_effect_until_it_is_back() -> Result<()> {
    let scene = Scene::at(35).await?;
    scene.keda.kill();
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.metric(WEB, 15);
    scene.until_replicas(WEB, 2).await?;
    let hpa = scene.hpa(WEB).await?.unwrap_or_default();
    assert_ne!(scale_down(&hpa), Some("Disabled"));
    scene.keda.start_again().await?;
    scene.until_frozen(WEB).await?;
    scene.metric(WEB, 5);
    scene.passes(WEB).await?;
    assert_eq!(scene.replicas(WEB).await?, 2);
    Ok(())
}

#[tokio::test]
async fn a_restart_while_all_is_paused_changes_nothing() -> Result<()> {
    let scene = Scene::at(35).await?;
    scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
    scene.until_stopped(WEB).await?;
    // Its last write about `web` comes after the HPA has gone; by then that is done.
    scene.another_wakes_up().await?;
    let before = scene.objects().get(WEB).await?.metadata.resource_version;
    scene.keda.kill();
    scene.keda.start_again().await?;
    scene.metric(WEB, 5);
    // KEDA is at work again, and has left `web` alone.
    scene.another_wakes_up().await?;
    scene.until_stopped(WEB).await?;
    assert_eq!(scene.replicas(WEB).await?, 4);
    assert_eq!(scene.objects().get(WEB).await?.metadata.resource_version, before);
    Ok(())
}

#[rstest]
#[case::scale_in(SCALE_IN)]
#[case::full(FULL)]
#[tokio::test]
async fn a_drop_while_keda_is_dead_takes_effect_when_it_is_back(#[case] key: &str) -> Result<()> {
    let scene = Scene::at(35).await?;
    scene.claim(WEB, MANAGER, Some((key, "true"))).await?;
    scene.until_held(WEB, key).await?;
    // A pause of scale-in is in the HPA before it is in the object's status.
    scene.log.first(0, SCALED, "Paused", |one| paused(one) == "True").await?;
    scene.keda.kill();
    let at = scene.claim(WEB, MANAGER, None).await?;
    scene.metric(WEB, 5);
    if key == SCALE_IN {
        scene.passes(WEB).await?;
    }
    // Nobody has told the HPA, and the object still says that it is paused.
    assert_eq!(scene.replicas(WEB).await?, 4);
    let object = serde_json::to_value(scene.objects().get(WEB).await?)?;
    assert_eq!(condition(&object, "Paused"), "True");
    scene.keda.start_again().await?;
    scene.until_resumed(WEB).await?;
    scene.until_replicas(WEB, 1).await?;
    scene.log.first(at, SCALED, "not Paused", |one| paused(one) == "False").await?;
    Ok(())
}

#[rstest]
#[case::scale_in(SCALE_IN)]
#[case::full(FULL)]
#[tokio::test]
async fn a_paused_object_is_deleted_with_its_hpa(#[case] key: &str) -> Result<()> {
    let scene = Scene::at(15).await?;
    scene.claim(WEB, MANAGER, Some((key, "true"))).await?;
    scene.until_held(WEB, key).await?;
    scene.objects().delete(WEB, &DeleteParams::default()).await?;
    scene.log.first(0, SCALED, "gone", |one| one.gone).await?;
    wait::until("the HPA to be gone", wait::SOON, || async {
        match scene.hpa(WEB).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    // What it scales stays as it was.
    assert_eq!(scene.replicas(WEB).await?, 2);
    Ok(())
}

/// KEDA's finalizer keeps an object that is being deleted until KEDA is there to end it.
#[tokio::test]
async fn an_object_that_is_deleted_while_keda_is_dead_stays_until_it_is_back() -> Result<()> {
    let scene = Scene::at(15).await?;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    scene.keda.kill();
    scene.objects().delete(WEB, &DeleteParams::default()).await?;
    let object = scene.objects().get(WEB).await?;
    ensure!(object.metadata.deletion_timestamp.is_some(), "{object:?}");
    // It can still be written: a claim on it can be dropped.
    scene.claim(WEB, MANAGER, None).await?;
    scene.keda.start_again().await?;
    scene.log.first(0, SCALED, "gone", |one| one.gone).await?;
    Ok(())
}

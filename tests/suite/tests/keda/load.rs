//! What a paused workload does when its metric moves, and at zero replicas.

use anyhow::{Result, ensure};
use belay_suite::keda::{FULL, Kind, MANAGER, SCALE_IN};

use crate::scene::{Scene, WEB};

#[tokio::test]
async fn while_scale_in_is_paused_it_scales_out() -> Result<()> {
    let scene = Scene::at(35).await?;
    let at = scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    scene.metric(WEB, 5);
    scene.passes(WEB).await?;
    assert_eq!(scene.replicas(WEB).await?, 4);
    scene.metric(WEB, 55);
    scene.until_replicas(WEB, 6).await?;
    scene.metric(WEB, 5);
    scene.passes(WEB).await?;
    let all = scene.log.after(at, Kind::Deployment, WEB)?;
    let wanted: Vec<_> =
        all.iter().filter_map(|one| one.object["spec"]["replicas"].as_i64()).collect();
    ensure!(wanted.is_sorted() && wanted.last() == Some(&6), "it was scaled to {wanted:?}");
    scene.claim(WEB, MANAGER, None).await?;
    scene.until_replicas(WEB, 1).await
}

#[tokio::test]
async fn while_all_is_paused_nothing_is_scaled() -> Result<()> {
    let scene = Scene::at(35).await?;
    let at = scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
    scene.until_stopped(WEB).await?;
    let readings = scene.readings(WEB);
    scene.metric(WEB, 55);
    scene.another_wakes_up().await?;
    scene.metric(WEB, 5);
    scene.another_wakes_up().await?;
    let scaled = scene.log.after(at, Kind::Deployment, WEB)?;
    let scaled = scaled.iter().find(|one| one.object["spec"]["replicas"] != 4);
    ensure!(scaled.is_none(), "{scaled:?}");
    ensure!(scene.readings(WEB) == readings, "the HPA controller asked for its metric");
    Ok(())
}

#[tokio::test]
async fn at_zero_replicas_a_pause_of_scale_in_lets_it_wake_up() -> Result<()> {
    let scene = Scene::asleep().await?;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    scene.metric(WEB, 15);
    scene.until_replicas(WEB, 2).await
}

#[tokio::test]
async fn at_zero_replicas_a_full_pause_keeps_it_asleep() -> Result<()> {
    let scene = Scene::asleep().await?;
    let at = scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
    scene.until_stopped(WEB).await?;
    scene.metric(WEB, 15);
    scene.another_wakes_up().await?;
    let woke = scene.log.after(at, Kind::Deployment, WEB)?;
    let woke = woke.iter().find(|one| one.object["spec"]["replicas"] != 0);
    ensure!(woke.is_none(), "{woke:?}");
    scene.claim(WEB, MANAGER, None).await?;
    scene.until_replicas(WEB, 2).await
}

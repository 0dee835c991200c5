//! A rollout that goes well: frozen before it, held still meanwhile, resumed after it.

use anyhow::{Context as _, Result, ensure};
use belay_suite::{
    keda::{MANAGER, SCALE_IN},
    operator::support::{release_name, roll, target},
};

use crate::scene::{HPA, SCALED, Scene, WEB, WORKLOAD, claim, image, wired};

#[tokio::test]
async fn a_rollout_begins_frozen_and_ends_resumed() -> Result<()> {
    let (scene, operator) = Scene::following("roll", wired(|_| ())).await?;
    roll(&scene, "v1.1.0").await?;
    let log = &scene.scaling.log;
    let new = scene.image("1.1.0");
    let claimed = log.first(0, SCALED, "claimed", |one| claim(one).is_some()).await?;
    let is_disabled = |one: &belay_suite::keda::Change| {
        let spec = &one.object["spec"]["behavior"]["scaleDown"]["selectPolicy"];
        let observed = one.object["status"]["observedGeneration"].as_i64();
        spec == "Disabled" && observed >= one.object["metadata"]["generation"].as_i64()
    };
    let frozen = log.first(claimed.version, HPA, "frozen", is_disabled).await?;
    let moved = log.first(0, WORKLOAD, "moved", |one| image(one) == new).await?;
    let dropped = |one: &belay_suite::keda::Change| claim(one).is_none();
    let dropped = log.first(claimed.version, SCALED, "dropped", dropped).await?;
    let order = [claimed.version, frozen.version, moved.version, dropped.version];
    assert!(order.is_sorted(), "{order:?}");
    // What the claim says.
    let said = claim(&claimed).context("a claim")?;
    assert_eq!(said["instance"], format!("{}/belay-operator", scene.namespace));
    assert_eq!(said["target"], WEB);
    assert_eq!(said["release"], release_name(&scene, WEB, "v1.1.0").await?);
    assert_eq!(claimed.object["metadata"]["annotations"][SCALE_IN], "true");
    // All pods had the new image when the pause was dropped.
    let status = &log
        .after(0, WORKLOAD.0, WEB)?
        .into_iter()
        .rfind(|one| one.version < dropped.version)
        .context("a Deployment")?
        .object["status"];
    assert_eq!((&status["updatedReplicas"], &status["replicas"]), (&4.into(), &4.into()));
    // Nothing is left of it, and it scales in again.
    assert!(scene.scaling.owned_by(MANAGER).await?.is_empty());
    assert_eq!(target(&scene, WEB).await?.pause, None);
    scene.scaling.metric(WEB, 5);
    scene.scaling.until_replicas(WEB, 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn in_mid_rollout_scale_in_is_held_and_scale_out_works() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("held").await?;
    scene.rolling("1.1.0").await?;
    scene.scaling.metric(WEB, 5);
    scene.scaling.passes(WEB).await?;
    assert_eq!(scene.scaling.replicas(WEB).await?, 4);
    scene.scaling.metric(WEB, 55);
    scene.scaling.until_replicas(WEB, 6).await?;
    scene.scaling.metric(WEB, 5);
    scene.scaling.passes(WEB).await?;
    ensure!(scene.scaling.replicas(WEB).await? == 6, "it was scaled in");
    let status = target(&scene, WEB).await?.pause.context("the status shows no pause")?;
    assert_eq!(status.scaled_object, WEB);
    operator.stop().await
}

//! In which order KEDA and the HPA controller do what a pause is made of, by the revisions of the
//! store.

use anyhow::{Result, ensure};
use belay_suite::keda::{FULL, MANAGER, SCALE_IN};

use crate::scene::{HPA, SCALED, Scene, WEB, is_observed, paused, policy};

#[tokio::test]
async fn a_pause_of_scale_in_is_in_the_hpa_before_keda_says_so() -> Result<()> {
    let scene = Scene::at(35).await?;
    let at = scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    let disabled = scene.log.first(at, HPA, "Disabled", |one| policy(one) == "Disabled").await?;
    let told = scene.log.first(at, SCALED, "Paused", |one| paused(one) == "True").await?;
    assert!(disabled.version < told.version, "{disabled:?}\n{told:?}");
    scene
        .log
        .first(at, HPA, "seen by its controller", |one| {
            policy(one) == "Disabled" && is_observed(one)
        })
        .await?;
    let was_gone = scene.log.after(at, HPA.0, HPA.1)?.iter().any(|one| one.gone);
    assert!(!was_gone, "the HPA was deleted");
    // Dropped, it scales in again.
    let at = scene.claim(WEB, MANAGER, None).await?;
    let free = |one: &_| policy(one) != "Disabled" && is_observed(one);
    scene.log.first(at, HPA, "free and seen by its controller", free).await?;
    scene.log.first(at, SCALED, "not Paused", |one| paused(one) == "False").await?;
    scene.metric(WEB, 5);
    scene.until_replicas(WEB, 1).await
}

#[tokio::test]
async fn a_full_pause_is_told_before_the_hpa_is_gone() -> Result<()> {
    let scene = Scene::at(35).await?;
    let at = scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
    let told = scene.log.first(at, SCALED, "Paused", |one| paused(one) == "True").await?;
    let gone = scene.log.first(at, HPA, "gone", |one| one.gone).await?;
    assert!(told.version < gone.version, "{told:?}\n{gone:?}");
    Ok(())
}

/// KEDA may say Paused=True again after the annotation is gone. Once the HPA is there and seen, it
/// stays so: that is the proof, and what KEDA says is none.
#[tokio::test]
async fn after_a_full_pause_the_hpa_tells_the_truth_and_the_condition_may_flap() -> Result<()> {
    let scene = Scene::at(35).await?;
    for _ in 0..4 {
        scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
        scene.until_stopped(WEB).await?;
        let at = scene.claim(WEB, MANAGER, None).await?;
        let free = |one: &_| policy(one) != "Disabled" && is_observed(one);
        let resumed = scene.log.first(at, HPA, "seen by its controller", free).await?;
        // Both have acted some more; whatever they say after that they say at rest.
        scene.passes(WEB).await?;
        let end = scene.log.first(at, SCALED, "not Paused", |one| paused(one) == "False").await?;
        ensure!(end.version > at, "{end:?}");
        let later = scene.log.after(resumed.version, HPA.0, HPA.1)?;
        let broken = later.iter().find(|one| one.gone || policy(one) == "Disabled");
        ensure!(broken.is_none(), "after it had resumed: {broken:?}");
        let last = scene.log.after(at, SCALED.0, SCALED.1)?;
        ensure!(last.last().is_some_and(|one| paused(one) == "False"), "{last:?}");
    }
    Ok(())
}

#[tokio::test]
async fn from_scale_in_to_full_the_condition_says_nothing() -> Result<()> {
    let scene = Scene::at(35).await?;
    let first = scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    let told = scene.log.first(first, SCALED, "Paused", |one| paused(one) == "True").await?;
    let at = scene.claim(WEB, MANAGER, Some((FULL, "true"))).await?;
    let gone = scene.log.first(at, HPA, "gone", |one| one.gone).await?;
    let meanwhile = scene.log.after(told.version, SCALED.0, SCALED.1)?;
    let said: Vec<_> =
        meanwhile.iter().filter(|one| one.version < gone.version).map(paused).collect();
    assert!(said.iter().all(|said| *said == "True"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn an_annotation_leaves_the_generation_as_it_is() -> Result<()> {
    let scene = Scene::at(5).await?;
    let before = scene.objects().get(WEB).await?.metadata.generation;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    assert_eq!(scene.objects().get(WEB).await?.metadata.generation, before);
    Ok(())
}

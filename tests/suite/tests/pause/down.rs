//! KEDA that is dead at each step, and that comes and goes.

use anyhow::{Result, ensure};
use belay_api::reasons::{Note, ProgressingReason};
use belay_suite::{
    keda::{FULL, SCALE_IN, is_frozen},
    operator::{
        Bed, Running, World, condition,
        support::{events, release, roll, told, wait_for_target},
    },
};
use belay_testkit::{
    keda::Keda,
    kubelet::{Kubelet, Pace},
};
use rstest::rstest;

use crate::scene::{Scene, WEB, impatient, until_let_go, wired};

#[rstest]
#[case::of_scale_in("scale-in", SCALE_IN)]
#[case::of_everything("full", FULL)]
#[tokio::test]
async fn a_rollout_that_is_to_be_paused_waits_for_a_dead_keda(
    #[case] mode: &str,
    #[case] key: &str,
) -> Result<()> {
    let (scene, operator) = Scene::following_as(
        "waits",
        impatient(),
        |workload| workload.annotation("belay.dev/pause", mode),
        |object| object,
    )
    .await?;
    scene.scaling.keda.kill();
    scene.release("v1.1.0").await?;
    scene.busy(ProgressingReason::Pausing).await?;
    let words = scene.busy(ProgressingReason::CouldNotFreeze).await?;
    ensure!(words.contains("belay.dev/pause"), "{words}");
    assert_eq!(scene.live(WEB).await?, scene.image("1.0.0"));
    // It stays where it is, and takes hold when KEDA is back.
    scene.until_claimed(WEB).await?;
    scene.scaling.keda.start_again().await?;
    scene.scaling.until_held(WEB, key).await?;
    scene.wait_for_healthy(WEB, "v1.1.0").await?;
    ensure!(events(&scene, "RolledUnpaused").await?.is_empty());
    scene.until_dropped().await?;
    operator.stop().await
}

#[tokio::test]
async fn a_rollout_goes_on_without_a_dead_keda_and_says_so() -> Result<()> {
    let (scene, operator) = Scene::following("goes-on", impatient()).await?;
    scene.scaling.keda.kill();
    scene.release("v1.1.0").await?;
    scene.until_claimed(WEB).await?;
    told(&scene, "RolledUnpaused", &["Warning", WEB, "not proven"]).await?;
    scene.wait_for_healthy(WEB, "v1.1.0").await?;
    scene.until_dropped().await?;
    scene.unnoted(Note::RolledUnpaused).await?;
    assert_eq!(events(&scene, "RolledUnpaused").await?.len(), 1);
    operator.stop().await
}

/// The pause is dropped while KEDA is dead: that is told, the release that runs becomes healthy all
/// the same, and the note stays until KEDA is back.
async fn told_until_keda_is_back(scene: &Scene, tag: &str) -> Result<()> {
    scene.until_dropped().await?;
    told(scene, "ResumeUnproven", &["Warning", WEB]).await?;
    scene.wait_for_healthy(WEB, tag).await?;
    scene.noted(Note::ResumeUnproven).await?;
    ensure!(is_frozen(&scene.scaling.hpa(WEB).await?.unwrap_or_default()));
    scene.scaling.keda.start_again().await?;
    scene.scaling.until_resumed(WEB).await?;
    scene.unnoted(Note::ResumeUnproven).await
}

/// The bake does not wait for ever, and the note stays until autoscaling is seen to resume.
#[tokio::test]
async fn a_drop_that_a_dead_keda_does_not_see_is_told_until_it_does() -> Result<()> {
    let scene = Scene::new("unresumed").await?;
    // Its pods become ready when the test says so.
    let node = format!("kubelet-{}", scene.namespace);
    let kubelet = Kubelet::start(scene.bed.world.cluster, &node, Pace::AtOnce)?;
    scene.release("v1.0.0").await?;
    scene.create(&scene.scaled("1.0.0").on_node(&node), "helm").await?;
    scene.scaling.settle(&scene.scaling.of(WEB)).await?;
    let operator = Running::start(&scene, impatient())?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    kubelet.set_pace(Pace::WhenTold);
    scene.release("v1.1.0").await?;
    scene.wait_for_image(WEB, &scene.image("1.1.0")).await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.keda.kill();
    kubelet.set_pace(Pace::AtOnce);
    told_until_keda_is_back(&scene, "v1.1.0").await?;
    operator.stop().await
}

/// The pause over a failure and its Rollback ends as any other.
#[tokio::test]
async fn a_drop_after_a_rollback_is_told_in_the_same_way() -> Result<()> {
    let (scene, operator) = Scene::following("unresumed-back", impatient()).await?;
    scene.release("v1.1.0+no-pull").await?;
    scene.wait_for_image(WEB, &scene.image("1.1.0_no-pull")).await?;
    scene.scaling.keda.kill();
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    told_until_keda_is_back(&scene, "v1.0.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_keda_that_is_restarted_in_mid_rollout_changes_nothing() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("restarted").await?;
    scene.rolling("1.1.0").await?;
    let before = scene.until_claimed(WEB).await?;
    scene.scaling.keda.kill();
    scene.scaling.keda.start_again().await?;
    scene.scaling.metric(WEB, 55);
    scene.scaling.until_replicas(WEB, 6).await?;
    scene.scaling.metric(WEB, 5);
    scene.scaling.passes(WEB).await?;
    assert_eq!(scene.scaling.replicas(WEB).await?, 6);
    assert_eq!(scene.until_claimed(WEB).await?, before);
    ensure!(events(&scene, "PauseLost").await?.is_empty());
    operator.stop().await
}

/// A cluster without KEDA, in which it is installed later, and removed again.
#[tokio::test]
async fn keda_may_be_absent_and_come_and_go() -> Result<()> {
    let world = World::apart().await?;
    let bed = Bed::in_world(world, "absent").await?;
    bed.release("v1.0.0").await?;
    let web = bed.web("1.0.0").annotation("belay.dev/scaledobject", WEB);
    bed.create(&web, "helm").await?;
    let operator = Running::start(&bed, wired(|_| ()))?;
    operator.ready().await?;
    bed.wait_for_healthy(WEB, "v1.0.0").await?;
    roll(&bed, "v1.1.0").await?;
    told(&bed, "RolledUnpaused", &["Warning", "KEDA is not installed"]).await?;
    // Installed: the next rollout finds it.
    let keda = Keda::of_namespace(world.cluster, &bed.namespace).await?;
    let client = world.cluster.admin()?;
    let objects: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(
        client,
        &bed.namespace,
        &belay_suite::keda::Kind::ScaledObject.resource(),
    );
    let object = belay_testkit::objects::ScaledObject::of(WEB);
    let author = kube::api::PatchParams::apply("author");
    objects.patch(WEB, &author, &kube::api::Patch::Apply(object.json())).await?;
    bed.wait("KEDA to have taken it", || async {
        let object = serde_json::to_value(objects.get(WEB).await?)?;
        ensure!(belay_suite::keda::condition(&object, "Ready") == "True", "{}", object["status"]);
        Ok(())
    })
    .await?;
    // What was read a moment ago serves for ten seconds.
    for minor in 2..60 {
        roll(&bed, &format!("v1.{minor}.0")).await?;
        if !events(&bed, "Pausing").await?.is_empty() {
            break;
        }
    }
    told(&bed, "Pausing", &[WEB]).await?;
    until_let_go(&bed, &objects).await?;
    // Removed: what is left of it is one sentence.
    objects.delete(WEB, &kube::api::DeleteParams::default()).await?;
    bed.wait("the ScaledObject to be gone", || async {
        ensure!(objects.get_opt(WEB).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    keda.kill();
    Keda::remove_crds(world.cluster).await?;
    roll(&bed, "v2.0.0").await?;
    let release = release(&bed, WEB, "v2.0.0").await?;
    let conditions = release.status.unwrap_or_default().conditions;
    ensure!(condition(&conditions, "Active").is_some_and(|one| one.status == "True"));
    wait_for_target(&bed, WEB, "no pause", |status| status.pause.is_none().then_some(())).await?;
    operator.stop().await
}

//! ScaledObjects that go, are replaced, are shared, or are not what they seem.

use anyhow::{Result, ensure};
use belay_api::reasons::{ProgressingReason, StalledReason};
use belay_suite::{
    keda::MANAGER,
    operator::{
        Running,
        support::{events, roll, stalled, told},
    },
};
use belay_testkit::objects::ScaledObject;
use kube::api::DeleteParams;
use rstest::rstest;
use serde_json::json;

use crate::scene::{Scene, WEB, impatient, wired};

#[tokio::test]
async fn a_rollout_goes_on_when_its_scaled_object_is_deleted() -> Result<()> {
    let (scene, operator) = Scene::following("deleted", wired(|_| ())).await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.objects().delete(WEB, &DeleteParams::default()).await?;
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_replaced_scaled_object_is_claimed_in_its_turn() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("replaced").await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.objects().delete(WEB, &DeleteParams::default()).await?;
    scene
        .wait("the ScaledObject to be gone", || async {
            ensure!(scene.scaling.objects().get_opt(WEB).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
    scene.scaling.apply(&scene.scaling.of(WEB)).await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.until_frozen(WEB).await?;
    operator.stop().await
}

#[tokio::test]
async fn who_names_another_scaled_object_in_mid_rollout_moves_the_pause() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("re-pointed").await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.objects().delete(WEB, &DeleteParams::default()).await?;
    let other = scene.scaling.of(WEB).named("web-2");
    scene.scaling.apply(&other).await?;
    scene.annotate(WEB, "scaledobject", json!("web-2")).await?;
    scene.until_claimed("web-2").await?;
    scene
        .wait("one pause to be held", || async {
            let held = scene.scaling.owned_by(MANAGER).await?;
            ensure!(held == ["web-2"], "{held:?}");
            Ok(())
        })
        .await?;
    operator.stop().await
}

/// Both are there: the one that is named no more is let go.
#[tokio::test]
async fn the_scaled_object_that_is_named_no_more_is_let_go() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("let-go").await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.annotate(WEB, "scaledobject", json!("web-2")).await?;
    scene.until_dropped().await?;
    scene.scaling.until_resumed(WEB).await?;
    operator.stop().await
}

#[tokio::test]
async fn of_two_targets_with_one_scaled_object_the_newer_stands_still() -> Result<()> {
    let (scene, operator) = Scene::following("shared", wired(|_| ())).await?;
    let second = scene.workload("api", "1.0.0").annotation("belay.dev/scaledobject", WEB);
    scene.create(&second, "helm").await?;
    let words = stalled(&scene, "api", StalledReason::DuplicateTarget).await?;
    ensure!(words.contains(WEB), "{words}");
    roll(&scene, "v1.1.0").await?;
    assert_eq!(scene.live("api").await?, scene.image("1.0.0"));
    scene.until_dropped().await?;
    // It goes on as soon as it names another one, or none.
    scene.annotate("api", "scaledobject", serde_json::Value::Null).await?;
    scene.wait_for_image("api", &scene.image("1.1.0")).await?;
    operator.stop().await
}

/// A ScaledObject that cannot be paused for this workload.
#[derive(Debug, Clone, Copy)]
enum Odd {
    Missing,
    OfAnother,
    OfAnotherKind,
}

#[rstest]
#[case::missing(Odd::Missing, "there is no ScaledObject web")]
#[case::of_another(Odd::OfAnother, "scales Deployment other, not Deployment web")]
#[case::of_another_kind(Odd::OfAnotherKind, "scales StatefulSet web, not Deployment web")]
#[tokio::test]
async fn what_is_no_scaled_object_of_the_workload_is_one_sentence(
    #[case] odd: Odd,
    #[case] words: &str,
    #[values(false, true)] is_written: bool,
) -> Result<()> {
    let scene = Scene::new("odd").await?;
    scene.release("v1.0.0").await?;
    let mut web = scene.scaled("1.0.0");
    if is_written {
        web = web.annotation("belay.dev/pause", "scale-in");
    }
    scene.create(&web, "helm").await?;
    let object = match odd {
        Odd::Missing => None,
        Odd::OfAnother => Some(ScaledObject::of("other").named(WEB)),
        Odd::OfAnotherKind => Some(
            ScaledObject::of(WEB)
                .spec("scaleTargetRef", json!({ "name": WEB, "kind": "StatefulSet" })),
        ),
    };
    if let Some(object) = &object {
        scene.scaling.apply(object).await?;
    }
    let operator = Running::start(&scene, impatient())?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    scene.release("v1.1.0").await?;
    if is_written {
        let said = scene.busy(ProgressingReason::CouldNotFreeze).await?;
        ensure!(said.contains(words) && said.contains("belay.dev/pause"), "{said}");
        assert_eq!(scene.live(WEB).await?, scene.image("1.0.0"));
        // What it says to do.
        scene.annotate(WEB, "pause", serde_json::Value::Null).await?;
    }
    scene.wait_for_healthy(WEB, "v1.1.0").await?;
    told(&scene, "RolledUnpaused", &["Warning", words]).await?;
    ensure!(scene.scaling.owned_by(MANAGER).await?.is_empty());
    operator.stop().await
}

/// KEDA has not made one: nothing proves that the pause took hold.
#[tokio::test]
async fn a_scaled_object_without_an_hpa_cannot_be_proven() -> Result<()> {
    let scene = Scene::new("no-hpa").await?;
    scene.scaling.keda.kill();
    scene.release("v1.0.0").await?;
    scene.create(&scene.scaled("1.0.0"), "helm").await?;
    scene.scaling.apply(&scene.scaling.of(WEB)).await?;
    let operator = Running::start(&scene, impatient())?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    roll(&scene, "v1.1.0").await?;
    told(&scene, "RolledUnpaused", &["Warning", WEB]).await?;
    scene.until_dropped().await?;
    operator.stop().await
}

#[tokio::test]
async fn huge_annotations_are_neither_read_nor_lost() -> Result<()> {
    let huge = "x".repeat(200 * 1024);
    let (scene, operator) = Scene::following_as(
        "huge",
        wired(|_| ()),
        |workload| workload,
        |object| object.annotation("acme.example/notes", &huge),
    )
    .await?;
    roll(&scene, "v1.1.0").await?;
    scene.until_dropped().await?;
    ensure!(events(&scene, "RolledUnpaused").await?.is_empty());
    let found = scene.scaling.annotation(WEB, "acme.example/notes").await?;
    ensure!(found.is_some_and(|found| found == huge), "it is not as it was");
    operator.stop().await
}

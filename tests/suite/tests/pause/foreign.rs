//! Pauses and keys of somebody else on the ScaledObject.

use anyhow::{Result, ensure};
use belay_api::reasons::Note;
use belay_suite::{
    keda::{FULL, MANAGER, SCALE_IN},
    operator::support::{events, roll, told},
};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{EXPIRES, OWNER, Scene, WEB, wired};

/// It serves as well, nothing is claimed on top of it, and it stays.
#[rstest]
#[case::of_scale_in(SCALE_IN, "true")]
#[case::of_everything(FULL, "true")]
#[case::with_a_word(FULL, "until-monday")]
#[case::at_a_number("autoscaling.keda.sh/paused-replicas", "4")]
#[tokio::test]
async fn a_pause_from_before_is_left_alone(#[case] key: &str, #[case] value: &str) -> Result<()> {
    let (scene, operator) = Scene::following("foreign", wired(|_| ())).await?;
    scene.scaling.annotate(WEB, key, json!(value)).await?;
    if key == SCALE_IN {
        scene.scaling.until_frozen(WEB).await?;
    } else {
        scene.scaling.until_stopped(WEB).await?;
    }
    roll(&scene, "v1.1.0").await?;
    assert_eq!(scene.claims()?, [None]);
    assert_eq!(scene.scaling.annotation(WEB, key).await?.as_deref(), Some(value));
    ensure!(events(&scene, "RolledUnpaused").await?.is_empty());
    ensure!(events(&scene, "ResumeUnproven").await?.is_empty());
    operator.stop().await
}

/// These say that nothing of scale-in is paused.
#[rstest]
#[case::said_so(SCALE_IN, "false")]
#[case::all_of_it(FULL, "false")]
#[case::scale_out_alone("autoscaling.keda.sh/paused-scale-out", "true")]
#[tokio::test]
async fn what_is_no_pause_of_scale_in_is_not_taken_for_one(
    #[case] key: &str,
    #[case] value: &str,
) -> Result<()> {
    let (scene, operator) = Scene::following("no-pause", wired(|_| ())).await?;
    scene.scaling.annotate(WEB, key, json!(value)).await?;
    scene.release("v1.1.0").await?;
    if key == SCALE_IN {
        // The very key, and somebody else's: it is not fought for.
        told(&scene, "RolledUnpaused", &["Warning", SCALE_IN, "false"]).await?;
        scene.wait_for_healthy(WEB, "v1.1.0").await?;
        assert_eq!(scene.claims()?, [None]);
    } else {
        scene.wait_for_healthy(WEB, "v1.1.0").await?;
        ensure!(scene.claims()?.iter().flatten().count() == 1, "{:?}", scene.claims()?);
    }
    assert_eq!(scene.scaling.annotation(WEB, key).await?.as_deref(), Some(value));
    operator.stop().await
}

#[tokio::test]
async fn a_pause_that_a_person_applies_after_ours_survives_it() -> Result<()> {
    let (scene, operator) = Scene::following("after", wired(|_| ())).await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.claim(WEB, "person", Some((SCALE_IN, "true"))).await?;
    // It fails, and is taken back.
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.wait_for_healthy(WEB, "v1.0.0").await?;
    scene.until_dropped().await?;
    assert_eq!(scene.scaling.annotation(WEB, SCALE_IN).await?.as_deref(), Some("true"));
    assert_eq!(scene.scaling.annotation(WEB, OWNER).await?, None);
    scene.scaling.until_frozen(WEB).await?;
    ensure!(events(&scene, "ResumeUnproven").await?.is_empty());
    operator.stop().await
}

#[tokio::test]
async fn a_pause_that_is_taken_away_in_mid_rollout_is_claimed_again() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("stripped").await?;
    scene.rolling("1.1.0").await?;
    let before = scene.until_claimed(WEB).await?;
    scene.scaling.annotate(WEB, SCALE_IN, Value::Null).await?;
    told(&scene, "PauseLost", &["Warning", WEB]).await?;
    scene
        .wait("the pause to be back", || async {
            let found = scene.scaling.annotation(WEB, SCALE_IN).await?;
            ensure!(found.as_deref() == Some("true"), "{found:?}");
            Ok(())
        })
        .await?;
    scene.scaling.until_frozen(WEB).await?;
    assert_eq!(scene.until_claimed(WEB).await?["release"], before["release"]);
    operator.stop().await
}

/// Who sets the key to another value in mid-rollout has it: no fight.
#[tokio::test]
async fn a_key_that_somebody_else_sets_in_mid_rollout_is_yielded() -> Result<()> {
    let (scene, operator) = Scene::rolling_long("yielded").await?;
    scene.rolling("1.1.0").await?;
    scene.until_claimed(WEB).await?;
    scene.scaling.annotate(WEB, SCALE_IN, json!("false")).await?;
    let words = scene.noted(Note::RolledUnpaused).await?;
    ensure!(words.contains(SCALE_IN), "{words}");
    assert_eq!(scene.scaling.annotation(WEB, SCALE_IN).await?.as_deref(), Some("false"));
    scene.scaling.metric(WEB, 5);
    scene.scaling.until_replicas(WEB, 1).await?;
    operator.stop().await
}

/// The claim of another operator counts as a pause for as long as it lasts.
#[tokio::test]
async fn a_claim_of_another_operator_is_left_alone_until_it_expires() -> Result<()> {
    let (scene, operator) = Scene::following("other", wired(|_| ())).await?;
    let owner = json!({
        "instance": "elsewhere/belay-operator", "target": "api", "release": "api-1234567",
        "since": Timestamp::now().to_string(),
    });
    let claim = |expires: Timestamp| {
        json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": { "name": WEB, "annotations": {
                SCALE_IN: "true", OWNER: owner.to_string(), EXPIRES: expires.to_string(),
            }},
        })
    };
    let params = PatchParams::apply(MANAGER);
    let later = claim(Timestamp::now() + SignedDuration::from_mins(20));
    scene.scaling.objects().patch(WEB, &params, &Patch::Apply(later)).await?;
    scene.scaling.until_frozen(WEB).await?;
    roll(&scene, "v1.1.0").await?;
    assert_eq!(scene.scaling.annotation(WEB, OWNER).await?, Some(owner.to_string()));
    let over = claim(Timestamp::now() - SignedDuration::from_mins(1));
    scene.scaling.objects().patch(WEB, &params, &Patch::Apply(over)).await?;
    scene.until_dropped().await?;
    operator.stop().await
}

//! What KEDA takes for a pause.

use anyhow::Result;
use belay_suite::keda::{FULL, Kind, SCALE_IN};
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{HPA, SCALED, Scene, WEB, paused, policy};

const SCALE_OUT: &str = "autoscaling.keda.sh/paused-scale-out";
const REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";

/// The value is a Go boolean, and whatever is none means true.
#[rstest]
#[case::a_word(FULL, "banana")]
#[case::a_digit(FULL, "1")]
#[case::a_word_for_scale_in(SCALE_IN, "banana")]
#[case::a_digit_for_scale_in(SCALE_IN, "1")]
#[tokio::test]
async fn any_value_but_a_false_one_pauses(#[case] key: &str, #[case] value: &str) -> Result<()> {
    let scene = Scene::at(15).await?;
    scene.annotate(WEB, key, json!(value)).await?;
    scene.until_held(WEB, key).await
}

/// KEDA takes it for a pause, though its watch may take it for no change: it comes into force when KEDA
/// looks at the object, for whatever reason.
#[rstest]
#[case::full(FULL)]
#[case::scale_in(SCALE_IN)]
#[tokio::test]
async fn a_pause_without_a_value_counts_when_keda_looks(#[case] key: &str) -> Result<()> {
    let scene = Scene::at(15).await?;
    scene.keda.kill();
    scene.annotate(WEB, key, json!("")).await?;
    scene.keda.start_again().await?;
    scene.until_held(WEB, key).await
}

#[rstest]
#[case::a_word(FULL, "false")]
#[case::a_letter(FULL, "F")]
#[case::a_word_for_scale_in(SCALE_IN, "false")]
#[case::a_digit_for_scale_in(SCALE_IN, "0")]
#[tokio::test]
async fn a_false_value_does_not_pause(#[case] key: &str, #[case] value: &str) -> Result<()> {
    let scene = Scene::at(35).await?;
    scene.annotate(WEB, key, json!("true")).await?;
    scene.until_held(WEB, key).await?;
    scene.annotate(WEB, key, json!(value)).await?;
    scene.until_resumed(WEB).await?;
    scene.metric(WEB, 5);
    scene.until_replicas(WEB, 1).await
}

#[tokio::test]
async fn paused_replicas_pauses_whatever_else_is_said() -> Result<()> {
    let scene = Scene::at(35).await?;
    scene.annotate(WEB, FULL, json!("false")).await?;
    scene.annotate(WEB, REPLICAS, json!("2")).await?;
    scene.until_stopped(WEB).await?;
    scene.until_replicas(WEB, 2).await?;
    scene.annotate(WEB, REPLICAS, Value::Null).await?;
    scene.until_resumed(WEB).await?;
    scene.until_replicas(WEB, 4).await
}

/// The condition says Paused, and scale-in goes on: it does not tell the kinds of a pause apart.
#[tokio::test]
async fn a_pause_of_scale_out_holds_no_scale_in_still() -> Result<()> {
    let scene = Scene::at(35).await?;
    let at = scene.annotate(WEB, SCALE_OUT, json!("true")).await?;
    scene.log.first(at, SCALED, "Paused", |one| paused(one) == "True").await?;
    let up = |one: &belay_suite::keda::Change| {
        one.object["spec"]["behavior"]["scaleUp"]["selectPolicy"] == "Disabled"
    };
    scene.log.first(at, HPA, "scale-out disabled", up).await?;
    let all = scene.log.after(at, Kind::Hpa, HPA.1)?;
    assert!(all.iter().all(|one| policy(one) != "Disabled"), "{all:?}");
    scene.metric(WEB, 5);
    scene.until_replicas(WEB, 1).await
}

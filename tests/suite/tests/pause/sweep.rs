//! Pauses that nobody drops: found at the start, and by the watch.

use anyhow::{Result, ensure};
use belay_api::reasons::Note;
use belay_suite::{
    keda::{FULL, MANAGER, SCALE_IN},
    operator::{
        Running, migrating,
        support::{events, told},
    },
};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::json;

use crate::{
    access::without_keda,
    scene::{EXPIRES, OWNER, Scene, WEB, wired},
};

/// Whose a claim is.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Ours,
    OursOver,
    Another,
    AnotherOver,
    Nobody,
}

async fn claim(scene: &Scene, name: &str, target: &str, whose: Whose) -> Result<()> {
    let now = Timestamp::now();
    let ours = format!("{}/belay-operator", scene.namespace);
    let (instance, expires) = match whose {
        Whose::Ours | Whose::Nobody => (ours.as_str(), now + SignedDuration::from_mins(20)),
        Whose::OursOver => (ours.as_str(), now - SignedDuration::from_mins(1)),
        Whose::Another => ("elsewhere/belay-operator", now + SignedDuration::from_mins(20)),
        Whose::AnotherOver => ("elsewhere/belay-operator", now - SignedDuration::from_mins(1)),
    };
    let owner = match whose {
        Whose::Nobody => "not a claim".to_owned(),
        _ => json!({
            "instance": instance, "target": target, "release": format!("{target}-1234567"),
            "since": now.to_string(),
        })
        .to_string(),
    };
    let body = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": { "name": name, "annotations": {
            SCALE_IN: "true", OWNER: owner, EXPIRES: expires.to_string(),
        }},
    });
    scene.scaling.objects().patch(name, &PatchParams::apply(MANAGER), &Patch::Apply(body)).await?;
    Ok(())
}

/// Of a target that nobody follows, before the operator starts and while it runs.
#[rstest]
#[case::ours(Whose::Ours, true)]
#[case::another_operators(Whose::Another, false)]
#[case::another_operators_whose_time_is_over(Whose::AnotherOver, true)]
#[case::of_whom_nobody_knows(Whose::Nobody, true)]
#[tokio::test]
async fn a_claim_of_a_target_that_is_gone_is_swept(
    #[case] whose: Whose,
    #[case] is_dropped: bool,
    #[values(false, true)] is_running: bool,
) -> Result<()> {
    let scene = Scene::new("sweep").await?;
    let objects = ["orphan", "ours"];
    for name in objects {
        scene.scaling.apply(&scene.scaling.of(name)).await?;
    }
    let mut operator = None;
    if is_running {
        let running = Running::start(&scene, wired(|_| ()))?;
        running.ready().await?;
        operator = Some(running);
    }
    claim(&scene, "orphan", "gone", whose).await?;
    // One that is always dropped, and after the first: then that was looked at as well.
    claim(&scene, "ours", "gone-too", Whose::Ours).await?;
    let operator = match operator {
        Some(running) => running,
        None => Running::start(&scene, wired(|_| ()))?,
    };
    let left: &[&str] = if is_dropped { &[] } else { &["orphan"] };
    scene
        .wait("the sweep", || async {
            let held = scene.scaling.owned_by(MANAGER).await?;
            ensure!(held == left, "{held:?}");
            Ok(())
        })
        .await?;
    operator.stop().await
}

/// A claim of a target that is followed and rolls nothing.
#[tokio::test]
async fn a_claim_for_nothing_is_dropped_at_the_start() -> Result<()> {
    let (scene, operator) = Scene::following("idle", wired(|_| ())).await?;
    operator.kill().await;
    claim(&scene, WEB, WEB, Whose::Ours).await?;
    scene.scaling.until_frozen(WEB).await?;
    let operator = Running::start(&scene, wired(|_| ()))?;
    scene.until_dropped().await?;
    scene.scaling.until_resumed(WEB).await?;
    operator.stop().await
}

/// One that may not be dropped, which is said of the target once its time is over.
#[tokio::test]
async fn a_claim_that_outlives_its_time_is_told() -> Result<()> {
    let (scene, operator) = Scene::following("overdue", wired(|_| ())).await?;
    operator.kill().await;
    claim(&scene, WEB, WEB, Whose::OursOver).await?;
    let operator = Running::start(&scene, without_keda(&scene, &["patch"]).await?)?;
    let words = scene.noted(Note::PauseOverdue).await?;
    ensure!(words.contains("cannot be dropped: ") && words.contains("forbidden"), "{words}");
    told(&scene, "PauseOverdue", &["Warning", WEB, "forbidden"]).await?;
    operator.stop().await?;
    let operator = Running::start(&scene, wired(|_| ()))?;
    scene.until_dropped().await?;
    scene.unnoted(Note::PauseOverdue).await?;
    assert_eq!(events(&scene, "PauseOverdue").await?.len(), 1);
    operator.stop().await
}

/// The operator dies in mid-rollout; the next one finishes it, and drops the pause.
#[tokio::test]
async fn the_claim_of_a_dead_operator_is_ended_by_the_next_one() -> Result<()> {
    let (scene, operator) = Scene::following("dies", wired(|_| ())).await?;
    scene.rolling("1.1.0").await?;
    let before = scene.until_claimed(WEB).await?;
    operator.kill().await;
    let operator = Running::start(&scene, wired(|_| ()))?;
    operator.ready().await?;
    assert_eq!(scene.until_claimed(WEB).await?, before);
    scene.wait_for_image(WEB, &scene.image("1.0.0")).await?;
    scene.until_dropped().await?;
    let claims: Vec<_> = scene.claims()?.into_iter().flatten().collect();
    ensure!(claims.len() == 1, "{claims:?}");
    operator.stop().await
}

/// Pauses that an earlier operator left, with its marks (`migrateFrom.pauseMarks`).
#[tokio::test]
async fn the_pauses_of_an_earlier_operator_go_with_their_marks() -> Result<()> {
    const OLD_MARK: &str = "release.example.com/paused-by";
    let scene = Scene::new("marks").await?;
    for name in ["marked", "persons"] {
        let object = scene.scaling.of(name).annotation(FULL, "true");
        let object = if name == "marked" { object.annotation(OLD_MARK, "old") } else { object };
        scene.scaling.apply(&object).await?;
    }
    let mut wiring = wired(|settings| settings.pause_marks = vec![OLD_MARK.to_owned()]);
    let access = migrating(scene.world.cluster, &[OLD_MARK]).await?;
    let config = belay_testkit::cluster::config(&access)?;
    wiring.client = Some(belay_adapters::cluster::client(&config, &wiring.clock)?);
    let operator = Running::start(&scene, wiring)?;
    scene
        .wait("the marked pause to go", || async {
            let mark = scene.scaling.annotation("marked", OLD_MARK).await?;
            let pause = scene.scaling.annotation("marked", FULL).await?;
            ensure!(mark.is_none() && pause.is_none(), "{mark:?} {pause:?}");
            Ok(())
        })
        .await?;
    // A person's has no mark, and stays.
    assert_eq!(scene.scaling.annotation("persons", FULL).await?.as_deref(), Some("true"));
    operator.stop().await
}

//! `history`: mock-up B.6.

use anyhow::Result;
use kubectl_release::Exit;
use serde_json::json;

use crate::{
    scene::{Scene, activation, condition, release_name},
    shown::ago,
};

const DAY: i64 = 86_400;

/// 1.9.0 failed and was rolled back from, 1.9.2 is active, 2.0.0 failed.
async fn story(scene: &Scene) -> Result<()> {
    let failed = |message: &str, seconds: i64| -> Result<serde_json::Value> {
        Ok(json!([
            condition("Active", "False", "RolledBack", "", seconds)?,
            condition("Healthy", "False", "ImagePullFailed", message, seconds)?,
            condition("Blocked", "True", "RolloutFailed", "", seconds)?,
            condition("Ready", "False", "Failed", "", seconds)?,
        ]))
    };
    scene
        .release(
            "web",
            "2.0.0",
            json!({
                "activations": [activation(120, Some(60), "GitHub v2.0.0", Some("Failed"))?],
                "conditions": failed("ImagePullBackOff: manifest unknown", 60)?,
            }),
        )
        .await?;
    scene
        .release(
            "web",
            "1.9.2",
            json!({
                "activations": [activation(3 * DAY, None, "GitHub v1.9.2", Some("Healthy"))?],
                "progress": {"succeededTime": ago(3 * DAY - 48)?},
                "conditions": [
                    condition("Active", "True", "Applied", "", 3 * DAY)?,
                    condition("Ready", "True", "Healthy", "", 3 * DAY)?,
                ],
            }),
        )
        .await?;
    let start = 9 * DAY;
    scene
        .release(
            "web",
            "1.9.1",
            json!({
                "activations": [activation(start, Some(3 * DAY), "alice (kubectl release)",
                    Some("Healthy"))?],
                "progress": {"succeededTime": ago(start - 51)?},
                "conditions": [condition("Ready", "True", "Superseded", "", 3 * DAY)?],
            }),
        )
        .await?;
    let gone = release_name("web", "1.8.9");
    scene
        .release(
            "web",
            "1.9.0",
            json!({
                "activations": [activation(start + 600, Some(start), "GitHub v1.9.0",
                    Some("Failed"))?],
                "previousRelease": {"releaseRef": {"target": "web", "name": gone},
                    "transitionTime": ago(start + 600)?},
                "conditions": failed("3 pods CrashLoopBackOff", start)?,
            }),
        )
        .await?;
    let (from, to) = (release_name("web", "1.9.0"), release_name("web", "1.9.1"));
    scene
        .rollback(
            "web-back",
            json!({
                "toReleaseRef": {"target": "web", "name": to},
                "reason": "crashes",
                "initiatedBy": {"principal": "alice (kubectl release)", "type": "user"},
            }),
            json!({
                "startTime": ago(start + 10)?,
                "completionTime": ago(start - 51)?,
                "fromReleaseRef": {"target": "web", "name": from},
                "toReleaseRef": {"target": "web", "name": to},
            }),
        )
        .await
}

#[tokio::test]
async fn a_history_tells_what_became_of_each_release() -> Result<()> {
    let scene = Scene::new("history").await?;
    story(&scene).await?;
    let shell = scene.shell()?;
    let ran = shell.run("history web").await?;
    insta::assert_snapshot!(ran.stdout);
    let gone = release_name("web", "1.8.9");
    assert_eq!(ran.stderr, format!("note: older releases were removed: {gone} is gone\n"));
    let two = shell.run("history web --limit 2 -o name").await?;
    let names = [release_name("web", "2.0.0"), release_name("web", "1.9.2")]
        .map(|name| format!("release.belay.dev/{name}\n"));
    assert_eq!(two.stdout, names.concat());
    assert_eq!(two.stderr, "note: 2 of 4 Releases (--limit)\n");
    Ok(())
}

#[tokio::test]
async fn two_releases_are_compared_by_the_templates_of_their_replica_sets() -> Result<()> {
    let scene = Scene::new("diff").await?;
    scene.deployment("web", "1.9.1", 0).await?;
    scene.available("web", 0).await?;
    scene.apply_image("web", "1.9.2", "belay-operator").await?;
    story(&scene).await?;
    scene.target("web", json!({})).await?;
    let shell = scene.shell()?;
    // The controller makes the second ReplicaSet in its own time.
    let differ =
        belay_testkit::wait::until("both templates", belay_testkit::wait::SOON, || async {
            let ran = shell.run("history web --diff 1.9.2,1.9.1 --exit-code").await;
            let ran = ran.map_err(|error| error.to_string())?;
            if ran.stderr.is_empty() { Ok(ran) } else { Err(ran.stderr) }
        })
        .await?;
    assert_eq!(differ.exit, Exit::Error);
    insta::assert_snapshot!(differ.stdout);
    let same = shell.run("history web --diff -2,-2 --exit-code").await?;
    assert_eq!((same.exit, same.stdout.as_str()), (Exit::Done, ""));
    let gone = shell.run("history web --diff -1,-9").await?;
    assert_eq!(gone.exit, Exit::Usage);
    Ok(())
}

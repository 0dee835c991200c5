//! `status NAME`: the mock-ups B.1 to B.3 of the specification, of real objects.

use anyhow::Result;
use kubectl_release::Exit;
use serde_json::json;

use crate::{
    scene::{Scene, activation, condition, image, release_name},
    shown::{ago, masked, shown},
};

const DAY: i64 = 86_400;

/// `web` moved from 1.9.1 to 1.9.2 three days ago.
pub(crate) async fn moved(scene: &Scene) -> Result<()> {
    let old = activation(9 * DAY, Some(3 * DAY), "GitHub v1.9.1", Some("Healthy"))?;
    scene.release("web", "1.9.1", json!({"activations": [old]})).await?;
    scene
        .release(
            "web",
            "1.9.2",
            json!({
                "activations": [activation(3 * DAY, None, "GitHub v1.9.2", Some("Healthy"))?],
                "progress": {"succeededTime": ago(3 * DAY - 48)?},
                "conditions": [
                    condition("Active", "True", "Applied", "", 3 * DAY)?,
                    condition("Healthy", "True", "Baked", "", 3 * DAY)?,
                    condition("Ready", "True", "Healthy", "", 3 * DAY)?,
                ],
            }),
        )
        .await?;
    Ok(())
}

/// A healthy `web`.
pub(crate) async fn healthy(scene: &Scene) -> Result<()> {
    scene.deployment("web", "1.9.2", 3).await?;
    moved(scene).await?;
    scene
        .target(
            "web",
            json!({
                "containers": ["app"],
                "current": {"image": image("1.9.2"), "tag": "1.9.2",
                    "digest": format!("sha256:4f1c{}a9", "0".repeat(58))},
                "wanted": {"image": image("1.9.2"), "tag": "1.9.2"},
                "active": release_name("web", "1.9.2"),
                "conditions": [
                    condition("Ready", "True", "Ready", "1.9.2 runs", 3 * DAY)?,
                    condition("Progressing", "False", "Idle", "", 3 * DAY)?,
                ],
            }),
        )
        .await?;
    scene.available("web", 3).await
}

#[tokio::test]
async fn a_healthy_target_is_five_lines_and_its_last_change() -> Result<()> {
    let scene = Scene::new("healthy").await?;
    healthy(&scene).await?;
    let answer = scene.shell()?.run("status web").await?.answer()?;
    insta::assert_snapshot!(shown(&answer, &scene.namespace));
    Ok(())
}

/// `web` on the way from 1.9.2 to a tag.
pub(crate) async fn moving(scene: &Scene, tag: &str) -> Result<()> {
    moved(scene).await?;
    let first = release_name("web", "1.9.2");
    let end = json!({"status": {"activations": [
        activation(3 * DAY, Some(41), "GitHub v1.9.2", Some("Healthy"))?]}});
    let releases: kube::Api<belay_api::Release> =
        kube::Api::namespaced(scene.client.clone(), &scene.namespace);
    let params = kube::api::PatchParams::default();
    releases.patch_status(&first, &params, &kube::api::Patch::Merge(&end)).await?;
    scene
        .release(
            "web",
            tag,
            json!({
                "activations": [activation(41, None, &format!("GitHub v{tag}"), None)?],
                "conditions": [condition("Active", "True", "Applied", "", 41)?],
            }),
        )
        .await?;
    scene
        .target(
            "web",
            json!({
                "containers": ["app"],
                "current": {"image": image(tag), "tag": tag},
                "wanted": {"image": image(tag), "tag": tag},
                "active": release_name("web", tag),
                "waiting": {"reason": "Deadline", "until": ago(41 - 600)?},
                "conditions": [
                    condition("Ready", "Unknown", "Progressing", "", 41)?,
                    condition("Progressing", "True", "Rolling", "", 41)?,
                ],
            }),
        )
        .await
}

#[tokio::test]
async fn a_moving_target_shows_revisions_and_pods_and_their_trouble_at_once() -> Result<()> {
    let scene = Scene::new("moving").await?;
    scene.deployment("web", "1.9.2", 3).await?;
    scene.available("web", 3).await?;
    scene.apply_image("web", "2.0.0-no-pull", "belay-operator").await?;
    scene.trouble("2.0.0-no-pull", "ImagePullBackOff").await?;
    moving(&scene, "2.0.0-no-pull").await?;
    let ran = scene.shell()?.run("status web").await?;
    assert_eq!(ran.exit, Exit::Done, "{ran:?}");
    let answer = masked(&ran.stdout, &scene.namespace).replace("<invalid>", "AGE");
    insta::assert_snapshot!(answer);
    Ok(())
}

#[tokio::test]
async fn a_stalled_target_says_cause_and_next_command() -> Result<()> {
    let scene = Scene::new("stalled").await?;
    scene.deployment("web", "2.0.0", 3).await?;
    moved(&scene).await?;
    scene.apply_image("web", "1.9.2", "argocd-controller").await?;
    scene
        .target(
            "web",
            json!({
                "containers": ["app"],
                "current": {"image": image("1.9.2"), "tag": "1.9.2"},
                "wanted": {"image": image("2.0.0"), "tag": "2.0.0"},
                "conditions": [
                    condition("Ready", "False", "Stalled", "", 360)?,
                    condition("Progressing", "False", "Idle", "", 360)?,
                    condition("Stalled", "True", "ManagedByGitOps",
                        "argocd-controller owns the image and would put its own back", 360)?,
                ],
            }),
        )
        .await?;
    scene.available("web", 3).await?;
    let ran = scene.shell()?.run("status web").await?;
    assert_eq!(ran.exit, Exit::Bad, "{ran:?}");
    insta::assert_snapshot!(shown(&ran.stdout, &scene.namespace));
    Ok(())
}

#[tokio::test]
async fn programs_get_the_object_as_kubectl_prints_it() -> Result<()> {
    let scene = Scene::new("formats").await?;
    healthy(&scene).await?;
    let shell = scene.shell()?;
    let json: serde_json::Value =
        serde_json::from_str(&shell.run("status web -o json").await?.answer()?)?;
    assert_eq!(json["kind"], "ReleaseTarget");
    assert_eq!(json["metadata"].get("managedFields"), None);
    let yaml: serde_json::Value =
        serde_yaml::from_str(&shell.run("status web -o yaml").await?.answer()?)?;
    assert_eq!(yaml, json);
    assert_eq!(shell.run("status web -o name").await?.answer()?, "releasetarget.belay.dev/web\n");
    let words = ["status", "web", "-o", "jsonpath={.status.current.tag}{\"\\n\"}"];
    assert_eq!(shell.run_words(&words).await?.answer()?, "1.9.2\n");
    let list: serde_json::Value =
        serde_json::from_str(&shell.run("status -o json").await?.answer()?)?;
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("List"), &json["kind"]));
    Ok(())
}

#[tokio::test]
async fn control_characters_of_the_cluster_never_reach_a_terminal() -> Result<()> {
    let scene = Scene::new("control").await?;
    scene.deployment("web", "2.0.0", 1).await?;
    let message = "red \u{1b}[31m and \u{9b}2J and\rback\u{202e}\nnext";
    scene
        .target(
            "web",
            json!({
                "containers": ["app"],
                "conditions": [
                    condition("Ready", "False", "Stalled", message, 360)?,
                    condition("Stalled", "True", "FieldConflict", message, 360)?,
                ],
            }),
        )
        .await?;
    let shell = scene.shell()?;
    for words in ["status web --color never", "status -o wide --color never", "status web -w"] {
        let ran = shell.run(words).await?;
        let all = format!("{}{}", ran.stdout, ran.stderr).replace('\n', "");
        assert!(!all.chars().any(char::is_control), "{words}: {ran:?}");
        assert!(all.contains("red ^[[31m and \\u{9b}2J"), "{words}: {ran:?}");
        assert!(!all.contains('\u{202e}'), "{words}");
    }
    Ok(())
}

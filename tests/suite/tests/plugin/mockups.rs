//! The mock-ups B.7 to B.9 of the specification, of real objects.

use anyhow::{Result, ensure};
use belay_api::Release;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_release::Exit;
use serde_json::json;

use crate::{
    scene::{APP, Scene, condition, image, release_name},
    shown::{ago, masked, shown},
    status::healthy,
};

/// A healthy `web` whose Releases know each other and their digests.
async fn chained(scene: &Scene) -> Result<()> {
    healthy(scene).await?;
    let api: Api<Release> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let previous = release_name("web", "1.9.1");
    for (tag, digit) in [("1.9.1", "4"), ("1.9.2", "b")] {
        let digest = format!("sha256:{}", digit.repeat(64));
        let mut status = json!({ "images": [{
            "container": APP, "asked": image(tag), "stored": image(tag), "digest": digest,
        }] });
        if tag == "1.9.2" {
            status["previousRelease"] = json!({
                "releaseRef": { "target": "web", "name": previous },
                "transitionTime": ago(3 * 86_400)?,
            });
        }
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&release_name("web", tag), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_rollback_is_planned_before_it_is_asked_for() -> Result<()> {
    let scene = Scene::new("plan").await?;
    chained(&scene).await?;
    let plan = scene.shell()?.run("rollback web --dry-run").await?.answer()?;
    insta::assert_snapshot!(shown(&plan, &scene.namespace));
    Ok(())
}

/// Without ages and dates of what the API server dates.
fn undated(text: &str) -> String {
    let word = |word: &str| {
        let is_age = word == "<invalid>"
            || word.starts_with(|c: char| c.is_ascii_digit())
                && word.ends_with(['s', 'm', 'h'])
                && word.chars().all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h'));
        let is_date = word.starts_with("(20") && word.len() == 12;
        match (is_age, is_date) {
            (true, _) => "AGE".to_owned(),
            (_, true) => "(DATE)".to_owned(),
            _ => word.to_owned(),
        }
    };
    let words = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let line = |line: &str| match line.split_once(" | ") {
        // What stands behind the gutter is YAML, whose blanks count.
        Some((gutter, yaml)) => {
            let gutter: Vec<String> = gutter.split_whitespace().map(word).collect();
            format!("{} | {yaml}\n", gutter.join("  "))
        }
        None => format!("{}\n", words(line)),
    };
    text.lines().map(line).collect()
}

#[tokio::test]
async fn owners_are_told_of_a_field_of_all_and_of_each_line() -> Result<()> {
    let scene = Scene::new("owners").await?;
    scene.deployment("web", "1.9.2", 0).await?;
    scene.available("web", 0).await?;
    let mut shell = scene.shell()?;
    shell.now = Timestamp::now();
    let field = shell.run("owners web --path image").await?.answer()?;
    insta::assert_snapshot!("field", masked(&undated(&field), &scene.namespace));
    let all = shell.run("owners web").await?.answer()?;
    insta::assert_snapshot!("summary", masked(&undated(&all), &scene.namespace));
    let blame = shell.run("owners web --blame").await?.answer()?;
    insta::assert_snapshot!("blame", undated(&blame).replace(&scene.namespace, "shop"));
    Ok(())
}

#[tokio::test]
async fn the_first_broken_link_has_a_cause_and_a_next_command() -> Result<()> {
    let scene = Scene::new("why").await?;
    scene.deployment("web", "1.9.2", 0).await?;
    let edit = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": APP, "image": image("1.9.0") }] } } } });
    let params =
        PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let api: Api<Deployment> = Api::namespaced(scene.client.clone(), &scene.namespace);
    api.patch("web", &params, &Patch::Strategic(edit)).await?;
    scene.available("web", 0).await?;
    let message = format!("kubectl-edit changed the image to {}", image("1.9.0"));
    let status = json!({
        "containers": [APP],
        "current": { "image": image("1.9.0"), "tag": "1.9.0" },
        "candidates": [
            { "tag": "v1.9.3" },
            { "tag": "v2.0.0-rc.1", "gate": "Prerelease", "message": "a prerelease" },
        ],
        "conditions": [
            condition("Ready", "False", "Stalled", "", 1020)?,
            condition("Stalled", "True", "ChangedByPerson", &message, 1020)?,
        ],
    });
    scene.target("web", status).await?;
    let why = scene.shell()?.run("why web").await?;
    ensure!(why.exit == Exit::Done, "{why:?}");
    insta::assert_snapshot!(shown(&why.stdout, &scene.namespace));
    let doctor = scene.shell()?.run("doctor web").await?;
    ensure!(doctor.exit == Exit::Bad, "{doctor:?}");
    // Other tests install operators, or none.
    let is_about_it = |line: &&str| line.contains(&scene.namespace) || line.contains("RL001");
    let lines: Vec<&str> = doctor.stdout.lines().filter(is_about_it).collect();
    insta::assert_snapshot!("doctor", masked(&lines.join("\n"), &scene.namespace));
    Ok(())
}

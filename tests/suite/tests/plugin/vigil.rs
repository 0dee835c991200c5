//! A watch whose operator is gone says so, once, and goes on.

use anyhow::{Result, ensure};
use belay_testkit::wait;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kubectl_release::Exit;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::{
    scene::{Scene, condition},
    shown::has,
    terminal::{Terminal, becomes, ready},
};

/// When the Lease was renewed last.
const RENEWED: &str = "2026-11-30T02:10:04Z";

/// `web` on the way, followed by an operator whose Lease holds for a second.
async fn orphaned(prefix: &str) -> Result<(Scene, Api<Lease>)> {
    let scene = Scene::new(prefix).await?;
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let lease = json!({
        "metadata": {"name": "operator"},
        "spec": {
            "holderIdentity": "pod-1",
            "leaseDurationSeconds": 1,
            "renewTime": "2026-11-30T02:10:04.000000Z",
        },
    });
    leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
    let status = json!({
        "instance": format!("{}/operator", scene.namespace),
        "conditions": [
            condition("Ready", "Unknown", "Progressing", "", 41)?,
            condition("Progressing", "True", "Rolling", "", 41)?,
        ],
    });
    scene.target("web", status).await?;
    Ok((scene, leases))
}

#[tokio::test]
async fn a_log_says_it_once_and_goes_on() -> Result<()> {
    let (scene, leases) = orphaned("orphan").await?;
    let mut child = scene.shell()?.program(&["status", "web", "-w"])?.spawn()?;
    let mut stderr = child.stderr.take().unwrap();
    let mut said = String::new();
    let mut hear = async |words: &str| -> Result<String> {
        while !said.contains(words) {
            let mut bytes = [0; 4096];
            let read = tokio::time::timeout(wait::SOON, stderr.read(&mut bytes)).await??;
            ensure!(read > 0, "it ended without {words:?}: {said}");
            said.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        Ok(said.clone())
    };
    hear("hint: kubectl get pods -n ").await?;
    let renewed = format!("{:.6}", jiff::Timestamp::now());
    let renewed = json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 300}});
    let renewed = Patch::Merge(renewed);
    leases.patch("operator", &PatchParams::default(), &renewed).await?;
    let said = hear("is renewed again\n").await?;
    let lease = format!("Lease {}/operator", scene.namespace);
    let lost = format!(
        "note: the operator's {lease} was not renewed since {RENEWED}: \
         nothing moves while no operator runs\n\
         hint: kubectl get pods -n {} -l app.kubernetes.io/name=belay\n\
         note: the operator's {lease} is renewed again\n",
        scene.namespace,
    );
    assert_eq!(said, lost);
    becomes(&scene, ready()?).await?;
    assert_eq!(child.wait().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_frame_has_it_below_its_header() -> Result<()> {
    let (scene, leases) = orphaned("orphan-frame").await?;
    let shell = scene.shell()?;
    let mut terminal = Terminal::run(&shell.kubeconfig, &["status", "web", "-w"], 24, 120)?;
    terminal.shows("was not renewed since 2026-11-30T02:10:04Z").await?;
    let text = terminal.text();
    let second = text.lines().nth(1).unwrap_or_default();
    ensure!(second.starts_with("Operator:    the operator's Lease "), "{text}");
    ensure!(text.contains("See:         kubectl get pods -n "), "{text}");
    leases.delete("operator", &kube::api::DeleteParams::default()).await?;
    becomes(&scene, ready()?).await?;
    assert_eq!(terminal.ends().await?, Some(0), "{}", terminal.text());
    ensure!(!terminal.text().contains("Operator:"), "{}", terminal.text());
    Ok(())
}

#[tokio::test]
async fn a_list_says_it_of_each_operator() -> Result<()> {
    let (scene, _) = orphaned("orphan-list").await?;
    let ran = scene.shell()?.run("status -w --timeout 5s").await?;
    assert_eq!(ran.exit, Exit::Timeout, "{ran:?}");
    has(&ran.stderr, &["/operator was not renewed since 2026-11-30T02:10:04Z"])?;
    assert_eq!(ran.stderr.matches("not renewed").count(), 1, "{ran:?}");
    Ok(())
}

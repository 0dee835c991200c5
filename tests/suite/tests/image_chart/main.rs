//! The library chart `charts/belay-image` under both Helms and the real API server: which image a
//! template keeps, and where it cannot know one.

mod scene;

use anyhow::{Result, ensure};
use belay_suite::helms::Major;
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{Born, Scene, image};

const FOLLOWED: &str = "followed";

/// Who moved the container `app` to 2.0.0, and with what annotations on the workload.
fn moved(how: &str) -> (&'static str, Value) {
    match how {
        FOLLOWED => (
            "belay-operator",
            json!({"belay.dev/repo": "acme/web", "belay.dev/release": "web-1234567",
                   "belay.dev/container": "app"}),
        ),
        "owned" => ("belay-operator", json!({})),
        "another-operator" => ("keel", json!({})),
        // Belay follows it, and somebody else has written the image since.
        "taken" => (
            "kubectl-edit",
            json!({"belay.dev/repo": "acme/web", "belay.dev/release": "web-1234567",
                   "belay.dev/container": "app"}),
        ),
        "stranger" => ("kubectl-edit", json!({})),
        other => unreachable!("{other}"),
    }
}

#[rstest]
#[case::followed(FOLLOWED, "", true)]
#[case::owned("owned", "", true)]
#[case::listed("another-operator", "fieldManager=keel", true)]
#[case::not_listed("another-operator", "", false)]
#[case::taken("taken", "", true)]
#[case::stranger("stranger", "", false)]
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_keeps_what_an_operator_owns(
    #[values(Major::Three, Major::Four)] helm: Major,
    #[case] how: &str,
    #[case] values: &str,
    #[case] is_kept: bool,
) -> Result<()> {
    let scene = Scene::new(helm, Born::Deployment).await?;
    let (manager, annotations) = moved(how);
    scene.move_app(manager, &annotations).await?;
    let upgraded = scene.upgrade(&format!("lag=2,{values}")).await?;
    // Server-side apply does not take from another what the chart says differently.
    let is_refused = helm == Major::Four && !is_kept;
    ensure!(upgraded.status.success() != is_refused, "{upgraded:?}");
    ensure!(!is_refused || upgraded.stderr.contains(manager), "{upgraded:?}");
    let is_live = if is_kept || is_refused { "2.0.0" } else { "1.0.0" };
    ensure!(scene.live("containers", "app").await? == image("web", is_live));
    let lag = if is_refused { 1 } else { 2 };
    ensure!(scene.number("/spec/minReadySeconds").await? == lag, "the rest of the upgrade");
    Ok(())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_container_is_asked_for_by_itself(
    #[values(Major::Three, Major::Four)] helm: Major,
    #[values(Born::Deployment, Born::StatefulSet, Born::DaemonSet)] kind: Born,
) -> Result<()> {
    let scene = Scene::new(helm, kind).await?;
    let (manager, annotations) = moved(FOLLOWED);
    let containers = [("containers", "app"), ("initContainers", "setup")];
    scene.move_all(manager, &containers, &annotations).await?;
    let values = "sidecar=registry.example/sidecar:1.1.0,setup=registry.example/web:1.5.0";
    let _ = scene.upgrade(values).await?.ok()?;
    ensure!(scene.live("containers", "app").await? == image("web", "2.0.0"));
    ensure!(scene.live("initContainers", "setup").await? == image("web", "2.0.0"));
    ensure!(scene.live("containers", "sidecar").await? == image("sidecar", "1.1.0"));
    Ok(())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn another_repository_is_refused_until_it_is_accepted(
    #[values(Major::Three, Major::Four)] helm: Major,
) -> Result<()> {
    let scene = Scene::new(helm, Born::Deployment).await?;
    let (manager, annotations) = moved(FOLLOWED);
    scene.move_app(manager, &annotations).await?;
    let values = "image=registry.example/shop:1.0.0";
    let refused = scene.upgrade(values).await?;
    let words = ["registry.example/web:2.0.0", "registry.example/shop:1.0.0", "acceptRepository"];
    ensure!(!refused.status.success(), "{refused:?}");
    ensure!(words.iter().all(|word| refused.stderr.contains(word)), "{refused:?}");
    ensure!(scene.live("containers", "app").await? == image("web", "2.0.0"));
    let accepted = scene.upgrade(&format!("{values},acceptRepository=true")).await?;
    match helm {
        Major::Three => {
            let _ = accepted.ok()?;
            ensure!(scene.live("containers", "app").await? == image("shop", "1.0.0"));
        }
        // It is a conflict with its owner, which Helm 4 shows and does not force.
        Major::Four => ensure!(accepted.stderr.contains(manager), "{accepted:?}"),
    }
    Ok(())
}

#[rstest]
#[case::of_the_client("--dry-run=client", "1.0.0")]
#[case::of_the_server("--dry-run=server", "2.0.0")]
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_knows_what_it_may_ask_for(
    #[values(Major::Three, Major::Four)] helm: Major,
    #[case] flag: &str,
    #[case] tag: &str,
) -> Result<()> {
    let scene = Scene::new(helm, Born::Deployment).await?;
    let (manager, annotations) = moved(FOLLOWED);
    scene.move_app(manager, &annotations).await?;
    let shown = scene.helm("upgrade", &["--set", "lag=2", flag]).await?.ok()?;
    ensure!(shown.contains(&image("web", tag)), "{shown}");
    let rendered = scene.helm("template", &[]).await?.ok()?;
    ensure!(rendered.contains(&image("web", "1.0.0")), "{rendered}");
    Ok(())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_may_not_be_read_ends_the_upgrade(
    #[values(Major::Three, Major::Four)] helm: Major,
) -> Result<()> {
    let scene = Scene::new(helm, Born::Deployment).await?;
    let kubeconfig = scene.without_deployments().await?;
    let words = ["--kubeconfig", kubeconfig.to_str().unwrap_or_default(), "--set", "lag=2"];
    let refused = scene.helm("upgrade", &words).await?;
    ensure!(!refused.status.success() && refused.stderr.contains("forbidden"), "{refused:?}");
    Ok(())
}

//! `leave`: nothing rolls, and both Helms upgrade normally afterwards.

use anyhow::{Context as _, Result, ensure};
use belay_suite::helms::{Major, OPERATOR, WEB};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::{Api, ResourceExt as _, api::ListParams};
use rstest::rstest;

use crate::{
    helms::{IMAGE, Scene},
    run::Cli,
    shown::has,
};

/// The pod template, as text, and the names of all ReplicaSets.
async fn rollout(scene: &Scene) -> Result<(String, Vec<String>)> {
    let live = scene.deployments()?.get(WEB).await?;
    let template = serde_json::to_string(&live.spec.context("no spec")?.template)?;
    let api: Api<ReplicaSet> = Api::namespaced(scene.cluster.admin()?, &scene.namespace);
    let mut names: Vec<String> =
        api.list(&ListParams::default()).await?.iter().map(kube::ResourceExt::name_any).collect();
    names.sort_unstable();
    Ok((template, names))
}

/// Waits until the Deployment controller has answered to the template as it is.
async fn settled(scene: &Scene) -> Result<()> {
    belay_testkit::wait::until(
        "the controller to see the workload",
        belay_testkit::wait::SOON,
        || async {
            let live = match scene.deployments() {
                Ok(api) => api.get(WEB).await.map_err(|error| error.to_string())?,
                Err(error) => return Err(error.to_string()),
            };
            let seen = live.status.and_then(|status| status.observed_generation);
            if seen == live.metadata.generation { Ok(()) } else { Err(format!("{seen:?}")) }
        },
    )
    .await?;
    Ok(())
}

#[rstest]
#[case::three(Major::Three)]
#[case::four(Major::Four)]
#[tokio::test(flavor = "multi_thread")]
async fn helm_upgrades_normally_after_belay_has_left(#[case] major: Major) -> Result<()> {
    let scene = Scene::new().await?;
    // Belay's annotations are a person's here: what is the chart's the chart would bring back.
    let born = "--set image.tag=1.0.0,follow=false";
    let _ = scene.helm(major, "install", born).await?.ok()?;
    let tool = scene.cluster.tool(belay_components::Binary::Kubectl)?;
    let words = ["annotate", "deployment", WEB, "belay.dev/repo=acme/web", "-n", &scene.namespace];
    tool.args(words).ok().await?;
    scene.roll("1.1.0").await?;
    scene.target().await?;
    settled(&scene).await?;
    let before = rollout(&scene).await?;

    let leave = |words: &[&str]| Cli::new(scene.cluster, &scene.namespace, words).run();
    let plan = leave(&["leave", WEB, "--dry-run"]).await.ok()?;
    has(&plan, &["no rollout", "belay.dev/repo", "(dry run)"])?;
    ensure!(scene.live().await?.1 == [format!("{OPERATOR}/A")], "a dry run changed something");
    let said = leave(&["leave", WEB, "--yes"]).await.ok()?;
    has(&said, &["deployment.apps/web left"])?;
    settled(&scene).await?;

    let (image, owners) = scene.live().await?;
    ensure!(image == format!("{IMAGE}:1.1.0") && owners.is_empty(), "{image} {owners:?}");
    let live = scene.deployments()?.get(WEB).await?;
    ensure!(!live.annotations().keys().any(|key| key.starts_with("belay.dev/")), "{live:?}");
    let ours = live.managed_fields().iter().any(|one| one.manager.as_deref() == Some(OPERATOR));
    ensure!(!ours, "the operator's entry is still there");
    ensure!(rollout(&scene).await? == before, "something rolled");

    // The same version, pinned in the chart: no conflict, no rollout, and the image is Helm's.
    let pinned = "--set image.tag=1.1.0,follow=false --set lag=9";
    let _ = scene.helm(major, "upgrade", pinned).await?.ok()?;
    settled(&scene).await?;
    ensure!(rollout(&scene).await? == before, "the upgrade to the same image rolled");
    // Another version: Helm moves it as if Belay had never been there.
    let _ = scene.helm(major, "upgrade", "--set image.tag=1.2.0,follow=false").await?.ok()?;
    let (image, owners) = scene.live().await?;
    let helm = match major {
        Major::Three => "helm/U",
        Major::Four => "helm/A",
    };
    ensure!(image == format!("{IMAGE}:1.2.0") && owners == [helm], "{image} {owners:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_of_the_chart_are_warned_of() -> Result<()> {
    let scene = Scene::new().await?;
    let _ = scene.helm(Major::Four, "install", "--set image.tag=1.0.0").await?.ok()?;
    scene.roll("1.1.0").await?;
    scene.target().await?;
    let refused = Cli::new(scene.cluster, &scene.namespace, &["leave", WEB]).run().await;
    ensure!(refused.exit == kubectl_release::Exit::Usage, "{refused:?}");
    has(&refused.stdout, &["the chart sets belay.dev/repo"])?;
    has(&refused.stderr, &["refusing to leave without confirmation; pass --yes"])?;
    let no = Cli::new(scene.cluster, &scene.namespace, &["leave", WEB]).typing("n\n").run().await;
    has(&no.stderr, &["Proceed? [y/N]", "nothing was changed"])?;
    ensure!(scene.live().await?.1 == [format!("{OPERATOR}/A")]);
    let all = Cli::new(scene.cluster, &scene.namespace, &["leave", "--all"]).typing("y\n");
    all.run().await.ok()?;
    ensure!(scene.live().await?.1.is_empty());
    Ok(())
}

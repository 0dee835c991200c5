//! The CRDs of the chart: the same as the operator's, and what becomes of them on uninstall.

use anyhow::{Context as _, Result, ensure};
use belay_api::{AnnotationPrefix, crd};
use belay_components::Binary;
use belay_testkit::{
    Cluster,
    cluster::Options,
    operator::chart,
    tool::{Finished, Tool},
    wait,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _, api::ListParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{of_kind, render};

#[rstest]
#[case::default_prefix("belay.dev")]
#[case::other_prefix("release.example.com")]
#[tokio::test]
async fn they_are_those_of_the_operator(#[case] prefix: &str) -> Result<()> {
    let prefix: AnnotationPrefix = prefix.parse()?;
    let objects = render(Binary::Helm4, &json!({ "annotationPrefix": prefix })).await?;
    let mut found = Vec::new();
    for crd in of_kind(&objects, "CustomResourceDefinition") {
        let mut crd = crd.clone();
        let annotations = crd["metadata"]["annotations"].as_object_mut().context("annotations")?;
        let policy = annotations.remove("helm.sh/resource-policy");
        ensure!(policy == Some(json!("keep")), "{policy:?}");
        let labels = crd["metadata"].as_object_mut().and_then(|it| it.remove("labels"));
        ensure!(labels.is_some_and(|it| it["app.kubernetes.io/name"] == "belay"));
        found.push(serde_json::from_value::<CustomResourceDefinition>(crd)?);
    }
    let mut wanted = crd::all(&prefix);
    wanted.sort_by_key(CustomResourceDefinition::name_any);
    found.sort_by_key(CustomResourceDefinition::name_any);
    ensure!(found.len() == 4, "{} CRDs", found.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        ensure!(found == wanted, "{} differs: run `cargo xtask generate`", wanted.name_any());
    }
    Ok(())
}

#[tokio::test]
async fn they_can_be_left_out() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({ "crds": { "install": false } })).await?;
    ensure!(of_kind(&objects, "CustomResourceDefinition").count() == 0);
    let is_hook = |one: &&Value| one["metadata"]["annotations"]["helm.sh/hook"].is_string();
    let (hooks, rest): (Vec<_>, Vec<_>) = objects.iter().partition(is_hook);
    ensure!(rest.len() == 8, "{} objects", rest.len());
    ensure!(hooks.len() == 6, "{} of hooks", hooks.len());
    Ok(())
}

fn helm(cluster: &Cluster, helm: Binary, words: &[&str]) -> Result<Tool> {
    Ok(cluster.tool(helm)?.args(words).args(["--namespace", "default"]))
}

async fn install(cluster: &Cluster, with: Binary, name: &str, more: &[&str]) -> Result<Finished> {
    let tool = helm(cluster, with, &["install", name])?.arg(chart()).args(more);
    Ok(tool.run().await?)
}

async fn crds(cluster: &Cluster) -> Result<Vec<(String, Option<String>)>> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.admin()?);
    let list = api.list(&ListParams::default()).await?;
    Ok(list.items.iter().map(|crd| (crd.name_any(), crd.uid())).collect())
}

/// The only test that installs CRDs by Helm, on a cluster of its own: a cluster has them once.
#[tokio::test]
async fn they_and_their_objects_survive_helm() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let kubectl = |words: &[&str]| anyhow::Ok(cluster.tool(Binary::Kubectl)?.args(words));
    install(&cluster, Binary::Helm3, "belay", &[]).await?.ok()?;
    let first = crds(&cluster).await?;
    ensure!(first.len() == 4, "{first:?}");
    let release = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "metadata": { "name": "web-abc1234" },
        "config": { "targetName": "web", "revisions": [{ "name": "application", "id": "v1" }] },
    });
    wait::until("Releases to be served", wait::SOON, || async {
        let tool = kubectl(&["apply", "-f", "-"]).map_err(|error| error.to_string())?;
        let tool = tool.input(release.to_string());
        tool.ok().await.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    let kept = || async {
        ensure!(crds(&cluster).await? == first, "the CRDs are others now");
        let text = kubectl(&["get", "release", "web-abc1234", "-o", "json"])?.ok().await?;
        let found: Value = serde_json::from_str(&text)?;
        ensure!(found["config"] == release["config"], "{found}");
        Ok(())
    };
    // Under the same name, by either Helm after the other.
    for (uninstalled_by, installed_by) in [
        (Binary::Helm3, Binary::Helm4),
        (Binary::Helm4, Binary::Helm3),
        (Binary::Helm3, Binary::Helm3),
    ] {
        helm(&cluster, uninstalled_by, &["uninstall", "belay", "--no-hooks"])?.ok().await?;
        kept().await?;
        let deployments = kubectl(&["get", "deployments", "-o", "name"])?.ok().await?;
        ensure!(deployments.is_empty(), "left behind: {deployments}");
        install(&cluster, installed_by, "belay", &[]).await?.ok()?;
        kept().await?;
    }
    // Under another name only if that is said.
    for (major, name) in [(Binary::Helm3, "belay-three"), (Binary::Helm4, "belay-four")] {
        let here = helm(&cluster, major, &["list", "--short"])?.ok().await?;
        helm(&cluster, major, &["uninstall", here.trim(), "--no-hooks"])?.ok().await?;
        let refused = install(&cluster, major, name, &[]).await?;
        ensure!(!refused.status.success(), "{name} took over what is not its own");
        ensure!(refused.stderr.contains("invalid ownership metadata"), "{}", refused.stderr);
        install(&cluster, major, name, &["--take-ownership"]).await?.ok()?;
        kept().await?;
    }
    Ok(())
}

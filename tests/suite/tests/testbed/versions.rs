//! Versions tell the truth: a chart or a client that looks at them must not be misled.

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Component};
use belay_testkit::Cluster;
use serde_json::Value;

#[tokio::test]
async fn the_server_says_its_pinned_version() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let pinned = cluster.components().version(Component::Kubernetes)?;
    let version = cluster.admin()?.apiserver_version().await?;
    assert_eq!(version.git_version, pinned);
    assert_eq!(format!("v{}.{}", version.major, version.minor), pinned.rsplit_once('.').unwrap().0);
    Ok(())
}

#[tokio::test]
async fn kubectl_knows_its_own_and_the_servers_version() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let pinned = cluster.components().version(Component::Kubernetes)?;
    let text = cluster.tool(Binary::Kubectl)?.args(["version", "-o", "json"]).ok().await?;
    let answer: Value = serde_json::from_str(&text)?;
    assert_eq!(answer["clientVersion"]["gitVersion"], pinned.as_str());
    assert_eq!(answer["serverVersion"]["gitVersion"], pinned.as_str());
    Ok(())
}

#[tokio::test]
async fn every_component_that_has_a_version_flag_says_the_pinned_version() -> Result<()> {
    let cluster = Cluster::shared().await?;
    for (binary, arguments) in [
        (Binary::Etcd, vec!["--version"]),
        (Binary::KubeApiserver, vec!["--version"]),
        (Binary::KubeControllerManager, vec!["--version"]),
        (Binary::KubeScheduler, vec!["--version"]),
        (Binary::Kwok, vec!["--version"]),
        (Binary::Helm3, vec!["version", "--short"]),
        (Binary::Helm4, vec!["version", "--short"]),
        (Binary::Yq, vec!["--version"]),
        (Binary::Krew, vec!["version"]),
    ] {
        let pinned = cluster.components().version(binary.component())?;
        let said = cluster.tool(binary)?.args(arguments).ok().await?;
        ensure!(said.contains(pinned.trim_start_matches('v')), "{binary:?} says {said}");
    }
    Ok(())
}

#[tokio::test]
async fn both_helms_render_for_the_kubernetes_version_of_their_own_client() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let chart = tempfile::tempdir()?;
    std::fs::create_dir(chart.path().join("templates"))?;
    std::fs::write(chart.path().join("Chart.yaml"), "apiVersion: v2\nname: v\nversion: 0.1.0\n")?;
    std::fs::write(
        chart.path().join("templates/version.yaml"),
        "kube: {{ .Capabilities.KubeVersion.Version }}\n",
    )?;
    for binary in [Binary::Helm3, Binary::Helm4] {
        let rendered = cluster.tool(binary)?.arg("template").arg(chart.path()).ok().await?;
        let version = rendered
            .lines()
            .find_map(|line| line.strip_prefix("kube: "))
            .with_context(|| format!("{binary:?} rendered {rendered}"))?;
        let minor: u32 = version.split('.').nth(1).context("no minor version")?.parse()?;
        ensure!(minor >= 37, "{binary:?} believes in Kubernetes {version}");
    }
    Ok(())
}

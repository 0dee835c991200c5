//! The examples are what the API server takes, without a warning.

use std::fs;

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_testkit::{Cluster, keda::Keda};
use tokio::sync::OnceCell;

use super::session::top;

/// KEDA's kinds, which one of them has.
async fn keda() -> Result<()> {
    static KEDA: OnceCell<Keda> = OnceCell::const_new();
    KEDA.get_or_try_init(|| async { Keda::start(Cluster::shared().await?).await }).await?;
    Ok(())
}

#[tokio::test]
async fn every_example_is_applied() -> Result<()> {
    let cluster = Cluster::shared().await?;
    keda().await?;
    let mut names = Vec::new();
    for entry in fs::read_dir(top("docs/examples"))? {
        let path = entry?.path();
        let namespace = cluster.namespace("example").await?;
        let tool = cluster.tool(Binary::Kubectl)?.args([
            "apply",
            "-n",
            &namespace,
            "--warnings-as-errors",
        ]);
        let tool = tool.args(["--validate=strict", "--dry-run=server", "-f"]).arg(&path);
        let applied = tool.ok().await?;
        ensure!(applied.contains("deployment.apps/web created"), "{applied}");
        names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    assert_eq!(names, ["deployment.yaml", "keda.yaml", "private-registry.yaml"]);
    Ok(())
}

//! From the first chart that was given to others to the present one.

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_suite::helms::suite;
use belay_testkit::operator::chart;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, ResourceExt as _, api::ListParams};
use rstest::rstest;

use crate::bed::{self, OPERATOR, RELEASE};

/// The chart as it was first given to others, packed.
const FIRST: &str = "charts/packed/belay-0.1.0.tgz";

#[rstest]
#[case::helm_3(Binary::Helm3, Binary::Helm3)]
#[case::helm_4(Binary::Helm4, Binary::Helm4)]
#[case::from_helm_3_to_4(Binary::Helm3, Binary::Helm4)]
#[tokio::test]
async fn the_first_chart_is_upgraded_with_its_values(
    #[case] old: Binary,
    #[case] new: Binary,
) -> Result<()> {
    let cluster = bed::cluster().await?;
    let namespace = cluster.namespace("upgrade").await?;
    let run = |helm: Binary, words: &[&str]| {
        let tool = cluster.tool(helm)?.args(words).args(["--namespace", &namespace]);
        anyhow::Ok(tool)
    };
    let values = "scope=namespace,crds.install=false,pollInterval=7m";
    let first = suite(FIRST);
    run(old, &["install", RELEASE, "--set", values])?.arg(first).ok().await?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.admin()?, &namespace);
    let before = deployments.get(OPERATOR).await?;
    run(new, &["upgrade", RELEASE, "--reset-then-reuse-values"])?.arg(chart()).ok().await?;
    let after = deployments.get(OPERATOR).await?;
    ensure!(after.uid() == before.uid(), "the Deployment was made anew");
    let pod = after.spec.and_then(|spec| spec.template.spec).unwrap_or_default();
    let args: Vec<_> = pod.containers.into_iter().filter_map(|one| one.args).flatten().collect();
    ensure!(args.contains(&"--poll-interval=7m".to_owned()), "{args:?}");
    // What the first chart had is the present one's, and there is no more of it.
    let all = deployments.list(&ListParams::default()).await?;
    ensure!(all.items.len() == 1, "{} Deployments", all.items.len());
    Ok(())
}

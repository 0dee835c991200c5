//! Deployments of odd shapes.

use anyhow::{Context as _, Result, ensure};
use belay_suite::operator::{Bed, Running, Wiring};
use belay_testkit::objects::Workload;
use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{neighbours::Neighbours, panics, targets::Targets, turn};

/// Containers of a crowd.
const CROWD: usize = 50;

/// A Deployment with many containers of the bed's image.
fn crowd(bed: &Bed, name: &str) -> Workload {
    let workload = Workload::deployment(name)
        .replicas(1)
        .annotation("belay.dev/repo", "acme/web")
        .annotation("belay.dev/bake", "1s");
    (0..CROWD).fold(workload, |workload, number| {
        workload.image(&format!("c{number}"), &bed.image("1.0.0"))
    })
}

#[tokio::test]
async fn deployments_of_odd_shapes_are_moved_or_said_why_not() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("shapes").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let operator = bed.operator()?;
    bed.create(&crowd(&bed, "which"), "helm").await?;
    let all: Vec<_> = (0..CROWD).map(|number| format!("c{number}")).collect();
    let every = crowd(&bed, "every").annotation("belay.dev/container", &all.join(","));
    bed.create(&every, "helm").await?;
    // As large as the store of the API server takes: a value of almost a megabyte.
    let mut heavy = bed.workload("heavy", "1.0.0").json().clone();
    let value = "x".repeat(1_000_000);
    heavy["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{ "name": "HEAVY", "value": value }]);
    heavy["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        json!("{".repeat(200_000));
    let as_helm = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
    let heavy: Deployment = serde_json::from_value(heavy)?;
    bed.deployments().create(&as_helm, &heavy).await?;
    // Nobody owns any of its fields.
    bed.create(&bed.workload("ownerless", "1.0.0"), "helm").await?;
    targets.healthy("ownerless", "1.0.0").await?;
    let nobody = json!({ "metadata": { "managedFields": [{}] } });
    bed.deployments().patch("ownerless", &PatchParams::default(), &Patch::Merge(nobody)).await?;
    // Two of one target.
    bed.create(&bed.workload("first", "1.0.0"), "helm").await?;
    targets.healthy("first", "1.0.0").await?;
    let second = bed.workload("second", "1.0.0").annotation("belay.dev/target", "first");
    bed.create(&second, "helm").await?;
    for name in ["every", "heavy"] {
        targets.healthy(name, "1.0.0").await?;
    }
    bed.release("v1.1.0").await?;
    for name in ["every", "heavy", "first"] {
        targets.healthy(name, "1.1.0").await?;
    }
    let moved = bed.deployments().get("every").await?;
    let pod = moved.spec.and_then(|spec| spec.template.spec).context("no pod template")?;
    let image = bed.image("1.1.0");
    ensure!(pod.containers.iter().all(|one| one.image.as_ref() == Some(&image)), "not all moved");
    bed.wait_for_condition("which", "Stalled", "InvalidConfig").await?;
    bed.wait_for_condition("ownerless", "Stalled", "FieldConflict").await?;
    let events: Api<Event> = Api::namespaced(bed.client.clone(), &bed.namespace);
    bed.wait("a word about the second of one target", || async {
        let all = events.list(&ListParams::default()).await?.items;
        let is_it = |event: &Event| event.reason.as_deref() == Some("DuplicateTarget");
        ensure!(all.iter().any(is_it), "{} events", all.len());
        Ok(())
    })
    .await?;
    neighbours.roll(&bed, &targets).await?;
    for name in ["which", "ownerless", "second"] {
        let live = bed.deployments().get(name).await?;
        let text = serde_json::to_string(&live.spec)?;
        ensure!(!text.contains(&image), "{name} was moved");
    }
    operator.stop().await?;
    panics::none()
}

/// A Deployment that is deleted in the middle of its rollout takes no place from others.
#[tokio::test]
async fn a_workload_that_goes_in_mid_rollout_gives_its_place_back() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("gone").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let mut wiring = Wiring::default();
    wiring.settings.max_concurrent_rollouts = 1;
    let operator = Running::start(&bed, wiring)?;
    neighbours.ready(&targets).await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    targets.healthy("web", "1.0.0").await?;
    bed.release("v1.1.0+never-ready").await?;
    bed.wait_for_image("web", &bed.image("1.1.0_never-ready")).await?;
    bed.wait("the Release to be rolling", || async {
        let all = bed.releases().list(&ListParams::default()).await?.items;
        let is_rolling = |release: &belay_api::Release| {
            let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
            let ready = belay_api::conditions::find(conditions.unwrap_or_default(), "Ready");
            ready.is_some_and(|ready| ready.reason == "Rolling")
        };
        ensure!(all.iter().any(is_rolling), "{} Releases", all.len());
        Ok(())
    })
    .await?;
    bed.deployments().delete("web", &DeleteParams::default()).await?;
    neighbours.roll(&bed, &targets).await?;
    operator.stop().await?;
    panics::none()
}

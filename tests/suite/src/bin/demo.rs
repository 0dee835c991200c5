//! `cargo xtask demo`: a cluster of real components, one Deployment, one roll to a new image.
//!
//! Every claim is read back from the API server and decides the exit code.

use std::{process::ExitCode, time::Instant};

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Component, Components};
use belay_testkit::{
    Cluster,
    cluster::{FIELD_MANAGER, Options},
    objects::Workload,
    wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo() -> Result<()> {
    let components = Components::from_env()?;
    let version = components.version(Component::Kubernetes)?;
    say(&format!("Starting etcd, kube-apiserver {version}, its controllers and one node …"));
    let start = Instant::now();
    let options = Options { components: Some(components), ..Options::default() };
    let cluster = Cluster::start(options).await?;
    say(&format!(
        "Ready after {:.1} s. Nothing here runs containers: kwok plays the node.",
        start.elapsed().as_secs_f64()
    ));

    let namespace = cluster.namespace("demo").await?;
    let api: Api<Deployment> = Api::namespaced(cluster.admin()?, &namespace);
    let web = Workload::deployment("web").replicas(3).image("app", "registry.example/web:1.0.0");
    let apply = PatchParams::apply(FIELD_MANAGER);
    api.patch("web", &apply, &Patch::Apply(web.json())).await.context("apply Deployment web")?;
    rolled_out(&api, "registry.example/web:1.0.0").await?;
    say("Deployment web runs 1.0.0 on 3 pods.");

    // Only the image, under a manager of its own: what Belay's operator will do.
    let image = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "template": { "spec": { "containers": [
            { "name": "app", "image": "registry.example/web:1.1.0" },
        ]}}},
    });
    let roller = PatchParams::apply("demo-roller");
    let conflict = api.patch("web", &roller, &Patch::Apply(&image)).await;
    ensure!(
        matches!(&conflict, Err(kube::Error::Api(status)) if status.code == 409),
        "an unforced apply over another manager's image was not refused: {conflict:?}"
    );
    say("Server-side apply refuses to take the image from another manager …");
    api.patch("web", &roller.force(), &Patch::Apply(&image)).await.context("move the image")?;
    rolled_out(&api, "registry.example/web:1.1.0").await?;
    say("… unless it is forced. web now runs 1.1.0 on 3 pods. As kubectl sees it:");
    let shown = cluster
        .tool(Binary::Kubectl)?
        .args(["get", "deployments,replicasets", "-o", "wide", "-n", &namespace])
        .ok()
        .await?;
    println!("\n{shown}");
    drop(cluster);
    say("Everything is stopped and removed. `cargo xtask cluster up` keeps a cluster for you.");
    Ok(())
}

/// Waits until every replica runs `image`, by the Deployment's own status.
async fn rolled_out(api: &Api<Deployment>, image: &str) -> Result<()> {
    wait::until(&format!("web to run {image}"), wait::SOON, || async {
        let web = api.get("web").await.map_err(|error| error.to_string())?;
        let (spec, status) = (web.spec.unwrap_or_default(), web.status.unwrap_or_default());
        let containers = spec.template.spec.unwrap_or_default().containers;
        let ours = containers.iter().all(|container| container.image.as_deref() == Some(image));
        let wanted = spec.replicas.unwrap_or_default();
        let numbers = [status.replicas, status.updated_replicas, status.available_replicas];
        let seen = status.observed_generation >= web.metadata.generation;
        if ours && seen && numbers.iter().all(|number| *number == Some(wanted)) {
            Ok(())
        } else {
            Err(format!("observed {seen}, replicas, updated, available {numbers:?}"))
        }
    })
    .await?;
    Ok(())
}

fn say(text: &str) {
    println!("▸ {text}");
}

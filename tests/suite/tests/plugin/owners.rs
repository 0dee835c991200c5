//! `owners` on objects of any kind, live and saved, with Belay and without.

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_suite::helms::{Major, OPERATOR};
use belay_testkit::{Cluster, cluster::Options};
use kubectl_release::Exit;
use serde_json::json;

use crate::{
    helms::{IMAGE, Scene},
    run::Cli,
    shown::has,
};

/// A Deployment of Helm 4 whose image the operator has moved.
async fn rolled() -> Result<Scene> {
    let scene = Scene::new().await?;
    let _ = scene.helm(Major::Four, "install", "--set image.tag=1.0.0").await?.ok()?;
    scene.roll("1.1.0").await?;
    Ok(scene)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_a_summary_and_blame_agree_on_a_live_object() -> Result<()> {
    let scene = rolled().await?;
    let run = |words: &[&str]| Cli::new(scene.cluster, &scene.namespace, words).run();
    let field = run(&["owners", "web", "--path", "image"]).await.ok()?;
    let first = format!("spec.template.spec.containers[name=\"app\"].image = {IMAGE}:1.1.0");
    has(&field, &["deployment.apps/web", &first, "OWNER", OPERATOR, "Apply", "expected"])?;

    let report = run(&["owners", "web", "--path", "image", "-o", "json"]).await.json()?;
    ensure!(report["apiVersion"] == "cli.belay.dev/v1" && report["kind"] == "FieldOwnership");
    let owner = &report["fields"][0]["owners"][0];
    ensure!(owner["manager"] == OPERATOR && owner["via"] == "field", "{report:#}");
    ensure!(report["fields"][0]["parentClaims"][0]["manager"] == "helm", "{report:#}");

    let summary = run(&["owners", "web"]).await.ok()?;
    has(&summary, &["MANAGER", "Helm 4 (server-side)", "Belay's operator", "app.image"])?;

    let blame = run(&["owners", "deployment/web", "--blame"]).await.ok()?;
    let line = blame.lines().find(|line| line.contains("image:") && line.contains("web:1.1.0"));
    has(line.unwrap_or_default(), &[OPERATOR, " A "])?;
    has(&blame, &["# API default"])?;

    let met = run(&["owners", "web", "--path", "image", "--expect", "belay-operator/Apply"]).await;
    ensure!(met.exit == Exit::Done, "{met:?}");
    let other = run(&["owners", "web", "--path", "image", "--expect", "helm"]).await;
    ensure!(other.exit == Exit::Bad, "{other:?}");
    has(&other.stderr, &["expected helm, found belay-operator (Apply)"])
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_found_by_any_of_their_names() -> Result<()> {
    let scene = rolled().await?;
    let run = |words: &[&str]| Cli::new(scene.cluster, &scene.namespace, words).run();
    for words in [["cm", "config"], ["ConfigMap", "config"], ["configmaps", "config"]] {
        let told = run(&["owners", words[0], words[1], "--path", "data.lag"]).await.ok()?;
        has(&told, &["configmap/config", "data.lag = 5", "helm"])?;
    }
    let node = run(&["owners", "no/kwok-0", "-o", "name"]).await.ok()?;
    ensure!(node == "node/kwok-0\n", "{node}");
    let crd = run(&["owners", "crd/releases.belay.dev"]).await.ok()?;
    has(&crd, &["MANAGER"])?;
    let unknown = run(&["owners", "flower/rose"]).await;
    ensure!(unknown.exit == Exit::Error, "{unknown:?}");
    has(&unknown.stderr, &["does not have a resource type \"flower\""])?;
    let missing = run(&["owners", "web2"]).await;
    has(&missing.stderr, &["Error from server (NotFound): deployments.apps \"web2\" not found"])
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_objects_are_read_from_a_file_and_from_standard_input() -> Result<()> {
    let scene = rolled().await?;
    let get = |flags: &[&str]| {
        let tool = scene.cluster.tool(Binary::Kubectl)?;
        let words = ["get", "deployment/web", "configmap/config", "-o", "yaml"];
        anyhow::Ok(tool.args(words).args(flags).args(["-n", &scene.namespace]).ok())
    };
    let list = get(&["--show-managed-fields"])?.await?;
    let words = ["owners", "-f", "-", "-o", "json"];
    let stdin = Cli::new(scene.cluster, "elsewhere", &words).stdin(&list).run().await.json()?;
    ensure!(stdin["kind"] == "List" && stdin["items"].as_array().map(Vec::len) == Some(2));

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("saved.yaml");
    let documents = format!(
        "{list}\n---\n{}",
        json!({ "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": { "name": "bare" } })
    );
    std::fs::write(&file, documents)?;
    let file = file.display().to_string();
    let words = ["owners", "-f", file.as_str(), "--path", "metadata.labels"];
    let told = Cli::new(scene.cluster, "elsewhere", &words).run().await;
    has(&told.stdout, &["deployment.apps/web", "configmap/config", "configmap/bare"])?;
    has(&told.stderr, &["configmap/bare has no managedFields", "--show-managed-fields"])?;

    let cut = get(&[])?.await?;
    let words = ["owners", "-f", "-"];
    let cut = Cli::new(scene.cluster, "elsewhere", &words).stdin(&cut).run().await;
    has(&cut.stderr, &["deployment.apps/web has no managedFields"])
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_where_belay_is_not_installed() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let namespace = cluster.namespace("bare").await?;
    let tool = cluster.tool(Binary::Kubectl)?;
    let words = ["create", "deployment", "web", "--image", "acme/web:1", "-n", &namespace];
    tool.args(words).ok().await?;
    let told = Cli::new(&cluster, &namespace, &["owners", "web", "--path", "image"]).run().await;
    has(&told.ok()?, &["acme/web:1", "kubectl-create", "Update"])?;
    let status = Cli::new(&cluster, &namespace, &["why", "web"]).run().await;
    ensure!(status.exit == Exit::Error, "{status:?}");
    has(&status.stderr, &["Belay is not installed"])?;
    let doctor = Cli::new(&cluster, &namespace, &["doctor"]).run().await;
    ensure!(doctor.exit == Exit::Bad, "{doctor:?}");
    has(&doctor.stdout, &["not served in v1alpha1", "helm install belay"])
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_and_broken_entries_are_harmless() -> Result<()> {
    let cluster = crate::helms::cluster().await?;
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "bad", "managedFields": [
            { "manager": "red \u{1b}[31m", "operation": "Update", "apiVersion": "v1",
              "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:a": {} } } },
            { "manager": "broken", "operation": "Update", "apiVersion": "v1",
              "fieldsType": "FieldsV1", "fieldsV1": { "data": {} } },
            3,
        ] },
        "data": { "a": "line\r\u{1b}]0;title\u{7}" },
    });
    let run = |words: &'static [&'static str]| {
        Cli::new(cluster, "elsewhere", words).stdin(&object.to_string()).run()
    };
    for words in [
        ["owners", "-f", "-", "--path", "data.a"].as_slice(),
        &["owners", "-f", "-"],
        &["owners", "-f", "-", "--blame", "--all"],
    ] {
        let told = run(words).await;
        ensure!(told.exit == Exit::Done, "{told:?}");
        has(&told.stdout, &["red ^[[31m"])?;
        has(&told.stderr, &["broken: missing colon"])?;
        let all = format!("{}{}", told.stdout, told.stderr);
        ensure!(!all.contains(['\u{1b}', '\u{7}', '\r']), "{all:?}");
    }
    let decided = run(&["owners", "-f", "-", "--path", "data.a", "--expect", "red \u{1b}[31m"]);
    has(&decided.await.stderr, &["cannot be decoded, so nobody knows"])?;
    let no_path = run(&["owners", "-f", "-", "--path", "data["]).await;
    ensure!(no_path.exit == Exit::Usage, "{no_path:?}");
    let no_image = run(&["owners", "-f", "-", "--path", "image"]).await;
    has(&no_image.stderr, &["configmap/bad has no containers"])
}

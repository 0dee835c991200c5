//! The figures of `kubectl release`: how soon it says something, and what a long list costs.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    AnnotationPrefix, Release, ReleaseTarget, crd,
    release::{ReleaseConfig, Revision},
};
use belay_components::Binary;
use belay_testkit::{Cluster, cluster::Options, objects::Workload, wait};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::stats::{MIN_PAIRS, Ratio, interleaved};
use crate::programs::Programs;

/// Pairs of one Target; each takes some hundred milliseconds.
const PAIRS: usize = 2 * MIN_PAIRS;
/// Targets of a long list, and namespaces that they are in.
const TARGETS: usize = 1_000;
const NAMESPACES: usize = 10;
/// Lists that are measured.
const LISTS: usize = 21;
/// Runs before those that count: kubectl keeps what it has discovered in its home.
const WARM_UP: usize = 3;
/// Requests of the bench itself that are under way at a time.
const AT_ONCE: usize = 16;

const TAG: &str = "1.9.2";

/// From the start to the first byte of `kubectl-release status NAME`, against `kubectl get` of the
/// same ReleaseTarget from its start to its end.
///
/// # Errors
/// When the control plane or a run fails, or says something else.
pub fn status_first_byte_ratio() -> Result<Ratio> {
    let bed = Bed::start(Options::default(), 1)?;
    wait::block_on(async {
        let namespace = &bed.namespaces[0];
        let client = bed.cluster.admin()?;
        target(&client, namespace, "web", 3).await?;
        let api: Api<Deployment> = Api::namespaced(client, namespace);
        wait::until("the Deployment to be complete", wait::SOON, || async {
            let one = api.get("web").await.map_err(|error| error.to_string())?;
            let available = one.status.and_then(|status| status.available_replicas);
            if available == Some(3) { Ok(()) } else { Err(format!("{available:?} available")) }
        })
        .await?;
        anyhow::Ok(())
    })??;
    let names = ["web", "-n", &bed.namespaces[0]];
    let plugin = Programs::find()?.path("kubectl-release")?;
    let plugin = bed.run(&plugin, &["status"], &names, "Release:");
    let kubectl = bed.cluster.components().binary(Binary::Kubectl)?;
    let kubectl = bed.run(&kubectl, &["get", "releasetargets.belay.dev"], &names, "NAME ");
    for _ in 0..WARM_UP {
        plugin.time()?;
        kubectl.time()?;
    }
    interleaved(|| Ok(plugin.time()?.first), || Ok(kubectl.time()?.whole), PAIRS)
}

/// `kubectl-release status -A` with a thousand Targets, from its start to its end.
///
/// # Errors
/// When the API server or a run fails, or a row is missing.
pub fn list_of_1000() -> Result<Vec<Duration>> {
    let bed = Bed::start(Options::server_alone(), NAMESPACES)?;
    wait::block_on(async {
        let client = &bed.cluster.admin()?;
        stream::iter(0..TARGETS)
            .map(|number| {
                let (namespace, name) =
                    (&bed.namespaces[number % NAMESPACES], format!("web-{number}"));
                async move { target(client, namespace, &name, 0).await }
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
    })??;
    let plugin = Programs::find()?.path("kubectl-release")?;
    let list = bed.run(&plugin, &["status", "-A"], &[], "NAMESPACE ");
    let mut samples = Vec::new();
    for number in 0..WARM_UP + LISTS {
        let took = list.time()?;
        ensure!(took.lines == TARGETS + 1, "the list has {} lines", took.lines);
        if number >= WARM_UP {
            samples.push(took.whole);
        }
    }
    Ok(samples)
}

/// A control plane with namespaces and Targets as the operator leaves them.
struct Bed {
    cluster: Cluster,
    namespaces: Vec<String>,
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

impl Bed {
    fn start(options: Options, namespaces: usize) -> Result<Self> {
        let home = tempfile::tempdir().context("make a home for the programs")?;
        let (cluster, namespaces) = wait::block_on(async {
            let cluster = Cluster::start(options).await?;
            cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await?;
            let mut names = Vec::new();
            for _ in 0..namespaces {
                names.push(cluster.namespace("bench").await?);
            }
            anyhow::Ok((cluster, names))
        })??;
        let kubeconfig = cluster.admin_kubeconfig();
        Ok(Self { cluster, namespaces, kubeconfig, home })
    }

    fn run(&self, program: &Path, verb: &[&str], names: &[&str], begins: &'static str) -> Run {
        Run {
            program: program.to_owned(),
            arguments: verb.iter().chain(names).map(ToString::to_string).collect(),
            kubeconfig: self.kubeconfig.clone(),
            home: self.home.path().to_owned(),
            begins,
        }
    }
}

/// A Deployment that Helm installed and the operator moved, its ReleaseTarget and its Release.
async fn target(client: &Client, namespace: &str, name: &str, replicas: u32) -> Result<()> {
    let image = |tag: &str| format!("ghcr.io/acme/web:{tag}");
    let workload = Workload::deployment(name)
        .replicas(replicas)
        .image("app", &image("1.0.0"))
        .annotation("belay.dev/repo", "acme/web")
        .annotation("belay.dev/range", "^1.9");
    let deployment: Deployment = serde_json::from_value(workload.json().clone())?;
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let helm = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
    api.create(&helm, &deployment).await?;
    let config = ReleaseConfig {
        target_name: name.to_owned(),
        revisions: vec![Revision {
            name: "application".to_owned(),
            id: format!("v{TAG}"),
            source: Some("acme/web".to_owned()),
            type_: Some("github".to_owned()),
            metadata: None,
        }],
        workload_ref: None,
    };
    let signature = config.signature();
    let release = format!("{name}-{}", signature.as_str().get(..7).unwrap_or_default());
    let applied = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"belay.dev/release": release}},
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": image(TAG)}]}}},
    });
    let operator = PatchParams::apply("belay-operator").force();
    let live = api.patch(name, &operator, &Patch::Apply(&applied)).await?;
    let now = Timestamp::now().to_string();
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": now})
    };
    let status = json!({
        "images": [{"container": "app", "asked": image(TAG), "stored": image(TAG)}],
        "activations": [{"ordinal": 1, "startTime": now, "initiator": format!("GitHub v{TAG}")}],
        "conditions": [condition("Active", "True", "Applied")],
    });
    put::<Release>(client, namespace, &release, json!({"config": config}), status).await?;
    let status = json!({
        "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name,
            "uid": live.metadata.uid},
        "containers": ["app"],
        "current": {"image": image(TAG), "tag": TAG},
        "wanted": {"image": image(TAG), "tag": TAG},
        "active": release,
        "conditions": [
            condition("Ready", "True", "Ready"), condition("Progressing", "False", "Idle"),
        ],
    });
    put::<ReleaseTarget>(client, namespace, name, json!({}), status).await
}

/// Creates an object and gives it a status.
async fn put<K: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: &str,
    name: &str,
    mut body: Value,
    status: Value,
) -> Result<()> {
    let kind = ApiResource::erase::<K>(&());
    body["apiVersion"] = json!(kind.api_version);
    body["kind"] = json!(kind.kind);
    body["metadata"] = json!({"name": name});
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let object: DynamicObject = serde_json::from_value(body)?;
    api.create(&PostParams::default(), &object).await?;
    let patch = json!({"status": status});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// A program that is run again and again.
struct Run {
    program: PathBuf,
    arguments: Vec<String>,
    kubeconfig: PathBuf,
    home: PathBuf,
    begins: &'static str,
}

/// How long a run took.
struct Took {
    first: Duration,
    whole: Duration,
    lines: usize,
}

impl Run {
    fn time(&self) -> Result<Took> {
        let name = self.program.file_name().unwrap_or_default().display();
        let begun = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let mut stdout = child.stdout.take().context("a program without standard output")?;
        let mut text = vec![0; 1];
        let count = stdout.read(&mut text).with_context(|| format!("read from {name}"))?;
        let first = begun.elapsed();
        text.truncate(count);
        stdout.read_to_end(&mut text).with_context(|| format!("read from {name}"))?;
        let status = child.wait().with_context(|| format!("wait for {name}"))?;
        let whole = begun.elapsed();
        ensure!(status.success(), "{name} ended with {status}");
        let text = String::from_utf8(text).with_context(|| format!("read from {name}"))?;
        ensure!(text.starts_with(self.begins), "{name} said {text}");
        Ok(Took { first, whole, lines: text.lines().count() })
    }
}

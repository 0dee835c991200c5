//! The demo on a cluster that is there already: it asks, it refuses what it could spoil, and it leaves
//! nothing behind. The demo on a cluster of its own is run by `cargo xtask test --group demo` itself.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Components};
use belay_suite::{programs::beside_test, terminal::Pair};
use belay_testkit::{
    Cluster,
    cluster::{Options, attach::Place},
    wait,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The demo on the cluster of a kubeconfig.
fn demo(kubeconfig: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.args(["--fast", "--kubeconfig"]).arg(kubeconfig).args(more).stdin(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// The names of all that the demo could leave in a cluster.
async fn all_of(cluster: &Cluster) -> Result<String> {
    let kinds = "namespaces,crds,clusterroles,clusterrolebindings,apiservices,mutatingwebhookconfigurations,\
                 validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings";
    Ok(cluster.tool(Binary::Kubectl)?.args(["get", kinds, "--output=name"]).ok().await?)
}

/// A cluster of `cargo xtask cluster up`, which goes down in the end.
struct Standing {
    name: String,
    kubeconfig: PathBuf,
}

impl Standing {
    fn up() -> Result<Self> {
        let name = format!("demo-{}", std::process::id());
        let mut standing = Self { name, kubeconfig: PathBuf::new() };
        let output = standing.testbed("up")?.output().context("start testbed")?;
        let exports = String::from_utf8_lossy(&output.stdout).into_owned();
        let export = exports.lines().find_map(|line| line.strip_prefix("export KUBECONFIG="));
        standing.kubeconfig = export.with_context(|| text(&output))?.trim_matches('"').into();
        Ok(standing)
    }

    fn testbed(&self, verb: &str) -> Result<Command> {
        let mut command = Command::new(beside_test("testbed")?);
        command.args(["cluster", verb, "--name", &self.name]).stdin(Stdio::null());
        Ok(command)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = self.testbed("down").map(|mut command| command.output());
    }
}

#[tokio::test]
async fn on_a_cluster_that_stands_all_is_shown_and_nothing_is_left() -> Result<()> {
    let standing = Standing::up()?;
    let place = Place::read(&standing.kubeconfig)?;
    let cluster = Cluster::attach(&place, Components::from_env()?)?;
    let before = all_of(&cluster).await?;
    let output = demo(&standing.kubeconfig, &["--yes"]).output()?;
    let text = text(&output);
    ensure!(output.status.success(), "{text}");
    let said: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let file = standing.kubeconfig.display();
    let named = format!("context testbed of {file}, {}.", place.access.server);
    ensure!(said.contains(&named), "{text}");
    ensure!(said.contains("namespaces shop, belay-system, keda,"), "{text}");
    ensure!(said.contains("✔ A person goes back"), "{text}");
    assert_eq!(all_of(&cluster).await?, before, "{text}");
    Ok(())
}

/// A process that is killed where the test fails.
struct Running(Mutex<Child>);

impl Running {
    async fn ends(&self) -> Result<Option<i32>> {
        let status = wait::until("the demo to end", 2 * wait::SOON, || {
            let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let status = child.try_wait().map_err(|error| error.to_string());
            std::future::ready(status.and_then(|status| status.ok_or("it runs".to_owned())))
        })
        .await?;
        Ok(status.code())
    }

    fn interrupt(&self) -> Result<()> {
        let id = self.0.lock().unwrap_or_else(PoisonError::into_inner).id();
        let id = Pid::from_raw(i32::try_from(id)?).context("a process id")?;
        Ok(kill_process(id, Signal::INT)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[tokio::test]
async fn an_interrupted_demo_leaves_nothing_either() -> Result<()> {
    let cluster = Cluster::start(Options::default()).await?;
    let before = all_of(&cluster).await?;
    let folder = tempfile::tempdir()?;
    let shown = folder.path().join("shown");
    let mut command = demo(&cluster.admin_kubeconfig(), &["--yes"]);
    command.stdout(File::create(&shown)?).stderr(Stdio::null());
    let running = Running(Mutex::new(command.spawn()?));
    let deployments: Api<Deployment> = Api::namespaced(cluster.admin()?, "shop");
    wait::until("the web service to be there", 2 * wait::SOON, || async {
        deployments.get("web").await.map(drop)
    })
    .await?;
    running.interrupt()?;
    assert_eq!(running.ends().await?, Some(1));
    let shown = std::fs::read_to_string(shown)?;
    ensure!(shown.contains("✔ nothing of the demo is left in the cluster"), "{shown}");
    assert_eq!(all_of(&cluster).await?, before);
    Ok(())
}

#[tokio::test]
async fn without_a_terminal_it_wants_yes_and_changes_nothing() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let before = all_of(&cluster).await?;
    let output = demo(&cluster.admin_kubeconfig(), &[]).output()?;
    let text = text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    ensure!(text.contains("without confirmation; pass --yes"), "{text}");
    assert_eq!(all_of(&cluster).await?, before);
    Ok(())
}

#[tokio::test]
async fn who_says_no_keeps_the_cluster_as_it_is() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let before = all_of(&cluster).await?;
    let mut pair = Pair::open(40, 120)?;
    let mut command = demo(&cluster.admin_kubeconfig(), &[]);
    command.stdin(pair.stream()?).stdout(pair.stream()?).stderr(pair.stream()?);
    let running = Running(Mutex::new(command.spawn()?));
    // Its streams stay open in here otherwise, and the terminal would never end.
    drop(command);
    pair.person.write_all(b"n\n")?;
    assert_eq!(running.ends().await?, Some(0));
    let mut shown = Vec::new();
    // The end of the program is an error of reading.
    let _ = pair.person.read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown);
    ensure!(shown.contains("go on? [y/N]") && shown.contains("Nothing was changed."), "{shown}");
    assert_eq!(all_of(&cluster).await?, before);
    Ok(())
}

/// A Deployment with these labels or annotations.
fn deployment(name: &str, mut metadata: Value) -> Result<Deployment> {
    metadata["name"] = name.into();
    let labels = json!({ "app": name });
    let object = json!({
        "metadata": metadata,
        "spec": { "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "app", "image": "registry.example/app:1" }] },
        }},
    });
    Ok(serde_json::from_value(object)?)
}

#[tokio::test]
async fn where_it_could_spoil_something_it_does_not_begin() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let refusal = || -> Result<String> {
        let output = demo(&cluster.admin_kubeconfig(), &["--yes"]).output()?;
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        Ok(text)
    };
    let deployments = Api::namespaced(cluster.admin()?, "default");
    let params = PostParams::default();
    let follower = json!({ "annotations": { "belay.dev/repo": "acme/api" } });
    deployments.create(&params, &deployment("api", follower)?).await?;
    let text = refusal()?;
    ensure!(text.contains("Deployment default/api follows releases"), "{text}");

    let operator = json!({ "labels": { "app.kubernetes.io/name": "belay" } });
    deployments.delete("api", &DeleteParams::default()).await?;
    deployments.create(&params, &deployment("operator", operator)?).await?;
    let text = refusal()?;
    ensure!(text.contains("Deployment default/operator is Belay itself"), "{text}");

    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } }))?;
    Api::<Namespace>::all(cluster.admin()?).create(&params, &shop).await?;
    let before = all_of(&cluster).await?;
    let text = refusal()?;
    ensure!(text.contains("namespace shop exists already"), "{text}");
    assert_eq!(all_of(&cluster).await?, before);
    Ok(())
}

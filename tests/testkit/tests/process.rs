//! Nothing outlives its owner, and what fails at start says why.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Cache, Component, Components};
use belay_testkit::{
    Cluster, TestbedError,
    cluster::{Options, Ports},
    process::Run,
    standing::is_running,
    wait,
};
use serde_json::Value;

/// A `testbed hold` with its registry running.
struct Held {
    owner: Child,
    supervisor: u32,
    component: u32,
    folder: PathBuf,
    /// A cache of its own: whoever starts a run beside this test clears away what is left in the
    /// common one.
    cache: tempfile::TempDir,
}

fn hold() -> Result<Held> {
    let cache = tempfile::tempdir()?;
    let binaries = cache.path().join("binaries");
    std::fs::create_dir(&binaries)?;
    let registry = Components::from_env()?.binary(Binary::Registry)?;
    symlink(registry, binaries.join(Binary::Registry.file_name()))?;
    let mut owner = Command::new(env!("CARGO_BIN_EXE_testbed"))
        .arg("hold")
        .env("BELAY_CACHE", cache.path())
        .env("BELAY_COMPONENTS", &binaries)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().context("no output")?).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line).with_context(|| format!("read {line:?}"))?;
    let id = |name: &str| told[name].as_u64().and_then(|id| u32::try_from(id).ok());
    Ok(Held {
        owner,
        supervisor: id("supervisor").context("no supervisor")?,
        component: id("component").context("no component")?,
        folder: told["folder"].as_str().context("no folder")?.into(),
        cache,
    })
}

async fn gone(held: &Held) -> Result<()> {
    wait::until("component, supervisor and folder to be gone", wait::SOON, || {
        let left = [is_running(held.component), is_running(held.supervisor), held.folder.exists()];
        std::future::ready(if left == [false; 3] { Ok(()) } else { Err(format!("{left:?}")) })
    })
    .await?;
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid)?;
    let pid = rustix::process::Pid::from_raw(pid).context("no process id")?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::KILL)?)
}

#[tokio::test]
async fn an_owner_that_is_killed_leaves_nothing_behind() -> Result<()> {
    let mut held = hold()?;
    ensure!(is_running(held.component) && held.folder.exists());
    held.owner.kill()?;
    held.owner.wait()?;
    gone(&held).await
}

#[tokio::test]
async fn the_next_start_clears_away_what_a_killed_supervisor_could_not() -> Result<()> {
    let mut held = hold()?;
    kill(held.supervisor)?;
    held.owner.kill()?;
    held.owner.wait()?;
    ensure!(is_running(held.component), "without supervisor and owner nobody stops it");
    let next = Run::start(&Cache::at(held.cache.path()), "next")?;
    gone(&held).await?;
    drop(next);
    Ok(())
}

#[tokio::test]
async fn the_api_server_alone_takes_objects_that_nobody_acts_on() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let names: Vec<_> = cluster.process_ids().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["etcd", "kube-apiserver"]);
    let namespace = cluster.namespace("alone").await?;
    let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> =
        kube::Api::namespaced(cluster.admin()?, &namespace);
    ensure!(accounts.list(&kube::api::ListParams::default()).await?.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_dropped_leaves_nothing_behind() -> Result<()> {
    let cluster = Cluster::start(Options::without_nodes()).await?;
    let (folder, processes) = (cluster.run().folder().to_owned(), cluster.process_ids());
    ensure!(processes.len() == 3, "{processes:?}");
    drop(cluster);
    wait::until("processes and folder to be gone", wait::SOON, || {
        let left: Vec<_> = processes.iter().filter(|(_, pid)| is_running(*pid)).collect();
        let gone = left.is_empty() && !folder.exists();
        std::future::ready(if gone { Ok(()) } else { Err(format!("{left:?}")) })
    })
    .await?;
    Ok(())
}

/// A folder with links to all real binaries but one.
fn binaries_but(missing: Binary, instead: &Path) -> Result<tempfile::TempDir> {
    let real = Components::from_env()?;
    let folder = tempfile::tempdir()?;
    for component in [Component::Etcd, Component::Kubernetes, Component::Kwok] {
        for binary in component.binaries() {
            let target =
                if *binary == missing { instead.to_owned() } else { real.binary(*binary)? };
            symlink(target, folder.path().join(binary.file_name()))?;
        }
    }
    Ok(folder)
}

#[tokio::test]
async fn a_component_that_dies_at_start_is_named_with_its_last_words() -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dies-at-start");
    let folder = binaries_but(Binary::KubeApiserver, &script)?;
    let components = Some(Components::ready_in(folder.path())?);
    let error = Cluster::start(Options { components, ..Options::default() }).await.unwrap_err();
    let text = error.to_string();
    ensure!(matches!(error, TestbedError::Died { .. }), "{text}");
    ensure!(text.contains("kube-apiserver ended while starting (exit status: 3)"), "{text}");
    ensure!(text.contains("no such flag as this"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_folder_of_ready_binaries_that_lacks_one_is_told_by_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let components = Some(Components::ready_in(folder.path())?);
    let error = Cluster::start(Options { components, ..Options::default() }).await.unwrap_err();
    let text = error.to_string();
    ensure!(text.contains("etcd is not in") && text.contains("BELAY_COMPONENTS"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_by_number() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    for ports in [
        Ports { kube_apiserver: Some(port), ..Ports::default() },
        Ports { etcd: Some(port), ..Ports::default() },
    ] {
        let error = Cluster::start(Options { ports, ..Options::default() }).await.unwrap_err();
        ensure!(matches!(error, TestbedError::PortTaken { .. }), "{error}");
        ensure!(error.to_string().contains(&port.to_string()), "{error}");
    }
    Ok(())
}

#[test]
fn a_cache_folder_that_cannot_be_used_is_told_by_path() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    let error = Run::start(&Cache::at(&file), "never").unwrap_err();
    ensure!(error.to_string().contains(&file.display().to_string()), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_standing_cluster_comes_up_says_so_and_goes_down_without_a_trace() -> Result<()> {
    let name = format!("test-{}", std::process::id());
    let testbed = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testbed"));
        command.args(["cluster", verb, "--name", &name]).stdin(Stdio::null());
        command
    };
    let down_at_the_end = scopeguard(testbed("down"));
    let output = testbed("up").args(["--with", "registry"]).output()?;
    let exports = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let export = |key: &str| {
        let line = exports.lines().find_map(|line| line.strip_prefix(&format!("export {key}=")));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let kubeconfig = export("KUBECONFIG").context("no KUBECONFIG")?;
    ensure!(export("BELAY_REGISTRY").is_some(), "{exports}");
    let tools = export("PATH").context("no PATH")?;
    let kubectl = Path::new(tools.trim_end_matches(":$PATH")).join("kubectl");
    let nodes = Command::new(kubectl)
        .args(["get", "nodes", "--no-headers"])
        .env("KUBECONFIG", &kubeconfig)
        .output()?;
    let nodes = String::from_utf8(nodes.stdout)?;
    ensure!(nodes.contains("kwok-0") && nodes.contains("Ready"), "{nodes}");
    let status = String::from_utf8(testbed("status").output()?.stdout)?;
    ensure!(status.contains(&format!("cluster {name} is up")), "{status}");
    let pids: Vec<u32> =
        status.lines().filter_map(|line| line.split_whitespace().last()?.parse().ok()).collect();
    ensure!(pids.len() >= 5, "{status}");
    drop(down_at_the_end);
    ensure!(!Path::new(&kubeconfig).exists(), "the folder is left");
    ensure!(pids.iter().all(|pid| !is_running(*pid)), "something still runs");
    let status = String::from_utf8(testbed("status").output()?.stdout)?;
    ensure!(status.contains("is not up"), "{status}");
    Ok(())
}

/// Runs a command when it is dropped, so that a failed test takes its cluster down too.
fn scopeguard(command: Command) -> impl Drop {
    struct Guard(Command);
    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.status();
        }
    }
    Guard(command)
}

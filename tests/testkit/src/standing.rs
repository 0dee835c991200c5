//! A test bed that outlives the command that started it: `cluster up`, `down` and `status`.
//!
//! `up` starts a daemon that owns the test bed. While it lives it holds a lock; so whoever finds the
//! lock taken knows that the process id in the state file is still the daemon's.

use std::{
    fs::{self, File, TryLockError},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::{Binary, Cache, Components};
use clap::{Args, Subcommand, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::{
    TestbedError,
    cluster::{Cluster, Options},
    github::GitHub,
    keda::Keda,
    process::Run,
    registry::Registry,
    wait,
};

/// Longest time for `up` after everything is built, and for `down`.
const PATIENCE: Duration = Duration::from_mins(5);

/// What to do with the standing cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Starts it and prints the exports to use it.
    Up(Up),
    /// Stops it; nothing of it is left running.
    Down(Which),
    /// Says what runs.
    Status(Which),
    /// The daemon behind `up`.
    #[command(hide = true)]
    Serve(Up),
}

/// Which standing cluster.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Name of the cluster; several may stand side by side.
    #[arg(long, default_value = "default")]
    pub name: String,
}

/// What to start.
#[derive(Debug, Clone, Args)]
pub struct Up {
    /// Which cluster.
    #[command(flatten)]
    pub which: Which,
    /// What to start beside the control plane.
    #[arg(long, value_delimiter = ',')]
    pub with: Vec<Extra>,
    /// Number of nodes.
    #[arg(long, default_value_t = 1)]
    pub nodes: u32,
}

/// A part beside the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extra {
    /// The KEDA operator and its CRDs.
    Keda,
    /// The OCI registry.
    Registry,
    /// The scripted GitHub.
    Github,
}

/// What the daemon says once everything is ready.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    daemon: u32,
    with: Vec<Extra>,
    nodes: u32,
    folder: PathBuf,
    exports: Vec<(String, String)>,
    processes: Vec<(String, u32)>,
}

/// Files of one standing cluster.
struct Files {
    name: String,
    lock: PathBuf,
    state: PathBuf,
    log: PathBuf,
}

impl Files {
    fn of(cache: &Cache, which: &Which) -> Result<Self> {
        let name = which.name.clone();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        ensure!(
            !name.is_empty() && name.len() <= 40 && name.chars().all(plain),
            "cluster name {name:?} may hold 1 to 40 letters, digits and `-`"
        );
        let folder = cache.root().join("clusters");
        fs::create_dir_all(&folder).map_err(TestbedError::file("create", &folder))?;
        let file = |extension: &str| folder.join(format!("{name}.{extension}"));
        Ok(Self { lock: file("lock"), state: file("json"), log: file("log"), name })
    }

    fn open_lock(&self) -> Result<File> {
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.lock)
            .with_context(|| format!("open {}", self.lock.display()))
    }

    /// Whether a daemon lives.
    fn is_up(&self) -> Result<bool> {
        match self.open_lock()?.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock {}", self.lock.display()))
            }
        }
    }

    fn state(&self) -> Result<Option<State>> {
        match fs::read(&self.state) {
            Ok(text) => {
                let parsed = serde_json::from_slice(&text);
                Ok(Some(parsed.with_context(|| format!("parse {}", self.state.display()))?))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read {}", self.state.display())),
        }
    }
}

/// Carries out a command.
///
/// # Errors
/// What could not be done, with the end of the daemon's log where that tells.
pub fn run(command: ClusterCommand) -> Result<()> {
    let components = Components::from_env()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start a runtime")?;
    let cache = components.cache().clone();
    match command {
        ClusterCommand::Up(up) => {
            let files = Files::of(&cache, &up.which)?;
            runtime.block_on(self::up(&components, &files, &up))
        }
        ClusterCommand::Down(which) => runtime.block_on(down(&Files::of(&cache, &which)?)),
        ClusterCommand::Status(which) => status(&Files::of(&cache, &which)?),
        ClusterCommand::Serve(up) => {
            let files = Files::of(&cache, &up.which)?;
            runtime.block_on(serve(components, &files, &up))
        }
    }
}

async fn up(components: &Components, files: &Files, wanted: &Up) -> Result<()> {
    if files.is_up()? {
        let state = files.state()?.context("it is being started by another command")?;
        let missing: Vec<_> = wanted.with.iter().filter(|w| !state.with.contains(w)).collect();
        ensure!(
            missing.is_empty(),
            "cluster {} is up without {missing:?}: run `cargo xtask cluster down` first",
            files.name
        );
        print_exports(&state);
        return Ok(());
    }
    build(components, wanted)?;
    // A state of a killed daemon must not be taken for the new one's.
    let _ = fs::remove_file(&files.state);
    let log = File::create(&files.log).map_err(TestbedError::file("create", &files.log))?;
    let copy = log.try_clone().map_err(TestbedError::file("open", &files.log))?;
    let with: Vec<_> = wanted.with.iter().map(|extra| word(*extra)).collect();
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.args(["cluster", "serve", "--name", &files.name]);
    command.args(["--nodes", &wanted.nodes.to_string()]);
    if !with.is_empty() {
        command.args(["--with", &with.join(",")]);
    }
    let mut daemon = command
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(copy)
        .spawn()
        .context("start the daemon")?;
    let state = wait::until("the cluster to be ready", PATIENCE, || {
        let look = match (files.state(), daemon.try_wait()) {
            (Ok(Some(state)), Ok(None)) if state.daemon == daemon.id() => Ok(Ok(state)),
            (_, Ok(Some(status))) => Ok(Err(status)),
            (Err(error), _) => Err(format!("{error:#}")),
            _ => Err("still starting".to_owned()),
        };
        std::future::ready(look)
    })
    .await?;
    match state {
        Ok(state) => {
            print_exports(&state);
            Ok(())
        }
        Err(status) => {
            let mut text = String::new();
            // An unreadable log leaves the status, which is told anyway.
            let _ = File::open(&files.log).and_then(|mut log| log.read_to_string(&mut text));
            bail!("the cluster did not start ({status}):\n{}", text.trim_end())
        }
    }
}

/// Builds in the foreground, where progress can be seen.
fn build(components: &Components, wanted: &Up) -> Result<()> {
    let mut binaries = vec![
        Binary::Etcd,
        Binary::KubeApiserver,
        Binary::KubeControllerManager,
        Binary::KubeScheduler,
        Binary::Kubectl,
        Binary::Kwok,
        Binary::Helm3,
        Binary::Helm4,
    ];
    binaries.extend(wanted.with.contains(&Extra::Keda).then_some(Binary::KedaOperator));
    binaries.extend(wanted.with.contains(&Extra::Registry).then_some(Binary::Registry));
    for binary in binaries {
        components.binary(binary)?;
    }
    Ok(())
}

async fn serve(components: Components, files: &Files, wanted: &Up) -> Result<()> {
    let lock = files.open_lock()?;
    if lock.try_lock().is_err() {
        bail!("cluster {} is up already", files.name);
    }
    // Away from the terminal that started it; this fails only where there is none.
    let _ = rustix::process::setsid();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("listen for SIGTERM")?;
    let starting = start(components, wanted);
    let (bed, state) = tokio::select! {
        _ = terminate.recv() => return Ok(()),
        started = starting => started?,
    };
    let text = serde_json::to_vec_pretty(&state).context("print the state")?;
    let scratch = files.state.with_extension("json.new");
    fs::write(&scratch, text).map_err(TestbedError::file("write", &scratch))?;
    fs::rename(&scratch, &files.state).map_err(TestbedError::file("write", &files.state))?;
    terminate.recv().await;
    let _ = fs::remove_file(&files.state);
    drop(bed);
    drop(lock);
    Ok(())
}

/// Everything that a standing cluster consists of, in the order in which it is stopped.
struct Bed {
    _keda: Option<Keda>,
    _registry: Option<Registry>,
    _github: Option<GitHub>,
    _cluster: Cluster,
}

async fn start(components: Components, wanted: &Up) -> Result<(Bed, State)> {
    let options =
        Options { nodes: wanted.nodes, components: Some(components), ..Options::default() };
    let cluster = Cluster::start(options).await?;
    let folder = cluster.run().folder().to_owned();
    let mut exports = vec![
        ("KUBECONFIG".to_owned(), cluster.admin_kubeconfig().display().to_string()),
        ("PATH".to_owned(), format!("{}:$PATH", tools(&cluster)?.display())),
    ];
    let with = |extra| wanted.with.contains(&extra);
    let keda = if with(Extra::Keda) { Some(Keda::start(&cluster).await?) } else { None };
    let registry =
        if with(Extra::Registry) { Some(Registry::start(&cluster).await?) } else { None };
    let github = if with(Extra::Github) { Some(GitHub::start().await?) } else { None };
    if let Some(registry) = &registry {
        exports.push(("BELAY_REGISTRY".to_owned(), registry.host().to_owned()));
    }
    if let Some(github) = &github {
        exports.push(("BELAY_GITHUB_URL".to_owned(), github.base_url().to_owned()));
    }
    let state = State {
        daemon: std::process::id(),
        with: wanted.with.clone(),
        nodes: wanted.nodes,
        folder,
        exports,
        processes: cluster.process_ids(),
    };
    let bed = Bed { _keda: keda, _registry: registry, _github: github, _cluster: cluster };
    Ok((bed, state))
}

/// A folder with kubectl, helm3 and helm4 for `PATH`.
fn tools(cluster: &Cluster) -> Result<PathBuf> {
    let folder = cluster.run().folder().join("bin");
    fs::create_dir_all(&folder).map_err(TestbedError::file("create", &folder))?;
    for binary in [Binary::Kubectl, Binary::Helm3, Binary::Helm4] {
        let link = folder.join(binary.file_name());
        std::os::unix::fs::symlink(cluster.components().binary(binary)?, &link)
            .map_err(TestbedError::file("create", &link))?;
    }
    Ok(folder)
}

async fn down(files: &Files) -> Result<()> {
    if !files.is_up()? {
        eprintln!("cluster {} is not up", files.name);
        return Ok(());
    }
    let state = files.state()?.context("it is being started: wait, then run `down` again")?;
    let daemon = i32::try_from(state.daemon).ok().and_then(Pid::from_raw);
    let daemon = daemon.with_context(|| format!("{} is no process id", state.daemon))?;
    kill_process(daemon, Signal::TERM).context("stop the daemon")?;
    wait::until("the cluster to be gone", PATIENCE, || {
        let left = match files.is_up() {
            Ok(false) if !state.folder.exists() => Ok(()),
            Ok(up) => Err(format!("daemon alive: {up}, folder: {}", state.folder.exists())),
            Err(error) => Err(format!("{error:#}")),
        };
        std::future::ready(left)
    })
    .await?;
    for file in [&files.log, &files.lock] {
        // What cannot be removed is one small file.
        let _ = fs::remove_file(file);
    }
    eprintln!("cluster {} is down", files.name);
    Ok(())
}

fn status(files: &Files) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match (files.is_up()?, files.state()?) {
        (true, Some(state)) => {
            writeln!(out, "cluster {} is up (process {})", files.name, state.daemon)?;
            for (name, pid) in &state.processes {
                writeln!(out, "  {name:<24} {pid}")?;
            }
            for (name, value) in &state.exports {
                writeln!(out, "  {name}={value}")?;
            }
        }
        (true, None) => writeln!(out, "cluster {} is starting", files.name)?,
        (false, _) => writeln!(out, "cluster {} is not up", files.name)?,
    }
    Ok(())
}

fn print_exports(state: &State) {
    let mut out = std::io::stdout().lock();
    for (name, value) in &state.exports {
        // A closed pipe has no reader who could miss anything.
        let _ = writeln!(out, "export {name}=\"{value}\"");
    }
}

fn word(extra: Extra) -> String {
    extra.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Starts a registry in a run of its own, prints what a test wants to kill, and waits.
///
/// # Errors
/// Why it could not be started.
pub fn hold() -> Result<()> {
    let components = Components::from_env()?;
    let run = Run::start(components.cache(), "hold")?;
    let binary = components.binary(Binary::Registry)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let registry = Registry::start_with(binary, &run).await?;
        let told = serde_json::json!({
            "supervisor": run.supervisor_id(), "component": registry.process_id(),
            "folder": run.folder(),
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{told}")?;
        out.flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}

/// Whether a process with this id exists and is not a zombie.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    // The state follows the name, which is in parentheses and may hold anything.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    })
}

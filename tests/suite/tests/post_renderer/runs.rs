//! `belay` and both Helms as processes that a test looks into: exit codes, bytes, reports, ends.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result};
use belay_testkit::{
    Cluster,
    objects::Workload,
    tool::{Finished, Tool},
    wait,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    task::JoinHandle,
};

use belay_suite::helms::{self, Major};

/// A Deployment `web` with one container `app`, as Helm 3 passes it.
pub(crate) const WEB_MANIFEST: &str = "---
# Source: shop/templates/web.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: app
        image: registry.example/web:1.0.0
";

/// The image in [`WEB_MANIFEST`].
pub(crate) const CHART_IMAGE: &str = "registry.example/web:1.0.0";

/// The image that an operator has moved the workload to.
pub(crate) const LIVE: &str = "registry.example/web:1.4.2";

/// `belay` with this test as its parent, so without a Helm, and in an environment of its own.
#[derive(Debug)]
#[must_use = "nothing is run before `run` or `start`"]
pub(crate) struct Belay {
    command: Command,
    input: Option<Vec<u8>>,
    home: TempDir,
}

/// A `belay` that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    feeding: JoinHandle<()>,
    home: TempDir,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
    home: TempDir,
}

impl Belay {
    /// `belay` without arguments, reading [`WEB_MANIFEST`].
    pub(crate) fn new() -> Result<Self> {
        let home = tempfile::tempdir().context("make a home")?;
        let mut command = Command::new(helms::belay()?);
        command
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join("state"))
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(Self { command, input: Some(WEB_MANIFEST.into()), home })
    }

    /// The same, told that namespace and server.
    pub(crate) fn at(url: &str, namespace: &str) -> Result<Self> {
        Ok(Self::new()?.args(["--kube-apiserver", url, "--namespace", namespace]))
    }

    /// The same, told that namespace and kubeconfig.
    pub(crate) fn with_kubeconfig(kubeconfig: &Path, namespace: &str) -> Result<Self> {
        Ok(Self::new()?.arg("--kubeconfig").arg(kubeconfig).args(["--namespace", namespace]))
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    pub(crate) fn input_file(mut self, file: File) -> Self {
        self.command.stdin(file);
        self
    }

    /// Writes nothing to standard input, and leaves it open for ever.
    pub(crate) fn input_stays_open(mut self) -> Self {
        self.input = None;
        self
    }

    pub(crate) fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stdout(to);
        self
    }

    /// Its home, where it also keeps its report.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Result<Running> {
        let mut child = self.command.spawn().context("start belay")?;
        let pipe = child.stdin.take();
        let feeding = tokio::spawn(async move {
            let Some(mut pipe) = pipe else { return };
            match self.input {
                // One that ends without reading everything says why by other means.
                Some(input) => drop(pipe.write_all(&input).await),
                None => std::future::pending().await,
            }
        });
        Ok(Running { child, feeding, home: self.home })
    }

    /// Runs it to its end.
    pub(crate) async fn run(self) -> Result<Ended> {
        self.start()?.end().await
    }
}

impl Running {
    /// Its process id.
    pub(crate) fn id(&self) -> Result<u32> {
        self.child.id().context("belay has ended already")
    }

    /// Waits until it watches for what may end it from outside.
    pub(crate) async fn watches(&self) -> Result<()> {
        watches(self.id()?).await
    }

    /// Waits for its end, which must come soon.
    pub(crate) async fn end(self) -> Result<Ended> {
        let ended = tokio::time::timeout(wait::SOON, self.child.wait_with_output()).await;
        self.feeding.abort();
        let output = ended.context("belay did not end")?.context("wait for belay")?;
        Ok(Ended {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).context("read its words")?,
            home: self.home,
        })
    }
}

/// Waits until a `belay` has its handler of SIGTERM: by then it also knows its parent.
pub(crate) async fn watches(id: u32) -> Result<()> {
    wait::until("belay to watch for signals", wait::SOON, || async {
        let status = fs::read_to_string(format!("/proc/{id}/status"));
        let status = status.map_err(|error| error.to_string())?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
        let sigterm = 1 << (Signal::TERM.as_raw() - 1);
        if caught & sigterm == 0 { Err(status) } else { Ok(()) }
    })
    .await?;
    Ok(())
}

/// Sends a signal.
pub(crate) fn send(id: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("no process id")?;
    kill_process(pid, signal).with_context(|| format!("send {signal:?} to {id}"))
}

impl Ended {
    /// Asserts that it wrote manifests, and returns them.
    #[track_caller]
    pub(crate) fn passed(&self) -> &[u8] {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        &self.stdout
    }

    /// Asserts that it refused in a way that helps: exit code 1, not one byte on standard output,
    /// these words at the end, and the place of a private file that holds the same. Returns the
    /// error.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        assert_eq!(self.code, Some(1), "{}", self.stderr);
        assert_eq!(self.stdout.escape_ascii().to_string(), "", "{}", self.stderr);
        let last = self.stderr.lines().last().unwrap_or_default();
        let (error, path) = last
            .strip_prefix("belay: ")
            .and_then(|last| last.rsplit_once("; report: "))
            .unwrap_or_else(|| panic!("no error with the place of a report: {last}"));
        for word in words {
            assert!(error.contains(word), "{word:?} is not in: {error}");
        }
        let report = report(Path::new(path));
        assert_eq!(report.lines().last(), Some(format!("error: {error}").as_str()));
        error.to_owned()
    }

    /// The report in the state folder.
    #[track_caller]
    pub(crate) fn report(&self) -> String {
        report(&helms::report_below(&self.home.path().join("state")))
    }

    /// Its home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }
}

/// Reads a report, and asserts that nobody else can.
#[track_caller]
pub(crate) fn report(path: &Path) -> String {
    let known = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(known.permissions().mode() & 0o777, 0o600, "{}", path.display());
    let text = fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A Helm that knows `belay`, and the folder of the reports.
pub(crate) struct Helm {
    cluster: &'static Cluster,
    major: Major,
    state: TempDir,
}

impl Helm {
    /// One that speaks to the shared cluster.
    pub(crate) async fn new(major: Major) -> Result<Self> {
        let cluster = Cluster::shared().await?;
        Ok(Self { cluster, major, state: tempfile::tempdir().context("make a state folder")? })
    }

    /// A command of it.
    pub(crate) async fn tool(&self) -> Result<Tool> {
        helms::helm(self.cluster, self.major, self.state.path()).await
    }

    /// `helm COMMAND web CHART --post-renderer belay` with the chart of the matrix.
    pub(crate) async fn web(&self, command: &[&str], belay: &[&str]) -> Result<Tool> {
        let arguments = belay.iter().map(|argument| format!("--post-renderer-args={argument}"));
        Ok(self
            .tool()
            .await?
            .args(command)
            .arg(helms::WEB)
            .arg(helms::suite("charts/matrix"))
            .args(["--post-renderer", "belay"])
            .args(arguments))
    }

    /// The report that `belay` left.
    #[track_caller]
    pub(crate) fn report(&self) -> String {
        report(&helms::report_below(self.state.path()))
    }

    /// Asserts that this Helm failed because of `belay`, and that a person finds these words: Helm
    /// 3 shows them, Helm 4 swallows them, and the report has them under both.
    #[track_caller]
    pub(crate) fn refused(&self, ended: &Finished, words: &[&str]) {
        assert_eq!(ended.status.code(), Some(1), "{}\n{}", ended.stdout, ended.stderr);
        let report = self.report();
        let error = report.lines().last().unwrap_or_default();
        assert!(error.starts_with("error: "), "{report}");
        for word in words {
            assert!(error.contains(word), "{word:?} is not in: {error}");
        }
        match self.major {
            Major::Three => {
                let error = error.trim_start_matches("error: ");
                assert!(ended.stderr.contains(error), "{error:?} is not in: {}", ended.stderr);
                let place = helms::report_below(self.state.path());
                let end = format!("; report: {}", place.display());
                assert!(ended.stderr.contains(&end), "{end:?} is not in: {}", ended.stderr);
            }
            Major::Four => {
                let told = "plugin \"belay\" exited with error";
                assert!(ended.stderr.contains(told), "{told:?} is not in: {}", ended.stderr);
            }
        }
    }
}

/// A Deployment `web` that Helm applied, part of the release `web`, whose container `app` an
/// operator has moved to `image` since.
pub(crate) async fn operated(cluster: &Cluster, namespace: &str, image: &str) -> Result<()> {
    let web = Workload::deployment(helms::WEB)
        .replicas(0)
        .image("app", CHART_IMAGE)
        .annotation("meta.helm.sh/release-name", helms::WEB)
        .annotation("meta.helm.sh/release-namespace", namespace);
    operated_as(cluster, namespace, &web, image).await
}

/// The same for a workload of another make.
pub(crate) async fn operated_as(
    cluster: &Cluster,
    namespace: &str,
    workload: &Workload,
    image: &str,
) -> Result<()> {
    let kind = workload.json()["kind"].as_str().context("the workload has no kind")?;
    let gvk = GroupVersionKind::gvk("apps", "v1", kind);
    let resource = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.admin()?, namespace, &resource);
    let name = workload.name();
    let apply = Patch::Apply(workload.json());
    api.patch(name, &PatchParams::apply("helm"), &apply).await.context("apply the workload")?;
    let moved = Patch::Apply(json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
        "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": image }] } } },
    }));
    let operator = PatchParams::apply(helms::OPERATOR).force();
    api.patch(name, &operator, &moved).await.context("move the image")?;
    Ok(())
}

/// The same as Helm 4 passes it: marked with its template.
pub(crate) fn marked_manifest() -> String {
    let mark = "  annotations:\n    postrenderer.helm.sh/postrender-filename: shop/web.yaml\n";
    WEB_MANIFEST.replace("  name: web\n", &format!("  name: web\n{mark}"))
}

/// A kubeconfig whose contexts, each with its namespace, all lead to one server; the first context
/// is the current one.
pub(crate) fn kubeconfig(server: &str, contexts: &[(&str, Option<&str>)]) -> Value {
    let context = |(name, namespace): &(&str, Option<&str>)| {
        let context = json!({ "cluster": "c", "user": "u", "namespace": namespace });
        json!({ "name": name, "context": context })
    };
    json!({
        "apiVersion": "v1", "kind": "Config",
        "current-context": contexts.first().map(|(name, _)| name),
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": contexts.iter().map(context).collect::<Vec<_>>(),
    })
}

/// An executable shell script with these lines.
pub(crate) fn script(folder: &Path, lines: &str) -> Result<PathBuf> {
    let path = folder.join("script");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).context("write a script")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("make it executable")?;
    Ok(path)
}

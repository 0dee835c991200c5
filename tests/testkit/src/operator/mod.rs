//! The operator as its chart installs it, with the real program as a process of the host.
//!
//! Helm installs `charts/belay`; what the API server then holds is read back, and the program is
//! started with command, arguments, environment and ServiceAccount of that Deployment's container,
//! hence with exactly the rights that the chart gives. The operator's own pod is looked after by a
//! scripted kubelet, which reports it Ready exactly while the process answers its readiness probe:
//! `helm install --wait` ends only then. kwok leaves that pod alone.
//!
//! What differs from a node, and nothing else does:
//!
//! * **Addresses.** The values of `--health-bind` and `--admin-bind` become free ports of 127.0.0.1.
//! * **Mounts.** Volumes from Secrets and ConfigMaps (also projected) and `emptyDir` become folders of
//!   the run, made anew at each start, and the paths that begin with their mount points are changed to
//!   those folders, in arguments and variables. Another kind of volume is an error.
//! * **Identity.** `KUBECONFIG` is added, with a token of the ServiceAccount made by TokenRequest, in
//!   place of the token that a kubelet mounts. It lives for an hour.
//! * **Surroundings.** The environment is the container's alone: `value`, and `valueFrom` with the
//!   fields `metadata.namespace` and `spec.serviceAccountName`. Another source is an error. `HOSTNAME` is
//!   added as in every container, the same at each start, and a variable by which the test bed knows
//!   its processes. Image, resources and security context are not looked at.
//! * **Restarts.** A process that ends is not started again: a test says when. Neither does a changed
//!   Deployment restart it: see [`HostedOperator::restart`].
//!
//! Where somebody else installs the chart, as the commands of the guide do, a [`ChartNode`] runs its
//! pods in the same way, and follows upgrades and the end.

mod container;
mod mounts;
mod node;
mod readiness;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use belay_components::Binary;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodSpec};
use kube::{Api, api::ListParams};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub use self::node::ChartNode;
use self::{
    container::{Addresses, HostCommand},
    mounts::Mounts,
    readiness::Readiness,
};
use crate::{
    TestbedError,
    cluster::{
        Cluster, chain,
        identity::{Access, Credential},
    },
    process::{Process, free_port, write_private},
    tool::Tool,
    wait,
};

/// The label of every pod of the chart: what kwok's stages exclude.
pub const LABEL: (&str, &str) = ("app.kubernetes.io/name", "belay");

/// What a pod that runs to its end lacks.
const NO_ADDRESSES: &str = "its pod runs to its end, so it listens nowhere";

/// How long Helm may wait for the operator; a busy machine takes a few seconds.
const INSTALL: Duration = Duration::from_mins(3);

/// How to install the chart.
#[derive(Debug, Clone)]
pub struct Installation {
    values: Value,
    helm: Binary,
    release: String,
    program: Option<PathBuf>,
    kubeconfig: Option<PathBuf>,
    wait: bool,
}

impl Installation {
    /// With Helm 4, as release `belay`, with the program built beside the test, waiting until it is
    /// ready.
    ///
    /// `values` are given to Helm as they are. With `crds.install: false` the CRDs must be there:
    /// [`Cluster::apply_crds`]; without it only one release of a cluster can have them.
    pub fn new(values: Value) -> Self {
        Self {
            values,
            helm: Binary::Helm4,
            release: "belay".to_owned(),
            program: None,
            kubeconfig: None,
            wait: true,
        }
    }

    /// With this Helm.
    #[must_use]
    pub fn helm(self, helm: Binary) -> Self {
        Self { helm, ..self }
    }

    /// Under this name.
    #[must_use]
    pub fn release(self, name: &str) -> Self {
        Self { release: name.to_owned(), ..self }
    }

    /// With this program in place of the one beside the test.
    #[must_use]
    pub fn program(self, program: &Path) -> Self {
        Self { program: Some(program.to_owned()), ..self }
    }

    /// By whom this kubeconfig is for, in place of the administrator.
    #[must_use]
    pub fn installed_by(self, kubeconfig: &Path) -> Self {
        Self { kubeconfig: Some(kubeconfig.to_owned()), ..self }
    }

    /// For an operator that does not become ready: neither Helm nor [`HostedOperator::install`] waits
    /// for that.
    #[must_use]
    pub fn without_wait(self) -> Self {
        Self { wait: false, ..self }
    }
}

/// An installed operator. Dropping it kills the process and leaves Helm's release as it is.
#[derive(Debug)]
pub struct HostedOperator<'c> {
    // Dropped in this order: nobody is to report a pod ready whose process has been killed.
    readiness: Readiness,
    running: Mutex<Option<Arc<Running>>>,
    cluster: &'c Cluster,
    namespace: String,
    installation: Installation,
    /// Unique among the files and logs of the run.
    name: String,
}

/// One process.
#[derive(Debug)]
struct Running {
    process: Process,
    /// None where the pod runs to its end.
    addresses: Option<Addresses>,
    access: Access,
    grace: Duration,
}

impl Running {
    /// Starts the program of `pod` as `name`, with a new token of its ServiceAccount; `program` stands
    /// for the one beside the test.
    async fn launch(
        cluster: &Cluster,
        name: &str,
        namespace: &str,
        pod: &PodSpec,
        program: Option<&Path>,
    ) -> Result<Self, TestbedError> {
        let failed = |why: String| TestbedError::Host { deployment: name.to_owned(), why };
        let account = pod.service_account_name.as_deref().unwrap_or("default");
        let access = cluster.token_of(namespace, account).await?;
        let kubeconfig = cluster.write_kubeconfig(name, &access)?;
        let folder = cluster.run().folder().join(name);
        let mounts = Mounts::make(&cluster.admin()?, namespace, pod, &folder).await;
        let mounts = mounts.map_err(failed)?;
        let host = HostCommand::of(pod, namespace, &mounts, &mut || {
            free_port().map_err(|error| error.to_string())
        });
        let host = host.map_err(failed)?;
        let program = match program {
            Some(program) => program.to_owned(),
            None => beside_this_test(&host.program).map_err(failed)?,
        };
        let mut command = Command::new(program);
        command.args(&host.args).env_clear().env("HOSTNAME", name).envs(&host.env);
        command.env("KUBECONFIG", kubeconfig);
        let process = cluster.run().spawn(name, command)?;
        let grace = pod.termination_grace_period_seconds.and_then(|it| u64::try_from(it).ok());
        let grace = Duration::from_secs(grace.unwrap_or(30));
        Ok(Self { process, addresses: host.addresses, access, grace })
    }

    /// SIGTERM, and the wait of a kubelet for the end; it still runs where this is an error.
    async fn terminate(&self) -> Result<ExitStatus, TestbedError> {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // An error means that it has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
        wait::until("the operator to end after SIGTERM", self.grace, || {
            std::future::ready(self.process.ended().ok_or("it still ran"))
        })
        .await
    }
}

impl<'c> HostedOperator<'c> {
    /// Installs the chart, starts the program beside it, and waits for both.
    ///
    /// # Errors
    /// What Helm said, what the test bed cannot run, or the last words of a program that ended.
    pub async fn install(
        cluster: &'c Cluster,
        namespace: &str,
        installation: Installation,
    ) -> Result<Self, TestbedError> {
        let release = &installation.release;
        let operator = Self {
            readiness: Readiness::start(cluster.admin_access(), namespace, &selector(release))?,
            running: Mutex::new(None),
            cluster,
            namespace: namespace.to_owned(),
            name: format!("operator-{namespace}-{release}"),
            installation,
        };
        let helm = operator.helm()?.ok();
        let host = async {
            operator.start().await?;
            if operator.installation.wait { operator.ready().await } else { Ok(()) }
        };
        // Whichever fails first ends the other: Helm would wait for a program that is gone, and the
        // test bed for a Deployment that Helm never makes.
        tokio::try_join!(helm, host)?;
        Ok(operator)
    }

    fn helm(&self) -> Result<Tool, TestbedError> {
        let values = self.cluster.run().folder().join(format!("{}.values.json", self.name));
        write_private(&values, &self.installation.values.to_string())?;
        let helm = self.installation.helm;
        let tool = match &self.installation.kubeconfig {
            Some(kubeconfig) => self.cluster.tool_as(helm, kubeconfig)?,
            None => self.cluster.tool(helm)?,
        };
        let tool = tool.args(["install", &self.installation.release]).arg(chart());
        let tool = tool.args(["--namespace", &self.namespace, "--values"]).arg(values);
        if !self.installation.wait {
            return Ok(tool);
        }
        Ok(tool.args(["--wait", "--timeout", &format!("{}s", INSTALL.as_secs())]))
    }

    /// Starts the program as the Deployment says now, with a new token. It does not wait until it is
    /// ready: [`HostedOperator::ready`] does.
    ///
    /// # Errors
    /// When it runs already; what the test bed cannot do as a kubelet would; why the program did not
    /// start.
    pub async fn start(&self) -> Result<(), TestbedError> {
        let deployment = self.deployment().await?;
        let failed = |why: String| self.failed(why);
        if self.lock().is_some() {
            return Err(failed("it runs already: stop it first".to_owned()));
        }
        let pod = deployment.spec.unwrap_or_default().template.spec.unwrap_or_default();
        let program = self.installation.program.as_deref();
        let running = Running::launch(self.cluster, &self.name, &self.namespace, &pod, program);
        let running = running.await?;
        let addresses =
            running.addresses.as_ref().ok_or_else(|| failed(NO_ADDRESSES.to_owned()))?;
        self.readiness.look_at(Some(addresses.ready_url.clone()));
        *self.lock() = Some(Arc::new(running));
        Ok(())
    }

    /// Waits until the program answers its readiness probe.
    ///
    /// # Errors
    /// [`TestbedError::Died`] with its last words, or [`TestbedError::NotReady`].
    pub async fn ready(&self) -> Result<(), TestbedError> {
        let running = self.running()?;
        let http = reqwest::Client::new();
        let url = self.addresses(&running)?.ready_url;
        running.process.ready(wait::SOON, || readiness::probe(&http, &url)).await
    }

    /// Ends it as a kubelet does: SIGTERM, and SIGKILL once the grace period is over.
    ///
    /// # Errors
    /// [`TestbedError::Timeout`] when it had to be killed.
    pub async fn stop(&self) -> Result<ExitStatus, TestbedError> {
        let ended = self.running()?.terminate().await;
        self.kill();
        ended
    }

    /// Kills it (SIGKILL), as a lost node would. It may have ended already.
    pub fn kill(&self) {
        self.readiness.look_at(None);
        if let Some(running) = self.lock().take() {
            running.process.kill();
        }
    }

    /// Stops it if it runs, starts it as the Deployment says now, and waits until it is ready.
    ///
    /// # Errors
    /// As [`HostedOperator::stop`], [`HostedOperator::start`] and [`HostedOperator::ready`].
    pub async fn restart(&self) -> Result<(), TestbedError> {
        if self.lock().is_some() {
            self.stop().await?;
        }
        self.start().await?;
        self.ready().await
    }

    /// How it ended by itself; `None` while it runs.
    ///
    /// # Errors
    /// When it was stopped or killed, or never started.
    pub fn ended(&self) -> Result<Option<ExitStatus>, TestbedError> {
        Ok(self.running()?.process.ended())
    }

    /// All that it has printed since it was installed, restarts included.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn logs(&self) -> Result<String, TestbedError> {
        let log = self.cluster.logs().join(format!("{}.log", self.name));
        let bytes = fs::read(&log).map_err(TestbedError::file("read", &log))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Process id of the program.
    ///
    /// # Errors
    /// When it does not run.
    pub fn process_id(&self) -> Result<u32, TestbedError> {
        Ok(self.running()?.process.id())
    }

    /// The address that its readiness probe asks.
    ///
    /// # Errors
    /// When it does not run.
    pub fn ready_url(&self) -> Result<String, TestbedError> {
        let running = self.running()?;
        Ok(self.addresses(&running)?.ready_url)
    }

    /// `http://HOST:PORT` of its admin port.
    ///
    /// # Errors
    /// When it does not run.
    pub fn admin_url(&self) -> Result<String, TestbedError> {
        let running = self.running()?;
        Ok(self.addresses(&running)?.admin_url)
    }

    /// What it shows the API server, for clients that act as the operator.
    ///
    /// # Errors
    /// When it does not run.
    pub fn access(&self) -> Result<Access, TestbedError> {
        Ok(self.running()?.access.clone())
    }

    /// The token of its ServiceAccount.
    ///
    /// # Errors
    /// When it does not run.
    pub fn token(&self) -> Result<String, TestbedError> {
        match self.access()?.credential {
            Credential::Token(token) => Ok(token),
            Credential::Certificate(_) | Credential::Entry(_) => {
                Err(self.failed("it has no token".to_owned()))
            }
        }
    }

    async fn deployment(&self) -> Result<Deployment, TestbedError> {
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.admin()?, &self.namespace);
        let selector = selector(&self.installation.release);
        let selected = ListParams::default().labels(&selector);
        wait::until("the Deployment of the chart", INSTALL, || async {
            let list = deployments.list(&selected).await.map_err(|error| chain(&error))?;
            list.items.into_iter().next().ok_or_else(|| format!("none with labels {selector}"))
        })
        .await
    }

    fn running(&self) -> Result<Arc<Running>, TestbedError> {
        self.lock().clone().ok_or_else(|| self.failed("its program does not run".to_owned()))
    }

    fn addresses(&self, running: &Running) -> Result<Addresses, TestbedError> {
        running.addresses.clone().ok_or_else(|| self.failed(NO_ADDRESSES.to_owned()))
    }

    fn failed(&self, why: String) -> TestbedError {
        TestbedError::Host { deployment: self.name.clone(), why }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of the chart.
pub fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/belay")
}

/// The labels by which the operator of one release is found, and no Job of its chart.
fn selector(release: &str) -> String {
    let (key, value) = LABEL;
    let component = "app.kubernetes.io/component=operator";
    format!("{key}={value},app.kubernetes.io/instance={release},{component}")
}

/// A program of the workspace, built beside the executable that runs.
///
/// Cargo tells a test only of the programs of its own package, hence the search. Tests lie in a
/// folder below the programs.
fn beside_this_test(name: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("find this test: {error}"))?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let folders = this.ancestors().skip(1).take(2);
    let candidates: Vec<_> = folders.map(|folder| folder.join(&file)).collect();
    candidates.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        format!(
            "there is no {}: run the tests with `cargo xtask test`, which builds it",
            candidates.last().unwrap_or(&this).display()
        )
    })
}

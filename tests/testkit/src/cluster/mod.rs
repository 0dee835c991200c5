//! A real control plane on free loopback ports, with real certificates and RBAC.

pub mod attach;
mod control_plane;
pub mod identity;
pub mod pki;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use belay_components::{Binary, Components};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{Namespace, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    TestbedError, kwok,
    process::{Process, Run, write_private},
    tool::Tool,
    wait,
};
pub(crate) use control_plane::chain;
use identity::{Access, Credential, Impersonation};
use pki::Authority;

/// The field manager of the test bed's own writes.
pub const FIELD_MANAGER: &str = "belay-testbed";

/// What to start beside etcd and kube-apiserver.
#[derive(Debug, Clone)]
pub struct Options {
    /// kube-controller-manager; without it nothing moves and namespaces stay empty.
    pub controllers: bool,
    /// kube-scheduler, for workloads that name no node.
    pub scheduler: bool,
    /// kwok with this many nodes, `kwok-0` and on.
    pub nodes: u32,
    /// Ports that must be these and no others.
    pub ports: Ports,
    /// Features of Kubernetes that are switched off, as in a version that does not have them yet.
    pub without_features: &'static [&'static str],
    /// Where binaries come from; `None` reads the environment.
    pub components: Option<Components>,
}

/// Fixed ports; `None` takes a free one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ports {
    /// Of etcd's clients.
    pub etcd: Option<u16>,
    /// Of kube-apiserver.
    pub kube_apiserver: Option<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: true,
            scheduler: true,
            nodes: 1,
            ports: Ports::default(),
            without_features: &[],
            components: None,
        }
    }
}

impl Options {
    /// The API server and its controllers, without nodes.
    pub fn without_nodes() -> Self {
        Self { scheduler: false, nodes: 0, ..Self::default() }
    }

    /// The API server alone.
    pub fn server_alone() -> Self {
        Self { controllers: false, ..Self::without_nodes() }
    }

    fn binaries(&self) -> Vec<Binary> {
        let mut wanted = vec![Binary::Etcd, Binary::KubeApiserver];
        wanted.extend(self.controllers.then_some(Binary::KubeControllerManager));
        wanted.extend(self.scheduler.then_some(Binary::KubeScheduler));
        wanted.extend((self.nodes > 0).then_some(Binary::Kwok));
        wanted
    }
}

/// A running control plane. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: processes before the run's folder.
    processes: Mutex<Vec<Process>>,
    access: Access,
    authority: Authority,
    components: Components,
    controllers: bool,
    run: Arc<Run>,
}

impl Cluster {
    /// The control plane that all tests of this process share, started on first use with
    /// [`Options::default`]. It ends with the process, however that ends.
    ///
    /// # Errors
    /// Why it could not be started; a later call tries again.
    pub async fn shared() -> Result<&'static Self, TestbedError> {
        static SHARED: tokio::sync::Mutex<Option<&'static Cluster>> =
            tokio::sync::Mutex::const_new(None);
        let mut shared = SHARED.lock().await;
        if let Some(cluster) = *shared {
            return Ok(cluster);
        }
        let cluster: &'static Self = Box::leak(Box::new(Self::start(Options::default()).await?));
        *shared = Some(cluster);
        Ok(cluster)
    }

    /// Starts a control plane of one's own.
    ///
    /// # Errors
    /// Which component failed, its last words, and its log.
    pub async fn start(options: Options) -> Result<Self, TestbedError> {
        install_tls_provider();
        let components = match &options.components {
            Some(components) => components.clone(),
            None => Components::from_env()?,
        };
        // Building may take minutes: it must not stand still the tests that run beside this one.
        let building = components.clone();
        let wanted = options.binaries();
        tokio::task::spawn_blocking(move || {
            wanted.into_iter().try_for_each(|binary| building.binary(binary).map(drop))
        })
        .await
        .map_err(|panic| TestbedError::Start {
            name: "the build of components".to_owned(),
            program: PathBuf::from("go"),
            source: panic.into(),
        })??;
        let run = Arc::new(Run::start(components.cache(), &program_name())?);
        let plane = control_plane::start(&components, &run, &options).await?;
        let cluster = Self {
            processes: Mutex::new(plane.processes),
            access: plane.access,
            authority: plane.authority,
            components,
            controllers: options.controllers,
            run,
        };
        cluster.write_kubeconfig("admin", &cluster.access)?;
        if options.nodes > 0 {
            let kwok = kwok::start(&cluster, options.nodes).await?;
            cluster.keep(kwok);
        }
        Ok(cluster)
    }

    /// A fresh client of the administrator, for the current runtime.
    ///
    /// # Errors
    /// [`TestbedError::Client`].
    pub fn admin(&self) -> Result<Client, TestbedError> {
        client(&self.access, "the administrator")
    }

    /// What the administrator's kubeconfig says.
    pub fn admin_access(&self) -> &Access {
        &self.access
    }

    /// The administrator's kubeconfig file.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig_path("admin")
    }

    /// Access with the token of a ServiceAccount, made by TokenRequest, so that it carries exactly
    /// the rights that RBAC gives it. The ServiceAccount is created if it is missing.
    ///
    /// # Errors
    /// [`TestbedError::Api`].
    pub async fn service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Access, TestbedError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin()?, namespace);
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name },
        });
        accounts
            .patch(name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(account))
            .await
            .map_err(TestbedError::api(format!("apply ServiceAccount {namespace}/{name}")))?;
        self.token_of(namespace, name).await
    }

    /// The same for a ServiceAccount that somebody else made.
    ///
    /// # Errors
    /// [`TestbedError::Api`], also when it does not exist.
    pub async fn token_of(&self, namespace: &str, name: &str) -> Result<Access, TestbedError> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin()?, namespace);
        let request = TokenRequest {
            metadata: ObjectMeta::default(),
            spec: TokenRequestSpec { audiences: Vec::new(), ..TokenRequestSpec::default() },
            status: None,
        };
        let answer =
            accounts.create_token_request(name, &PostParams::default(), &request).await.map_err(
                TestbedError::api(format!("request a token of ServiceAccount {namespace}/{name}")),
            )?;
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        Ok(Access {
            credential: Credential::Token(token),
            namespace: namespace.to_owned(),
            ..self.access.clone()
        })
    }

    /// Access of the administrator acting as somebody else.
    pub fn impersonating(&self, who: Impersonation) -> Access {
        Access { act_as: Some(who), ..self.access.clone() }
    }

    /// A user with a client certificate of its own and no rights but those of its groups.
    ///
    /// # Errors
    /// [`TestbedError::Certificate`].
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Access, TestbedError> {
        let own = self.authority.client(name, groups)?;
        Ok(Access { credential: Credential::Certificate(own), ..self.access.clone() })
    }

    /// A client for any access, for the current runtime.
    ///
    /// # Errors
    /// [`TestbedError::Client`].
    pub fn client(&self, access: &Access) -> Result<Client, TestbedError> {
        client(access, "the given identity")
    }

    /// Writes a kubeconfig below the run's folder and returns its path.
    ///
    /// # Errors
    /// [`TestbedError::File`].
    pub fn write_kubeconfig(&self, name: &str, access: &Access) -> Result<PathBuf, TestbedError> {
        let path = self.kubeconfig_path(name);
        write_private(&path, &access.kubeconfig().to_string())?;
        Ok(path)
    }

    /// Creates a namespace with a unique name and waits for its default ServiceAccount, without
    /// which no pod can be created in it.
    ///
    /// # Errors
    /// [`TestbedError::Api`] or [`TestbedError::Timeout`].
    pub async fn namespace(&self, prefix: &str) -> Result<String, TestbedError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let client = self.admin()?;
        let namespace: Namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .map_err(TestbedError::api(format!("create namespace {name}")))?;
        if !self.controllers {
            return Ok(name);
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client, &name);
        wait::until(&format!("the default ServiceAccount of {name}"), wait::SOON, || async {
            accounts.get("default").await.map(drop).map_err(|error| chain(&error))
        })
        .await?;
        Ok(name)
    }

    /// Applies CRDs and waits until each is established and served.
    ///
    /// # Errors
    /// [`TestbedError::Api`] when the server refuses one, with its own words.
    pub async fn apply_crds(&self, crds: &[CustomResourceDefinition]) -> Result<(), TestbedError> {
        let client = self.admin()?;
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in crds {
            let name = crd.name_any();
            api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(crd))
                .await
                .map_err(TestbedError::api(format!("apply CRD {name}")))?;
        }
        for crd in crds {
            let (name, group) = (crd.name_any(), &crd.spec.group);
            for version in crd.spec.versions.iter().filter(|version| version.served) {
                let path = format!("/apis/{group}/{}/{}", version.name, crd.spec.names.plural);
                let what = format!("CRD {name} to be served");
                wait::until(&what, wait::SOON, || {
                    let mut request = http::Request::new(Vec::new());
                    *request.uri_mut() = path.parse().unwrap_or_default();
                    let client = client.clone();
                    async move {
                        client.request_text(request).await.map(drop).map_err(|error| chain(&error))
                    }
                })
                .await?;
            }
        }
        Ok(())
    }

    /// A command of one of the built tools, speaking to this cluster as the administrator.
    ///
    /// # Errors
    /// When the tool could not be had.
    pub fn tool(&self, binary: Binary) -> Result<Tool, TestbedError> {
        self.tool_as(binary, &self.admin_kubeconfig())
    }

    /// The same with another kubeconfig.
    ///
    /// # Errors
    /// When the tool could not be had.
    pub fn tool_as(&self, binary: Binary, kubeconfig: &Path) -> Result<Tool, TestbedError> {
        let mut command = Command::new(self.components.binary(binary)?);
        // One home for each tool: a plugin of Helm 4 makes Helm 3 complain.
        let home = self.run.folder().join("home").join(binary.file_name());
        command
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &home)
            .env("HELM_CACHE_HOME", home.join("helm/cache"))
            .env("HELM_CONFIG_HOME", home.join("helm/config"))
            .env("HELM_DATA_HOME", home.join("helm/data"))
            .env("KUBECTL_KUBERC", "false");
        Ok(Tool::new(command))
    }

    /// Where the binaries come from.
    pub fn components(&self) -> &Components {
        &self.components
    }

    /// The folder with the logs of all components.
    pub fn logs(&self) -> &Path {
        self.run.logs()
    }

    /// The run that further components of this test bed join.
    pub fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// The authority that signed the API server's certificate.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Process ids of what runs, by name: for tests about the test bed itself.
    pub fn process_ids(&self) -> Vec<(String, u32)> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.iter().map(|process| (process.name().to_owned(), process.id())).collect()
    }

    /// Hands a further process to the cluster, which stops it with the rest.
    pub(crate) fn keep(&self, process: Process) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    }

    fn kubeconfig_path(&self, name: &str) -> PathBuf {
        self.run.folder().join(format!("{name}.kubeconfig"))
    }
}

/// How long one request may take before a test hears of it.
const REQUEST: Duration = Duration::from_secs(30);

/// A client for the current runtime.
pub(crate) fn client(access: &Access, identity: &str) -> Result<Client, TestbedError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| TestbedError::Client {
        identity: identity.to_owned(),
        source,
    };
    let mut config = config(access).map_err(|error| failed(Box::new(error)))?;
    config.connect_timeout = Some(REQUEST);
    Client::try_from(config).map_err(|error| failed(Box::new(error)))
}

/// kube's configuration for an access.
///
/// # Errors
/// When kube does not take it.
pub fn config(access: &Access) -> Result<kube::Config, TestbedError> {
    install_tls_provider();
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| TestbedError::Client {
        identity: "the given access".to_owned(),
        source,
    };
    let kubeconfig: kube::config::Kubeconfig =
        serde_json::from_value(access.kubeconfig()).map_err(|error| failed(Box::new(error)))?;
    let options = kube::config::KubeConfigOptions::default();
    // Loading is async only for configurations that run a credential plugin.
    wait::block_on(kube::Config::from_custom_kubeconfig(kubeconfig, &options))
        .map_err(|error| failed(Box::new(error)))?
        .map_err(|error| failed(Box::new(error)))
}

fn install_tls_provider() {
    // An error means that it is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// The name of the test binary without cargo's hash, for the names of run and log folders.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 => name.to_owned(),
        _ => stem,
    }
}

//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback.

use std::{fs, path::Path, process::Command, time::Duration};

use belay_components::{Binary, Components};

use super::{
    Options,
    identity::{Access, Credential},
    pki::{Authority, service_account_keys},
};
use crate::{
    TestbedError,
    process::{Process, Run, free_port, require_port, write_private},
};

/// A busy machine takes 10 s; the deadline only ends what hangs.
pub(super) const START: Duration = Duration::from_mins(2);

/// What the controller manager runs: what workloads, Helm's hooks and admission policies need.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,garbage-collector-controller,\
namespace-controller,serviceaccount-controller,horizontal-pod-autoscaler-controller,\
validatingadmissionpolicy-status-controller,statefulset-controller,daemonset-controller,\
job-controller,resourcequota-controller,node-lifecycle-controller,clusterrole-aggregation-controller";

pub(super) struct ControlPlane {
    pub(super) access: Access,
    pub(super) authority: Authority,
    pub(super) processes: Vec<Process>,
}

struct Starter<'a> {
    components: &'a Components,
    run: &'a Run,
    authority: Authority,
    server: String,
    /// `--feature-gates=…`, if any.
    gates: Option<String>,
}

fn without(features: &[&str]) -> Option<String> {
    let off: Vec<_> = features.iter().map(|feature| format!("{feature}=false")).collect();
    (!off.is_empty()).then(|| format!("--feature-gates={}", off.join(",")))
}

pub(super) async fn start(
    components: &Components,
    run: &Run,
    options: &Options,
) -> Result<ControlPlane, TestbedError> {
    let api_port = match options.ports.kube_apiserver {
        Some(port) => {
            require_port("kube-apiserver", port)?;
            port
        }
        None => free_port()?,
    };
    let starter = Starter {
        components,
        run,
        authority: Authority::new()?,
        server: format!("https://127.0.0.1:{api_port}"),
        gates: without(options.without_features),
    };
    let admin = starter.access("belay-admin", &["system:masters"])?;
    let (etcd, etcd_url) = starter.etcd(options.ports.etcd).await?;
    let apiserver = starter.apiserver(api_port, &etcd_url)?;
    let client = super::client(&admin, "the administrator")?;
    apiserver
        .ready(START, || async {
            // /readyz alone answers before the bootstrap roles exist.
            client.request_text(request("/readyz")).await.map_err(|error| chain(&error))?;
            client
                .request_text(request("/apis/rbac.authorization.k8s.io/v1/clusterroles/view"))
                .await
                .map_err(|error| chain(&error))
                .map(drop)
        })
        .await?;
    let mut processes = vec![etcd, apiserver];
    if options.scheduler {
        processes.push(starter.scheduler()?);
    }
    if options.controllers {
        let manager = starter.controller_manager()?;
        manager
            .ready(START, || async {
                client
                    .request_text(request("/api/v1/namespaces/default/serviceaccounts/default"))
                    .await
                    .map_err(|error| chain(&error))
                    .map(drop)
            })
            .await?;
        processes.push(manager);
    }
    Ok(ControlPlane { access: admin, authority: starter.authority, processes })
}

fn request(path: &str) -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    // Every caller passes a constant path.
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl Starter<'_> {
    fn access(&self, user: &str, groups: &[&str]) -> Result<Access, TestbedError> {
        Ok(Access {
            server: self.server.clone(),
            authority: self.authority.certificate().to_owned(),
            credential: Credential::Certificate(self.authority.client(user, groups)?),
            act_as: None,
            namespace: "default".to_owned(),
        })
    }

    /// Writes the kubeconfig of a component and returns its path.
    fn kubeconfig(&self, user: &str) -> Result<String, TestbedError> {
        let path = self.run.folder().join(format!("{}.kubeconfig", user.replace(':', "-")));
        write_private(&path, &self.access(user, &[])?.kubeconfig().to_string())?;
        Ok(path.display().to_string())
    }

    fn folder(&self, name: &str) -> Result<String, TestbedError> {
        let folder = self.run.folder().join(name);
        fs::create_dir_all(&folder).map_err(TestbedError::file("create", &folder))?;
        Ok(folder.display().to_string())
    }

    fn command(&self, binary: Binary) -> Result<Command, TestbedError> {
        Ok(Command::new(self.components.binary(binary)?))
    }

    async fn etcd(&self, wanted: Option<u16>) -> Result<(Process, String), TestbedError> {
        let client_port = match wanted {
            Some(port) => {
                require_port("etcd", port)?;
                port
            }
            None => free_port()?,
        };
        let client = format!("http://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let mut command = self.command(Binary::Etcd)?;
        command.args([
            "--name=testbed",
            &format!("--data-dir={}", self.folder("etcd")?),
            &format!("--listen-client-urls={client}"),
            &format!("--advertise-client-urls={client}"),
            &format!("--listen-peer-urls={peer}"),
            &format!("--initial-advertise-peer-urls={peer}"),
            &format!("--initial-cluster=testbed={peer}"),
            // The data is thrown away with the run.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]);
        let process = self.run.spawn("etcd", command)?;
        let health = format!("{client}/health");
        let http = reqwest::Client::new();
        process
            .ready(START, || async {
                let answer = http.get(&health).send().await.map_err(|error| chain(&error))?;
                match answer.status().as_u16() {
                    200 => Ok(()),
                    status => Err(format!("/health answers {status}")),
                }
            })
            .await?;
        Ok((process, client))
    }

    fn apiserver(&self, port: u16, etcd: &str) -> Result<Process, TestbedError> {
        let folder = self.run.folder();
        let serving = self.authority.server(
            "kube-apiserver",
            &["kubernetes", "kubernetes.default", "kubernetes.default.svc"],
        )?;
        let (crt, key) = serving.write(folder, "apiserver")?;
        let ca = folder.join("ca.crt");
        write_private(&ca, self.authority.certificate())?;
        let (private, public) = service_account_keys()?;
        let (sa_key, sa_pub) = (folder.join("sa.key"), folder.join("sa.pub"));
        write_private(&sa_key, &private)?;
        write_private(&sa_pub, &public)?;
        let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        let mut command = self.command(Binary::KubeApiserver)?;
        command.args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            &format!("--secure-port={port}"),
            &format!("--etcd-servers={etcd}"),
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            &file("client-ca-file", &ca),
            &file("tls-cert-file", &crt),
            &file("tls-private-key-file", &key),
            &file("service-account-key-file", &sa_pub),
            &file("service-account-signing-key-file", &sa_key),
            &format!("--cert-dir={}", self.folder("apiserver")?),
            "--profiling=false",
            "--max-requests-inflight=4000",
            "--max-mutating-requests-inflight=2000",
        ]);
        command.args(&self.gates);
        self.run.spawn("kube-apiserver", command)
    }

    fn controller_manager(&self) -> Result<Process, TestbedError> {
        let folder = self.run.folder();
        let kubeconfig = self.kubeconfig("system:kube-controller-manager")?;
        let mut command = self.command(Binary::KubeControllerManager)?;
        command.args([
            &format!("--kubeconfig={kubeconfig}"),
            &format!("--authentication-kubeconfig={kubeconfig}"),
            &format!("--authorization-kubeconfig={kubeconfig}"),
            &format!("--root-ca-file={}", folder.join("ca.crt").display()),
            &format!("--service-account-private-key-file={}", folder.join("sa.key").display()),
            &format!("--cert-dir={}", self.folder("controller-manager")?),
            &format!("--controllers={CONTROLLERS}"),
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            &format!("--secure-port={}", free_port()?),
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--horizontal-pod-autoscaler-downscale-stabilization=1s",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]);
        command.args(&self.gates);
        self.run.spawn("kube-controller-manager", command)
    }

    fn scheduler(&self) -> Result<Process, TestbedError> {
        let kubeconfig = self.kubeconfig("system:kube-scheduler")?;
        let mut command = self.command(Binary::KubeScheduler)?;
        command.args([
            &format!("--kubeconfig={kubeconfig}"),
            &format!("--authentication-kubeconfig={kubeconfig}"),
            &format!("--authorization-kubeconfig={kubeconfig}"),
            &format!("--cert-dir={}", self.folder("scheduler")?),
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            &format!("--secure-port={}", free_port()?),
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]);
        self.run.spawn("kube-scheduler", command)
    }
}

//! The KEDA operator, unmodified, as a host process.
//!
//! Neither its metrics adapter nor its webhook is needed: without an external-metrics API the
//! ScaledObject becomes Ready, its HPA is made, and the whole pause protocol works. With
//! [`ExternalMetrics`](crate::metrics::ExternalMetrics) HPAs move too.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use belay_components::Binary;
use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    TestbedError,
    cluster::{Cluster, FIELD_MANAGER, chain},
    process::{Process, Run, free_port},
    wait,
};

/// A KEDA operator. Dropping it stops it.
#[derive(Debug)]
pub struct Keda {
    run: Arc<Run>,
    program: PathBuf,
    kubeconfig: PathBuf,
    certificates: PathBuf,
    /// The one namespace that it looks at; empty for all.
    watched: String,
    process: Mutex<Option<Process>>,
}

/// KEDA's own namespace.
pub const NAMESPACE: &str = "keda";

impl Keda {
    /// Applies KEDA's CRDs from its module, then starts an operator for all namespaces and waits for
    /// its health probe.
    ///
    /// # Errors
    /// Which step failed.
    pub async fn start(cluster: &Cluster) -> Result<Self, TestbedError> {
        Self::install(cluster, String::new()).await
    }

    /// The same for one namespace: several of these in one cluster do not see each other's objects.
    ///
    /// # Errors
    /// Which step failed.
    pub async fn of_namespace(cluster: &Cluster, namespace: &str) -> Result<Self, TestbedError> {
        Self::install(cluster, namespace.to_owned()).await
    }

    async fn install(cluster: &Cluster, watched: String) -> Result<Self, TestbedError> {
        Self::apply_crds(cluster).await?;
        let client = cluster.admin()?;
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
        });
        Api::<Namespace>::all(client)
            .patch(NAMESPACE, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(namespace))
            .await
            .map_err(TestbedError::api("create namespace keda"))?;
        // The operator's gRPC server, which only the metrics adapter would call, insists on these.
        let certificates = cluster.run().folder().join(name(&watched));
        fs::create_dir_all(&certificates).map_err(TestbedError::file("create", &certificates))?;
        let serving = cluster.authority().server("keda-operator", &["keda-operator.keda.svc"])?;
        serving.write(&certificates, "tls")?;
        let ca = certificates.join("ca.crt");
        fs::write(&ca, cluster.authority().certificate())
            .map_err(TestbedError::file("write", &ca))?;
        let keda = Self {
            run: Arc::clone(cluster.run()),
            program: cluster.components().binary(Binary::KedaOperator)?,
            kubeconfig: cluster.admin_kubeconfig(),
            certificates,
            watched,
            process: Mutex::default(),
        };
        keda.start_again().await?;
        Ok(keda)
    }

    /// Applies the CRDs that the module ships, without an operator.
    ///
    /// # Errors
    /// Which of them the API server refused.
    pub async fn apply_crds(cluster: &Cluster) -> Result<(), TestbedError> {
        cluster.apply_crds(&crds(cluster)?).await
    }

    /// Removes the CRDs, and all objects of them, and waits until the API server serves them no more.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn remove_crds(cluster: &Cluster) -> Result<(), TestbedError> {
        let api: Api<CustomResourceDefinition> = Api::all(cluster.admin()?);
        for crd in crds(cluster)? {
            let name = crd.name_any();
            api.delete(&name, &DeleteParams::default())
                .await
                .map_err(TestbedError::api(format!("delete CRD {name}")))?;
            wait::until(&format!("CRD {name} to be gone"), wait::SOON, || async {
                match api.get_opt(&name).await {
                    Ok(None) => Ok(()),
                    Ok(Some(_)) => Err("it is still there".to_owned()),
                    Err(error) => Err(chain(&error)),
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Starts it after [`Keda::kill`], and waits for its health probe.
    ///
    /// # Errors
    /// Its last words if it ended, or why it did not start.
    pub async fn start_again(&self) -> Result<(), TestbedError> {
        self.kill();
        let health = free_port()?;
        let mut command = Command::new(&self.program);
        command
            .args([
                &format!("--kubeconfig={}", self.kubeconfig.display()),
                &format!("--metrics-bind-address=127.0.0.1:{}", free_port()?),
                &format!("--health-probe-bind-address=127.0.0.1:{health}"),
                &format!("--metrics-service-bind-address=127.0.0.1:{}", free_port()?),
                &format!("--cert-dir={}", self.certificates.display()),
            ])
            .env("WATCH_NAMESPACE", &self.watched)
            .env("POD_NAMESPACE", NAMESPACE)
            .env("POD_NAME", "keda-operator")
            .env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE);
        let process = self.run.spawn(&name(&self.watched), command)?;
        let (http, url) = (reqwest::Client::new(), format!("http://127.0.0.1:{health}/readyz"));
        process
            .ready(wait::SOON, || async {
                let answer = http.get(&url).send().await.map_err(|error| chain(&error))?;
                match answer.status().as_u16() {
                    200 => Ok(()),
                    status => Err(format!("/readyz answers {status}")),
                }
            })
            .await?;
        *self.lock() = Some(process);
        Ok(())
    }

    /// Kills it, as a node that is lost would. It may have been killed already.
    pub fn kill(&self) {
        // Dropping the process kills it.
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of its folder and log.
fn name(watched: &str) -> String {
    if watched.is_empty() { "keda-operator".to_owned() } else { format!("keda-{watched}") }
}

/// The CRDs that the module ships.
fn crds(cluster: &Cluster) -> Result<Vec<CustomResourceDefinition>, TestbedError> {
    let mut crds = Vec::new();
    for path in cluster.components().keda_crds()? {
        let text = fs::read_to_string(&path).map_err(TestbedError::file("read", &path))?;
        let crd = serde_yaml::from_str(&text)
            .map_err(|error| TestbedError::file("parse", &path)(std::io::Error::other(error)))?;
        crds.push(crd);
    }
    Ok(crds)
}

//! The KEDA operator, unmodified, as a host process.
//!
//! Neither its metrics adapter nor its webhook is needed: without an external-metrics API the
//! ScaledObject becomes Ready, its HPA is made, and the whole pause protocol works.

use std::{fs, process::Command};

use belay_components::Binary;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    TestbedError,
    cluster::{Cluster, FIELD_MANAGER, chain},
    process::{Process, free_port},
    wait,
};

/// A running KEDA operator. Dropping it stops it.
#[derive(Debug)]
pub struct Keda {
    process: Process,
}

/// KEDA's own namespace.
pub const NAMESPACE: &str = "keda";

impl Keda {
    /// Applies KEDA's CRDs from its module, then starts the operator and waits for its health probe.
    ///
    /// # Errors
    /// Which step failed.
    pub async fn start(cluster: &Cluster) -> Result<Self, TestbedError> {
        cluster.apply_crds(&crds(cluster)?).await?;
        let client = cluster.admin()?;
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
        });
        Api::<k8s_openapi::api::core::v1::Namespace>::all(client)
            .patch(NAMESPACE, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(namespace))
            .await
            .map_err(TestbedError::api("create namespace keda"))?;
        // The operator's gRPC server, which only the metrics adapter would call, insists on these.
        let certs = cluster.run().folder().join("keda");
        fs::create_dir_all(&certs).map_err(TestbedError::file("create", &certs))?;
        let serving = cluster.authority().server("keda-operator", &["keda-operator.keda.svc"])?;
        serving.write(&certs, "tls")?;
        let ca = certs.join("ca.crt");
        fs::write(&ca, cluster.authority().certificate())
            .map_err(TestbedError::file("write", &ca))?;
        let health = free_port()?;
        let mut command = Command::new(cluster.components().binary(Binary::KedaOperator)?);
        command
            .args([
                &format!("--kubeconfig={}", cluster.admin_kubeconfig().display()),
                &format!("--metrics-bind-address=127.0.0.1:{}", free_port()?),
                &format!("--health-probe-bind-address=127.0.0.1:{health}"),
                &format!("--metrics-service-bind-address=127.0.0.1:{}", free_port()?),
                &format!("--cert-dir={}", certs.display()),
            ])
            .env("WATCH_NAMESPACE", "")
            .env("POD_NAMESPACE", NAMESPACE)
            .env("POD_NAME", "keda-operator")
            .env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE);
        let process = cluster.run().spawn("keda-operator", command)?;
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
        Ok(Self { process })
    }

    /// Kills it, as a node that is lost would.
    pub fn kill(&self) {
        self.process.kill();
    }
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

//! The small OCI registry, and a way to put images into it that need no container engine.

use std::{path::PathBuf, process::Command};

use belay_components::Binary;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    TestbedError,
    cluster::{Cluster, chain},
    process::{Process, Run, free_port},
    wait,
};

/// A running registry. Dropping it stops it; its content is in memory.
#[derive(Debug)]
pub struct Registry {
    process: Process,
    host: String,
    http: reqwest::Client,
}

impl Registry {
    /// Starts a registry in a cluster's run.
    ///
    /// # Errors
    /// Why it is not there.
    pub async fn start(cluster: &Cluster) -> Result<Self, TestbedError> {
        Self::start_with(cluster.components().binary(Binary::Registry)?, cluster.run()).await
    }

    /// Starts a registry in any run.
    ///
    /// # Errors
    /// Why it is not there.
    pub async fn start_with(binary: PathBuf, run: &Run) -> Result<Self, TestbedError> {
        let port = free_port()?;
        let mut command = Command::new(binary);
        command.args(["-port", &port.to_string()]);
        let process = run.spawn("registry", command)?;
        // Tests on several runtimes share it, and a connection ends with the runtime it was made on.
        let http = reqwest::Client::builder().pool_max_idle_per_host(0).build();
        let http = http.unwrap_or_default();
        let registry = Self { process, host: format!("127.0.0.1:{port}"), http };
        let url = format!("http://{}/v2/", registry.host);
        registry
            .process
            .ready(wait::SOON, || async {
                let answer = registry.http.get(&url).send().await.map_err(|error| chain(&error))?;
                match answer.status().as_u16() {
                    200 => Ok(()),
                    status => Err(format!("/v2/ answers {status}")),
                }
            })
            .await?;
        Ok(registry)
    }

    /// Its process id: for tests of the test bed itself.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// `HOST:PORT`, the first part of an image reference.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Puts an image of one empty layer there and returns its digest.
    ///
    /// # Errors
    /// [`TestbedError::Tool`] with the registry's answer.
    pub async fn push(&self, repository: &str, tag: &str) -> Result<String, TestbedError> {
        // The content differs with the tag, so that two tags never share a digest by accident.
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "config": { "Labels": { "tag": format!("{repository}:{tag}") } },
            "rootfs": { "type": "layers", "diff_ids": [] },
        });
        let config = config.to_string().into_bytes();
        let (digest, size) = (digest(&config), config.len());
        let upload = format!("/v2/{repository}/blobs/uploads/?digest={digest}");
        let octets = "application/octet-stream";
        self.send(reqwest::Method::POST, &upload, octets, config).await?;
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest: Value = json!({
            "schemaVersion": 2, "mediaType": kind,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": digest, "size": size,
            },
            "layers": [],
        });
        let manifest = manifest.to_string().into_bytes();
        let own = self::digest(&manifest);
        let path = format!("/v2/{repository}/manifests/{tag}");
        self.send(reqwest::Method::PUT, &path, kind, manifest).await?;
        Ok(own)
    }

    async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<(), TestbedError> {
        let failed = |status: String, stderr: String| TestbedError::Tool {
            command: format!("{method} {path}"),
            status,
            stderr,
        };
        let answer = self
            .http
            .request(method.clone(), format!("http://{}{path}", self.host))
            .header("content-type", kind)
            .body(body)
            .send()
            .await
            .map_err(|error| failed("no answer".to_owned(), chain(&error)))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        Err(failed(status.to_string(), answer.text().await.unwrap_or_default()))
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

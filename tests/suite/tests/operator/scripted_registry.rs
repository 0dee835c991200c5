//! A registry that has every image, and answers as a test says.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// More than any head of a request that the operator sends.
const LONGEST_HEAD: usize = 64 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The header `Authorization`; empty if there was none.
    pub(crate) authorization: String,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The image, for this platform.
    Image(&'static str, &'static str),
    /// A status, with further headers, each `Name: value`.
    Status(&'static str, Vec<String>),
}

impl Reply {
    /// The image, for the nodes of the test bed.
    pub(crate) fn found() -> Self {
        Self::Image("linux", "amd64")
    }

    /// A refusal that asks for user name and password.
    pub(crate) fn demand() -> Self {
        let challenge = "WWW-Authenticate: Basic realm=\"test\"".to_owned();
        Self::Status("401 Unauthorized", vec![challenge])
    }
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

/// It stops when it is dropped.
pub(crate) struct ScriptedRegistry {
    port: u16,
    log: Arc<Mutex<Vec<Asked>>>,
    accepting: JoinHandle<()>,
}

impl ScriptedRegistry {
    pub(crate) async fn start(
        script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let port = listener.local_addr()?.port();
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (script, kept): (Arc<Script>, _) = (Arc::new(script), log.clone());
        let accepting = tokio::spawn(async move {
            // Aborted with the registry, and with it what it serves.
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (script.clone(), kept.clone());
                serving.spawn(async move {
                    // An error is a client that went away.
                    let _ = serve(stream, &*script, &log).await;
                });
            }
        });
        Ok(Self { port, log, accepting })
    }

    /// `HOST:PORT`, as it stands in images.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// An image of it.
    pub(crate) fn image(&self, tag: &str) -> String {
        format!("{}/acme/web:{tag}", self.host())
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often it was asked for a tag.
    pub(crate) fn count(&self, method: &str, tag: &str) -> usize {
        let end = format!("/manifests/{tag}");
        let is_it = |asked: &&Asked| asked.method == method && asked.path.ends_with(&end);
        self.asked().iter().filter(is_it).count()
    }
}

impl Drop for ScriptedRegistry {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<Asked>>) -> Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 || head.len() > LONGEST_HEAD {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let authorization = lines
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        .map(|(_, value)| value.to_owned());
    let asked = Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        authorization: authorization.unwrap_or_default(),
    };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let (status, headers, body) = match script(&asked) {
        Reply::Status(status, headers) => (status, headers, String::new()),
        Reply::Image(os, architecture) => {
            let body = index(os, architecture);
            let digest = HEXLOWER.encode(&Sha256::digest(&body));
            let headers = vec![
                format!("Content-Type: {INDEX}"),
                format!("Docker-Content-Digest: sha256:{digest}"),
            ];
            ("200 OK", headers, body)
        }
    };
    let mut answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for header in headers {
        answer.push_str(&header);
        answer.push_str("\r\n");
    }
    answer.push_str("Connection: close\r\n\r\n");
    if method != "HEAD" {
        answer.push_str(&body);
    }
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

fn index(os: &str, architecture: &str) -> String {
    let manifest = json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": format!("sha256:{}", "a".repeat(64)),
        "size": 1,
        "platform": { "os": os, "architecture": architecture },
    });
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] }).to_string()
}

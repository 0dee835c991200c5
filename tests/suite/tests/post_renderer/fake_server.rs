//! An API server that answers byte by byte what a test says, on loopback and in plain HTTP, so that
//! it can also answer what no library would.

use std::{
    collections::BTreeMap,
    io,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

/// Between two bytes of a slow answer.
const TICK: Duration = Duration::from_millis(10);

/// More than any head of a request that belay sends.
const LONGEST_HEAD: usize = 64 << 10;

/// What the server does once it has read the head of a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Sends these bytes and ends the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes, then nothing more, and keeps the connection.
    Stall(Vec<u8>),
    /// Sends these bytes, then one blank after the other, slowly, for ever.
    Drip(Vec<u8>),
    /// Sends the first bytes, then the second again and again, as quickly as they are taken.
    Endless(Vec<u8>, Vec<u8>),
    /// Lets a proxy's client through to that address.
    Tunnel(String),
    /// Resets the connection.
    Reset,
}

impl Answer {
    /// A whole answer with this body.
    pub(crate) fn whole(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = head(status, headers, body.len());
        bytes.extend_from_slice(body);
        Self::Bytes(bytes)
    }

    /// A whole answer with a JSON body.
    pub(crate) fn json(status: &str, body: &Value) -> Self {
        Self::whole(status, &["Content-Type: application/json"], body.to_string())
    }

    /// The API server's word that an object is not there.
    pub(crate) fn not_found(name: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("deployments.apps {name:?} not found"), "reason": "NotFound",
            "details": { "name": name, "group": "apps", "kind": "deployments" }, "code": 404,
        });
        Self::json("404 Not Found", &body)
    }
}

/// The head of an answer, after which the connection ends: connections count questions.
pub(crate) fn head(status: &str, headers: &[&str], length: usize) -> Vec<u8> {
    let length = format!("Content-Length: {length}");
    let first = format!("HTTP/1.1 {status}");
    let lines = [first.as_str()].into_iter().chain(headers.iter().copied());
    let lines: Vec<_> = lines.chain(["Connection: close", &length, "\r\n"]).collect();
    lines.join("\r\n").into_bytes()
}

/// A live Deployment as the API server would answer it, whose container `app` has this image, owned
/// by Belay's operator.
pub(crate) fn live(namespace: &str, name: &str, image: &str) -> Value {
    let owned = json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": {
        "k:{\"name\":\"app\"}": { ".": {}, "f:name": {}, "f:image": {} },
    }}}}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": BTreeMap::from([
                ("meta.helm.sh/release-name", "web"),
                ("meta.helm.sh/release-namespace", namespace),
            ]),
            "managedFields": [{
                "manager": "belay-operator", "operation": "Apply", "apiVersion": "apps/v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": owned,
            }],
        },
        "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": image }] } } },
    })
}

type Script = dyn Fn(&str) -> Answer + Send + Sync;

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

/// The running server; dropping it ends it and every connection.
#[derive(Debug)]
pub(crate) struct FakeServer {
    port: u16,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server that gives every request the same answer.
    pub(crate) async fn answering(answer: Answer) -> Result<Self> {
        Self::start(move |_| answer.clone()).await
    }

    /// Starts a server whose answer depends on the head of the request.
    pub(crate) async fn start(
        script: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let port = listener.local_addr().context("read the port")?.port();
        let seen = Arc::new(Seen::default());
        let (script, counted): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let accepting = tokio::spawn(async move {
            // Aborted with the server, and with it what it serves.
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::Relaxed);
                let (script, seen) = (Arc::clone(&script), Arc::clone(&counted));
                serving.spawn(async move {
                    // An error is a client that went away.
                    let _ = serve(stream, &*script, &seen).await;
                });
            }
        });
        Ok(Self { port, seen, accepting })
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The URL of the same port for those who expect TLS.
    pub(crate) fn https_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// How many connections it was asked for.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, script: &Script, seen: &Seen) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        // Who speaks TLS to a plain server is answered at once, in plain words.
        if head.first() == Some(&0x16) {
            return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
        if stream.read_buf(&mut head).await? == 0 || head.len() > LONGEST_HEAD {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
    match script(&head) {
        Answer::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await?;
        }
        Answer::Stall(bytes) => {
            stream.write_all(&bytes).await?;
            std::future::pending::<()>().await;
        }
        Answer::Drip(bytes) => {
            stream.write_all(&bytes).await?;
            let mut more = [0; 1];
            // The pause is over early when the client speaks or goes away.
            while timeout(TICK, stream.read(&mut more)).await.is_err() {
                stream.write_all(b" ").await?;
            }
        }
        Answer::Endless(bytes, again) => {
            stream.write_all(&bytes).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        Answer::Tunnel(address) => {
            let mut server = TcpStream::connect(address).await?;
            stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            copy_bidirectional(&mut stream, &mut server).await?;
        }
        Answer::Reset => stream.set_zero_linger()?,
    }
    Ok(())
}

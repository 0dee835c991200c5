//! Servers that nobody should come to, and servers that answer byte by byte what a test says, which no
//! library would.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as StdListener},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Between two bytes of a slow answer.
const TICK: Duration = Duration::from_millis(20);
/// More than any head of a request.
const LONGEST_HEAD: usize = 64 << 10;

/// Counts who comes, on loopback in both versions of IP.
pub(crate) struct Trap {
    port: u16,
    came: Arc<AtomicUsize>,
    _accepting: JoinSet<()>,
}

impl Trap {
    pub(crate) fn new() -> Result<Self> {
        let first = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = first.local_addr()?.port();
        let came = Arc::<AtomicUsize>::default();
        let mut accepting = JoinSet::new();
        // A machine without IPv6 has nobody who could come that way.
        let second = StdListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
        for listener in [Some(first), second].into_iter().flatten() {
            listener.set_nonblocking(true)?;
            let (listener, came) = (TcpListener::from_std(listener)?, came.clone());
            accepting.spawn(async move {
                while listener.accept().await.is_ok() {
                    came.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { port, came, _accepting: accepting })
    }

    /// A text in which `TRAP` stands for the port.
    pub(crate) fn in_text(&self, text: &str) -> String {
        text.replace("TRAP", &self.port.to_string())
    }

    /// Nobody has come.
    pub(crate) fn is_untouched(&self) -> Result<()> {
        let came = self.came.load(Ordering::Relaxed);
        ensure!(came == 0, "{came} connections to the trap");
        Ok(())
    }
}

/// What a server sends after the head of a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// These bytes, and then the end.
    Bytes(Vec<u8>),
    /// These bytes, and then one after the other, slowly, for ever.
    Drip(Vec<u8>),
    /// These bytes, and then megabytes for as long as they are taken.
    Endless(Vec<u8>),
    /// Nothing, for ever.
    Silence,
}

impl Answer {
    /// A whole answer.
    pub(crate) fn whole(status: &str, headers: &[&str], body: &str) -> Self {
        let mut bytes = head(status, headers, Some(body.len()));
        bytes.extend_from_slice(body.as_bytes());
        Self::Bytes(bytes)
    }

    /// An answer that announces more than it sends.
    pub(crate) fn cut(status: &str, headers: &[&str], body: &str) -> Self {
        let mut bytes = head(status, headers, Some(body.len() + 1_000));
        bytes.extend_from_slice(body.as_bytes());
        Self::Bytes(bytes)
    }
}

/// The head of an answer after which the connection ends.
pub(crate) fn head(status: &str, headers: &[&str], length: Option<usize>) -> Vec<u8> {
    let first = format!("HTTP/1.1 {status}");
    let mut lines = vec![first.as_str(), "Connection: close"];
    lines.extend(headers);
    let length = length.map(|length| format!("Content-Length: {length}"));
    lines.extend(length.as_deref());
    lines.join("\r\n").into_bytes().into_iter().chain(*b"\r\n\r\n").collect()
}

type Script = dyn Fn(&str) -> Answer + Send + Sync;

/// A server. Dropping it ends every connection.
pub(crate) struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
}

impl Server {
    /// One that answers a request by its head.
    pub(crate) async fn start(
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let (seen, answer): (_, Arc<Script>) = (heads.clone(), Arc::new(answer));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.spawn(serve(connection, seen.clone(), answer.clone()));
            }
        });
        Ok(Self { address, heads, _accepting: accepting })
    }

    /// `HOST:PORT`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut connection: TcpStream, seen: Arc<Mutex<Vec<String>>>, answer: Arc<Script>) {
    let Some(head) = read_head(&mut connection).await else { return };
    let answer = answer(&head);
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    // Whoever asked may go away at any time.
    let _ = send(&mut connection, answer).await;
}

async fn read_head(connection: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        head.push(connection.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

async fn send(connection: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Bytes(bytes) => {
            connection.write_all(&bytes).await?;
            connection.shutdown().await
        }
        Answer::Drip(bytes) => {
            connection.write_all(&bytes).await?;
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                connection.write_u8(b' ').await?;
            }
        }
        Answer::Endless(bytes) => {
            connection.write_all(&bytes).await?;
            let blanks = vec![b' '; 1 << 20];
            loop {
                connection.write_all(&blanks).await?;
            }
        }
        Answer::Silence => std::future::pending().await,
    }
}

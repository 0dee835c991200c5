//! Both servers with an operator that is made up, and a client that writes bytes.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use belay_operator::{
    admin::{Access, Bounds, Inspect, serve_admin, serve_health},
    metrics::Metrics,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// How long a test waits for what takes no time.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Bytes of a page that fits into no buffer.
pub(crate) const LARGE: usize = 8 << 20;

/// An operator that follows `shop/web`, and `shop/large`, of which it knows much.
#[derive(Default)]
pub(crate) struct MadeUp {
    pub(crate) dead: Mutex<Option<String>>,
    pub(crate) unready: Mutex<Option<String>>,
}

impl Inspect for MadeUp {
    fn alive(&self) -> Result<(), String> {
        self.dead.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn ready(&self) -> Result<(), String> {
        self.unready.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn debug(&self, namespace: &str, name: &str) -> Option<Value> {
        match (namespace, name) {
            ("shop", "web") => Some(json!({ "now": "2026-03-01T12:00:00Z" })),
            ("shop", "large") => Some(json!("x".repeat(LARGE))),
            _ => None,
        }
    }
}

/// A server. Dropping it stops it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) operator: Arc<MadeUp>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn health(bounds: Bounds) -> Self {
        let metrics = Arc::new(Metrics::new());
        metrics.tug_of_war();
        Self::start(|listener, operator, stop| {
            serve_health(listener, operator, metrics, bounds, stop)
        })
        .await
    }

    pub(crate) async fn admin(access: Access) -> Self {
        Self::start(|listener, operator, stop| {
            serve_admin(listener, operator, access, Bounds::default(), stop)
        })
        .await
    }

    async fn start<F>(serve: impl FnOnce(TcpListener, Arc<MadeUp>, Stop) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let operator = Arc::<MadeUp>::default();
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, operator.clone(), Stop(stopped));
        Self { address, operator, stop: Some(stop), task: tokio::spawn(serving) }
    }

    /// Stops it and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(SOON, self.task).await.unwrap().unwrap();
    }

    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// The answer to one request.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let mut client = self.connect().await;
        let start = format!("{method} {path} HTTP/1.1");
        let lines = [&[start.as_str(), "host: test"], headers, &["", ""]].concat();
        client.send(&lines.join("\r\n")).await;
        client.answer().await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }
}

/// Ends when the sender is dropped.
pub(crate) struct Stop(oneshot::Receiver<()>);

impl Future for Stop {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        std::pin::Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}

pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// All that comes until the server ends the connection.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(SOON, self.0.read_to_end(&mut bytes)).await.unwrap();
        // A reset ends it as well; what came before counts.
        drop(read);
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let text = self.rest().await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

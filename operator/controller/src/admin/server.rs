//! The server under both: HTTP/1.1, one request to a connection, everything bounded.

use std::{
    collections::VecDeque, convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration,
};

use http::{Method, Request, StatusCode, header, request::Parts};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use super::answer::{self, Sent};

/// The most bytes of a request's head.
const HEAD: usize = 16 << 10;
/// The most headers.
const HEADERS: usize = 64;
/// The wait after a connection could not be accepted: out of file handles, say.
const BREATH: Duration = Duration::from_millis(100);

/// What a client can hold.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The time for the head of a request.
    pub head: Duration,
    /// The time for a connection, to the last byte of the answer.
    pub connection: Duration,
    /// Connections at a time. One more closes the oldest, so that those who hold theirs for nothing
    /// do not keep the kubelet out.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { head: Duration::from_secs(5), connection: Duration::from_secs(30), connections: 64 }
    }
}

/// What is served.
pub(super) trait Pages: Send + Sync + 'static {
    /// The answer to a `GET`.
    fn get(&self, request: &Parts) -> impl Future<Output = Sent> + Send;
}

/// Serves until `stop` ends.
pub(super) async fn serve<P: Pages>(
    listener: TcpListener,
    pages: P,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let pages = Arc::new(pages);
    let mut stop = pin!(stop);
    let mut connections = JoinSet::new();
    let mut open = VecDeque::<AbortHandle>::new();
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept a connection");
                if timeout(BREATH, &mut stop).await.is_ok() {
                    return;
                }
                continue;
            }
        };
        open.retain(|connection| !connection.is_finished());
        while open.len() >= bounds.connections.max(1) {
            if let Some(oldest) = open.pop_front() {
                oldest.abort();
            }
        }
        let connection = connection(stream, Arc::clone(&pages), bounds);
        open.push_back(connections.spawn(connection));
    }
}

async fn connection<P: Pages>(stream: TcpStream, pages: Arc<P>, bounds: Bounds) {
    // A small answer must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let pages = Arc::clone(&pages);
        async move {
            // The body is dropped unread.
            let (head, _) = request.into_parts();
            Ok::<_, Infallible>(respond(&*pages, &head).await)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head)
        .keep_alive(false)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(bounds.connection, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "serve a connection"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}

async fn respond<P: Pages>(pages: &P, head: &Parts) -> Sent {
    if head.method == Method::GET || head.method == Method::HEAD {
        return pages.get(head).await;
    }
    let refused = answer::line(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here");
    answer::with(refused, header::ALLOW, "GET, HEAD")
}

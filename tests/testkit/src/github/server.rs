//! The HTTP server: a thread of its own with a runtime of its own, so that it serves tests on
//! several runtimes and on none.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header::CONTENT_LENGTH};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming as Body, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;

use super::{
    answer::Answer,
    control,
    error::GitHubError,
    exchange::{self, Incoming, Outcome},
    state::State,
};
use crate::wait;

/// The largest body a request may have.
const LARGEST_REQUEST: usize = 1 << 20;

/// What the server and its handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) origin: String,
}

impl Shared {
    /// A test that panics elsewhere must not take the server down with it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running server. Dropping it stops it and closes every connection.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(port: u16, state: State) -> Result<Self, GitHubError> {
        let listen = |source| GitHubError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let shared =
            Arc::new(Shared { state: Mutex::new(state), origin: format!("http://{address}") });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(GitHubError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, served) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name(format!("github-{}", address.port()))
            .spawn(serve)
            .map_err(GitHubError::Thread)?;
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Whatever ended it, it has ended.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, say: let connections end before the next try.
            wait::pause().await;
            continue;
        };
        // A small answer must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve(TokioIo::new(stream), Arc::clone(&shared)));
    }
}

async fn serve(io: TokioIo<tokio::net::TcpStream>, shared: Arc<Shared>) {
    let service = service_fn(move |request| respond(Arc::clone(&shared), request));
    // An error is a client that went away, or a script that ends the connection.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(io, service).await;
}

type Sent = UnsyncBoxBody<Bytes, io::Error>;

async fn respond(shared: Arc<Shared>, request: Request<Body>) -> io::Result<Response<Sent>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_REQUEST).collect().await.map_err(io::Error::other)?;
    let body = body.to_bytes();
    if head.uri.path().starts_with(control::PREFIX) {
        return Ok(whole(control::answer(&shared, &head, &body).await));
    }
    let outcome = {
        let mut state = shared.state();
        exchange::answer(&mut state, &Incoming::new(&head, &body), &shared.origin)
    };
    match outcome {
        Outcome::Send(answer) => Ok(whole(answer)),
        Outcome::Truncate(answer, bytes) => Ok(truncated(answer, bytes)),
        Outcome::Drip(answer) => Ok(dripping(answer)),
        Outcome::Close => Err(io::ErrorKind::ConnectionAborted.into()),
        Outcome::Hang => std::future::pending().await,
    }
}

fn whole(answer: Answer) -> Response<Sent> {
    let body = Full::new(Bytes::from(answer.body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// Announces the whole body, sends part of it and ends the connection.
fn truncated(answer: Answer, bytes: usize) -> Response<Sent> {
    let length = HeaderValue::from(answer.body.len());
    let mut part = Bytes::from(answer.body);
    part.truncate(bytes);
    let sent = stream::once(async move { Ok(Frame::data(part)) });
    let end = stream::once(async {
        // What was sent is flushed before the error is seen.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::ConnectionAborted))
    });
    let body = StreamBody::new(sent.chain(end)).boxed_unsync();
    announced(answer.status, answer.headers, body, length)
}

/// Announces a megabyte and sends a blank now and then.
fn dripping(answer: Answer) -> Response<Sent> {
    let drops = stream::unfold((), |()| async {
        wait::pause().await;
        Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
    });
    let body = StreamBody::new(drops).boxed_unsync();
    announced(answer.status, answer.headers, body, HeaderValue::from(1_u32 << 20))
}

fn announced(
    status: StatusCode,
    headers: HeaderMap,
    body: Sent,
    length: HeaderValue,
) -> Response<Sent> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

//! A small server that notes what really arrived, and a service in memory.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use belay_testkit::{
    fault::{CallId, Calls, FaultPlan, Faulty, PatchKind, Verb},
    wait::{self, SOON},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tower::{Layer as _, Service as _};

/// What every test reads and writes.
pub(crate) const OBJECT: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"}}"#;

/// An HTTP server of the test process. It stops when it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    arrived: Arc<Mutex<Vec<String>>>,
    gate: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers every request with [`OBJECT`] once the request has arrived whole; a watch with one
    /// event, after which it stays open.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let gate = watch::Sender::new(true);
        let mut tasks = JoinSet::new();
        let (seen, open) = (arrived.clone(), gate.subscribe());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, open) = (seen.clone(), open.clone());
                let service = service_fn(move |request| serve(request, seen.clone(), open.clone()));
                connections.spawn(async move {
                    // A client that goes away ends its connection with an error.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { url, arrived, gate, _tasks: tasks }
    }

    /// What has arrived and was committed, in order: method, path, query and proof of identity.
    pub(crate) fn arrived(&self) -> Vec<String> {
        self.arrived.lock().unwrap().clone()
    }

    /// From now on requests are committed but not answered, until it is opened again.
    pub(crate) fn close(&self) {
        self.gate.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.gate.send_replace(true);
    }

    pub(crate) async fn wait_for(&self, count: usize) {
        wait::until("the requests to arrive", SOON, || async {
            let arrived = self.arrived();
            if arrived.len() >= count { Ok(()) } else { Err(format!("{arrived:?}")) }
        })
        .await
        .unwrap();
    }

    pub(crate) fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.url.parse().unwrap());
        config.default_namespace = "shop".into();
        config
    }
}

type Reply = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

async fn serve(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<String>>>,
    mut open: watch::Receiver<bool>,
) -> Result<Response<Reply>, hyper::Error> {
    let mut line = format!("{} {}", request.method(), request.uri());
    if let Some(proof) = request.headers().get("authorization") {
        line = format!("{line} authorization: {}", proof.to_str().unwrap());
    }
    let watched = line.contains("watch=true");
    request.into_body().collect().await?;
    seen.lock().unwrap().push(line);
    // The server of this gate outlives its connections.
    let _ = open.wait_for(|open| *open).await;
    if watched {
        let event = format!("{{\"type\":\"ADDED\",\"object\":{OBJECT}}}\n");
        return Ok(Response::new(endless(event).boxed_unsync()));
    }
    Ok(Response::new(Full::from(OBJECT).boxed_unsync()))
}

/// A body that has one frame and no end.
pub(crate) fn endless(first: String) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
    let first = futures::stream::once(async { Ok(http_body::Frame::data(Bytes::from(first))) });
    http_body_util::StreamBody::new(futures::StreamExt::chain(first, futures::stream::pending()))
}

/// A service in memory that counts what it gets and answers with [`OBJECT`].
#[derive(Clone, Default)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<Vec<String>>>);

impl Fake {
    pub(crate) fn below(&self, plan: &FaultPlan) -> Faulty<Self> {
        plan.kubernetes().layer(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl<B: Send + 'static> tower::Service<Request<B>> for Fake {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let seen = self.0.clone();
        Box::pin(async move {
            seen.lock().unwrap().push(request.uri().to_string());
            Ok(Response::new(Full::from(OBJECT)))
        })
    }
}

/// A call that is over at once, or never.
pub(crate) fn try_call(
    service: &mut Faulty<Fake>,
    request: Request<Bytes>,
) -> Option<Result<StatusCode, String>> {
    use futures::FutureExt as _;
    let result = service.call(request).now_or_never()?;
    Some(result.map(|response| response.status()).map_err(|error| error.to_string()))
}

/// The future's result. A test whose crash does not come is to fail, not to hang.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.unwrap()
}

pub(crate) fn get(uri: &str) -> Request<Bytes> {
    Request::get(uri).body(Bytes::new()).unwrap()
}

pub(crate) fn request(method: &str, uri: &str, content_type: &str) -> Request<Bytes> {
    let request = Request::builder().method(method).uri(uri);
    let request = match content_type {
        "" => request,
        content_type => request.header("content-type", content_type),
    };
    request.body(Bytes::new()).unwrap()
}

/// The apply of a Deployment.
pub(crate) fn apply() -> Request<Bytes> {
    request(
        "PATCH",
        "/apis/apps/v1/namespaces/shop/deployments/web?force=true&fieldManager=belay",
        "application/apply-patch+yaml",
    )
}

pub(crate) fn applies() -> Calls {
    Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments")
}

pub(crate) fn id(request: &Request<Bytes>) -> CallId {
    CallId::kubernetes(request, "")
}

//! A plan's faults in front of a server that is not the API server.
//!
//! What is tested makes its own HTTP client, from a URL. The relay is that URL: it passes every
//! request through the plan's layer to the server behind it. It is one address for all processes of a
//! run, for addresses end up in objects that outlive a process (the registry of an image, say), and
//! each connection belongs to the process that was the plan's when it was made.

use std::{
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{
    HeaderMap, HeaderName, Request, Response, Uri,
    header::{CONNECTION, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
    uri::{Authority, Scheme},
};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::{BoxError, Layer as _, Service as _};

use super::{FaultBody, FaultPlan, Faulty, ReqwestService};
use crate::TestbedError;

/// What concerns one connection only.
const OF_THE_CONNECTION: [HeaderName; 6] =
    [CONNECTION, HeaderName::from_static("keep-alive"), TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// An HTTP server on loopback that passes requests on, with a plan's faults. Dropping it ends it and
/// all its connections.
#[derive(Debug)]
pub struct Relay {
    host: String,
    _accepting: JoinSet<()>,
}

impl Relay {
    /// Starts one on a free port, on the current runtime. `upstream` is the server behind it,
    /// `HOST:PORT`, asked without TLS; in traces its calls are to that host.
    ///
    /// A connection whose process has ended is closed; a call that crashed is therefore never
    /// answered.
    ///
    /// # Errors
    /// [`TestbedError::NoPort`], or [`TestbedError::Client`] where `upstream` is no host.
    pub async fn start(plan: &FaultPlan, upstream: &str) -> Result<Self, TestbedError> {
        let failed = |source: BoxError| TestbedError::Client {
            identity: format!("a relay to {upstream}"),
            source,
        };
        let upstream: Authority = upstream.parse().map_err(|error| failed(Box::new(error)))?;
        // Redirects are for the caller to follow, or not.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| failed(Box::new(error)))?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(TestbedError::NoPort)?;
        let address: SocketAddr = listener.local_addr().map_err(TestbedError::NoPort)?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, plan.clone(), ReqwestService(http), upstream));
        Ok(Self { host: address.to_string(), _accepting: accepting })
    }

    /// Where it is, `HOST:PORT`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where it is, as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.host)
    }
}

async fn accept(
    listener: TcpListener,
    plan: FaultPlan,
    service: ReqwestService,
    upstream: Authority,
) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, say: let connections end before the next try.
            crate::wait::pause().await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        // A small answer must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        let faulty = plan.http().layer(service.clone());
        let plan = plan.clone();
        let ended = async move { plan.crashed().await };
        connections.spawn(connection(stream, faulty, upstream.clone(), ended));
    }
}

/// Serves until the client goes away or its process ends.
async fn connection(
    stream: TcpStream,
    faulty: Faulty<ReqwestService>,
    upstream: Authority,
    ended: impl Future<Output = ()>,
) {
    let mut ended = pin!(ended);
    // From its first poll on it is about the process of this moment.
    if ended.as_mut().now_or_never().is_some() {
        return;
    }
    let service = service_fn(move |request| pass(request, faulty.clone(), upstream.clone()));
    let serve = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = ended => {}
        // An error is a client that went away, or a server behind us that did.
        _ = serve => {}
    }
}

async fn pass(
    request: Request<Incoming>,
    mut faulty: Faulty<ReqwestService>,
    upstream: Authority,
) -> Result<Response<FaultBody<reqwest::Body>>, BoxError> {
    let (mut head, body) = request.into_parts();
    let body: Bytes = body.collect().await?.to_bytes();
    let mut uri = head.uri.into_parts();
    uri.scheme = Some(Scheme::HTTP);
    uri.authority = Some(upstream);
    head.uri = Uri::from_parts(uri)?;
    head.headers.remove(HOST);
    strip(&mut head.headers);
    let mut response = faulty.call(Request::from_parts(head, body)).await?;
    strip(response.headers_mut());
    Ok(response)
}

fn strip(headers: &mut HeaderMap) {
    for name in OF_THE_CONNECTION {
        headers.remove(name);
    }
}

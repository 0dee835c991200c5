//! The layer itself.

use std::{
    any::Any,
    fmt,
    future::pending,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use tower::{BoxError, Layer, Service};

use super::{
    Answer, CallId, Fault, Outcome,
    body::FaultBody,
    plan::{Life, Record},
};

/// Which rules a request is read by.
#[derive(Debug, Clone)]
pub(crate) enum Protocol {
    /// Those of the API server, below a path prefix.
    Kubernetes {
        /// Path of the base URL.
        prefix: String,
    },
    /// None.
    Http,
}

impl Protocol {
    pub(crate) fn identify<B>(&self, request: &Request<B>) -> CallId {
        match self {
            Self::Kubernetes { prefix } => CallId::kubernetes(request, prefix),
            Self::Http => CallId::http(request),
        }
    }
}

/// Puts a plan's faults on a client of the plan's current process.
///
/// Made by [`super::FaultPlan::kubernetes`] and [`super::FaultPlan::http`]. Goes innermost, below
/// retries and right above what sends.
#[derive(Clone)]
pub struct FaultLayer {
    life: Life,
    protocol: Protocol,
}

impl FaultLayer {
    pub(crate) fn new(life: Life, protocol: Protocol) -> Self {
        Self { life, protocol }
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { layer: self.clone(), inner }
    }
}

impl fmt::Debug for FaultLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultLayer").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

/// A service with a [`FaultLayer`] above it.
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    layer: FaultLayer,
    inner: S,
}

impl<S, B, C> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response = Response<C>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: 'static,
    C: Body<Data = Bytes> + Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = Response<FaultBody<C>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let FaultLayer { life, protocol } = &self.layer;
        let Some((fault, record)) = life.admit(protocol, &request) else {
            return Box::pin(pending());
        };
        let life = life.clone();
        if fault.sends() {
            let reply = self.inner.call(request);
            Box::pin(sent(fault, reply, life, record))
        } else {
            Box::pin(kept(fault, life))
        }
    }
}

/// The rest of a call that the server gets.
async fn sent<C, E>(
    fault: Fault,
    reply: impl Future<Output = Result<Response<C>, E>>,
    life: Life,
    record: Record,
) -> Result<Response<FaultBody<C>>, BoxError>
where
    E: Into<BoxError>,
{
    let reply = life.outlive(async { reply.await.map_err(Into::into) }).await;
    record.close(match &reply {
        Ok(response) => Outcome::Status(response.status()),
        Err(error) => Outcome::Failed(error.to_string()),
    });
    match fault {
        Fault::CrashAfter => {
            life.crash();
            pending().await
        }
        Fault::HangAfter => pending().await,
        Fault::ResetAfter => reply.and_then(|_| Err(reset())),
        Fault::AnswerAfter(answer) => reply.map(|_| answered(answer, life)),
        Fault::Truncate { after_bytes, end } => {
            reply.map(|response| response.map(|body| FaultBody::cut(body, after_bytes, end, life)))
        }
        Fault::Pass | Fault::CrashBefore | Fault::Answer(_) | Fault::Hang | Fault::Reset => {
            reply.map(|response| response.map(|body| FaultBody::whole(body, life)))
        }
    }
}

/// The rest of a call that the server does not get.
async fn kept<C>(fault: Fault, life: Life) -> Result<Response<FaultBody<C>>, BoxError> {
    match fault {
        Fault::Answer(answer) => Ok(life.outlive(async { answered(answer, life.clone()) }).await),
        Fault::Reset => life.outlive(async { Err(reset()) }).await,
        Fault::CrashBefore
        | Fault::Hang
        | Fault::Pass
        | Fault::CrashAfter
        | Fault::AnswerAfter(_)
        | Fault::HangAfter
        | Fault::ResetAfter
        | Fault::Truncate { .. } => pending().await,
    }
}

fn answered<C>(answer: Answer, life: Life) -> Response<FaultBody<C>> {
    let Answer { status, headers, body } = answer;
    let mut response = Response::new(FaultBody::own(body, life));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn reset() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer").into()
}

/// The bytes of a request's body, if it is of a type that shows them without being used up.
pub(crate) fn peek<B: 'static>(body: &B) -> Option<Bytes> {
    let body: &dyn Any = body;
    if let Some(body) = body.downcast_ref::<kube::client::Body>() {
        return body.try_clone()?.collect_bytes().now_or_never()?.ok();
    }
    if let Some(body) = body.downcast_ref::<reqwest::Body>() {
        return body.as_bytes().map(Bytes::copy_from_slice);
    }
    if let Some(body) = body.downcast_ref::<Full<Bytes>>() {
        return Some(body.clone().collect().now_or_never()?.ok()?.to_bytes());
    }
    body.downcast_ref::<Bytes>().cloned()
}

//! Clients with the layer in them.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::client::{Body, ConfigExt as _, retry::RetryPolicy};
use tower::{BoxError, Service, ServiceBuilder, retry::RetryLayer};

use super::{FaultPlan, layer::Protocol};
use crate::TestbedError;

/// A client of the API server for the plan's current process, with faults or, if the plan has no
/// rules, without. `retry` turns on kube's own retries (429, 503 and 504; from 5 ms on).
///
/// From the outside in: base URL, retries, authentication, headers, the fault layer, the connection.
/// Unlike the client kube makes itself it sends small packets at once (TCP_NODELAY), and neither
/// compresses nor uses proxies, for all it speaks to is on loopback. Timeouts are those of `config`.
/// Must be called inside a runtime.
///
/// # Errors
/// When kube does not take the configuration, for example its certificates.
pub fn client(
    config: kube::Config,
    plan: &FaultPlan,
    retry: bool,
) -> Result<kube::Client, TestbedError> {
    client_with(config, plan, retry.then(RetryPolicy::server_retry))
}

/// The same with retries of the test's choice.
///
/// # Errors
/// When kube does not take the configuration, for example its certificates.
pub fn client_with(
    config: kube::Config,
    plan: &FaultPlan,
    retry: Option<RetryPolicy>,
) -> Result<kube::Client, TestbedError> {
    let url = config.cluster_url.to_string();
    build(config, plan, retry)
        .map_err(|error| TestbedError::Client { identity: url, source: Box::new(error) })
}

fn build(
    config: kube::Config,
    plan: &FaultPlan,
    retry: Option<RetryPolicy>,
) -> kube::Result<kube::Client> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new()).build(connector);
    let prefix = config.cluster_url.path().to_owned();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry.map(RetryLayer::new))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(plan.layer(Protocol::Kubernetes { prefix }))
        .map_err(BoxError::from)
        .service(hyper);
    Ok(kube::Client::new(service, config.default_namespace))
}

/// A `reqwest::Client` as a service from HTTP request to HTTP response, to put a [`FaultLayer`] on.
///
/// `reqwest::Client` is itself a tower service, but of its own request and response types.
///
/// [`FaultLayer`]: super::FaultLayer
#[derive(Debug, Clone)]
pub struct ReqwestService(pub reqwest::Client);

impl<B: Into<reqwest::Body>> Service<Request<B>> for ReqwestService {
    type Response = Response<reqwest::Body>;
    type Error = reqwest::Error;
    type Future = Pin<Box<dyn Future<Output = reqwest::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<reqwest::Result<()>> {
        Service::<reqwest::Request>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let reply = reqwest::Request::try_from(request).map(|request| self.0.call(request));
        Box::pin(async { reply?.await.map(Into::into) })
    }
}

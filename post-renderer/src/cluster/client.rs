//! A connection to one API server: kube's configuration, credentials and TLS under a stack of our
//! own, which sends small packets at once (TCP_NODELAY), retries nothing and follows no redirect.
//! Several requests share one connection by HTTP/2, where the server has it.

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{
            Client as HyperClient,
            connect::{HttpConnector, proxy::Tunnel},
        },
        proxy::matcher::Matcher,
    },
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::{Body, ConfigExt as _},
};
use rustls::pki_types::ServerName;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _, util::BoxCloneService};

use crate::{
    cluster::{ConfigError, Destination, ReadError, words},
    helm::Secret,
};

/// The largest answer that is read, in bytes. etcd holds objects of at most 1.5 MiB by default, and
/// their JSON is not much larger.
const MAX_ANSWER: usize = 8 << 20;

type Answer = http::Response<hyper::body::Incoming>;

/// An API server, as one identity. Make it inside a runtime.
#[derive(Clone)]
pub struct Cluster {
    service: BoxCloneService<Request<Body>, Answer, BoxError>,
    pub(super) server: String,
    token: Option<Secret>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Prepares the connection for that many requests; nothing is sent yet. A credential plugin of the
    /// kubeconfig runs here.
    ///
    /// # Errors
    /// The credentials, certificates or proxy of the configuration cannot be used.
    pub fn new(destination: &Destination, requests: usize) -> Result<Self, ConfigError> {
        let server = destination.server.value.clone();
        let service = stack(&destination.config, requests > 1)
            .map_err(|cause| ConfigError::Client { server: server.clone(), cause })?;
        Ok(Self { service, server, token: destination.token.clone() })
    }

    /// One GET. The status and the whole body; any status is an answer.
    pub(super) async fn get(
        &self,
        path: &str,
        accept: &'static str,
    ) -> Result<(StatusCode, Bytes), ReadError> {
        let unreachable = |error: &(dyn std::error::Error + 'static)| ReadError::Unreachable {
            server: self.server.clone(),
            why: chain(error),
        };
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, concat!("belay/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|error| unreachable(&error))?;
        let answer = self
            .service
            .clone()
            .oneshot(request)
            .await
            .map_err(|error| unreachable(error.as_ref()))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER);
        let body = body.collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return ReadError::TooLarge {
                    server: self.server.clone(),
                    limit: MAX_ANSWER >> 20,
                };
            }
            unreachable(error.as_ref())
        })?;
        let body = body.to_bytes();
        // The words of a refusal are shown.
        Ok((status, if status == StatusCode::OK { body } else { self.without_token(body) }))
    }

    fn without_token(&self, body: Bytes) -> Bytes {
        let Some(token) = self.token.as_ref().map(Secret::expose) else { return body };
        if token.is_empty() || memchr::memmem::find(&body, token.as_bytes()).is_none() {
            return body;
        }
        String::from_utf8_lossy(&body).replace(token, "[redacted]").into()
    }
}

fn stack(
    config: &Config,
    multiplex: bool,
) -> Result<BoxCloneService<Request<Body>, Answer, BoxError>, BoxError> {
    if !words::can_be_sent(&config.auth_info) {
        return Err("its token holds a line end or another character that no header may".into());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    match proxy(config)? {
        None => over(config, tcp, multiplex),
        Some((uri, authorization)) => {
            let tunnel = Tunnel::new(uri, tcp);
            match authorization {
                None => over(config, tunnel, multiplex),
                Some(authorization) => over(config, tunnel.with_auth(authorization), multiplex),
            }
        }
    }
}

/// kube's own connector speaks HTTP/1.1 alone, hence one handshake for each request under way.
fn https<C>(config: &Config, connector: C, multiplex: bool) -> Result<HttpsConnector<C>, BoxError> {
    if !multiplex {
        return Ok(config.rustls_https_connector_with_connector(connector)?);
    }
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

fn over<C>(
    config: &Config,
    connector: C,
    multiplex: bool,
) -> Result<BoxCloneService<Request<Body>, Answer, BoxError>, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: hyper_util::client::legacy::connect::Connection
        + hyper::rt::Read
        + hyper::rt::Write
        + Send
        + Unpin
        + 'static,
    C::Future: Send + 'static,
    C::Error: std::error::Error + Send + Sync + 'static,
{
    let connector = https(config, connector, multiplex)?;
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(words::of_credentials)?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(BoxCloneService::new(service))
}

type Proxy = (Uri, Option<http::HeaderValue>);

/// The proxy of the kubeconfig or, as in Helm, that of the environment for this host.
fn proxy(config: &Config) -> Result<Option<Proxy>, BoxError> {
    let matcher = match &config.proxy_url {
        Some(proxy) => Matcher::builder().all(proxy.to_string()).build(),
        None if is_loopback(&config.cluster_url) => return Ok(None),
        None => Matcher::from_env(),
    };
    let Some(intercept) = matcher.intercept(&config.cluster_url) else { return Ok(None) };
    if intercept.uri().scheme_str() != Some("http") {
        return Err("its proxy is not spoken to over plain HTTP, which is all belay can do; \
                    name the API server in NO_PROXY if it can be reached without"
            .into());
    }
    Ok(Some((intercept.uri().clone(), intercept.basic_auth().cloned())))
}

/// Go's clients never use a proxy of the environment for these.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// All causes in one line; some libraries repeat theirs.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}

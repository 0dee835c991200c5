//! kube's credentials and TLS over a stack of our own: kube's connector leaves small packets waiting
//! (no TCP_NODELAY, 44 ms for each connection), speaks HTTP/1.1 alone, hence one handshake for each
//! request under way, and takes the environment's proxy whatever the host is.

use std::time::Duration;

use http::{HeaderValue, Request, Uri, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{
            Client as HyperClient,
            connect::{Connection, HttpConnector, proxy::Tunnel},
        },
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt as _},
};
use rustls::pki_types::ServerName;
use secrecy::ExposeSecret;
use tower::{BoxError, Service, ServiceBuilder, util::BoxCloneService};

use super::words;

/// What audit logs show.
const USER_AGENT: &str = concat!("kubectl-release/", env!("CARGO_PKG_VERSION"));

/// A watch over HTTP/2 that nobody answers any more is noticed after that.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

type Answer = http::Response<hyper::body::Incoming>;
type Stack = BoxCloneService<Request<Body>, Answer, BoxError>;

pub(super) fn stack(config: &Config) -> Result<Stack, BoxError> {
    // kube panics on a token that no header can hold.
    let token = config.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
    if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        return Err("the token holds a line end or another character that no header may".into());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    match proxy(config)? {
        None => over(config, tcp),
        Some((uri, authorization)) => {
            let tunnel = Tunnel::new(uri, tcp);
            match authorization {
                None => over(config, tunnel),
                Some(authorization) => over(config, tunnel.with_auth(authorization)),
            }
        }
    }
}

fn over<C>(config: &Config, connector: C) -> Result<Stack, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: std::error::Error + Send + Sync + 'static,
{
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .build(https(config, connector)?);
    let mut config = config.clone();
    let agent = format!("{USER_AGENT} ({}/{})", std::env::consts::OS, std::env::consts::ARCH);
    config.headers.push((header::USER_AGENT, HeaderValue::from_str(&agent)?));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(words::of_credentials)?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(BoxCloneService::new(service))
}

fn https<C>(config: &Config, connector: C) -> Result<HttpsConnector<C>, BoxError> {
    let tls = config.rustls_client_config().map_err(words::of_credentials)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

type Proxy = (Uri, Option<HeaderValue>);

/// The proxy of the kubeconfig or, as in kubectl, that of the environment for this host.
fn proxy(config: &Config) -> Result<Option<Proxy>, BoxError> {
    let matcher = match &config.proxy_url {
        Some(proxy) => Matcher::builder().all(proxy.to_string()).build(),
        None if is_loopback(&config.cluster_url) => return Ok(None),
        None => Matcher::from_env(),
    };
    let Some(intercept) = matcher.intercept(&config.cluster_url) else { return Ok(None) };
    if intercept.uri().scheme_str() != Some("http") {
        return Err(
            "the proxy is not spoken to over plain HTTP, which is all this plugin can do; \
                    name the API server in NO_PROXY if it can be reached without"
                .into(),
        );
    }
    Ok(Some((intercept.uri().clone(), intercept.basic_auth().cloned())))
}

/// Go's clients never use a proxy of the environment for these.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

//! kube's credentials and TLS over a stack of our own: kube's connector leaves small packets waiting
//! (no TCP_NODELAY, 44 ms for each connection), speaks HTTP/1.1 alone, hence one handshake for each
//! request under way, and takes the environment's proxy whatever the host is.

use std::time::Duration;

use http::{HeaderValue, Request, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt as _},
};
use rustls::{ClientConfig, pki_types::ServerName};
use secrecy::ExposeSecret;
use tower::{BoxError, ServiceBuilder, util::BoxCloneService};

use super::{
    proxy::{Proxy, Route},
    words,
};

/// What audit logs show.
const USER_AGENT: &str = concat!("kubectl-release/", env!("CARGO_PKG_VERSION"));

/// A watch over HTTP/2 that nobody answers any more is noticed after that.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

type Answer = http::Response<hyper::body::Incoming>;
type Stack = BoxCloneService<Request<Body>, Answer, BoxError>;

/// The stack for a cluster, through that proxy if there is one.
///
/// # Errors
/// The credentials or certificates cannot be used.
pub(super) fn stack(config: &Config, proxy: Option<Proxy>) -> Result<Stack, BoxError> {
    // kube panics on a token that no header can hold.
    let token = config.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
    if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        return Err("the token holds a line end or another character that no header may".into());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let tls = config.rustls_client_config().map_err(words::of_credentials)?;
    let route = Route::new(tcp, proxy, &tls);
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .build(https(config, tls, route)?);
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

fn https(
    config: &Config,
    tls: ClientConfig,
    route: Route,
) -> Result<HttpsConnector<Route>, BoxError> {
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(route))
}

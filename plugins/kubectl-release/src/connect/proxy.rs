//! The proxy of the kubeconfig or of the environment, chosen as kubectl does, and the way through it:
//! `http` and `https` proxies open a tunnel on CONNECT, a `socks5` proxy on its own handshake.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{
            HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use kube::Config;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::{BoxError, Service, ServiceExt as _, service_fn};

use super::{config::shown, words};
use crate::{error::chain, out::Environment};

/// A connection to the API server, or to the proxy before it.
pub(super) type Wire = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A proxy, and who named it.
#[derive(Clone)]
pub(super) struct Proxy {
    uri: Uri,
    login: Login,
    origin: String,
}

#[derive(Clone)]
enum Login {
    Nobody,
    Header(HeaderValue),
    Pair(String, String),
}

/// Why there is no way through a proxy.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub(crate) struct ProxyError {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl Proxy {
    /// The proxy of the configuration, which stands in `origin`, or, as in kubectl, that of the
    /// environment for this host.
    ///
    /// # Errors
    /// One is named that cannot be used: never is the API server then asked without it.
    pub(super) fn of(
        config: &Config,
        origin: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, ProxyError> {
        let server = &config.cluster_url;
        if let Some(proxy) = &config.proxy_url {
            let text = proxy.to_string();
            return Self::read(&text, origin, server).map(Some);
        }
        let variables = match server.scheme_str() {
            Some("http") => ["HTTP_PROXY", "http_proxy"],
            _ => ["HTTPS_PROXY", "https_proxy"],
        };
        let first = |names: [&'static str; 2]| {
            let told = |name: &'static str| Some((name, environment.get(name)?.as_str()));
            names.into_iter().filter_map(told).find(|(_, text)| !text.is_empty())
        };
        let Some((variable, text)) = first(variables) else { return Ok(None) };
        let exceptions = first(["NO_PROXY", "no_proxy"]).map_or("", |(_, list)| list);
        if is_loopback(server) || is_excepted(server, exceptions) {
            return Ok(None);
        }
        Self::read(text, variable, server).map(Some)
    }

    fn read(text: &str, origin: &str, server: &Uri) -> Result<Self, ProxyError> {
        let refused = |why: &str| ProxyError {
            why: format!("the proxy {} {why}", words::without_user(text)),
            hint: format!("it stands in {origin}; write http://, https:// or socks5://HOST:PORT"),
        };
        let matcher = Matcher::builder().all(text.trim()).build();
        let has_host = |found: &Intercept| found.uri().host().is_some_and(|host| !host.is_empty());
        let intercept = matcher.intercept(server).filter(has_host);
        let intercept = intercept.ok_or_else(|| refused("is no proxy's URL"))?;
        let uri = match intercept.uri().scheme_str() {
            Some("http" | "https") => intercept.uri().clone(),
            Some("socks5" | "socks5h") => {
                with_port(intercept.uri(), 1080).ok_or_else(|| refused("is no proxy's URL"))?
            }
            _ => return Err(refused("is of a kind that kubectl does not use either")),
        };
        Ok(Self { uri, login: Login::of(&intercept), origin: origin.to_owned() })
    }

    /// Its URL without user and password.
    pub(super) fn shown(&self) -> String {
        shown(&self.uri)
    }

    fn error(&self, why: &str) -> BoxError {
        let is_of_the_environment = self.origin.to_ascii_lowercase().ends_with("_proxy");
        let way_round = if is_of_the_environment {
            "; name the API server in NO_PROXY if it can be reached without"
        } else {
            ""
        };
        let hint = format!("the proxy stands in {}{way_round}", self.origin);
        Box::new(ProxyError { why: format!("the proxy {} {why}", self.shown()), hint })
    }

    /// What went wrong between the proxy and the API server, in words that do not blame the latter.
    fn refused(&self, server: &Uri, error: &dyn std::error::Error) -> BoxError {
        let said = error.to_string();
        let login = ["authorization", "authentication", "credentials"];
        if login.iter().any(|word| said.contains(word)) {
            return self.error(match &self.login {
                Login::Nobody => "asks for a user and a password, and its URL has none",
                _ => "does not accept the user and the password of its URL",
            });
        }
        let target = server.authority().map_or("the API server", |authority| authority.as_str());
        let why = match said.rsplit_once(" error: ").map_or(said.as_str(), |(_, why)| why) {
            "unsuccessful" => "it refused",
            why if why.starts_with("unexpected") || why.starts_with("io error") => {
                "the connection broke off"
            }
            why => why,
        };
        self.error(&format!("opened no way to {target}: {why}"))
    }
}

impl Login {
    fn of(intercept: &Intercept) -> Self {
        let pair = intercept.raw_auth();
        let pair = pair.map(|(user, password)| Self::Pair(user.to_owned(), password.to_owned()));
        let header = intercept.basic_auth().cloned().map(Self::Header);
        pair.or(header).unwrap_or(Self::Nobody)
    }
}

/// Opens connections to the API server, through the proxy if there is one.
#[derive(Clone)]
pub(super) struct Route {
    tcp: HttpConnector,
    through: Option<(Proxy, HttpsConnector<HttpConnector>)>,
}

impl Route {
    /// Through that proxy, if any. As in kubectl, an `https` proxy is trusted as the API server is.
    pub(super) fn new(tcp: HttpConnector, proxy: Option<Proxy>, trust: &ClientConfig) -> Self {
        let through = proxy.map(|proxy| {
            let mut trust = trust.clone();
            // What is spoken inside the tunnel is agreed on there.
            trust.alpn_protocols = Vec::new();
            let door = HttpsConnectorBuilder::new().with_tls_config(trust).https_or_http();
            (proxy, door.enable_http1().wrap_connector(tcp.clone()))
        });
        Self { tcp, through }
    }
}

impl Service<Uri> for Route {
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, BoxError>> + Send>>;
    type Response = Wire;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let tcp = self.tcp.clone();
        match self.through.clone() {
            None => Box::pin(async move { Ok(tcp.oneshot(server).await?.into()) }),
            Some((proxy, door)) => Box::pin(through(proxy, tcp, door, server)),
        }
    }
}

async fn through(
    proxy: Proxy,
    tcp: HttpConnector,
    door: HttpsConnector<HttpConnector>,
    server: Uri,
) -> Result<Wire, BoxError> {
    let unreachable = |error: &(dyn std::error::Error + 'static)| {
        proxy.error(&format!("cannot be connected to: {}", chain(error)))
    };
    let is_socks = proxy.uri.scheme_str().is_some_and(|scheme| scheme.starts_with("socks"));
    let wire: Wire = if is_socks {
        tcp.oneshot(proxy.uri.clone()).await.map_err(|error| unreachable(&error))?.into()
    } else {
        door.oneshot(proxy.uri.clone()).await.map_err(|error| unreachable(error.as_ref()))?
    };
    let server = with_port(&server, if server.scheme_str() == Some("http") { 80 } else { 443 })
        .unwrap_or(server);
    // Both handshakes open their connection themselves; here it is open already.
    let mut wire = Some(wire);
    let open = service_fn(move |_: Uri| {
        let wire = wire.take().ok_or_else(|| std::io::Error::other("the connection is used up"));
        std::future::ready(wire)
    });
    let refused = |error: &dyn std::error::Error| proxy.refused(&server, error);
    if is_socks {
        let mut handshake = SocksV5::new(proxy.uri.clone(), open);
        if let Login::Pair(user, password) = &proxy.login {
            handshake = handshake.with_auth(user.clone(), password.clone());
        }
        return handshake.call(server.clone()).await.map_err(|error| refused(&error));
    }
    let mut tunnel = Tunnel::new(proxy.uri.clone(), open);
    if let Login::Header(header) = &proxy.login {
        tunnel = tunnel.with_auth(header.clone());
    }
    tunnel.call(server.clone()).await.map_err(|error| refused(&error))
}

/// The URL with the port that it has, or else with this one.
fn with_port(uri: &Uri, default: u16) -> Option<Uri> {
    if uri.port().is_some() {
        return Some(uri.clone());
    }
    let scheme = uri.scheme_str()?;
    format!("{scheme}://{}:{default}/", uri.host()?).parse().ok()
}

/// Go's clients never use a proxy of the environment for these.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether `NO_PROXY` names the API server. Go's clients also know entries with a port and with `*.`.
fn is_excepted(server: &Uri, list: &str) -> bool {
    let port = server.port_u16().unwrap_or(443).to_string();
    let entries = list.split(',').map(str::trim).filter_map(|entry| {
        let entry = if entry.starts_with("*.") { entry.trim_start_matches('*') } else { entry };
        match entry.rsplit_once(':') {
            Some((host, end)) if !host.contains(':') || host.ends_with(']') => {
                (end == port).then(|| host.trim_matches(['[', ']']))
            }
            _ => Some(entry.trim_matches(['[', ']'])),
        }
    });
    let list = entries.collect::<Vec<_>>().join(",");
    let matcher = Matcher::builder().all("http://unset.invalid").no(list).build();
    matcher.intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn chosen(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, ProxyError> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = variables.iter().map(own).collect();
        let proxy = Proxy::of(&Config::new(server.parse().unwrap()), "", &environment)?;
        Ok(proxy.map(|proxy| proxy.shown()))
    }

    #[rstest]
    #[case::none("https://a.example", &[], None)]
    #[case::https("https://a.example", &[("HTTPS_PROXY", "http://p:1")], Some("http://p:1"))]
    #[case::lower("https://a.example", &[("https_proxy", "https://p")], Some("https://p"))]
    #[case::upper_first("https://a.example",
        &[("https_proxy", "http://q"), ("HTTPS_PROXY", "http://p")], Some("http://p"))]
    #[case::empty_is_none("https://a.example",
        &[("HTTPS_PROXY", ""), ("https_proxy", "http://p")], Some("http://p"))]
    #[case::of_the_other_scheme("https://a.example", &[("HTTP_PROXY", "http://p")], None)]
    #[case::plain("http://a.example", &[("HTTP_PROXY", "http://p")], Some("http://p"))]
    #[case::not_gos("https://a.example", &[("ALL_PROXY", "http://p")], None)]
    #[case::no_scheme("https://a.example", &[("HTTPS_PROXY", "p:3128")], Some("http://p:3128"))]
    #[case::socks("https://a.example", &[("HTTPS_PROXY", "socks5://u:x@p")], Some("socks5://p:1080"))]
    #[case::socks_names("https://a.example", &[("HTTPS_PROXY", "socks5h://p:9")], Some("socks5h://p:9"))]
    #[case::loopback("https://127.0.0.1:6443", &[("HTTPS_PROXY", "http://p")], None)]
    #[case::loopback_6("https://[::1]:6443", &[("HTTPS_PROXY", "http://p")], None)]
    #[case::localhost("https://localhost", &[("HTTPS_PROXY", "http://p")], None)]
    fn the_environments_proxy_is_chosen_as_go_does(
        #[case] server: &str,
        #[case] variables: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(chosen(server, variables).unwrap().as_deref(), expected);
    }

    #[rstest]
    #[case("*", true)]
    #[case("a.example", true)]
    #[case("example", true)]
    #[case(".example", true)]
    #[case("*.example", true)]
    #[case("other, a.example", true)]
    #[case("a.example:6443", true)]
    #[case("a.example:443", false)]
    #[case("b.example", false)]
    #[case("ample", false)]
    #[case("", false)]
    fn exceptions_are_read_as_go_does(#[case] list: &str, #[case] expected: bool) {
        let variables = [("HTTPS_PROXY", "http://p"), ("NO_PROXY", list)];
        let proxy = chosen("https://a.example:6443", &variables).unwrap();
        assert_eq!(proxy.is_none(), expected);
    }

    #[rstest]
    #[case("10.1.2.3", "10.0.0.0/8", true)]
    #[case("10.1.2.3", "10.1.2.3:6443", true)]
    #[case("10.1.2.3", "10.1.2.4", false)]
    #[case("[fd00::1]", "fd00::1", true)]
    #[case("[fd00::1]", "fd00::/8", true)]
    #[case("[fd00::1]", "[fd00::1]:6443", true)]
    #[case("[fd00::1]", "[fd00::1]:443", false)]
    fn exceptions_may_be_addresses(#[case] host: &str, #[case] list: &str, #[case] expected: bool) {
        let variables = [("HTTPS_PROXY", "http://p"), ("no_proxy", list)];
        let proxy = chosen(&format!("https://{host}:6443"), &variables).unwrap();
        assert_eq!(proxy.is_none(), expected);
    }

    #[rstest]
    fn a_proxy_that_cannot_be_used_is_an_error_without_its_password(
        #[values("ftp://u:hidden@p", "socks4://u:hidden@p", "http://u:hidden@", "::hidden@::")]
        text: &str,
    ) {
        let error = chosen("https://a.example", &[("HTTPS_PROXY", text)]).unwrap_err();
        assert!(error.hint.starts_with("it stands in HTTPS_PROXY"), "{error:?}");
        assert!(!error.why.contains("hidden"), "{error:?}");
    }
}

//! The client of the API server.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderValue, Request, Response, header};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::client::{Body, ConfigExt as _};
use tower::{BoxError, Layer, Service, ServiceBuilder};

use super::ServerClock;
use crate::retry_after;

/// What the operator calls itself.
const USER_AGENT: &str = concat!("belay-operator/", env!("CARGO_PKG_VERSION"));

/// The longest silence within an answer, where the configuration does not say. A watch is at most
/// 290 s long, and kube gives up on one that says nothing for 295 s.
const READ_TIMEOUT: Duration = Duration::from_mins(5);
/// After so long without a word the kernel asks whether the other side is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// And again after so long.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The operator's client of the API server: small packets go out at once, nothing is sent twice by
/// itself, and every answer tells `clock` the server's time.
///
/// It differs from the one that kube builds: kube's repeats what was answered with 429, 503 or 504 up
/// to 15 times, and leaves Nagle's algorithm on. HTTP/1.1 only: over HTTP/2 all requests would share
/// one connection, and the API server permits 100 at a time on one, watches included. Proxies are not
/// used. Must be called inside a runtime.
///
/// # Errors
/// When kube does not take the configuration, for example its certificates.
pub fn client(config: &kube::Config, clock: &ServerClock) -> kube::Result<kube::Client> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout.or(Some(READ_TIMEOUT)));
    connector.set_write_timeout(config.write_timeout);
    // Else the time that a connection was idle would count for the next answer on it.
    connector.set_reset_reader_on_write(true);
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new()).build(connector);
    over(config, clock, hyper)
}

/// The same over any service that sends requests: the seam for tests.
///
/// # Errors
/// When kube does not take the configuration.
pub fn over<S, B>(config: &kube::Config, clock: &ServerClock, send: S) -> kube::Result<kube::Client>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut config = config.clone();
    config.headers.push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(Noting(clock.clone()))
        .map_err(Into::<BoxError>::into)
        .service(send);
    Ok(kube::Client::new(service, config.default_namespace))
}

/// Tells the clock the date of every answer.
#[derive(Debug, Clone)]
struct Noting(ServerClock);

/// A service under [`Noting`].
#[derive(Debug, Clone)]
struct Noted<S> {
    clock: ServerClock,
    inner: S,
}

impl<S> Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted { clock: self.0.clone(), inner }
    }
}

impl<S, Q, B> Service<Request<Q>> for Noted<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let asked = Instant::now();
        let (clock, answer) = (self.clock.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(date) = retry_after::date(answer.headers()) {
                clock.note(date, asked);
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::Api;
    use serde_json::json;

    use super::*;
    use crate::cluster::fake::{Answer, Server};

    #[tokio::test]
    async fn it_names_itself_keeps_to_the_path_and_notes_the_date_of_every_answer() {
        let found = json!({ "metadata": { "name": "a" } });
        let refused = json!({ "message": "no" });
        let server = Server::answering([
            Answer::ok(&found).with("date", "Sun, 02 Mar 2031 12:00:00 GMT"),
            Answer::of(500, &refused).with("date", "Sun, 02 Mar 2031 13:00:00 GMT"),
        ]);
        let clock = ServerClock::new();
        let config = kube::Config::new("https://proxy.example/clusters/one".parse().unwrap());
        let served = server.clone();
        let send = tower::service_fn(move |request| served.clone().serve(request));
        let client = over(&config, &clock, send).unwrap();
        let api: Api<ConfigMap> = Api::namespaced(client, "shop");
        let day = |text: &str| text.parse::<jiff::Timestamp>().unwrap();

        api.get("a").await.unwrap();
        let asked = server.asked();
        assert_eq!(asked[0].line, "GET /clusters/one/api/v1/namespaces/shop/configmaps/a");
        assert_eq!(asked[0].user_agent, USER_AGENT);
        let ahead = clock.now().duration_since(day("2031-03-02T12:00:00Z"));
        assert!(ahead >= SignedDuration::ZERO && ahead < SignedDuration::from_mins(50), "{ahead}");

        api.get("a").await.unwrap_err();
        assert!(clock.now() >= day("2031-03-02T13:00:00Z"));
        assert_eq!(server.lines().len(), 2, "an answer of 500 is not asked for again");
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
        config.read_timeout = Some(Duration::from_millis(20));
        let client = client(&config, &ServerClock::new()).unwrap();
        let ask = client.apiserver_version();
        // The connection is taken and kept open.
        let (answer, connection) = tokio::join!(ask, listener.accept());
        drop(connection.unwrap());
        let error = format!("{:?}", answer.unwrap_err());
        assert!(error.contains("TimedOut"), "{error}");
    }
}

//! A server that answers each request as a closure says, and keeps what it was asked.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use belay_adapters::registry::{
    Access, Head, HostPolicy, Image, Lookup, PullCredential, Registry, Settings, Trouble,
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};

pub(crate) const DIGEST: &str =
    "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

pub(crate) type Body = BoxBody<Bytes, std::io::Error>;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) auth: String,
    pub(crate) headers: http::HeaderMap,
}

impl Seen {
    /// Method, path and credential in one line.
    pub(crate) fn line(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.auth).trim_end().to_owned()
    }
}

/// The server. It stops with the test's runtime.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    pub(crate) async fn start(
        answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (log, answer) = (Arc::default(), Arc::new(answer));
        let fake = Self { address, log: Arc::clone(&log) };
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(connection, log.clone(), answer.clone()));
            }
        });
        fake
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Each request in one line.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(Seen::line).collect()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// An image of this server, by address.
    pub(crate) fn image(&self) -> Image {
        Image::parse(&format!("{}/acme/web:v1", self.address)).unwrap()
    }

    /// A client that may ask this server without TLS.
    pub(crate) fn client(&self) -> Registry {
        Registry::new(self.settings()).unwrap()
    }

    pub(crate) fn settings(&self) -> Settings {
        settings(&[&format!("http://{}", self.address)])
    }

    pub(crate) async fn head(&self, credential: Option<&PullCredential>) -> Result<Head, Trouble> {
        self.client().head(&self.image(), credential).await
    }
}

/// Serves one connection.
pub(crate) async fn serve<C>(
    connection: C,
    log: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<impl Fn(&Seen) -> Response<Body> + Send + Sync + ?Sized + 'static>,
) where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let header = |name: http::HeaderName| {
            let value = request.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
            value.unwrap_or_default()
        };
        let seen = Seen {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            auth: header(http::header::AUTHORIZATION),
            headers: request.headers().clone(),
        };
        log.lock().unwrap().push(seen.clone());
        let response = answer(&seen);
        async move { Ok::<_, Infallible>(response) }
    });
    let http = hyper::server::conn::http1::Builder::new();
    // A client that goes away is no failure of the test's.
    let _ = http.serve_connection(TokioIo::new(connection), service).await;
}

/// A server that nobody should come to.
pub(crate) struct Trap(TcpListener);

impl Trap {
    pub(crate) async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Whoever connected is in the queue once the answer that sent him here was handled.
    pub(crate) fn assert_untouched(&self) {
        let accepted = futures::FutureExt::now_or_never(self.0.accept());
        assert!(accepted.is_none(), "somebody came to the trap");
    }
}

/// Names below `.test` are this machine, as if an attacker had said so in his own zone.
pub(crate) fn settings(allowed: &[&str]) -> Settings {
    let hosts = HostPolicy::new(allowed.iter().map(|it| it.parse().unwrap()));
    Settings {
        lookup: Lookup::of(|name| async move {
            assert_eq!(name.rsplit('.').next(), Some("test"), "{name} is resolved for real");
            Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
        }),
        within: Duration::from_secs(20),
        ..Settings::new(hosts)
    }
}

pub(crate) fn bob() -> PullCredential {
    PullCredential::new("pull-bob", "bob", "hunter2")
}

pub(crate) fn eve() -> PullCredential {
    PullCredential::new("pull-eve", "eve", "letmein")
}

/// `Basic` of a user and a password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}

pub(crate) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed()
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(full(body.to_owned())).unwrap()
}

/// 200 with a digest.
pub(crate) fn found() -> Response<Body> {
    let kind = "application/vnd.oci.image.index.v1+json";
    answer(200, &[("docker-content-digest", DIGEST), ("content-type", kind)], "")
}

/// 401 with a challenge.
pub(crate) fn demands(challenge: &str) -> Response<Body> {
    answer(401, &[("www-authenticate", challenge)], "")
}

/// What came out, in one or two words.
pub(crate) fn word(head: &Result<Head, Trouble>) -> String {
    match head {
        Ok(Head::Found { digest, .. }) => format!("found {digest}"),
        Ok(Head::Missing) => "missing".to_owned(),
        Err(trouble) => trouble_word(trouble),
    }
}

pub(crate) fn trouble_word(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Denied { stage, status, .. } => format!("denied {stage:?} {status}"),
        Trouble::Upstream { stage, status, .. } => format!("upstream {stage:?} {status}"),
        Trouble::Throttled { stage, asked, .. } => format!("throttled {stage:?} {asked}"),
        Trouble::NotAllowed { stage, .. } => format!("not-allowed {stage:?}"),
        Trouble::Unreadable { stage, .. } => format!("unreadable {stage:?}"),
        other => other.category().to_owned(),
    }
}

/// The access of an image that was found.
pub(crate) fn access(head: Result<Head, Trouble>) -> (String, Access) {
    match head {
        Ok(Head::Found { digest, access, .. }) => (digest, access),
        other => panic!("{other:?}"),
    }
}

/// Words of an error and all its causes, in both forms.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error} {error:?}");
        cause = error.source();
    }
    text
}

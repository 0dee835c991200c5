//! One request to a registry: checked, bounded, patient, and without anybody's credential but the one
//! that is handed in.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use oci_client::secrets::RegistryAuth;
use reqwest::Url;

use super::{
    HostPolicy, Lookup, Refusal, Stage, Trouble, hosts::place, patience::Patience,
    resolver::CheckedResolver,
};
use crate::{
    body::{self, BodyError},
    clock::{Clock, after},
    retry_after,
};

/// Redirects that are followed, none of them with a credential.
const REDIRECTS: u32 = 3;
/// The wait of a host that names none.
const PATIENCE: Duration = Duration::from_mins(1);

/// How registries are asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which hosts may be asked.
    pub hosts: HostPolicy,
    /// Authorities that are trusted beside the system's.
    pub ca: Vec<reqwest::Certificate>,
    /// The `User-Agent`.
    pub user_agent: String,
    /// The time that all requests for one image have together.
    pub within: Duration,
    /// The most bytes of an answer that are read.
    pub limit: usize,
    /// What resolves names.
    pub lookup: Lookup,
    /// The time.
    pub clock: Clock,
}

impl Settings {
    /// The defaults, with a policy.
    pub fn new(hosts: HostPolicy) -> Self {
        Self {
            hosts,
            ca: Vec::new(),
            user_agent: concat!("belay/", env!("CARGO_PKG_VERSION")).to_owned(),
            within: Duration::from_secs(30),
            limit: 4 << 20,
            lookup: Lookup::system(),
            clock: Clock::machine(),
        }
    }
}

/// Asks registries.
pub struct Registry {
    http: reqwest::Client,
    hosts: Arc<HostPolicy>,
    patience: Mutex<Patience>,
    within: Duration,
    limit: usize,
    clock: Clock,
}

/// A request that is to be made.
pub(crate) struct Ask<'a> {
    pub(crate) stage: Stage,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: &'static str,
    pub(crate) auth: &'a RegistryAuth,
    /// Whose limit it counts against.
    pub(crate) who: Option<[u8; 32]>,
    /// Whether redirects are followed.
    pub(crate) follow: bool,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) host: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Registry {
    /// A client that has asked nothing yet. It goes through no proxy: the addresses behind a name
    /// could not be checked there.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        let Settings { hosts, ca, user_agent, within, limit, lookup, clock } = settings;
        let hosts = Arc::new(hosts);
        let resolver = CheckedResolver { hosts: hosts.clone(), lookup };
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .user_agent(user_agent)
            .connect_timeout(Duration::from_secs(10))
            .pool_max_idle_per_host(2)
            .tls_certs_merge(ca)
            .dns_resolver(Arc::new(resolver))
            .build()?;
        Ok(Self { http, hosts, patience: Mutex::default(), within, limit, clock })
    }

    pub(crate) fn hosts(&self) -> &HostPolicy {
        &self.hosts
    }

    /// The address of a registry, `HOST[:PORT]`.
    pub(crate) fn base(&self, registry: &str, stage: Stage) -> Result<Url, Trouble> {
        let host = registry.to_owned();
        let url: Url = format!("{}://{registry}", self.hosts.scheme(registry))
            .parse()
            .map_err(|_| Trouble::NotAllowed { host: host.clone(), stage, why: Refusal::Form })?;
        self.hosts.check(&url).map_err(|why| Trouble::NotAllowed { host, stage, why })?;
        Ok(url)
    }

    /// Ends work on a registry when its time is over.
    pub(crate) async fn timed<T>(
        &self,
        host: &str,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        tokio::time::timeout(self.within, work).await.unwrap_or_else(|_| {
            Err(Trouble::Deadline { host: host.to_owned(), seconds: self.within.as_secs() })
        })
    }

    /// Sends a request and reads the answer, of which 429, and 503 with a time, are trouble.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Result<Reply, Trouble> {
        let Ask { stage, method, mut url, accept, auth, who, follow } = ask;
        for hop in 0..=REDIRECTS {
            let host = name(&url);
            self.hosts.check(&url).map_err(|why| Trouble::NotAllowed {
                host: host.clone(),
                stage,
                why,
            })?;
            let now = self.clock.now();
            if let Some(until) = self.patience().closed(&host, who, now) {
                return Err(Trouble::Throttled { host, stage, until, asked: false });
            }
            let mut request = self.http.request(method.clone(), url.clone());
            if !accept.is_empty() {
                request = request.header(header::ACCEPT, accept);
            }
            // Never behind a redirect: it would go to whomever the registry names.
            request = match auth {
                RegistryAuth::Bearer(token) if hop == 0 => request.bearer_auth(token),
                RegistryAuth::Basic(user, password) if hop == 0 => {
                    request.basic_auth(user, Some(password))
                }
                _ => request,
            };
            let answer = request.send().await.map_err(|error| transport(&host, stage, error))?;
            let status = answer.status();
            let next = answer
                .headers()
                .get(header::LOCATION)
                .and_then(|location| url.join(location.to_str().ok()?).ok())
                .filter(|_| follow && hop < REDIRECTS && is_redirect(status));
            if let Some(next) = next {
                url = next;
                continue;
            }
            return self.read(host, stage, who, answer).await;
        }
        // The last hop always returns.
        let (host, status) = (name(&url), StatusCode::LOOP_DETECTED.as_u16());
        Err(Trouble::Upstream { host, stage, status })
    }

    async fn read(
        &self,
        host: String,
        stage: Stage,
        who: Option<[u8; 32]>,
        answer: reqwest::Response,
    ) -> Result<Reply, Trouble> {
        let answer: http::Response<reqwest::Body> = answer.into();
        let (head, body) = answer.into_parts();
        let body = match body::read(body, self.limit).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) if head.status.is_success() => {
                let problem = "the answer is too large";
                return Err(Trouble::Unreadable { host, stage, problem });
            }
            // What else a refusal says does not matter.
            Err(BodyError::TooLarge) => Bytes::new(),
            Err(BodyError::Broken(error)) => return Err(transport(&host, stage, error)),
        };
        let reply = Reply { host, status: head.status, headers: head.headers, body };
        match self.wait(&reply) {
            Some(until) => {
                let now = self.clock.now();
                self.patience().note(&reply.host, who, until, now);
                Err(Trouble::Throttled { host: reply.host, stage, until, asked: true })
            }
            None => Ok(reply),
        }
    }

    /// Until when an answer asks to wait.
    fn wait(&self, reply: &Reply) -> Option<Timestamp> {
        let now = self.clock.now();
        let named = retry_after::of(&reply.headers, now);
        let wait = match reply.status {
            StatusCode::TOO_MANY_REQUESTS => {
                named.or_else(|| retry_after::in_body(&reply.body, now)).unwrap_or(PATIENCE)
            }
            StatusCode::SERVICE_UNAVAILABLE => named?,
            _ => return None,
        };
        Some(after(now, wait))
    }

    fn patience(&self) -> std::sync::MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Reply {
    /// What any other status than the wanted one comes to.
    pub(crate) fn trouble(self, stage: Stage) -> Trouble {
        let (host, status) = (self.host, self.status.as_u16());
        match status {
            401 | 403 => Trouble::Denied { host, stage, status },
            _ => Trouble::Upstream { host, stage, status },
        }
    }

    pub(crate) fn unreadable(self, stage: Stage, problem: &'static str) -> Trouble {
        Trouble::Unreadable { host: self.host, stage, problem }
    }
}

/// Host and port for people, and for the bucket of a limit.
pub(crate) fn name(url: &Url) -> String {
    match place(url) {
        Some((host, port)) if url.port().is_some() => format!("{host}:{port}"),
        Some((host, _)) => host,
        None => String::new(),
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// A refusal of the resolver's comes back inside of the transport's error.
fn transport(host: &str, stage: Stage, error: reqwest::Error) -> Trouble {
    let host = host.to_owned();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        if let Some(why) = inner.downcast_ref::<Refusal>() {
            return Trouble::NotAllowed { host, stage, why: why.clone() };
        }
        cause = inner.source();
    }
    Trouble::Transport { host, stage, source: error.without_url() }
}

//! One request to GitHub: bounded, conditional, within the budget, never twice.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::{
    Answer, Budget, Credential, ForgeError, Page,
    answer::{has_next, moved_to},
    etags::Etags,
    session::Session,
    wire::{WireError, says_limit},
};
use crate::clock::Clock;

/// How GitHub is asked.
#[derive(Clone)]
pub struct Settings {
    /// The base of the API: `https://api.github.com`, or `https://HOST/api/v3`.
    pub base: reqwest::Url,
    /// The credential.
    pub credential: Credential,
    /// The one `User-Agent`; GitHub demands one.
    pub user_agent: String,
    /// The time that one request has, to the last byte of its answer.
    pub within: Duration,
    /// The most bytes of an answer that are read.
    pub limit: usize,
    /// How many requests may be under way at a time. GitHub asks for few.
    pub at_once: usize,
    /// How many answers are remembered by their entity tag.
    pub remembered: usize,
    /// What the requests go through, see [`http_client`].
    pub http: reqwest::Client,
    /// The time.
    pub clock: Clock,
}

impl Settings {
    /// The defaults, for a server and a credential.
    pub fn new(base: reqwest::Url, credential: Credential, http: reqwest::Client) -> Self {
        Self {
            base,
            credential,
            user_agent: concat!("belay/", env!("CARGO_PKG_VERSION")).to_owned(),
            within: Duration::from_secs(30),
            limit: 4 << 20,
            at_once: 4,
            remembered: 16_384,
            http,
            clock: Clock::machine(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("base", &self.base.as_str())
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

/// The HTTP client for GitHub: no redirect is followed, nothing is sent twice. `ca` are trusted
/// beside the system's.
///
/// # Errors
/// When TLS cannot be set up.
pub fn http_client(
    ca: impl IntoIterator<Item = reqwest::Certificate>,
) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(Duration::from_secs(10))
        .tls_certs_merge(ca)
        .build()
}

/// Asks GitHub with one credential.
pub struct Client {
    settings: Settings,
    base: http::Uri,
    user_agent: HeaderValue,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    slots: Semaphore,
    budget: Mutex<Budget>,
    etags: Mutex<Etags>,
}

impl Client {
    /// A client that has asked nothing yet.
    ///
    /// # Errors
    /// [`ForgeError::Transport`] when the base is no HTTP address or the user agent no header.
    pub fn new(settings: Settings) -> Result<Self, ForgeError> {
        let invalid = |source: http::Error| ForgeError::Transport {
            path: settings.base.to_string(),
            source: source.into(),
        };
        let base = settings.base.as_str().trim_end_matches('/');
        let base = http::Uri::try_from(base).map_err(|error| invalid(error.into()))?;
        let user_agent =
            HeaderValue::from_str(&settings.user_agent).map_err(|error| invalid(error.into()))?;
        Ok(Self {
            base,
            user_agent,
            session: tokio::sync::Mutex::new(None),
            slots: Semaphore::new(settings.at_once.max(1)),
            budget: Mutex::new(Budget::default()),
            etags: Mutex::new(Etags::new(settings.remembered)),
            settings,
        })
    }

    /// What is left, as far as is known now.
    pub fn budget(&self) -> Budget {
        lock(&self.budget).clone()
    }

    /// Whether it asks without a credential.
    pub fn is_anonymous(&self) -> bool {
        self.settings.credential.is_anonymous()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// Reads `path`, which starts with `/` and stands below the base. An answer that was remembered
    /// is asked for by its entity tag.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn get<T>(&self, path: &str) -> Result<Answer<T>, ForgeError>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        let session = self.session().await?;
        // A closed semaphore would let everybody through; nobody closes it.
        let _slot = self.slots.acquire().await;
        if let Err(until) = self.budget().may_call(self.now()) {
            return Ok(Answer::Throttled { until, asked: false });
        }
        let remembered = lock(&self.etags).get(session.serial, path);
        let remembered = remembered.and_then(|entry| Some((entry.page::<T>()?, entry.etag)));
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/vnd.github+json");
        headers.insert(header::ACCEPT, json);
        if let Some((_, etag)) = &remembered {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        let asked = match session.ready().await {
            Ok(crab) => crab._get_with_headers(path, Some(headers)).await,
            Err(error) => Err(error),
        };
        let (head, body) = match asked {
            Ok(answer) => answer.into_parts(),
            Err(error) => return self.failed(path, error),
        };
        // Wire has read it.
        let body = body.collect().await.map(http_body_util::Collected::to_bytes);
        let body = body.map_err(|error| ForgeError::Transport {
            path: path.to_owned(),
            source: error.into(),
        })?;
        let refused = self.note(head.status, &head.headers, says_limit(&body));
        if let Some(until) = refused {
            return Ok(Answer::Throttled { until, asked: true });
        }
        let status = head.status.as_u16();
        Ok(match status {
            200 => {
                let value = Arc::new(decode(path, &body)?);
                let page = Page { value, more: has_next(&head.headers) };
                let mut etags = lock(&self.etags);
                match head.headers.get(header::ETAG) {
                    Some(etag) => etags.put(session.serial, path, etag.clone(), &page),
                    None => etags.forget(session.serial, path),
                }
                Answer::Fresh(page)
            }
            304 => match remembered {
                Some((page, _)) => Answer::NotModified(page),
                None => Answer::Upstream { status },
            },
            404 => {
                lock(&self.etags).forget(session.serial, path);
                Answer::Missing
            }
            301 | 302 | 307 | 308 => {
                Answer::Moved { id: moved_to(&head.headers, &self.settings.base) }
            }
            400..=499 => Answer::Denied { status },
            _ => Answer::Upstream { status },
        })
    }

    fn note(&self, status: StatusCode, headers: &HeaderMap, says_limit: bool) -> Option<Timestamp> {
        let now = self.now();
        lock(&self.budget).note(status, headers, says_limit, now).map(|wait| wait.until)
    }

    /// The session of the credential as it is now.
    async fn session(&self) -> Result<Arc<Session>, ForgeError> {
        let mut current = self.session.lock().await;
        let loaded = self.settings.credential.load().await?;
        let serial = match current.as_ref() {
            Some(session) if session.fingerprint == loaded.fingerprint => {
                return Ok(session.clone());
            }
            Some(session) => session.serial + 1,
            None => 0,
        };
        let session = Session::new(&self.settings, &self.user_agent, &self.base, loaded, serial)
            .map_err(|error| ForgeError::Transport {
                path: self.settings.base.to_string(),
                source: error.into(),
            })?;
        let session = Arc::new(session);
        if current.replace(session.clone()).is_some() {
            tracing::info!("GitHub's credential has changed");
            lock(&self.budget).renew();
            lock(&self.etags).keep_only(serial);
        }
        Ok(session)
    }

    /// What a request that brought no answer comes to.
    fn failed<T>(&self, path: &str, error: octocrab::Error) -> Result<Answer<T>, ForgeError> {
        let path = path.to_owned();
        let octocrab::Error::Service { source, .. } = error else {
            // A token that is not what GitHub documents ends here as well; what octocrab says of it
            // may quote the answer.
            let problem = "octocrab cannot use it";
            return Err(ForgeError::Unreadable { path, problem });
        };
        let wire = match source.downcast::<WireError>() {
            Ok(wire) => *wire,
            Err(source) => return Err(ForgeError::Transport { path, source }),
        };
        match wire {
            WireError::Transport(source) => Err(ForgeError::Transport { path, source }),
            WireError::Deadline => Err(ForgeError::Deadline { path, within: self.settings.within }),
            WireError::TooLarge => Err(ForgeError::TooLarge { path, limit: self.settings.limit }),
            WireError::Token { status, headers, says_limit } => {
                if let Some(until) = self.note_token(status, &headers, says_limit) {
                    return Ok(Answer::Throttled { until, asked: true });
                }
                let status = status.as_u16();
                Ok(match status {
                    // An installation that is gone says 404; what it would read is not missing.
                    400..=499 => Answer::Denied { status },
                    _ => Answer::Upstream { status },
                })
            }
        }
    }

    /// A refused token closes this credential too, but its numbers are those of the App.
    fn note_token(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        says_limit: bool,
    ) -> Option<Timestamp> {
        let now = self.now();
        let mut budget = lock(&self.budget);
        let before = budget.quota(now);
        let wait = budget.note(status, headers, says_limit, now);
        budget.set_quota(before);
        wait.map(|wait| wait.until)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The words of serde_json quote what they do not like; an answer's text is not repeated.
fn decode<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ForgeError> {
    serde_json::from_slice(body).map_err(|error| {
        let problem = match error.classify() {
            serde_json::error::Category::Data => "its fields are not those GitHub documents",
            serde_json::error::Category::Eof => "it ends in the middle",
            _ => "it is no JSON",
        };
        ForgeError::Unreadable { path: path.to_owned(), problem }
    })
}

/// What is behind these locks stays sound if a holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

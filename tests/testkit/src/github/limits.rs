//! Primary rate limits: how many requests an hour each credential has.
//!
//! Secondary limits have no counter to look at; they are scripted, see [`Reply::SecondaryLimit`].
//!
//! [`Reply::SecondaryLimit`]: super::script::Reply::SecondaryLimit

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::auth::Credential;

/// The length of a window: one hour.
pub const WINDOW: Duration = Duration::from_hours(1);

/// Requests an hour, as github.com grants them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Whether limits are on. Off is the default of GitHub Enterprise Server: nothing is refused,
    /// no `x-ratelimit-*` header is sent and `/rate_limit` answers 404.
    pub enabled: bool,
    /// Requests an hour without a credential, for each address.
    pub anonymous: u32,
    /// Requests an hour for each personal access token, installation and App.
    pub authenticated: u32,
    /// What a request above the limit is answered with: 403 or 429.
    pub exceeded_status: u16,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { enabled: true, anonymous: 60, authenticated: 5_000, exceeded_status: 403 }
    }
}

impl LimitSettings {
    /// As GitHub Enterprise Server comes: no limits.
    pub fn off() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    pub(crate) fn status(self) -> StatusCode {
        if self.exceeded_status == 429 {
            StatusCode::TOO_MANY_REQUESTS
        } else {
            StatusCode::FORBIDDEN
        }
    }

    fn of(self, credential: &Credential) -> u32 {
        if credential.is_authenticated() { self.authenticated } else { self.anonymous }
    }
}

/// What `x-ratelimit-*` say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) limit: u32,
    pub(crate) used: u32,
    pub(crate) reset: Timestamp,
}

impl Quota {
    pub(crate) fn remaining(self) -> u32 {
        self.limit.saturating_sub(self.used)
    }

    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let numbers = [
            ("x-ratelimit-limit", i64::from(self.limit)),
            ("x-ratelimit-remaining", i64::from(self.remaining())),
            ("x-ratelimit-reset", self.reset.as_second()),
            ("x-ratelimit-used", i64::from(self.used)),
        ];
        for (name, value) in numbers {
            headers.insert(name, HeaderValue::from(value));
        }
        headers.insert("x-ratelimit-resource", HeaderValue::from_static("core"));
    }
}

/// The windows of all credentials, by their label.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) settings: LimitSettings,
    windows: BTreeMap<String, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    reset: Timestamp,
    used: u32,
}

impl Limits {
    /// The quota of a credential, none when limits are off.
    pub(crate) fn quota(&mut self, credential: &Credential, now: Timestamp) -> Option<Quota> {
        let settings = self.settings;
        settings.enabled.then(|| {
            let limit = settings.of(credential);
            let window = self.window(&credential.bucket(), now);
            Quota { limit, used: window.used.min(limit), reset: window.reset }
        })
    }

    /// Charges one request.
    pub(crate) fn charge(&mut self, credential: &Credential, now: Timestamp) {
        let window = self.window(&credential.bucket(), now);
        window.used = window.used.saturating_add(1);
    }

    /// Uses up the window of the credential with this label.
    pub(crate) fn exhaust(&mut self, label: &str, now: Timestamp) {
        self.window(label, now).used = u32::MAX;
    }

    fn window(&mut self, label: &str, now: Timestamp) -> &mut Window {
        let fresh = Window { reset: now.saturating_add(WINDOW).unwrap_or(Timestamp::MAX), used: 0 };
        let window = self.windows.entry(label.to_owned()).or_insert(fresh);
        if now >= window.reset {
            *window = fresh;
        }
        window
    }
}

//! The clock by which tokens expire and rate-limit windows end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Where the scripted clock starts.
///
/// Either can be moved ahead at any time, so that no test waits for a window to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The machine's clock: for clients that compare times with their own.
    #[default]
    Machine,
    /// A time that stands still until it is moved: for tests that compare times exactly.
    Standing(Timestamp),
}

/// A [`Clock`] and how far it has been moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptedClock {
    start: Clock,
    ahead: SignedDuration,
}

impl ScriptedClock {
    pub(crate) fn new(start: Clock) -> Self {
        Self { start, ahead: SignedDuration::ZERO }
    }

    /// Whole seconds, as GitHub's times are.
    pub(crate) fn now(&self) -> Timestamp {
        let start = match self.start {
            Clock::Machine => Timestamp::now(),
            Clock::Standing(at) => at,
        };
        let now = start.saturating_add(self.ahead).unwrap_or(Timestamp::MAX);
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        self.ahead = self.ahead.saturating_add(by);
    }
}

/// As GitHub writes times in JSON: RFC 3339, UTC, whole seconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// As HTTP writes times in headers.
pub(crate) fn http_date(at: Timestamp) -> String {
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

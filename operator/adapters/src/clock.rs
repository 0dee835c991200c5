//! The time, handed in.

use std::{fmt, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};

/// What tells the time. Tests hand in one of their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Self {
        Self::of(Timestamp::now)
    }

    /// Any other one.
    pub fn of(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// `time` and `duration`, at most the end of time.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// From `start` to `end`; zero if that is not forward.
pub(crate) fn between(start: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(start)).unwrap_or_default()
}

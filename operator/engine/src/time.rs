//! Arithmetic of time that never overflows: users may write any duration.

use belay_api::Duration;
use jiff::{SignedDuration, Timestamp};

/// `time` and `duration`, at most the end of time.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    plus(time, signed(duration))
}

/// `time` and `duration`, at most the end of time.
pub(crate) fn plus(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX).min(end())
}

/// The last whole second that there is: Kubernetes keeps no more of a time.
fn end() -> Timestamp {
    Timestamp::from_second(Timestamp::MAX.as_second()).unwrap_or(Timestamp::MAX)
}

/// From `start` to `end`; zero if that is not forward.
pub(crate) fn between(start: Timestamp, end: Timestamp) -> SignedDuration {
    end.duration_since(start).max(SignedDuration::ZERO)
}

/// The same length of time.
pub(crate) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

/// The same length of time in whole seconds; zero if it is negative.
pub(crate) fn unsigned(duration: SignedDuration) -> Duration {
    Duration::from_secs(u64::try_from(duration.as_secs()).unwrap_or_default())
}

/// Keeps the earlier one in `wake`.
pub(crate) fn earlier(wake: &mut Option<Timestamp>, time: Timestamp) {
    *wake = Some(wake.map_or(time, |wake| wake.min(time)));
}

//! When a repository is read again.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::Quota;
use crate::clock::{after, between};

/// Without a credential an address has 60 requests an hour: one a minute, and some to spare.
const ANONYMOUS: Duration = Duration::from_secs(75);
/// With one, requests are spread so far even where the budget has no bottom: GitHub's secondary
/// limit is 900 a minute.
const SPACING: Duration = Duration::from_millis(100);
/// The longest interval after failures.
const CEILING: Duration = Duration::from_mins(10);

/// How the last reading went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that was wanted is known.
    Read,
    /// So many readings in a row failed, this one included.
    Failed {
        /// From 1.
        in_a_row: u32,
    },
    /// GitHub asks not to be called before then.
    Throttled {
        /// From when on it may be called again.
        until: Timestamp,
    },
}

/// What the time of the next reading depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The shortest interval.
    pub interval: Duration,
    /// Whether GitHub is asked without a credential.
    pub anonymous: bool,
    /// Repositories that are read with this credential.
    pub repositories: u32,
    /// Requests that the last reading took.
    pub requests: u32,
    /// What is left of the budget.
    pub quota: Option<Quota>,
}

/// When a repository is to be read again.
///
/// The interval is 60 s unless set otherwise; without a credential 75 s for each repository, where
/// that is longer; longer while less than a tenth of the budget is left, so that it lasts until the
/// window ends; doubled for each failure in a row, up to ten minutes. It is shortened at random by up
/// to a tenth, so that readings spread; a time that GitHub asked for is never shortened.
///
/// `seed` should differ between repositories and between readings.
pub fn next_poll(now: Timestamp, outcome: Outcome, pace: &Pace, seed: u64) -> Timestamp {
    let repositories = pace.repositories.max(1);
    let requests = repositories.saturating_mul(pace.requests.max(1));
    let mut interval = pace.interval;
    if pace.anonymous {
        interval = interval.max(ANONYMOUS.saturating_mul(repositories));
    } else {
        interval = interval.max(SPACING.saturating_mul(requests));
    }
    if let Some(quota) = pace.quota.filter(|quota| quota.remaining.saturating_mul(10) < quota.limit)
    {
        let left = u32::try_from(quota.remaining).unwrap_or(u32::MAX).max(1);
        let share = between(now, quota.reset).saturating_mul(requests) / left;
        interval = interval.max(share.min(between(now, quota.reset)));
    }
    if let Outcome::Failed { in_a_row } = outcome {
        let factor = 2_u32.saturating_pow(in_a_row.saturating_sub(1));
        let longer = interval.saturating_mul(factor).min(CEILING.max(interval));
        interval = interval.max(longer);
    }
    match outcome {
        Outcome::Throttled { until } => {
            // Not all at the same moment, and none of them early.
            let spread = scaled(interval, part(seed));
            after(until.max(now), spread.min(CEILING))
        }
        Outcome::Read | Outcome::Failed { .. } => {
            let shorter = scaled(interval / 10, part(seed));
            after(now, interval.saturating_sub(shorter))
        }
    }
}

/// A number below 2^16 that follows from the seed.
fn part(seed: u64) -> u16 {
    let [first, second, ..]: [u8; 32] = Sha256::digest(seed.to_le_bytes()).into();
    u16::from_le_bytes([first, second])
}

/// So many parts of 2^16 of a duration.
fn scaled(duration: Duration, part: u16) -> Duration {
    let nanos = duration.as_nanos().saturating_mul(u128::from(part)) >> 16;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        after(now(), Duration::from_secs(seconds))
    }

    const PACE: Pace = Pace {
        interval: Duration::from_mins(1),
        anonymous: false,
        repositories: 1,
        requests: 1,
        quota: None,
    };

    fn quota(limit: u64, remaining: u64, reset: u64) -> Quota {
        Quota { limit, remaining, reset: at(reset) }
    }

    #[rstest]
    #[case::plain(PACE, 60)]
    #[case::hundred(Pace { repositories: 100, ..PACE }, 60)]
    #[case::thousand_of_two(Pace { repositories: 1_000, requests: 2, ..PACE }, 200)]
    #[case::anonymous(Pace { anonymous: true, ..PACE }, 75)]
    #[case::anonymous_ten(Pace { anonymous: true, repositories: 10, ..PACE }, 750)]
    #[case::slower_by_choice(
        Pace { interval: Duration::from_mins(5), anonymous: true, repositories: 2, ..PACE },
        300
    )]
    #[case::plenty(Pace { quota: Some(quota(5_000, 500, 3_000)), ..PACE }, 60)]
    #[case::little(Pace { repositories: 10, quota: Some(quota(5_000, 100, 3_000)), ..PACE }, 300)]
    #[case::almost_nothing(Pace { repositories: 10, quota: Some(quota(5_000, 1, 3_000)), ..PACE }, 3_000)]
    #[case::none_but_soon(Pace { quota: Some(quota(5_000, 0, 10)), ..PACE }, 60)]
    fn the_interval_is_the_longest_that_a_reason_asks_for(
        #[case] pace: Pace,
        #[case] seconds: u64,
    ) {
        let full = Duration::from_secs(seconds);
        for seed in 0..50 {
            let wait = between(now(), next_poll(now(), Outcome::Read, &pace, seed));
            assert!(wait <= full && wait >= full * 9 / 10, "{wait:?}");
        }
    }

    #[rstest]
    #[case(1, 60)]
    #[case(2, 120)]
    #[case(4, 480)]
    #[case(5, 600)]
    #[case(u32::MAX, 600)]
    fn failures_in_a_row_double_it_up_to_ten_minutes(#[case] in_a_row: u32, #[case] seconds: u64) {
        let next = next_poll(now(), Outcome::Failed { in_a_row }, &PACE, 7);
        let wait = between(now(), next).as_secs_f64();
        let full = Duration::from_secs(seconds).as_secs_f64();
        assert!(wait <= full && wait >= full * 0.9, "{wait}");
    }

    #[test]
    fn seeds_spread_the_times() {
        let times: std::collections::BTreeSet<_> =
            (0..100).map(|seed| next_poll(now(), Outcome::Read, &PACE, seed)).collect();
        assert!(times.len() > 90, "{}", times.len());
    }

    proptest! {
        #[test]
        fn a_time_that_was_asked_for_is_never_shortened(
            seed: u64,
            wait in 0_u64..100_000,
            repositories in 0_u32..10_000,
            anonymous: bool,
        ) {
            let pace = Pace { anonymous, repositories, ..PACE };
            let until = at(wait);
            let next = next_poll(now(), Outcome::Throttled { until }, &pace, seed);
            prop_assert!(next >= until);
            prop_assert!(between(until, next) <= CEILING);
        }

        #[test]
        fn it_is_total(
            seed: u64,
            interval: u64,
            repositories: u32,
            requests: u32,
            limit: u64,
            remaining: u64,
            in_a_row: u32,
        ) {
            let quota = Some(Quota { limit, remaining, reset: Timestamp::MAX });
            let interval = Duration::from_secs(interval);
            let pace = Pace { interval, anonymous: false, repositories, requests, quota };
            let next = next_poll(now(), Outcome::Failed { in_a_row }, &pace, seed);
            prop_assert!(next >= now());
        }
    }
}

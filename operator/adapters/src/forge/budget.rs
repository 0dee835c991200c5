//! What is left of a credential's rate limit, and how long GitHub asks to wait.

use std::time::Duration;

use belay_api::gates::ForgeBudget;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

use crate::{
    clock::{after, between},
    retry_after,
};

/// The wait for a secondary limit that names none, and the longest it becomes by doubling.
const SECONDARY: Duration = Duration::from_mins(1);
const SECONDARY_CEILING: Duration = Duration::from_hours(1);
/// The wait for a primary limit that does not say when it ends.
const PRIMARY: Duration = Duration::from_mins(1);
/// Below this share of the limit the budget is low.
const LOW: u64 = 10;

/// What `x-ratelimit-*` say, in the machine's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Requests an hour.
    pub limit: u64,
    /// Requests that are left.
    pub remaining: u64,
    /// When the window ends.
    pub reset: Timestamp,
}

/// A wait that GitHub asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// From when on it may be called again.
    pub until: Timestamp,
    /// Whether it is the secondary limit: how the requests come, not how many.
    pub secondary: bool,
}

/// The budget of one credential. Pure: the time is an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    quota: Option<Quota>,
    not_before: Option<Timestamp>,
    strikes: u32,
}

impl Budget {
    /// Whether GitHub may be called.
    ///
    /// # Errors
    /// From when on.
    pub fn may_call(&self, now: Timestamp) -> Result<(), Timestamp> {
        match self.closed_until(now) {
            Some(until) => Err(until),
            None => Ok(()),
        }
    }

    fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let used_up = self.quota.filter(|quota| quota.remaining == 0).map(|quota| quota.reset);
        self.not_before.max(used_up).filter(|until| now < *until)
    }

    /// What the last answers said is left, while that window lasts.
    pub fn quota(&self, now: Timestamp) -> Option<Quota> {
        self.quota.filter(|quota| now < quota.reset)
    }

    /// The word for a status, and when the budget is there again.
    pub fn level(&self, now: Timestamp) -> (ForgeBudget, Option<Timestamp>) {
        if let Some(until) = self.closed_until(now) {
            return (ForgeBudget::Exhausted, Some(until));
        }
        let low =
            self.quota(now).is_some_and(|quota| quota.remaining.saturating_mul(LOW) < quota.limit);
        (if low { ForgeBudget::Low } else { ForgeBudget::Ok }, None)
    }

    /// Takes in an answer. `says_limit` is whether its body speaks of a rate limit: a secondary
    /// limit does not always name a time, and is then told from a plain refusal by its words alone.
    ///
    /// Returns the wait it asks for: the longest of `Retry-After`, the window's end where nothing is
    /// left, and, where neither is named, a minute that doubles with each time in a row.
    pub fn note(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        says_limit: bool,
        now: Timestamp,
    ) -> Option<Wait> {
        let quota = quota(headers, now);
        if let Some(quota) = quota {
            self.learn(quota);
        }
        let refused = matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
        if !refused {
            if !status.is_server_error() {
                self.strikes = 0;
            }
            return None;
        }
        let asked = retry_after::of(headers, now).map(|wait| after(now, wait));
        // One second more: the window's end is told in whole seconds.
        let used_up = quota
            .filter(|quota| quota.remaining == 0)
            .map(|quota| after(quota.reset.max(now), Duration::from_secs(1)));
        let secondary = !remaining_is_zero(headers);
        let until = match asked.max(used_up) {
            Some(until) => until,
            None if remaining_is_zero(headers) => after(now, PRIMARY),
            None if status == StatusCode::TOO_MANY_REQUESTS || says_limit => {
                let factor = 2_u32.saturating_pow(self.strikes);
                self.strikes = self.strikes.saturating_add(1);
                after(now, SECONDARY.saturating_mul(factor).min(SECONDARY_CEILING))
            }
            // Single sign-on, an IP allow list, a permission: waiting does not help.
            None => return None,
        };
        self.not_before = self.not_before.max(Some(until));
        Some(Wait { until, secondary })
    }

    /// A new token has a window of its own. A wait that was asked for stays: the secondary limit
    /// belongs to whoever asks, not to the token.
    pub fn renew(&mut self) {
        self.quota = None;
    }

    /// Puts a window back: that of an answer which belonged to another bucket counts for nothing.
    pub(crate) fn set_quota(&mut self, quota: Option<Quota>) {
        self.quota = quota;
    }

    /// Answers overtake each other: in one window the smallest number is the latest.
    fn learn(&mut self, new: Quota) {
        // A second of tolerance: the reset is converted by two clocks.
        let slack = Duration::from_secs(2);
        self.quota = Some(match self.quota {
            Some(old) if after(new.reset, slack) < old.reset => old,
            Some(old) if new.reset <= after(old.reset, slack) && new.limit == old.limit => {
                Quota { remaining: old.remaining.min(new.remaining), ..new }
            }
            _ => new,
        });
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    retry_after::whole(headers.get(name)?.to_str().ok()?.trim())
}

fn remaining_is_zero(headers: &HeaderMap) -> bool {
    number(headers, "x-ratelimit-remaining") == Some(0)
}

fn quota(headers: &HeaderMap, now: Timestamp) -> Option<Quota> {
    let remaining = number(headers, "x-ratelimit-remaining")?;
    let limit = number(headers, "x-ratelimit-limit").unwrap_or(remaining);
    let reset = number(headers, "x-ratelimit-reset")?;
    // A time that cannot be told is far away.
    let reset = i64::try_from(reset).ok().and_then(|reset| Timestamp::from_second(reset).ok());
    let reset = reset.unwrap_or(Timestamp::MAX);
    // By the server's own clock, which need not be this machine's; at most the day that is believed.
    let wait = between(retry_after::date(headers).unwrap_or(now), reset);
    Some(Quota { limit, remaining, reset: after(now, wait.min(retry_after::CEILING)) })
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    const NOW: i64 = 1_772_366_400;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(NOW + seconds).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn rate(remaining: u64, reset: i64) -> HeaderMap {
        headers(&[
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", &remaining.to_string()),
            ("x-ratelimit-reset", &(NOW + reset).to_string()),
        ])
    }

    fn with(mut headers: HeaderMap, name: &'static str, value: &str) -> HeaderMap {
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[rstest]
    #[case::retry_after(403, headers(&[("retry-after", "17")]), false, Some((17, true)))]
    #[case::retry_after_429(429, headers(&[("retry-after", "17")]), false, Some((17, true)))]
    #[case::window(403, rate(0, 100), false, Some((101, false)))]
    #[case::window_429(429, rate(0, 100), false, Some((101, false)))]
    #[case::window_is_later(403, with(rate(0, 100), "retry-after", "17"), false, Some((101, false)))]
    #[case::retry_is_later(403, with(rate(0, 10), "retry-after", "17"), false, Some((17, false)))]
    #[case::no_reset(403, headers(&[("x-ratelimit-remaining", "0")]), false, Some((60, false)))]
    #[case::reset_is_past(403, rate(0, -5), false, Some((1, false)))]
    #[case::date_beyond_all_years(
        429,
        headers(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]),
        false,
        Some((86_400, true))
    )]
    #[case::reset_beyond_all_years(
        403,
        with(rate(0, 1), "x-ratelimit-reset", "99999999999999"),
        false,
        Some((86_401, false))
    )]
    #[case::reset_is_no_number(403, with(rate(0, 1), "x-ratelimit-reset", "1e3"), false, Some((60, false)))]
    #[case::bare_429(429, rate(9, 100), false, Some((60, true)))]
    #[case::words(403, rate(9, 100), true, Some((60, true)))]
    #[case::bare_403(403, rate(9, 100), false, None)]
    #[case::unauthorised(401, headers(&[("retry-after", "17")]), false, None)]
    #[case::fine(200, rate(0, 100), false, None)]
    fn a_wait_is_as_long_as_the_longest_that_is_asked_for(
        #[case] status: u16,
        #[case] headers: HeaderMap,
        #[case] says_limit: bool,
        #[case] expected: Option<(i64, bool)>,
    ) {
        let mut budget = Budget::default();
        let status = StatusCode::from_u16(status).unwrap();
        let wait = budget.note(status, &headers, says_limit, now());
        let expected = expected.map(|(s, secondary)| Wait { until: at(s), secondary });
        assert_eq!(wait, expected);
        if let Some(wait) = wait {
            assert_eq!(budget.may_call(now()), Err(wait.until));
            assert_eq!(budget.may_call(wait.until), Ok(()));
        }
    }

    #[test]
    fn nothing_left_refuses_the_next_call_although_this_one_was_answered() {
        let mut budget = Budget::default();
        budget.note(StatusCode::OK, &rate(0, 100), false, now());
        assert_eq!(budget.may_call(now()), Err(at(100)));
        assert_eq!(budget.level(now()), (ForgeBudget::Exhausted, Some(at(100))));
        assert_eq!(budget.may_call(at(100)), Ok(()));
        assert_eq!(budget.level(at(100)), (ForgeBudget::Ok, None));
    }

    #[test]
    fn a_secondary_limit_without_a_time_doubles_until_a_call_succeeds() {
        let mut budget = Budget::default();
        let none = HeaderMap::new();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let wait = budget.note(StatusCode::FORBIDDEN, &none, true, now()).unwrap();
            waits.push(between(now(), wait.until).as_secs());
        }
        assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        budget.note(StatusCode::BAD_GATEWAY, &none, false, now());
        let wait = budget.note(StatusCode::FORBIDDEN, &none, true, now()).unwrap();
        assert_eq!(wait.until, at(3600), "a failure is no success");
        budget.note(StatusCode::NOT_MODIFIED, &none, false, now());
        let wait = budget.note(StatusCode::FORBIDDEN, &none, true, now()).unwrap();
        assert_eq!(wait.until, at(60));
        assert_eq!(budget.may_call(now()), Err(at(3600)), "a wait is never shortened");
    }

    #[test]
    fn a_server_whose_clock_is_off_is_read_by_its_own_date() {
        let mut budget = Budget::default();
        // Its clock is an hour ahead.
        let headers = with(rate(0, 3600 + 100), "date", "Sun, 01 Mar 2026 13:00:00 GMT");
        let wait = budget.note(StatusCode::FORBIDDEN, &headers, false, now()).unwrap();
        assert_eq!(wait.until, at(101));
    }

    #[test]
    fn answers_that_overtake_each_other_do_not_give_back() {
        let mut budget = Budget::default();
        let left = |budget: &Budget| budget.quota(now()).unwrap().remaining;
        for (remaining, reset, expected) in
            [(10, 100, 10), (11, 100, 10), (9, 100, 9), (50, 20, 9), (60, 200, 60)]
        {
            budget.note(StatusCode::OK, &rate(remaining, reset), false, now());
            assert_eq!(left(&budget), expected, "{remaining} until {reset}");
        }
    }

    #[rstest]
    #[case(60, ForgeBudget::Ok)]
    #[case(6, ForgeBudget::Ok)]
    #[case(5, ForgeBudget::Low)]
    #[case(0, ForgeBudget::Exhausted)]
    fn the_level_is_low_below_a_tenth(#[case] remaining: u64, #[case] level: ForgeBudget) {
        let mut budget = Budget::default();
        budget.note(StatusCode::OK, &rate(remaining, 100), false, now());
        assert_eq!(budget.level(now()).0, level);
    }

    #[test]
    fn a_server_without_limits_never_closes() {
        let mut budget = Budget::default();
        budget.note(StatusCode::OK, &HeaderMap::new(), false, now());
        assert_eq!((budget.may_call(now()), budget.quota(now())), (Ok(()), None));
    }

    #[test]
    fn a_new_token_has_a_new_window_and_the_same_wait() {
        let mut budget = Budget::default();
        budget.note(StatusCode::OK, &rate(0, 100), false, now());
        budget.renew();
        assert_eq!(budget.may_call(now()), Ok(()));
        budget.note(StatusCode::FORBIDDEN, &headers(&[("retry-after", "30")]), false, now());
        budget.renew();
        assert_eq!(budget.may_call(now()), Err(at(30)));
    }
}

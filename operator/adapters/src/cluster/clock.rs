//! The API server's time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

use crate::clock::{self, Clock};

/// How far an answer's `Date` may lie behind without showing anything: it has whole seconds, cut off,
/// and was written before the answer travelled.
const SLACK: Duration = Duration::from_secs(2);

/// The API server's clock, known from the `Date` of its answers and carried on by the machine's
/// monotonic one. What is compared with times that the server wrote must be told by its clock, not by
/// that of this machine.
///
/// Before the first answer it is the machine's. A clone is the same clock.
#[derive(Debug, Clone, Default)]
pub struct ServerClock(Arc<Mutex<Option<Anchor>>>);

/// A moment of both clocks.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    local: Instant,
    server: Timestamp,
}

impl Anchor {
    fn at(self, local: Instant) -> Timestamp {
        clock::after(self.server, local.saturating_duration_since(self.local))
    }

    /// The anchor after an answer. It was asked for at `asked` and is here at `now`, so the server's
    /// time now lies between `date` and, a second and the way later, the end of that.
    ///
    /// Forward it follows at once, for the server has passed `date`. Backward it follows only what
    /// neither whole seconds nor a slow way explain: time that goes back by a fraction of a second
    /// with each answer would be worse than one that is a little ahead.
    fn noted(last: Option<Self>, date: Timestamp, asked: Instant, now: Instant) -> Self {
        let fresh = Self { local: now, server: date };
        let Some(last) = last else { return fresh };
        let known = last.at(now);
        let way = now.saturating_duration_since(asked);
        let slack = SLACK.saturating_add(way);
        if known < date || known.duration_since(date) >= signed(slack) { fresh } else { last }
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

impl ServerClock {
    /// A clock that has not heard of the server yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of the `Date` of an answer that was asked for at `asked`.
    pub fn note(&self, date: Timestamp, asked: Instant) {
        let mut anchor = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *anchor = Some(Anchor::noted(*anchor, date, asked, Instant::now()));
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        let anchor = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        anchor.map_or_else(Timestamp::now, |anchor| anchor.at(Instant::now()))
    }

    /// The same as a [`Clock`].
    pub fn clock(&self) -> Clock {
        let this = self.clone();
        Clock::of(move || this.now())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Known at 12:00:00 of the server's clock; 10 s later an answer says this, after so long a way.
    #[rstest]
    #[case::exactly("12:00:10", 0, "12:00:10")]
    #[case::whole_seconds("12:00:09", 0, "12:00:10")]
    #[case::ahead_by_a_second("12:00:11", 0, "12:00:11")]
    #[case::ahead_by_an_hour("13:00:10", 0, "13:00:10")]
    #[case::behind_by_two_seconds("12:00:08", 0, "12:00:08")]
    #[case::behind_by_an_hour("11:00:10", 0, "11:00:10")]
    #[case::a_slow_way("12:00:05", 4, "12:00:10")]
    #[case::more_than_a_slow_way_explains("12:00:03", 5, "12:00:03")]
    #[case::ahead_after_a_slow_way("12:00:12", 5, "12:00:12")]
    fn it_follows_what_whole_seconds_do_not_explain(
        #[case] date: &str,
        #[case] way: u64,
        #[case] expected: &str,
    ) {
        let day = |clock: &str| time(&format!("2026-03-01T{clock}Z"));
        let start = Instant::now();
        let first = Anchor::noted(None, day("12:00:00"), start, start);
        let now = start + Duration::from_secs(10);
        let asked = now.checked_sub(Duration::from_secs(way)).unwrap();
        let anchor = Anchor::noted(Some(first), day(date), asked, now);
        assert_eq!(anchor.at(now), day(expected));
        let later = now + Duration::from_millis(1500);
        assert_eq!(anchor.at(later), day(expected) + SignedDuration::from_millis(1500));
    }

    #[test]
    fn many_answers_of_one_second_never_turn_it_back() {
        let start = Instant::now();
        let mut anchor = Anchor::noted(None, time("2026-03-01T12:00:00Z"), start, start);
        let mut last = anchor.at(start);
        // The server's clock is 0.9 s into its second when the first answer comes.
        for step in 1..200_u32 {
            let now = start + Duration::from_millis(50) * step;
            let seconds = (900 + 50 * i64::from(step)) / 1000;
            let date = time("2026-03-01T12:00:00Z") + SignedDuration::from_secs(seconds);
            anchor = Anchor::noted(Some(anchor), date, now, now);
            let time = anchor.at(now);
            assert!(time > last && time >= date, "{time} after {last}, {date} noted");
            last = time;
        }
    }

    #[test]
    fn before_the_first_answer_it_is_the_machines() {
        let clock = ServerClock::new();
        let before = Timestamp::now();
        let now = clock.now();
        assert!(before <= now && now <= Timestamp::now());
    }

    #[test]
    fn all_clones_know_what_one_has_noted() {
        let clock = ServerClock::new();
        let (other, handed) = (clock.clone(), clock.clock());
        let date = time("2031-01-01T00:00:00Z");
        other.note(date, Instant::now());
        assert!(clock.now() >= date);
        assert!(handed.now() >= date);
    }
}

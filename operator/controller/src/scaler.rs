//! Looking at a target's ScaledObject beside the passes, until it is another than it was.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use belay_adapters::cluster::Class;
use belay_engine::{
    Timestamp,
    observed::{Fact, Scaler},
};
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{
    images::words,
    key::Key,
    memory::{Reading, Scaling, wait_until},
    operator::Operator,
    stores::Seen,
};

/// The wait after the first look; each is longer by as much again.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// How long is looked for something new before the same is told again.
const LOOKS: Duration = Duration::from_secs(10);
/// The same, where time alone proves that a pause took hold: servers that do not say which version of
/// an HPA its controller has seen.
const LOOKS_BY_TIME: Duration = Duration::from_secs(1);
/// A reading younger than this is the one that was found wanting; an older one was merely old.
const FRESH: SignedDuration = SignedDuration::from_secs(5);

impl Operator {
    /// Reads the target's ScaledObject beside the passes, unless that is being done.
    pub(crate) fn look_at_scaler(self: &Arc<Self>, key: &Key, seen: &Seen) {
        let Some(name) = seen.workload.as_ref().and_then(|one| one.scaled_object.clone()) else {
            return;
        };
        let Some(look) = self.memory.of(key, |of| of.scaling.begin(&name)) else { return };
        let changed = self.stores.scaler_changed(key.namespace(), &name);
        let now = self.clock.now();
        let known = self.memory.peek(key, |of| of.scaling.fresh(&name, changed, now));
        let known = known.flatten();
        let (this, key) = (Arc::downgrade(self), key.clone());
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        // What has ended is let go of.
        while beside.try_join_next().is_some() {}
        beside.spawn(async move {
            let begun = Instant::now();
            let mut wait = Duration::ZERO;
            loop {
                let Some(this) = this.upgrade() else { return };
                let asked = Instant::now();
                let (found, pause) = this.read_scaler(&key, &name).await;
                let is_news = known.as_ref().is_none_or(|known| known.get() != found.get());
                if is_news || begun.elapsed() >= patience(&found) {
                    let is_kept =
                        this.memory.with(&key, |of| of.scaling.answer(look, found, asked));
                    if is_kept == Some(true) {
                        this.bell.ring(&key);
                    }
                    return;
                }
                if !this.memory.with(&key, |of| of.scaling.is_looking(look)).unwrap_or_default() {
                    return;
                }
                drop(this);
                wait = wait.saturating_add(FIRST).min(LONGEST).max(pause);
                tokio::time::sleep_until(Instant::now() + wait).await;
            }
        });
    }

    /// One reading, and how long to wait before the next at least.
    async fn read_scaler(&self, key: &Key, name: &str) -> (Fact<Scaler>, Duration) {
        let read = self.scalers.read(key.namespace(), name).await;
        let now = self.clock.now();
        match read {
            Ok(scaler) => (Fact::known(scaler, now), Duration::ZERO),
            Err(error) => {
                let wait = match error.class() {
                    Class::Throttled { until } => wait_until(now, until).max(LONGEST),
                    _ => LONGEST,
                };
                let why = belay_api::limits::clip(&words(&error), belay_api::limits::ITEM_MESSAGE);
                (Fact::Unknown { why, read: now }, wait)
            }
        }
    }
}

fn patience(found: &Fact<Scaler>) -> Duration {
    match found.value() {
        Some(Scaler::Found(facts))
            if facts.hpa.as_ref().is_some_and(|hpa| hpa.generation.is_none()) =>
        {
            LOOKS_BY_TIME
        }
        _ => LOOKS,
    }
}

impl Scaling {
    /// Begins to look, unless that is under way; returns the number of the look.
    fn begin(&mut self, name: &str) -> Option<u64> {
        if self.looking.as_ref().is_some_and(|(looked_at, _)| looked_at == name) {
            return None;
        }
        self.looks += 1;
        self.looking = Some((name.to_owned(), self.looks));
        Some(self.looks)
    }

    /// What was found wanting, so that something else must be found.
    fn fresh(&self, name: &str, changed: Option<Instant>, now: Timestamp) -> Option<Fact<Scaler>> {
        let known = self.current(name, changed)?;
        (now.duration_since(known.read()) < FRESH).then(|| known.clone())
    }

    fn is_looking(&self, look: u64) -> bool {
        self.looking.as_ref().is_some_and(|(_, number)| *number == look)
    }

    /// Keeps what was read, unless nobody waits for it any more.
    fn answer(&mut self, look: u64, found: Fact<Scaler>, begun: Instant) -> bool {
        let Some((scaled_object, _)) = self.looking.take_if(|(_, number)| *number == look) else {
            return false;
        };
        self.known = Some(Reading { scaled_object, found, begun });
        true
    }

    /// What was read of this ScaledObject last.
    fn reading(&self, name: &str) -> Option<&Fact<Scaler>> {
        self.known.as_ref().filter(|known| known.scaled_object == name).map(|known| &known.found)
    }

    /// The same, unless the ScaledObject was seen to change since.
    pub(crate) fn current(&self, name: &str, changed: Option<Instant>) -> Option<&Fact<Scaler>> {
        let is_old = |known: &Reading| changed.is_some_and(|changed| known.begun < changed);
        self.reading(name).filter(|_| !self.known.as_ref().is_some_and(is_old))
    }

    /// Forgets what was read, and what is being read: it has been written since.
    pub(crate) fn forget(&mut self) {
        self.known = None;
        self.looking = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(second: i64) -> Fact<Scaler> {
        Fact::known(Scaler::Missing, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn a_look_that_began_before_a_write_is_worth_nothing() {
        let (mut scaling, now) = (Scaling::default(), Instant::now());
        let first = scaling.begin("web").unwrap();
        assert_eq!(scaling.begin("web"), None, "one look at a time");
        scaling.forget();
        let second = scaling.begin("web").unwrap();
        assert!(!scaling.answer(first, known(1), now) && scaling.reading("web").is_none());
        assert!(scaling.is_looking(second) && scaling.answer(second, known(2), now));
        assert_eq!(scaling.reading("web"), Some(&known(2)));
        assert!(scaling.begin("web").is_some(), "it has ended");
        scaling.forget();
        assert_eq!(scaling.reading("web"), None);
    }

    #[test]
    fn another_scaled_object_takes_the_place_of_the_one_that_is_looked_at() {
        let (mut scaling, now) = (Scaling::default(), Instant::now());
        let web = scaling.begin("web").unwrap();
        let api = scaling.begin("api").unwrap();
        assert!(!scaling.answer(web, known(1), now) && scaling.answer(api, known(2), now));
        assert_eq!((scaling.reading("web"), scaling.reading("api")), (None, Some(&known(2))));
    }

    #[test]
    fn a_reading_of_what_has_changed_since_is_worth_nothing() {
        let mut scaling = Scaling::default();
        let look = scaling.begin("web").unwrap();
        let begun = Instant::now();
        let (before, after) = (begun - FIRST, begun + FIRST);
        scaling.answer(look, known(1), begun);
        assert!(scaling.current("web", None).is_some());
        assert!(scaling.current("web", Some(before)).is_some());
        assert!(scaling.current("web", Some(after)).is_none());
        assert!(scaling.current("api", None).is_none());
    }

    #[test]
    fn only_a_young_reading_was_found_wanting() {
        let mut scaling = Scaling::default();
        let look = scaling.begin("web").unwrap();
        scaling.answer(look, known(100), Instant::now());
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(scaling.fresh("web", None, at(104)), Some(known(100)));
        assert_eq!(scaling.fresh("web", None, at(105)), None);
        assert_eq!(scaling.fresh("api", None, at(100)), None);
    }
}

//! Whether the operator lives that a watch waits for: without it nothing moves, and nothing says so. Its
//! Lease is seen twice. It counts as not renewed if it has not changed for as long as it holds, or if
//! by the clock it ended long ago; two machines' clocks may differ by the margin.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt as _};
use tokio::time::Instant;

use super::view::{Options, seconds};
use crate::{
    Error,
    error::Class,
    print::{Line, Paint},
    read::Reader,
};

/// How long a Lease holds that does not say so; how long passes between two looks at most; and how long
/// one waits before saying that nothing can be known.
const PATIENCE: Duration = Duration::from_secs(15);

/// By how much two clocks may differ.
const MARGIN: Duration = Duration::from_mins(1);

/// The operators that are waited for, by their Leases.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    leases: BTreeMap<String, Watched>,
}

#[derive(Debug)]
struct Watched {
    begun: Instant,
    due: Instant,
    /// What was seen last, and since when it is the same.
    seen: Option<(Seen, Instant)>,
    silence: Option<Silence>,
}

/// A Lease, as far as it changes when it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    version: Option<String>,
    is_held: bool,
    renewed: Option<Timestamp>,
    holds: Duration,
}

/// What keeps silent, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Silence {
    fact: String,
    command: Option<String>,
}

impl Vigil {
    /// Looks at those Leases, `NAMESPACE/NAME`, for which it is time. Returns what is new, for people:
    /// each silence is told once.
    pub(super) async fn look(
        &mut self,
        reader: &Reader,
        instances: BTreeSet<String>,
        clock: Timestamp,
    ) -> Vec<String> {
        let now = Instant::now();
        let mut news = Vec::new();
        self.leases.retain(|instance, _| instances.contains(instance));
        for instance in instances {
            let Some((namespace, name)) = instance.split_once('/') else { continue };
            let watched = self.leases.entry(instance.clone()).or_insert_with(|| Watched {
                begun: now,
                due: now,
                seen: None,
                silence: None,
            });
            if now < watched.due {
                continue;
            }
            let api: Api<Lease> = Api::namespaced(reader.cluster.client.clone(), namespace);
            let attempt = format!("get leases.coordination.k8s.io \"{name}\"");
            let read = reader.within(&attempt, api.get_opt(name)).await;
            news.extend(watched.hear(
                &instance,
                read.map(|lease| lease.as_ref().map(Seen::of)),
                now,
                clock,
            ));
        }
        news
    }

    /// What is silent now, for a frame.
    pub(super) fn lines(&self, options: &Options) -> Vec<Line> {
        let silences = self.leases.values().filter_map(|watched| watched.silence.as_ref());
        let line = |silence: &Silence| {
            let fact = Line::new().with(Paint::Warn, silence.fact.clone());
            let fact = options.line("Operator", fact, Line::new());
            let command = silence.command.clone();
            let command = command.map(|command| options.line("See", command.into(), Line::new()));
            std::iter::once(fact).chain(command)
        };
        silences.flat_map(line).collect()
    }
}

impl Watched {
    fn hear(
        &mut self,
        instance: &str,
        read: Result<Option<Seen>, Error>,
        now: Instant,
        clock: Timestamp,
    ) -> Vec<String> {
        let namespace = instance.split('/').next().unwrap_or_default();
        let command = format!("kubectl get pods -n {namespace} -l app.kubernetes.io/name=belay");
        let before = self.silence.take();
        self.due = now + PATIENCE;
        self.silence = match read {
            Ok(Some(seen)) => {
                let pause = seen.holds.min(PATIENCE);
                self.due = now + pause;
                let since = match &self.seen {
                    Some((last, since)) if *last == seen => *since,
                    _ => now,
                };
                let same = now - since;
                let is_silent = same >= pause && (seen.has_ended(clock) || same >= seen.holds);
                let fact = seen.silence(instance);
                self.seen = Some((seen, since));
                is_silent.then_some(Silence { fact, command: Some(command) })
            }
            Ok(None) => {
                let fact = format!("the operator's Lease {instance} does not exist");
                (now - self.begun >= PATIENCE).then_some(Silence { fact, command: Some(command) })
            }
            Err(error) if error.class == Class::Forbidden && now - self.begun >= PATIENCE => {
                let fact = format!("whether the operator runs is unknown: {}", error.message);
                Some(Silence { fact, command: None })
            }
            // Whether it can be read is known next time.
            Err(_) => before.clone(),
        };
        match (&before, &self.silence) {
            (None, Some(silence)) => silence.notes(),
            (Some(Silence { command: Some(_), .. }), None) => {
                vec![format!("note: the operator's Lease {instance} is renewed again")]
            }
            _ => Vec::new(),
        }
    }
}

impl Silence {
    fn notes(&self) -> Vec<String> {
        let fact = format!("note: {}: nothing moves while no operator runs", self.fact);
        match &self.command {
            Some(command) => vec![fact, format!("hint: {command}")],
            None => vec![format!("note: {}", self.fact)],
        }
    }
}

impl Seen {
    fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds_held = spec.lease_duration_seconds.and_then(|count| u64::try_from(count).ok());
        let holds = seconds_held.map_or(PATIENCE, Duration::from_secs);
        Self {
            version: lease.resource_version(),
            is_held: spec.holder_identity.is_some_and(|holder| !holder.is_empty()),
            renewed: spec.renew_time.map(|time| time.0),
            holds: holds.max(Duration::from_secs(1)),
        }
    }

    /// Whether nobody holds it, or nobody did for long by the clock.
    fn has_ended(&self, clock: Timestamp) -> bool {
        let age = |renewed: Timestamp| Duration::try_from(clock.duration_since(renewed)).ok();
        let is_old = |age: Duration| age > self.holds.saturating_add(MARGIN);
        !self.is_held || self.renewed.and_then(age).is_some_and(is_old)
    }

    fn silence(&self, instance: &str) -> String {
        match (self.is_held, self.renewed) {
            (false, _) => format!("nobody holds the operator's Lease {instance}"),
            (true, Some(time)) => {
                let time = seconds(time);
                format!("the operator's Lease {instance} was not renewed since {time}")
            }
            (true, None) => format!("the operator's Lease {instance} was never renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Result<Option<Seen>, Error>;

    #[expect(clippy::unnecessary_wraps, reason = "a read is one of three answers")]
    fn seen(version: &str, is_held: bool) -> Read {
        Ok(Some(Seen {
            version: Some(version.to_owned()),
            is_held,
            renewed: Some(RENEWED.parse().unwrap()),
            holds: Duration::from_mins(5),
        }))
    }

    /// What is told of these reads, each so many seconds after the first.
    fn told(reads: Vec<(u64, Read)>, late: Duration) -> Vec<String> {
        let begun = Instant::now();
        let mut watched = Watched { begun, due: begun, seen: None, silence: None };
        let mut all = Vec::new();
        let clock: Timestamp = RENEWED.parse().unwrap();
        for (second, read) in reads {
            let passed = Duration::from_secs(second);
            all.extend(watched.hear("belay/operator", read, begun + passed, clock + late + passed));
        }
        all
    }

    const RENEWED: &str = "2026-11-30T02:10:04Z";

    const HINT: &str = "hint: kubectl get pods -n belay -l app.kubernetes.io/name=belay";

    const LOST: &str = "note: the operator's Lease belay/operator was not renewed since \
                        2026-11-30T02:10:04Z: nothing moves while no operator runs";

    #[test]
    fn a_lease_that_is_renewed_says_nothing() {
        let reads = || vec![(0, seen("1", true)), (15, seen("1", true)), (299, seen("1", true))];
        assert!(told(reads(), Duration::ZERO).is_empty());
        // The clocks differ.
        let renewed = vec![(0, seen("1", true)), (15, seen("2", true)), (30, seen("3", true))];
        assert!(told(renewed, Duration::from_hours(1)).is_empty());
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_told_once_and_so_is_its_return() {
        let reads = vec![
            (0, seen("1", true)),
            (15, seen("1", true)),
            (300, seen("1", true)),
            (315, seen("1", true)),
            (330, seen("2", true)),
        ];
        let back = "note: the operator's Lease belay/operator is renewed again";
        assert_eq!(told(reads, Duration::ZERO), [LOST, HINT, back]);
    }

    #[test]
    fn a_lease_that_ended_long_ago_is_told_at_the_second_look() {
        let reads = || vec![(0, seen("1", true)), (14, seen("1", true)), (15, seen("1", true))];
        assert_eq!(told(reads(), Duration::from_mins(7)), [LOST, HINT]);
        assert!(told(reads(), Duration::from_mins(5)).is_empty());
    }

    #[test]
    fn a_lease_without_a_holder_or_without_anything_is_told_too() {
        let all = told(vec![(0, seen("1", false)), (15, seen("1", false))], Duration::ZERO);
        assert!(all[0].starts_with("note: nobody holds the operator's Lease"), "{all:?}");
        let all = told(vec![(0, Ok(None)), (15, Ok(None))], Duration::ZERO);
        assert!(all[0].contains("Lease belay/operator does not exist"), "{all:?}");
        assert_eq!(all[1], HINT);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_gone() {
        let forbidden = || Err(Error::new(Class::Forbidden, "leases are not yours"));
        assert_eq!(
            told(vec![(0, forbidden()), (15, forbidden()), (30, forbidden())], Duration::ZERO),
            ["note: whether the operator runs is unknown: leases are not yours"]
        );
        let silent = || Err(Error::new(Class::Unreachable, "no answer"));
        assert!(
            told(vec![(0, silent()), (15, silent()), (30, silent())], Duration::ZERO).is_empty()
        );
    }
}

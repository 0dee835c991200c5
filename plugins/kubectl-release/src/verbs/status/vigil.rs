//! Whether the operator lives that a watch waits for: without it nothing moves, and nothing says so. Its
//! Lease is seen twice, as long apart as it holds: that the clocks of two machines differ is then no
//! matter.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

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

/// How long a Lease holds that does not say so, and how long one waits before saying that nothing can be
/// known.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a Lease is believed to hold at most: the next look is then.
const LONGEST: Duration = Duration::from_mins(1);

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
    renewed: Option<String>,
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
    ) -> Vec<String> {
        let namespace = instance.split('/').next().unwrap_or_default();
        let command = format!("kubectl get pods -n {namespace} -l app.kubernetes.io/name=belay");
        let before = self.silence.take();
        self.due = now + PATIENCE;
        self.silence = match read {
            Ok(Some(seen)) => {
                self.due = now + seen.holds;
                let since = match &self.seen {
                    Some((last, since)) if *last == seen => *since,
                    _ => now,
                };
                let holds = seen.holds;
                let renewed = seen.renewed.clone().unwrap_or_else(|| "it was made".to_owned());
                let fact = if seen.is_held {
                    format!("the operator's Lease {instance} was not renewed since {renewed}")
                } else {
                    format!("nobody holds the operator's Lease {instance} since {renewed}")
                };
                self.seen = Some((seen, since));
                (now - since >= holds).then_some(Silence { fact, command: Some(command) })
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
            renewed: spec.renew_time.map(|time| seconds(time.0)),
            holds: holds.clamp(Duration::from_secs(1), LONGEST),
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
            renewed: Some("2026-11-30T02:10:04Z".to_owned()),
            holds: Duration::from_secs(10),
        }))
    }

    /// What is told of these reads, each so many seconds after the first.
    fn told(reads: Vec<(u64, Read)>) -> Vec<String> {
        let begun = Instant::now();
        let mut watched = Watched { begun, due: begun, seen: None, silence: None };
        let mut all = Vec::new();
        for (second, read) in reads {
            all.extend(watched.hear("belay/operator", read, begun + Duration::from_secs(second)));
        }
        all
    }

    const HINT: &str = "hint: kubectl get pods -n belay -l app.kubernetes.io/name=belay";

    #[test]
    fn a_lease_that_is_renewed_says_nothing() {
        assert!(
            told(vec![(0, seen("1", true)), (10, seen("2", true)), (20, seen("3", true))])
                .is_empty()
        );
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_told_once_and_so_is_its_return() {
        let reads = vec![
            (0, seen("1", true)),
            (5, seen("1", true)),
            (10, seen("1", true)),
            (20, seen("1", true)),
            (30, seen("2", true)),
            (40, seen("3", true)),
        ];
        let lost = "note: the operator's Lease belay/operator was not renewed since \
                    2026-11-30T02:10:04Z: nothing moves while no operator runs";
        let back = "note: the operator's Lease belay/operator is renewed again";
        assert_eq!(told(reads), [lost, HINT, back]);
    }

    #[test]
    fn a_lease_without_a_holder_or_without_anything_is_told_too() {
        let told_of = told(vec![(0, seen("1", false)), (10, seen("1", false))]);
        assert!(told_of[0].starts_with("note: nobody holds the operator's Lease"), "{told_of:?}");
        let told_of = told(vec![(0, Ok(None)), (15, Ok(None))]);
        assert!(told_of[0].contains("Lease belay/operator does not exist"), "{told_of:?}");
        assert_eq!(told_of[1], HINT);
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_gone() {
        let forbidden = || Err(Error::new(Class::Forbidden, "leases are not yours"));
        assert_eq!(
            told(vec![(0, forbidden()), (15, forbidden()), (30, forbidden())]),
            ["note: whether the operator runs is unknown: leases are not yours"]
        );
        let silent = || Err(Error::new(Class::Unreachable, "no answer"));
        assert!(told(vec![(0, silent()), (15, silent()), (30, silent())]).is_empty());
    }
}

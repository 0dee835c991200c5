//! Whether other instances live, by what we have seen of their Leases.

use std::{
    collections::BTreeMap,
    error::Error as _,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use belay_api::names::is_dns1123_subdomain;
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::Client;

use crate::{clock::Clock, cluster::send::Sender};

/// How long one read may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long a Lease holds that does not say so itself, as Kubernetes' own do.
const DURATION: Duration = Duration::from_secs(15);

/// What is known of another instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// Its Lease has a holder and has changed lately.
    Held {
        /// After so long it has not, unless it changes before.
        wait: Duration,
    },
    /// It has no Lease, its Lease has no holder, or it has not changed for as long as it holds while
    /// we looked.
    NotHeld,
    /// That could not be read. It counts as held.
    Unknown {
        /// Why, in words for people.
        why: String,
    },
}

impl Sighting {
    /// Whether the instance must be left alone.
    pub fn is_held(&self) -> bool {
        !matches!(self, Self::NotHeld)
    }
}

/// Looks at the Leases of other instances. The times in them are never compared with a clock of
/// ours: one that has not changed for its whole duration by our monotonic clock is held no more.
#[derive(Debug, Clone)]
pub struct Sightings {
    sender: Sender,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
}

/// A Lease as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    uid: String,
    resource_version: String,
    renewed: Option<Timestamp>,
    duration: Duration,
    has_holder: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    record: Record,
    since: Instant,
}

impl Sightings {
    /// No sightings yet.
    pub fn new(client: Client) -> Self {
        let sender = Sender::new(client, Clock::machine(), PATIENCE);
        Self { sender, seen: Arc::default() }
    }

    /// Looks at the Lease of an instance, `NAMESPACE/NAME`.
    pub async fn look(&self, instance: &str) -> Sighting {
        let Some((namespace, name)) = instance.split_once('/') else { return Sighting::NotHeld };
        // Nothing else can be the name of a Lease.
        if !is_dns1123_subdomain(namespace) || !is_dns1123_subdomain(name) {
            return Sighting::NotHeld;
        }
        match super::read(&self.sender, namespace, name).await {
            Ok(lease) => self.see(instance, lease.as_ref(), Instant::now()),
            Err(error) => {
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                Sighting::Unknown { why: format!("{error}{cause}") }
            }
        }
    }

    fn see(&self, instance: &str, lease: Option<&Lease>, now: Instant) -> Sighting {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let record = lease.map(Record::of).filter(|record| record.has_holder);
        let Some(record) = record else {
            all.remove(instance);
            return Sighting::NotHeld;
        };
        let fresh = Seen { record, since: now };
        let seen = all.entry(instance.to_owned()).or_insert_with(|| fresh.clone());
        if seen.record != fresh.record {
            *seen = fresh;
        }
        let age = now.saturating_duration_since(seen.since);
        match seen.record.duration.checked_sub(age) {
            Some(wait) if !wait.is_zero() => Sighting::Held { wait },
            _ => Sighting::NotHeld,
        }
    }
}

impl Record {
    fn of(lease: &Lease) -> Self {
        let metadata = &lease.metadata;
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
            duration: seconds.map_or(DURATION, Duration::from_secs),
            has_holder: holder.is_some_and(|holder| !holder.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::fake::{Answer, Server};

    fn lease(spec: &Value) -> Lease {
        let metadata = json!({ "uid": "l-1", "resourceVersion": "1" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    fn held(renewed: &str) -> Lease {
        lease(&json!({
            "holderIdentity": "pod", "leaseDurationSeconds": 30,
            "renewTime": format!("2026-03-01T{renewed}.000000Z"),
        }))
    }

    fn wait(seconds: u64) -> Sighting {
        Sighting::Held { wait: Duration::from_secs(seconds) }
    }

    #[tokio::test]
    async fn a_lease_is_held_until_it_has_not_changed_for_its_duration_while_we_looked() {
        let sightings = Sightings::new(Server::default().client());
        let start = Instant::now();
        let see = |lease: Option<&Lease>, seconds| {
            sightings.see("a/b", lease, start + Duration::from_secs(seconds))
        };
        // However old the time in it is: it is of another clock.
        assert_eq!(see(Some(&held("00:00:00")), 0), wait(30));
        assert_eq!(see(Some(&held("00:00:00")), 29), wait(1));
        assert_eq!(see(Some(&held("00:00:10")), 29), wait(30), "it was renewed");
        assert_eq!(see(Some(&held("00:00:10")), 58), wait(1));
        assert_eq!(see(Some(&held("00:00:10")), 59), Sighting::NotHeld);
        assert_eq!(see(Some(&held("00:00:10")), 90), Sighting::NotHeld);
        assert_eq!(see(Some(&held("00:00:20")), 91), wait(30), "its holder has come back");
        assert_eq!(see(None, 92), Sighting::NotHeld);
        assert_eq!(see(Some(&held("00:00:20")), 93), wait(30), "another one of the name");
    }

    #[rstest]
    #[case::no_holder(json!({ "leaseDurationSeconds": 30 }), Sighting::NotHeld)]
    #[case::let_go(json!({ "holderIdentity": "" }), Sighting::NotHeld)]
    #[case::no_duration(json!({ "holderIdentity": "pod" }), wait(15))]
    #[case::a_duration_of_nothing(
        json!({ "holderIdentity": "pod", "leaseDurationSeconds": 0 }), Sighting::NotHeld
    )]
    #[case::nothing(Value::Null, Sighting::NotHeld)]
    #[tokio::test]
    async fn a_lease_says_whether_it_is_held(#[case] spec: Value, #[case] expected: Sighting) {
        let sightings = Sightings::new(Server::default().client());
        assert_eq!(sightings.see("a/b", Some(&lease(&spec)), Instant::now()), expected);
    }

    #[tokio::test]
    async fn any_change_of_the_object_is_a_sign_of_life() {
        let sightings = Sightings::new(Server::default().client());
        let start = Instant::now();
        let mut lease = held("00:00:00");
        sightings.see("a/b", Some(&lease), start);
        lease.metadata.resource_version = Some("2".to_owned());
        let later = start + Duration::from_secs(29);
        assert_eq!(sightings.see("a/b", Some(&lease), later), wait(30));
    }

    #[tokio::test]
    async fn what_cannot_be_read_counts_as_held() {
        let no = Answer::refusal(403, "Forbidden", "you may not", json!({ "name": "op" }));
        let server = Server::answering([no]);
        let sighting = Sightings::new(server.client()).look("belay/op").await;
        let why = "read Lease belay/op: the API server answered 403: you may not".to_owned();
        assert_eq!(sighting, Sighting::Unknown { why });
        assert!(sighting.is_held());
        let path = "/apis/coordination.k8s.io/v1/namespaces/belay/leases/op";
        assert_eq!(server.lines(), [format!("GET {path}")]);
    }

    #[rstest]
    #[case::missing("belay/op", 1)]
    #[case::no_name("belay", 0)]
    #[case::no_name_of_a_lease("belay/../op", 0)]
    #[tokio::test]
    async fn without_a_lease_nobody_holds_it(#[case] instance: &str, #[case] asked: usize) {
        let missing = Answer::refusal(404, "NotFound", "", json!({ "name": "op" }));
        let server = Server::answering([missing]);
        let sighting = Sightings::new(server.client()).look(instance).await;
        assert_eq!((sighting.is_held(), server.lines().len()), (false, asked));
    }
}

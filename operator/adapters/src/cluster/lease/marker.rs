//! The Lease that marks this operator's instance.

use std::{error::Error as _, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use crate::{
    clock::Clock,
    cluster::{
        WriteError,
        error::{Cause, Class},
        send::Sender,
    },
};

/// Leases hold for whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);

/// Which Lease, and whose.
#[derive(Debug, Clone)]
pub struct MarkerTerms {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who holds it: the name of the operator's pod.
    pub holder: String,
    /// For how long it holds after each renewal; at least a second. It is renewed every third of it.
    pub duration: Duration,
}

/// Keeps the Lease of this operator's instance, so that other instances see that it lives. It does
/// not decide who may act: whoever starts under the name takes it over. Dropping it stops the
/// renewal and leaves the Lease to expire.
#[derive(Debug)]
pub struct Marker {
    keeper: Keeper,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Drop for Marker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Marker {
    /// Begins to keep the Lease, from a task of the current runtime. What fails is logged and tried
    /// again.
    pub fn start(client: Client, clock: Clock, terms: MarkerTerms) -> Self {
        let every = terms.duration.max(SHORTEST) / 3;
        let keeper = Keeper { sender: Sender::new(client, clock.clone(), every), clock, terms };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn({
            let keeper = keeper.clone();
            async move {
                let mut stopped = stopped;
                loop {
                    let next = Instant::now() + every;
                    // A renewal is not broken off: it might reach the server after the release.
                    if let Err(error) = keeper.renew().await {
                        keeper.log(&error);
                    }
                    if tokio::time::timeout_at(next, &mut stopped).await.is_ok() {
                        return;
                    }
                }
            }
        });
        Self { keeper, stop: Some(stop), task }
    }

    /// Stops the renewal and lets the Lease go, so that a successor needs not wait for its end.
    ///
    /// # Errors
    /// [`WriteError`] if it could not be let go; then it expires.
    pub async fn release(mut self) -> Result<(), WriteError> {
        drop(self.stop.take());
        // An error means that the task was aborted or panicked: it renews no more either way.
        let _ = (&mut self.task).await;
        self.keeper.release().await
    }
}

#[derive(Debug, Clone)]
struct Keeper {
    sender: Sender,
    clock: Clock,
    terms: MarkerTerms,
}

impl Keeper {
    /// Creates the Lease, takes it over, or renews it.
    async fn renew(&self) -> Result<(), WriteError> {
        match self.read().await? {
            None => self.create().await,
            Some(lease) => self.replace(renewed(&lease, &self.terms, self.clock.now())).await,
        }
    }

    async fn release(&self) -> Result<(), WriteError> {
        match self.read().await?.and_then(|lease| released(lease, &self.terms)) {
            None => Ok(()),
            Some(lease) => self.replace(lease).await,
        }
    }

    async fn read(&self) -> Result<Option<Lease>, WriteError> {
        super::read(&self.sender, &self.terms.namespace, &self.terms.name).await
    }

    async fn create(&self) -> Result<(), WriteError> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.terms.name.clone()),
                namespace: Some(self.terms.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        };
        let lease = renewed(&lease, &self.terms, self.clock.now());
        let attempt = self.attempt("create");
        let body = body(&attempt, &lease)?;
        let request = super::path(&self.terms.namespace).create(&PostParams::default(), body);
        self.sender.send::<Lease>(&attempt, request).await.map(drop)
    }

    /// Replaces the Lease, if it is still the one that was read.
    async fn replace(&self, lease: Lease) -> Result<(), WriteError> {
        let attempt = self.attempt("renew");
        let body = body(&attempt, &lease)?;
        let path = super::path(&self.terms.namespace);
        let request = path.replace(&self.terms.name, &PostParams::default(), body);
        self.sender.send::<Lease>(&attempt, request).await.map(drop)
    }

    fn attempt(&self, what: &str) -> String {
        format!("{what} Lease {}/{}", self.terms.namespace, self.terms.name)
    }

    fn log(&self, error: &WriteError) {
        let why = error.source().map(ToString::to_string).unwrap_or_default();
        let MarkerTerms { namespace, name, .. } = &self.terms;
        tracing::warn!(namespace, name, %error, why, "the operator's Lease was not renewed");
    }
}

fn body(attempt: &str, lease: &Lease) -> Result<Vec<u8>, WriteError> {
    serde_json::to_vec(lease)
        .map_err(|error| WriteError::new(attempt, Class::Bug, Cause::Unsendable(error.to_string())))
}

/// The Lease after a renewal at `now`.
fn renewed(lease: &Lease, terms: &MarkerTerms, now: Timestamp) -> Lease {
    let mut lease = lease.clone();
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    if spec.holder_identity.as_ref() != Some(&terms.holder) {
        let before = spec.lease_transitions;
        spec.lease_transitions = Some(before.map_or(0, |count| count.saturating_add(1)));
        spec.acquire_time = Some(MicroTime(now));
        spec.holder_identity = Some(terms.holder.clone());
    }
    let seconds = terms.duration.max(SHORTEST).as_secs();
    spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// The Lease without a holder; `None` if the holder is somebody else.
fn released(mut lease: Lease, terms: &MarkerTerms) -> Option<Lease> {
    let spec = lease.spec.as_mut()?;
    if spec.holder_identity.as_ref() != Some(&terms.holder) {
        return None;
    }
    spec.holder_identity = None;
    spec.renew_time = None;
    spec.acquire_time = None;
    Some(lease)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::fake::{Answer, Server};

    fn terms() -> MarkerTerms {
        MarkerTerms {
            namespace: "belay".to_owned(),
            name: "op".to_owned(),
            holder: "pod-2".to_owned(),
            duration: Duration::from_secs(30),
        }
    }

    fn lease(spec: &Value) -> Lease {
        let metadata = json!({ "name": "op", "resourceVersion": "5" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    const BEFORE: &str = "2026-03-01T11:00:00.000000Z";
    const NOW: &str = "2026-03-01T12:00:00.000000Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    #[rstest]
    #[case::new(Value::Null, json!([NOW, 0]))]
    #[case::own(
        json!({ "holderIdentity": "pod-2", "acquireTime": BEFORE, "leaseTransitions": 3 }),
        json!([BEFORE, 3])
    )]
    #[case::of_a_predecessor(
        json!({ "holderIdentity": "pod-1", "acquireTime": BEFORE, "leaseTransitions": 3 }),
        json!([NOW, 4])
    )]
    #[case::let_go(json!({ "leaseTransitions": 3 }), json!([NOW, 4]))]
    fn a_renewal_takes_over_and_counts(#[case] spec: Value, #[case] expected: Value) {
        let renewed = renewed(&lease(&spec), &terms(), now());
        let found = serde_json::to_value(&renewed).unwrap();
        let spec = &found["spec"];
        assert_eq!(json!([spec["acquireTime"], spec["leaseTransitions"]]), expected);
        let rest = json!([spec["holderIdentity"], spec["leaseDurationSeconds"], spec["renewTime"]]);
        assert_eq!(rest, json!(["pod-2", 30, NOW]));
        assert_eq!(found["metadata"]["resourceVersion"], "5");
    }

    #[rstest]
    #[case::own("pod-2", true)]
    #[case::of_a_successor("pod-3", false)]
    fn only_ones_own_lease_is_let_go(#[case] holder: &str, #[case] expected: bool) {
        let held = lease(&json!({ "holderIdentity": holder, "leaseTransitions": 3 }));
        let released = released(held, &terms());
        assert_eq!(released.is_some(), expected);
        if let Some(spec) = released.and_then(|lease| lease.spec) {
            assert_eq!((spec.holder_identity, spec.lease_transitions), (None, Some(3)));
        }
    }

    /// Lets other tasks run until so much was asked.
    async fn asked(server: &Server, lines: usize) -> Vec<String> {
        for _ in 0..1000 {
            if server.lines().len() >= lines {
                break;
            }
            tokio::task::yield_now().await;
        }
        server.lines()
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_renewed_every_third_of_its_duration_and_let_go_at_the_end() {
        let own = serde_json::to_value(lease(&json!({ "holderIdentity": "pod-2" }))).unwrap();
        let server = Server::answering([
            Answer::refusal(404, "NotFound", "", json!({ "name": "op" })),
            Answer::of(201, &own),
            Answer::ok(&own),
            Answer::refusal(409, "Conflict", "modified", json!({ "name": "op" })),
            Answer::ok(&own),
            Answer::ok(&own),
            Answer::ok(&own),
            Answer::ok(&own),
        ]);
        let marker = Marker::start(server.client(), Clock::of(now), terms());
        let path = "/apis/coordination.k8s.io/v1/namespaces/belay/leases";
        let (get, put) = (format!("GET {path}/op"), format!("PUT {path}/op"));
        assert_eq!(asked(&server, 2).await, [get.clone(), format!("POST {path}")]);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(asked(&server, 3).await.len(), 2, "too early");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(asked(&server, 4).await[2..], [get.clone(), put.clone()]);
        // A conflict does not end it.
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(asked(&server, 6).await[4..], [get.clone(), put.clone()]);
        marker.release().await.unwrap();
        let all = server.asked();
        assert_eq!([&all[6].line, &all[7].line], [&get, &put]);
        assert_eq!(all[7].body["spec"].get("holderIdentity"), None);
        assert_eq!(all[7].body["metadata"]["resourceVersion"], "5");
        tokio::time::advance(Duration::from_mins(5)).await;
        assert_eq!(asked(&server, 9).await.len(), 8, "it is renewed no more");
    }
}

//! Metrics of the operator (operator specification, section 12).
//!
//! Counters and histograms are kept here as things happen; what merely is, such as the number of
//! targets, is asked for when the metrics are read. No label has values without a bound: words are
//! of closed sets, and of namespaces only so many are told apart.

mod definitions;
mod labels;
mod sample;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use belay_api::{
    NamedValue as _,
    gates::Verdict,
    reasons::SucceededReason,
    rollback::{Driver, InitiatorType},
};
use prometheus_client::{
    encoding::prometheus_text,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        histogram::Histogram,
        info::Info,
    },
    registry::{Metric, Registry},
};

pub use self::{
    definitions::{ALL, Definition, Kind},
    sample::{ForgeSample, Sample},
};
use self::{
    labels::{
        CategoryLabels, Namespaces, OutcomeLabels, RollbackLabels, VerdictLabels, WriteLabels,
    },
    sample::Sampler,
};

/// From one pass over local data to one that waits for a slow API server.
const PASS_SECONDS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
/// 5 s to 1 h.
const COMPLETION_SECONDS: [f64; 9] = [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
/// Bounds for the wait until a pause is proven, in seconds; it is given up after 30.
const PROOF_SECONDS: [f64; 8] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];
/// A Rollback has at most three attempts, hence two retries.
const RETRIES: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

/// All metrics of the operator.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<OutcomeLabels, Counter>,
    reconcile_duration: Histogram,
    writes: Family<WriteLabels, Counter>,
    releases: Family<VerdictLabels, Counter>,
    rollbacks: Family<RollbackLabels, Counter>,
    rollback_durations: Family<RollbackLabels, Histogram, Buckets>,
    rollback_retries: Family<RollbackLabels, Histogram, Buckets>,
    registry_requests: Family<CategoryLabels, Counter>,
    tugs_of_war: Counter,
    pause_proofs: Family<OutcomeLabels, Counter>,
    pause_proof_duration: Histogram,
    namespaces: Namespaces,
    sampler: Arc<OnceLock<Sampler>>,
}

/// Histograms with these upper bounds.
#[derive(Debug, Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

fn add(registry: &mut Registry, definition: &Definition, metric: impl Metric) {
    registry.register(definition.stem(), definition.help, metric);
}

impl Metrics {
    /// Metrics of an operator that has done nothing yet.
    pub fn new() -> Self {
        let sampler = Arc::<OnceLock<Sampler>>::default();
        let mut metrics = Self {
            registry: Registry::default(),
            reconciles: Family::default(),
            reconcile_duration: Buckets(&PASS_SECONDS).new_metric(),
            writes: Family::default(),
            releases: Family::default(),
            rollbacks: Family::default(),
            rollback_durations: Family::new_with_constructor(Buckets(&COMPLETION_SECONDS)),
            rollback_retries: Family::new_with_constructor(Buckets(&RETRIES)),
            registry_requests: Family::default(),
            tugs_of_war: Counter::default(),
            pause_proofs: Family::default(),
            pause_proof_duration: Buckets(&PROOF_SECONDS).new_metric(),
            namespaces: Namespaces::default(),
            sampler: Arc::clone(&sampler),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        add(registry, &definitions::RECONCILES, self.reconciles.clone());
        add(registry, &definitions::RECONCILE_DURATION, self.reconcile_duration.clone());
        add(registry, &definitions::WRITES, self.writes.clone());
        add(registry, &definitions::RELEASES, self.releases.clone());
        add(registry, &definitions::ROLLBACKS, self.rollbacks.clone());
        add(registry, &definitions::ROLLBACK_DURATION, self.rollback_durations.clone());
        add(registry, &definitions::ROLLBACK_RETRIES, self.rollback_retries.clone());
        add(registry, &definitions::REGISTRY_REQUESTS, self.registry_requests.clone());
        add(registry, &definitions::TUGS_OF_WAR, self.tugs_of_war.clone());
        add(registry, &definitions::PAUSE_PROOFS, self.pause_proofs.clone());
        add(registry, &definitions::PAUSE_PROOF_SECONDS, self.pause_proof_duration.clone());
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        add(registry, &definitions::BUILD, Info::new(version));
        registry.register_collector(Box::new(sample::Collected::new(&self.sampler)));
    }

    /// Says what to ask when the metrics are read. Only the first call counts.
    pub fn sample_with(&self, sample: impl Fn() -> Sample + Send + Sync + 'static) {
        // A second one would be a mistake of the caller that changes no figure.
        let _ = self.sampler.set(Sampler::new(sample));
    }

    /// A pass ended, with a word for how: `settled`, or the category of an error.
    pub fn reconciled(&self, outcome: &'static str, took: Duration) {
        self.reconciles.get_or_create(&OutcomeLabels { outcome }).inc();
        self.reconcile_duration.observe(took.as_secs_f64());
    }

    /// An object of this kind was written, or that was refused, with a word for how.
    pub fn wrote(&self, kind: &'static str, outcome: &'static str) {
        self.writes.get_or_create(&WriteLabels { kind, outcome }).inc();
    }

    /// An activation of a Release ended or was judged.
    pub fn release_ended(&self, verdict: Verdict) {
        self.releases.get_or_create(&VerdictLabels { verdict: verdict.as_str() }).inc();
    }

    /// A Rollback reached its end.
    pub fn rollback_ended(&self, ended: &RollbackEnded<'_>) {
        let labels = RollbackLabels {
            status: ended.status.as_str(),
            namespace: self.namespaces.label(ended.namespace),
            driver: ended.driver.as_str(),
            initiator_type: ended.initiator.as_str(),
        };
        self.rollbacks.get_or_create(&labels).inc();
        let duration = self.rollback_durations.get_or_create(&labels);
        duration.observe(ended.completion.as_secs_f64());
        self.rollback_retries.get_or_create(&labels).observe(f64::from(ended.retries));
    }

    /// A registry was asked for an image, with a word for the answer.
    pub fn registry_asked(&self, category: &'static str) {
        self.registry_requests.get_or_create(&CategoryLabels { category }).inc();
    }

    /// A target came to `Stalled/TugOfWar`.
    pub fn tug_of_war(&self) {
        self.tugs_of_war.inc();
    }

    /// A proof of a pause came, or did not come in time.
    pub fn pause_proof(&self, outcome: PauseProof) {
        let outcome = outcome.as_str();
        self.pause_proofs.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// From a claim to the image that was written under it.
    pub fn pause_proven_after(&self, took: Duration) {
        self.pause_proof_duration.observe(took.as_secs_f64());
    }

    /// The metrics in Prometheus' text format, [`Metrics::CONTENT_TYPE`].
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail; a metric that would not print must not stop the others.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }

    /// What [`Metrics::text`] is.
    pub const CONTENT_TYPE: &'static str = prometheus_text::CONTENT_TYPE;
}

/// What became of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseProof {
    /// A pause took hold.
    Proven,
    /// It has not been seen to, in time.
    Unproven,
    /// Autoscaling resumed.
    Resumed,
    /// It has not been seen to, in time.
    ResumeUnproven,
}

impl PauseProof {
    fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Unproven => "unproven",
            Self::Resumed => "resumed",
            Self::ResumeUnproven => "resume-unproven",
        }
    }
}

/// A Rollback that reached its end.
#[derive(Debug, Clone, Copy)]
pub struct RollbackEnded<'a> {
    /// How: the reason of its condition `Succeeded`.
    pub status: SucceededReason,
    /// Its namespace.
    pub namespace: &'a str,
    /// What carried it out.
    pub driver: Driver,
    /// Who began it.
    pub initiator: InitiatorType,
    /// From its start to its end.
    pub completion: Duration,
    /// Attempts after the first.
    pub retries: u32,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests;

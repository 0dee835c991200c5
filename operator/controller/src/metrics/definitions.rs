//! Names, labels and meaning of all metrics: what is registered, and what the reference lists.

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// The name under which it is read.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it counts or measures, without a full stop.
    pub help: &'static str,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Observations in buckets, with their sum and count.
    Histogram,
}

impl Kind {
    /// As Prometheus calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Definition {
    /// The name under which it is registered: the library adds `_total` and `_info`.
    pub(super) fn stem(&self) -> &'static str {
        let stem = self.name.strip_suffix("_total").or_else(|| self.name.strip_suffix("_info"));
        stem.unwrap_or(self.name)
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition { name, kind: Kind::Counter, labels, help }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Definition {
    Definition { name, kind: Kind::Histogram, labels, help }
}

const ROLLBACK: &[&str] = &["status", "namespace", "driver", "initiator_type"];

pub(super) const RECONCILES: Definition =
    counter("belay_reconcile_total", &["outcome"], "Passes over a target");
pub(super) const RECONCILE_DURATION: Definition = histogram(
    "belay_reconcile_duration_seconds",
    &[],
    "Time that a pass over a target took, its one write included",
);
pub(super) const WRITES: Definition = counter(
    "belay_write_total",
    &["kind", "outcome"],
    "Writes to the API server, those that were refused included",
);
pub(super) const RELEASES: Definition = counter(
    "belay_release_ended_total",
    &["verdict"],
    "Activations of Releases that ended or were judged",
);
pub(super) const ROLLBACKS: Definition =
    counter("belay_rollback_terminal_total", ROLLBACK, "Rollbacks that reached their end");
pub(super) const ROLLBACK_DURATION: Definition = histogram(
    "belay_rollback_completion_duration_seconds",
    ROLLBACK,
    "Time from the start of a Rollback to its end",
);
pub(super) const ROLLBACK_RETRIES: Definition = histogram(
    "belay_rollback_retry_count",
    ROLLBACK,
    "Attempts after the first that a Rollback had when it ended",
);
pub(super) const REGISTRY_REQUESTS: Definition = counter(
    "belay_registry_checks_total",
    &["category"],
    "Images that a registry was asked for, by what it said or why that is not known",
);
pub(super) const TUGS_OF_WAR: Definition = counter(
    "belay_tug_of_war_total",
    &[],
    "Targets that Belay gave up on because another manager put its own image back each time",
);
pub(super) const PAUSES: Definition =
    gauge("belay_pauses", &[], "Pauses of ScaledObjects that this operator claims");
pub(super) const PAUSES_OVERDUE: Definition = gauge(
    "belay_pauses_overdue",
    &[],
    "Claimed pauses of ScaledObjects, whichever operator's, that should have ended by now",
);
pub(super) const PAUSE_PROOFS: Definition = counter(
    "belay_pause_proofs_total",
    &["outcome"],
    "Proofs that a pause took hold (proven, unproven), or that autoscaling resumed after it (resumed, \
     resume-unproven)",
);
pub(super) const PAUSE_PROOF_SECONDS: Definition = histogram(
    "belay_pause_proof_duration_seconds",
    &[],
    "Time from the claim of a pause to the image that was written once it was proven",
);
pub(super) const BUILD: Definition =
    gauge("belay_build_info", &["version"], "Version of the operator; always 1");
pub(super) const TARGETS: Definition = gauge("belay_targets", &[], "Targets that are followed");
pub(super) const STALLED: Definition =
    gauge("belay_targets_stalled", &["reason"], "Targets that are stalled, by the reason");
pub(super) const FORGE_POLLS: Definition =
    counter("belay_forge_polls_total", &[], "Readings of repositories");
pub(super) const FORGE_REQUESTS: Definition =
    counter("belay_forge_requests_total", &[], "Requests that GitHub answered");
pub(super) const FORGE_NOT_MODIFIED: Definition = counter(
    "belay_forge_not_modified_total",
    &[],
    "Requests that GitHub answered with 304, which use up no budget",
);
pub(super) const FORGE_LIMIT: Definition = gauge(
    "belay_forge_budget_limit",
    &[],
    "Requests an hour that GitHub grants; absent while it has said none",
);
pub(super) const FORGE_REMAINING: Definition = gauge(
    "belay_forge_budget_remaining",
    &[],
    "Requests that are left of GitHub's budget; absent while it has said none",
);
pub(super) const FORGE_RESET: Definition = gauge(
    "belay_forge_budget_reset_timestamp_seconds",
    &[],
    "When GitHub's budget is whole again; absent while it has said none",
);
pub(super) const FORGE_SUCCESS: Definition = gauge(
    "belay_forge_last_success_timestamp_seconds",
    &[],
    "When a repository was last read without trouble; absent before the first time",
);

/// All metrics, in the order of the reference.
pub const ALL: [&Definition; 23] = [
    &RELEASES,
    &ROLLBACKS,
    &ROLLBACK_DURATION,
    &ROLLBACK_RETRIES,
    &TARGETS,
    &STALLED,
    &TUGS_OF_WAR,
    &PAUSES,
    &PAUSES_OVERDUE,
    &PAUSE_PROOFS,
    &PAUSE_PROOF_SECONDS,
    &RECONCILES,
    &RECONCILE_DURATION,
    &WRITES,
    &FORGE_POLLS,
    &FORGE_REQUESTS,
    &FORGE_NOT_MODIFIED,
    &FORGE_LIMIT,
    &FORGE_REMAINING,
    &FORGE_RESET,
    &FORGE_SUCCESS,
    &REGISTRY_REQUESTS,
    &BUILD,
];

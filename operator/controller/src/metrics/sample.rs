//! What merely is, asked for when the metrics are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use belay_adapters::forge::{Poller, Quota};
use belay_api::{NamedValue as _, reasons::StalledReason};
use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::{
    definitions::{self, Definition},
    labels::ReasonLabels,
};

/// How things are at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Targets that are followed.
    pub targets: u64,
    /// Targets that are stalled. Reasons that are not here have none.
    pub stalled: BTreeMap<StalledReason, u64>,
    /// Pauses that this operator claims.
    pub pauses: u64,
    /// Claimed pauses that should have ended by now.
    pub pauses_overdue: u64,
    /// GitHub.
    pub forge: ForgeSample,
}

/// How it stands with GitHub at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgeSample {
    /// Readings of repositories since the start.
    pub polls: u64,
    /// Requests that were answered since the start.
    pub requests: u64,
    /// Of these with 304.
    pub not_modified: u64,
    /// What is left of the budget, where GitHub has said so.
    pub quota: Option<Quota>,
    /// When a repository was last read without trouble.
    pub last_success: Option<Timestamp>,
}

impl ForgeSample {
    /// As a poller has it at `now`.
    pub fn of(poller: &Poller, now: Timestamp) -> Self {
        let totals = poller.totals();
        Self {
            polls: totals.readings,
            requests: totals.requests,
            not_modified: totals.not_modified,
            quota: poller.forge().client().budget().quota(now),
            last_success: totals.last_success,
        }
    }
}

/// What makes a [`Sample`].
pub(super) struct Sampler(Box<dyn Fn() -> Sample + Send + Sync>);

impl Sampler {
    pub(super) fn new(sample: impl Fn() -> Sample + Send + Sync + 'static) -> Self {
        Self(Box::new(sample))
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sampler")
    }
}

/// A sample as metrics. Before there is a sampler there are none: absent is not zero.
#[derive(Debug)]
pub(super) struct Collected(Arc<OnceLock<Sampler>>);

impl Collected {
    pub(super) fn new(sampler: &Arc<OnceLock<Sampler>>) -> Self {
        Self(Arc::clone(sampler))
    }
}

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(Sampler(sample)) = self.0.get() else { return Ok(()) };
        let Sample { targets, stalled, pauses, pauses_overdue, forge } = sample();
        let mut out = Out(&mut encoder);
        out.gauge(&definitions::TARGETS, targets)?;
        out.stalled(&stalled)?;
        out.gauge(&definitions::PAUSES, pauses)?;
        out.gauge(&definitions::PAUSES_OVERDUE, pauses_overdue)?;
        let ForgeSample { polls, requests, not_modified, quota, last_success } = forge;
        out.counter(&definitions::FORGE_POLLS, polls)?;
        out.counter(&definitions::FORGE_REQUESTS, requests)?;
        out.counter(&definitions::FORGE_NOT_MODIFIED, not_modified)?;
        if let Some(quota) = quota {
            out.gauge(&definitions::FORGE_LIMIT, quota.limit)?;
            out.gauge(&definitions::FORGE_REMAINING, quota.remaining)?;
            out.gauge(&definitions::FORGE_RESET, seconds(quota.reset))?;
        }
        if let Some(time) = last_success {
            out.gauge(&definitions::FORGE_SUCCESS, seconds(time))?;
        }
        Ok(())
    }
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_second()).unwrap_or_default()
}

struct Out<'e, 'r>(&'e mut DescriptorEncoder<'r>);

impl Out<'_, '_> {
    fn gauge(&mut self, definition: &Definition, value: u64) -> fmt::Result {
        let gauge = ConstGauge::new(value);
        let help = format!("{}.", definition.help);
        let name = definition.stem();
        gauge.encode(self.0.encode_descriptor(name, &help, None, gauge.metric_type())?)
    }

    fn counter(&mut self, definition: &Definition, value: u64) -> fmt::Result {
        let counter = ConstCounter::new(value);
        let help = format!("{}.", definition.help);
        let name = definition.stem();
        counter.encode(self.0.encode_descriptor(name, &help, None, counter.metric_type())?)
    }

    /// Every reason, so that an alert sees a number go from 0 to 1 and not one appear.
    fn stalled(&mut self, stalled: &BTreeMap<StalledReason, u64>) -> fmt::Result {
        let definition = &definitions::STALLED;
        let help = format!("{}.", definition.help);
        let name = definition.stem();
        let mut family = self.0.encode_descriptor(name, &help, None, MetricType::Gauge)?;
        for reason in StalledReason::ALL {
            let value = stalled.get(reason).copied().unwrap_or_default();
            let labels = ReasonLabels { reason: reason.as_str() };
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

//! Predicates by which others judge rollouts, and where a recording shows that they are wrong.
//!
//! A recording that no longer shows its traps proves nothing: the recorder refuses it, and the tests
//! do so too.

use belay_engine::judge::Facts;
use jiff::{SignedDuration, Timestamp};

use super::{
    recording::Applied,
    replay::{LAG, Rollout, Sample, Truth},
};

/// A predicate that looks right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Naive {
    /// Failed: `Progressing` says `ProgressDeadlineExceeded`.
    GaveUp,
    /// The same, once the controller has seen the generation.
    GaveUpObserved,
    /// The same, with a condition that is not older than the write.
    GaveUpSince,
    /// Failed: the deadline has passed since the write.
    DeadlineSinceWrite,
    /// Failed: a pod of the new template is not ready after success.
    PodUnready,
    /// Success: as many are available as are wanted.
    Available,
    /// Success: the condition `Available`.
    AvailableCondition,
    /// Success: as many are updated and available as are wanted.
    Updated,
    /// The same, once the controller has seen the generation.
    UpdatedObserved,
    /// The same with ready ones, all of them updated.
    ReadyObserved,
    /// Success: `Progressing` says `NewReplicaSetAvailable` of the generation.
    Complete,
    /// Success as `kubectl rollout status` has it, which is right but for zero replicas.
    RolloutStatus,
}

/// What a predicate claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// That the rollout has failed.
    Failure,
    /// That it has succeeded.
    Success,
}

impl Naive {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::GaveUp,
        Self::GaveUpObserved,
        Self::GaveUpSince,
        Self::DeadlineSinceWrite,
        Self::PodUnready,
        Self::Available,
        Self::AvailableCondition,
        Self::Updated,
        Self::UpdatedObserved,
        Self::ReadyObserved,
        Self::Complete,
        Self::RolloutStatus,
    ];

    /// What it claims when it holds.
    pub fn claim(self) -> Claim {
        match self {
            Self::GaveUp
            | Self::GaveUpObserved
            | Self::GaveUpSince
            | Self::DeadlineSinceWrite
            | Self::PodUnready => Claim::Failure,
            Self::Available
            | Self::AvailableCondition
            | Self::Updated
            | Self::UpdatedObserved
            | Self::ReadyObserved
            | Self::Complete
            | Self::RolloutStatus => Claim::Success,
        }
    }

    /// Whether it holds.
    pub fn holds(self, rollout: &Rollout, sample: &Sample) -> bool {
        let facts = &sample.facts;
        let is_observed = facts.observed_generation >= facts.generation;
        let has = |number: i32| number >= facts.wanted;
        let updated = facts.updated == facts.wanted && facts.available == facts.wanted;
        match self {
            Self::GaveUp => says(facts, "ProgressDeadlineExceeded"),
            Self::GaveUpObserved => is_observed && Self::GaveUp.holds(rollout, sample),
            Self::GaveUpSince => {
                let last_update = facts.progressing.as_ref().and_then(|one| one.last_update);
                Self::GaveUpObserved.holds(rollout, sample)
                    && last_update.is_some_and(|last| last >= rollout.applied.time)
            }
            Self::DeadlineSinceWrite => {
                deadline(&rollout.applied, facts).is_some_and(|end| sample.at >= end)
            }
            Self::PodUnready => {
                let was = rollout.samples.iter().take_while(|one| one.at <= sample.at);
                let succeeded = was.into_iter().any(|one| one.truth.has_succeeded());
                let pods = facts.pods.iter().flatten();
                succeeded && pods.into_iter().any(|pod| pod.is_new && !pod.deleting && !pod.ready)
            }
            Self::Available => has(facts.available),
            Self::AvailableCondition => {
                let status = sample.deployment.status.as_ref();
                let conditions = status.and_then(|status| status.conditions.as_ref());
                conditions
                    .into_iter()
                    .flatten()
                    .any(|condition| condition.type_ == "Available" && condition.status == "True")
            }
            Self::Updated => updated,
            Self::UpdatedObserved => is_observed && updated,
            Self::ReadyObserved => {
                let status = sample.deployment.status.as_ref();
                let ready = status.and_then(|status| status.ready_replicas).unwrap_or_default();
                let all_are_new = facts.replicas == facts.updated;
                is_observed && all_are_new && has(facts.updated) && has(ready)
            }
            Self::Complete => is_observed && says(facts, "NewReplicaSetAvailable"),
            Self::RolloutStatus => {
                let no_old = facts.replicas <= facts.updated;
                is_observed && has(facts.updated) && no_old && facts.available >= facts.updated
            }
        }
    }

    /// The samples of a rollout at which it is wrong: it claims a failure although the rollout ended
    /// well by itself, or a success that there was not.
    pub fn is_wrong_at(self, rollout: &Rollout) -> Vec<usize> {
        let claims = |sample: &usize| self.holds(rollout, &rollout.samples[*sample]);
        let is_wrong = |sample: &usize| match self.claim() {
            Claim::Failure => rollout.ends_well(),
            Claim::Success => !rollout.was(*sample, Truth::has_succeeded),
        };
        (0..rollout.samples.len()).filter(claims).filter(is_wrong).collect()
    }
}

/// What a rollout of a scenario must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// The predicate is wrong at one sample at least.
    Wrong(Naive),
    /// The predicate is wrong for as long as Kubernetes' own deadline.
    WrongForLong(Naive),
    /// Kubernetes' own deadline has passed, nothing came of the rollout, and no condition says so.
    NeverGivesUp,
    /// The condition `ReplicaFailure` is True although the generation is observed.
    ReplicaFailure,
    /// Pods of the old template are still being deleted when the first new one is there.
    OldStillEnding,
}

impl Trap {
    /// Whether the rollout shows it.
    pub fn is_shown_by(self, rollout: &Rollout) -> bool {
        let samples = &rollout.samples;
        match self {
            Self::Wrong(naive) => !naive.is_wrong_at(rollout).is_empty(),
            Self::WrongForLong(naive) => {
                let wrong = naive.is_wrong_at(rollout);
                let ends = wrong.first().zip(wrong.last());
                ends.is_some_and(|(first, last)| {
                    let long = samples[*last].at.duration_since(samples[*first].at);
                    let own = samples[*last].facts.progress_deadline.unwrap_or(i32::MAX);
                    long + LAG >= SignedDuration::from_secs(own.into())
                })
            }
            Self::NeverGivesUp => {
                let gave_up =
                    samples.iter().any(|sample| says(&sample.facts, "ProgressDeadlineExceeded"));
                let first = samples.iter().find(|sample| sample.truth.wanted > 0);
                let is_late = first.zip(samples.last()).is_some_and(|(first, last)| {
                    let own = last.facts.progress_deadline.unwrap_or(i32::MAX);
                    let own = SignedDuration::from_secs(own.into());
                    last.at.duration_since(first.at) > own + LAG
                });
                let succeeded = samples.iter().any(|sample| sample.truth.has_succeeded());
                !gave_up && is_late && !succeeded
            }
            Self::ReplicaFailure => samples.iter().any(|sample| {
                let facts = &sample.facts;
                facts.replica_failure.is_some() && facts.observed_generation >= facts.generation
            }),
            Self::OldStillEnding => samples.iter().any(|sample| {
                let mut pods = sample.facts.pods.iter().flatten();
                sample.truth.new > 0 && pods.any(|pod| !pod.is_new && pod.deleting)
            }),
        }
    }
}

fn says(facts: &Facts, reason: &str) -> bool {
    facts.progressing.as_ref().is_some_and(|condition| condition.reason == reason)
}

fn deadline(applied: &Applied, facts: &Facts) -> Option<Timestamp> {
    let own = SignedDuration::from_secs(facts.progress_deadline?.into());
    applied.time.checked_add(own).ok()
}

//! Act: at most one mutation, and what its answer means for the next pass.

use std::time::Duration;

use belay_adapters::cluster::{Class, Done, Place, ScaledObject, WriteError};
use belay_api::events::EventReason;
use belay_engine::{
    observed::{PauseRefused, Refusal, Refused},
    plan::{Intent, Notice, PauseIntent, Precondition, Step},
};

use crate::{images::words, key::Key, memory::wait_until, operator::Operator};

/// How soon a world that has moved on is looked at again, if no watch says how.
const AGAIN: Duration = Duration::from_millis(500);

/// The same for what has no workload, of which nothing is remembered from one failure to the next.
const UNFOLLOWED: Duration = Duration::from_secs(15);

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acted {
    /// It was carried out, or had been.
    Written,
    /// It was refused; the next decision knows why.
    Refused,
    /// It was not carried out, or that is not known.
    Failed,
}

impl Acted {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

impl Operator {
    /// Carries out one step; the next pass follows at once where the world has changed.
    pub(crate) async fn act(&self, key: &Key, place: Place<'_>, step: &Step) -> Acted {
        let kind = kind(step);
        if let Step::Apply(intent) = step
            && let Some(image) = intent.images.iter().find(|one| !self.allow.may_run(&one.image))
        {
            let message = format!("{} is not permitted, or does not exist", image.image);
            self.refused(key, intent, Refusal::Denied { message });
            return Acted::Refused;
        }
        let done = self.writer.act(place, step).await;
        if pause_of(step).is_some() {
            // What was read before it, or meanwhile, says nothing any more.
            self.memory.with(key, |of| of.scaling.forget());
        }
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                if let Some(cause) = refusal(&error)
                    && self.is_refused(key, place, step, cause)
                {
                    self.metrics.wrote(kind, error.category());
                    tracing::warn!(workload = %key, error = words(&error), "write");
                    return Acted::Refused;
                }
                return self.failed(key, kind, &error, least_wait(place));
            }
        };
        self.metrics.wrote(kind, if matches!(done, Done::Refused(_)) { "refused" } else { "ok" });
        tracing::info!(workload = %key, step = kind, what = what(step), "carried out");
        self.memory.of(key, crate::memory::OfWorkload::succeeded);
        match done {
            Done::Release(release) => {
                self.count_release(&release);
                self.stores.put(*release);
            }
            Done::Rollback(rollback) => {
                self.count_rollback(&rollback);
                self.stores.put(*rollback);
            }
            Done::Applied { workload, surprise } => {
                self.memory.of(key, |of| of.refused = None);
                if let Some(surprise) = surprise {
                    let message = belay_api::limits::clip(&surprise, 1_000);
                    let notice = Notice::of(EventReason::UnexpectedOwnership, message);
                    tracing::error!(workload = %key, surprise, "fields that belay owns");
                    self.tell(key, place.workload, vec![notice]).await;
                }
                if self.stores.look(key).workload.is_some() {
                    self.stores.put(*workload);
                }
            }
            Done::Paused(object) => {
                let why = self.stays_as_it_was(step, &object);
                self.stores.put(*object);
                if let Some(message) = why {
                    let message = message.to_owned();
                    if !self.is_refused(key, place, step, Refusal::Denied { message }) {
                        self.bell.ring_in(key, UNFOLLOWED);
                    }
                    return Acted::Refused;
                }
                self.memory.with(key, |of| of.pause_refused = None);
            }
            Done::Refused(cause) => {
                if !self.is_refused(key, place, step, cause) {
                    self.bell.ring_in(key, UNFOLLOWED);
                }
                return Acted::Refused;
            }
            Done::Deleted => self.deleted(key, place, step),
            // The watch has not shown it yet.
            Done::Exists => {
                self.bell.ring_in(key, AGAIN);
                return Acted::Written;
            }
        }
        self.bell.ring(key);
        Acted::Written
    }

    fn deleted(&self, key: &Key, place: Place<'_>, step: &Step) {
        use belay_api::{Release, ReleaseTarget, Rollback};

        let namespace = key.namespace();
        match step {
            Step::DeleteRelease { name, .. } => self.stores.forget::<Release>(namespace, name),
            Step::DeleteRollback { name, .. } => self.stores.forget::<Rollback>(namespace, name),
            Step::DeleteTarget { .. } => {
                self.stores.forget::<ReleaseTarget>(namespace, place.target);
            }
            _ => {}
        }
    }

    /// Why a write of a pause would be decided again at once, and without end.
    fn stays_as_it_was(&self, step: &Step, answer: &ScaledObject) -> Option<&'static str> {
        let (_, from, is_drop) = pause_of(step)?;
        if answer.metadata.resource_version.as_ref() == Some(&from.resource_version) {
            return Some("the write changed nothing");
        }
        let left = self.pause.claim(&answer.metadata).filter(|_| is_drop)?;
        let is_left = match step {
            Step::RemovePause { .. } => !left.marks.is_empty(),
            _ => left.mode.is_some() || left.marks.is_empty(),
        };
        is_left.then_some("somebody puts back at once what is removed")
    }

    /// Remembers why a step was refused, if the next decision depends on it.
    fn is_refused(&self, key: &Key, place: Place<'_>, step: &Step, cause: Refusal) -> bool {
        if let Step::Apply(intent) = step {
            self.refused(key, intent, cause);
            return true;
        }
        let pause = pause_of(step).filter(|_| place.workload.is_some());
        let Some((scaled_object, _, is_drop)) = pause else { return false };
        let scaled_object = scaled_object.to_owned();
        let refused =
            PauseRefused { scaled_object, is_drop, times: 0, at: self.clock.now(), cause };
        self.memory.of(key, |of| of.refuse_pause(refused));
        self.bell.ring(key);
        true
    }

    /// Remembers why an apply was refused, for the next decision.
    fn refused(&self, key: &Key, intent: &Intent, cause: Refusal) {
        let refused = Refused {
            release: intent.release.clone(),
            attempt: intent.attempt,
            times: 0,
            generation: intent.generation,
            at: self.clock.now(),
            cause,
        };
        self.memory.of(key, |of| of.refuse(refused));
        self.bell.ring(key);
    }

    /// Decides by the class of an error alone when to look again; not before `least` where nothing
    /// says that the world has moved.
    pub(crate) fn failed(
        &self,
        key: &Key,
        kind: &'static str,
        error: &WriteError,
        least: Duration,
    ) -> Acted {
        self.metrics.wrote(kind, error.category());
        let wait = match error.class() {
            Class::Conflict => AGAIN,
            Class::Throttled { until } => wait_until(self.clock.now(), until).max(AGAIN),
            Class::Gone => {
                tracing::debug!(workload = %key, error = words(error), "its namespace goes");
                return Acted::Failed;
            }
            Class::Transient | Class::Denied | Class::Invalid | Class::Bug => {
                tracing::warn!(workload = %key, error = words(error), "write");
                self.memory.of(key, crate::memory::OfWorkload::failed).max(least)
            }
        };
        self.bell.ring_in(key, wait);
        Acted::Failed
    }
}

/// What the engine must know of an apply that failed; nothing where the world moved on, and it is to
/// be observed again.
fn refusal(error: &WriteError) -> Option<Refusal> {
    let message = belay_api::limits::clip(&words(error), belay_api::limits::ITEM_MESSAGE);
    match error.class() {
        Class::Denied | Class::Invalid | Class::Bug => Some(Refusal::Denied { message }),
        Class::Transient => Some(Refusal::Failed { message }),
        Class::Conflict | Class::Throttled { .. } | Class::Gone => None,
    }
}

fn least_wait(place: Place<'_>) -> Duration {
    if place.workload.is_some() { Duration::ZERO } else { UNFOLLOWED }
}

/// The ScaledObject of a step, what it was decided from, and whether a pause ends by it.
fn pause_of(step: &Step) -> Option<(&str, &Precondition, bool)> {
    match step {
        Step::ClaimPause(intent) => Some((&intent.scaled_object, &intent.from, false)),
        Step::DropPause { scaled_object, from } | Step::RemovePause { scaled_object, from, .. } => {
            Some((scaled_object, from, true))
        }
        _ => None,
    }
}

fn kind(step: &Step) -> &'static str {
    match step {
        Step::CreateRelease(_) => "create-release",
        Step::ReleaseStatus { .. } => "release-status",
        Step::BlockRelease { .. } => "block-release",
        Step::Apply(_) => "apply",
        Step::ClaimPause(_) => "claim-pause",
        Step::DropPause { .. } => "drop-pause",
        Step::RemovePause { .. } => "remove-pause",
        Step::CreateRollback(_) => "create-rollback",
        Step::RollbackStatus { .. } => "rollback-status",
        Step::DeleteRelease { .. } => "delete-release",
        Step::DeleteRollback { .. } => "delete-rollback",
        Step::DeleteTarget { .. } => "delete-target",
    }
}

/// The object of a step, for the log.
fn what(step: &Step) -> &str {
    match step {
        Step::CreateRelease(release) => release.metadata.name.as_deref().unwrap_or_default(),
        Step::CreateRollback(rollback) => rollback.metadata.name.as_deref().unwrap_or_default(),
        Step::ReleaseStatus { name, .. }
        | Step::BlockRelease { name, .. }
        | Step::RollbackStatus { name, .. }
        | Step::DeleteRelease { name, .. }
        | Step::DeleteRollback { name, .. } => name,
        Step::Apply(intent) => &intent.release,
        Step::ClaimPause(PauseIntent { scaled_object, .. })
        | Step::DropPause { scaled_object, .. }
        | Step::RemovePause { scaled_object, .. } => scaled_object,
        Step::DeleteTarget { uid } => uid,
    }
}

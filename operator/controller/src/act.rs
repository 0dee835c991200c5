//! Act: at most one mutation, and what its answer means for the next pass.

use std::time::Duration;

use belay_adapters::cluster::{Class, Done, Place, WriteError};
use belay_engine::{
    observed::{Refusal, Refused},
    plan::{Intent, Notice, Step},
};

use crate::{images::words, key::Key, memory::wait_until, operator::Operator};

/// How soon a world that has moved on is looked at again, if no watch says how.
const AGAIN: Duration = Duration::from_millis(500);

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
        let done = match self.writer.act(place, step).await {
            Ok(done) => done,
            Err(error) => {
                if let Step::Apply(intent) = step
                    && let Some(cause) = refusal(&error)
                {
                    self.metrics.wrote(kind, error.category());
                    tracing::warn!(workload = %key, error = words(&error), "apply images");
                    self.refused(key, intent, cause);
                    return Acted::Refused;
                }
                return self.failed(key, kind, &error);
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
                    let notice = Notice {
                        is_warning: true,
                        reason: "UnexpectedOwnership".to_owned(),
                        message: belay_api::limits::clip(&surprise, 1_000),
                    };
                    tracing::error!(workload = %key, surprise, "fields that belay owns");
                    self.tell(key, place.workload, vec![notice]).await;
                }
                if self.stores.look(key).workload.is_some() {
                    self.stores.put(*workload);
                }
            }
            Done::Refused(cause) => {
                if let Step::Apply(intent) = step {
                    self.refused(key, intent, cause);
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

    /// Decides by the class of an error alone when to look again.
    pub(crate) fn failed(&self, key: &Key, kind: &'static str, error: &WriteError) -> Acted {
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
                self.memory.of(key, crate::memory::OfWorkload::failed)
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

fn kind(step: &Step) -> &'static str {
    match step {
        Step::CreateRelease(_) => "create-release",
        Step::ReleaseStatus { .. } => "release-status",
        Step::BlockRelease { .. } => "block-release",
        Step::Apply(_) => "apply",
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
        Step::DeleteTarget { uid } => uid,
    }
}

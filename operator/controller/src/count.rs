//! Counts what ended, once: by the difference that a write made.

use std::time::Duration;

use belay_api::{
    Release, Rollback, gates::Verdict, reasons::SucceededReason, rollback::RollbackStatus,
};

use crate::{metrics::RollbackEnded, operator::Operator};

impl Operator {
    /// Counts a Release that this write judged.
    pub(crate) fn count_release(&self, written: &Release) {
        let namespace = written.metadata.namespace.as_deref().unwrap_or_default();
        let name = written.metadata.name.as_deref().unwrap_or_default();
        let before = self.stores.release(namespace, name);
        let judged = |release: &Release| -> Option<(i64, Verdict)> {
            let last = release.status.as_ref()?.activations.last()?;
            Some((last.ordinal, last.verdict.as_ref()?.known()?))
        };
        if let Some((ordinal, verdict)) = judged(written)
            && before.as_deref().and_then(judged) != Some((ordinal, verdict))
        {
            self.metrics.release_ended(verdict);
        }
    }

    /// Counts a Rollback that this write ended.
    pub(crate) fn count_rollback(&self, written: &Rollback) {
        let namespace = written.metadata.namespace.as_deref().unwrap_or_default();
        let name = written.metadata.name.as_deref().unwrap_or_default();
        let is_ended =
            |one: &Rollback| one.status.as_ref().is_some_and(RollbackStatus::is_terminal);
        let before = self.stores.rollback(namespace, name);
        if !is_ended(written) || before.as_deref().is_some_and(is_ended) {
            return;
        }
        let Some(status) = &written.status else { return };
        let reason = belay_api::conditions::find(&status.conditions, "Succeeded")
            .and_then(|condition| condition.reason.parse::<SucceededReason>().ok());
        let created = written.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let took = created
            .zip(status.completion_time.as_ref().map(|time| time.0))
            .and_then(|(start, end)| Duration::try_from(end.duration_since(start)).ok());
        let Some(reason) = reason else { return };
        self.metrics.rollback_ended(&RollbackEnded {
            status: reason,
            namespace,
            driver: written.spec.driver,
            initiator: written.spec.initiated_by.type_,
            completion: took.unwrap_or_default(),
            retries: u32::try_from(status.attempt_count.unwrap_or_default().saturating_sub(1))
                .unwrap_or_default(),
        });
    }
}

//! Counts what ended, once: by the difference that a write made.

use std::time::Duration;

use belay_api::{
    NamedValue as _, Release, Rollback,
    gates::Verdict,
    reasons::{Note, ProgressingReason, SucceededReason},
    rollback::RollbackStatus,
    target::TargetStatus,
};
use belay_engine::{observed::ClaimFacts, plan::Notice};

use crate::{
    key::Key,
    metrics::{PauseProof, RollbackEnded},
    operator::Operator,
    stores::Seen,
};

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

    /// Counts a pause under which an image was written, once for each claim.
    pub(crate) fn count_proof(&self, key: &Key, seen: &Seen, notices: &[Notice]) {
        let instance = &self.settings.instance;
        let ours = |held: &ClaimFacts| {
            let claim = held.claim.as_ref().filter(|claim| claim.instance == *instance)?;
            Some(claim.since)
        };
        let Some(since) = seen.claims.iter().find_map(|held| ours(held)) else { return };
        let is_new = self.memory.of(key, |of| of.proven.replace(since) != Some(since));
        if is_new && !notices.iter().any(|one| one.reason == Note::RolledUnpaused.as_str()) {
            self.metrics.pause_proof(PauseProof::Proven);
            let took = self.clock.now().duration_since(since);
            self.metrics.pause_proven_after(Duration::try_from(took).unwrap_or_default());
        }
    }

    /// Counts what a status says of proofs that the last one did not.
    pub(crate) fn count_pause(&self, old: Option<&TargetStatus>, new: &TargetStatus) {
        let reason = |status: &TargetStatus| {
            belay_api::conditions::find(&status.conditions, "Progressing")?.reason.parse().ok()
        };
        let (old, new) = (old.and_then(reason), reason(new));
        match (old, new) {
            (Some(ProgressingReason::CouldNotFreeze), _) => {}
            (_, Some(ProgressingReason::CouldNotFreeze)) => {
                self.metrics.pause_proof(PauseProof::Unproven);
            }
            (Some(ProgressingReason::Resuming), Some(ProgressingReason::Baking)) => {
                self.metrics.pause_proof(PauseProof::Resumed);
            }
            _ => {}
        }
    }

    /// Counts proofs that did not come, of which users are told.
    pub(crate) fn count_told(&self, news: &[Notice]) {
        for notice in news {
            if notice.reason == Note::RolledUnpaused.as_str() {
                self.metrics.pause_proof(PauseProof::Unproven);
            } else if notice.reason == Note::ResumeUnproven.as_str() {
                self.metrics.pause_proof(PauseProof::ResumeUnproven);
            }
        }
    }
}

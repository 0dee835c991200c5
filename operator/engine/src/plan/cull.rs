//! Removing what is no longer kept (the operator specification, sections 7 and 9).

use belay_api::{Release, reasons::Note};

use super::{
    Flow, Step,
    failure::is_counted,
    resolve::was_healthy,
    view::{Pass, is_same, name, precondition, rollback_name},
};

const RELEASES: usize = 30;
const ROLLBACKS: usize = 10;

impl<'a> Pass<'a> {
    pub(super) fn cull(&mut self) -> Flow {
        let limit = self.release_limit();
        if let Some(release) = self.excess_release(limit) {
            let step = Step::DeleteRelease {
                name: name(release).to_owned(),
                from: precondition(&release.metadata),
            };
            return self.draft.step(step);
        }
        let ended: Vec<_> = self
            .rollbacks
            .iter()
            .copied()
            .filter(|one| {
                one.status.as_ref().is_some_and(belay_api::rollback::RollbackStatus::is_terminal)
            })
            .collect();
        // What the breaker counts stays, and what tells how the active Release came.
        let may_go = |one: &&&belay_api::Rollback| {
            !is_counted(one, self.now) && !self.explains_active(rollback_name(one))
        };
        if ended.len() > ROLLBACKS
            && let Some(oldest) = ended.iter().find(may_go)
        {
            let step = Step::DeleteRollback {
                name: rollback_name(oldest).to_owned(),
                from: precondition(&oldest.metadata),
            };
            return self.draft.step(step);
        }
        Flow::Continue(())
    }

    fn explains_active(&self, rollback: &str) -> bool {
        let Some(active) = self.active else { return false };
        self.rollbacks.iter().filter(|one| rollback_name(one) == rollback).any(|one| {
            let status = one.status.as_ref();
            [
                status.and_then(|status| status.to_release_ref.as_ref()),
                status.and_then(|status| status.from_release_ref.as_ref()),
            ]
            .into_iter()
            .flatten()
            .any(|reference| reference.name == name(active))
        })
    }

    fn release_limit(&mut self) -> usize {
        let Some(text) = &self.surroundings.release_limit else { return RELEASES };
        match text.parse::<usize>() {
            Ok(limit) if limit > 0 => limit,
            _ => {
                let text = belay_api::limits::clip(text, 100);
                let message = format!("{text:?} is no release limit; {RELEASES} is used");
                self.draft.note(Note::ReleaseLimitInvalid, message);
                RELEASES
            }
        }
    }

    /// The oldest Release that may go, if there are more than `limit`.
    fn excess_release(&self, limit: usize) -> Option<&'a Release> {
        if self.releases.len() <= limit {
            return None;
        }
        let newest_healthy = self
            .releases
            .iter()
            .copied()
            .filter(|release| was_healthy(release))
            .max_by(|one, other| self.by_age(one, other));
        let is_kept = |release: &Release| {
            self.active.is_some_and(|active| is_same(active, release))
                || newest_healthy.is_some_and(|healthy| is_same(healthy, release))
                || self.is_wanted(release)
                || self.is_blocking(release)
                || self.is_referenced(release)
        };
        self.releases
            .iter()
            .copied()
            .filter(|release| !is_kept(release))
            .min_by(|one, other| self.by_age(one, other))
    }

    /// Whether a move to it is about to begin.
    fn is_wanted(&self, release: &Release) -> bool {
        let wanted = self.draft.wanted.as_ref().and_then(|(_, name)| name.as_deref());
        wanted == Some(name(release))
    }

    /// F is kept while it is not lower than the active Release.
    fn is_blocking(&self, release: &Release) -> bool {
        let counts = self.block(release).is_some_and(|block| block.counts_at(self.now));
        counts && self.active.is_none_or(|active| !self.rank(release).is_below(&self.rank(active)))
    }

    fn is_referenced(&self, release: &Release) -> bool {
        self.pending().any(|rollback| {
            let named = &rollback.spec.to_release_ref.name;
            let status = rollback.status.as_ref();
            let from = status.and_then(|status| status.from_release_ref.as_ref());
            let to = status.and_then(|status| status.to_release_ref.as_ref());
            named == name(release)
                || [from, to].into_iter().flatten().any(|one| one.name == name(release))
        })
    }
}

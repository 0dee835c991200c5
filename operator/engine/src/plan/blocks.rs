//! Writing blocks, and mirroring them into conditions.

use belay_api::{
    Release,
    conditions::{ConditionStatus, ReleaseCondition, ReleaseState, find, status},
    gates::Verdict,
    reasons::{BlockedReason, HealthyReason},
    values::parse,
};

use super::{
    Flow, Step,
    make::{put, write_release},
    view::{Pass, activations, name, open_activation, precondition, tag},
};
use crate::{
    block::{Allowed, Block, MAX_TEMPORARY},
    time,
};

impl<'a> Pass<'a> {
    /// Refuses `from` and, where the target has left it for `to`, all between.
    pub(super) fn block_step(
        &self,
        from: &Release,
        to: Option<&str>,
        reason: BlockedReason,
        ordinal: i64,
    ) -> Step {
        let old = self.block(from);
        let is_again = old.as_ref().is_none_or(|old| old.ordinal != ordinal);
        let count = old.as_ref().map_or(0, |old| old.count).saturating_add(i32::from(is_again));
        let is_temporary = reason == BlockedReason::BlockedTemporarily && count <= MAX_TEMPORARY;
        let until = if is_temporary {
            // A block that is extended to what was gone to keeps its end.
            let end = old.as_ref().filter(|_| !is_again).and_then(|old| old.until);
            let window = self.settings.windows.temporary_block;
            Some(end.unwrap_or_else(|| time::after(self.now, window)))
        } else {
            None
        };
        let reason = match reason {
            BlockedReason::BlockedTemporarily if !is_temporary => BlockedReason::RolloutFailed,
            reason => reason,
        };
        let block = Block {
            from: self.mark(tag(from)),
            to: to.map(|tag| self.mark(tag)),
            reason,
            until,
            count: count.max(1),
            ordinal,
            allowed: old.and_then(|old| old.allowed).or_else(|| self.used_up(from, ordinal)),
        };
        write_block(from, &block)
    }

    /// The use of `allow` by an activation that was not blocked when it began: the breaker was in
    /// its way alone.
    fn used_up(&self, from: &Release, ordinal: i64) -> Option<Allowed> {
        let allow = self.wants.allow.as_deref().filter(|allow| self.is_called(from, allow))?;
        Some(Allowed { value: allow.to_owned(), ordinal })
    }

    /// A Release whose present activation failed is refused from now on.
    pub(super) fn block_failure(&mut self) -> Flow {
        let Some(active) = self.active else { return Flow::Continue(()) };
        let Some(open) = open_activation(active) else { return Flow::Continue(()) };
        let has_failed = open.verdict.as_ref().and_then(belay_api::Open::known);
        if has_failed != Some(Verdict::Failed) {
            return Flow::Continue(());
        }
        if self.block(active).is_some_and(|block| block.ordinal == open.ordinal) {
            return Flow::Continue(());
        }
        let reason = reason_of_failure(active);
        let step = self.block_step(active, None, reason, open.ordinal);
        self.draft.step(step)
    }

    /// Keeps the condition `Blocked` as the annotation says, and forgets uses of `allow` that no
    /// longer matter.
    pub(super) fn mirror_blocks(&mut self) -> Flow {
        for release in self.releases.clone() {
            let Some(block) = self.block(release) else { continue };
            if let Some(allowed) = &block.allowed
                && self.wants.allow.as_ref() != Some(&allowed.value)
            {
                let block = Block { allowed: None, ..block.clone() };
                let step = write_block(release, &block);
                return self.draft.step(step);
            }
            // A block that was written while GitHub was not known lacks times, and what has no version
            // could not be compared with it: nothing newer would ever be free.
            let known = Block {
                from: self.completed(&block.from),
                to: block.to.as_ref().map(|to| self.completed(to)),
                ..block.clone()
            };
            if known != block {
                let step = write_block(release, &known);
                return self.draft.step(step);
            }
            let (status, reason) = if block.counts_at(self.now) {
                if let Some(until) = block.until {
                    self.draft.wake(until);
                }
                (ConditionStatus::True, block.reason)
            } else {
                (ConditionStatus::False, BlockedReason::Expired)
            };
            let old = release.status.clone().unwrap_or_default();
            let mut new = old.clone();
            let message = match &block.to {
                Some(to) => format!("left for {}", to.tag),
                None => String::new(),
            };
            put(&mut new.conditions, ReleaseState::from(reason), status, &message, self.now);
            if new != old {
                let step = write_release(release, new);
                return self.draft.step(step);
            }
        }
        Flow::Continue(())
    }

    /// The tag that `allow` frees: not used up by an activation that has ended.
    pub(super) fn allowed(&self) -> Option<&'a str> {
        let allow = self.wants.allow.as_deref()?;
        let used = self.releases.iter().find_map(|release| {
            self.block(release)?.allowed.filter(|allowed| allowed.value == allow)
        });
        let Some(used) = used else { return Some(allow) };
        // The activation that it permits may not have begun.
        let named = self.releases.iter().find(|release| self.is_called(release, allow));
        let began = named.is_some_and(|release| {
            activations(release).iter().any(|one| one.ordinal >= used.ordinal)
        });
        (!began).then_some(allow)
    }

    /// Whether `allow` names this Release: by release tag or by image tag.
    pub(super) fn is_called(&self, release: &Release, allow: &str) -> bool {
        let tag = tag(release);
        let version = self.wants.tag_pattern.version_of(tag);
        let image = version.and_then(|one| self.wants.tag_template.render(tag, one));
        tag == allow || image.as_deref() == Some(allow)
    }

    /// Notes, before the candidate is moved to, that its activation uses `allow` up.
    pub(super) fn use_allow(&mut self, candidate: &str, ordinal: i64) -> Flow {
        let Some(value) = self.allowed().map(ToOwned::to_owned) else {
            return Flow::Continue(());
        };
        let rank = self.rank_of_tag(candidate);
        for release in self.releases.clone() {
            let Some(block) = self.block(release) else { continue };
            let refuses = block.counts_at(self.now)
                && block.covers(candidate, &rank, &self.wants.tag_pattern);
            let note = Allowed { value: value.clone(), ordinal };
            if refuses && block.allowed.as_ref() != Some(&note) {
                let block = Block { allowed: Some(note), ..block };
                let step = write_block(release, &block);
                return self.draft.step(step);
            }
        }
        Flow::Continue(())
    }
}

/// Why a Release that failed is refused.
pub(super) fn reason_of_failure(release: &Release) -> BlockedReason {
    if is_outside_cause(release) {
        BlockedReason::BlockedTemporarily
    } else {
        BlockedReason::RolloutFailed
    }
}

/// Whether a Release failed for a cause outside itself, by the condition that says why.
fn is_outside_cause(release: &Release) -> bool {
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
    let conditions = conditions.unwrap_or_default();
    let healthy = belay_api::NamedValue::as_str(ReleaseCondition::Healthy);
    if status(conditions, healthy) != ConditionStatus::False {
        return false;
    }
    let Some(condition) = find(conditions, healthy) else { return false };
    matches!(
        parse::<HealthyReason>(&condition.reason),
        Ok(HealthyReason::ImagePullTimedOut
            | HealthyReason::Unschedulable
            | HealthyReason::QuotaExceeded
            | HealthyReason::AdmissionDenied)
    )
}

fn write_block(release: &Release, block: &Block) -> Step {
    Step::BlockRelease {
        name: name(release).to_owned(),
        from: precondition(&release.metadata),
        value: block.to_annotation(),
    }
}

//! The first sight of a workload, and of one that took the place of another (the operator
//! specification, section 3.3).

use belay_api::release::Progress;
use belay_api::{
    Release,
    conditions::{ConditionStatus, find},
    events::EventReason,
    gates::Verdict,
    reasons::{ActiveReason, ProgressingReason, StalledReason},
    values::parse,
};
use jiff::Timestamp;

use super::{
    Flow,
    make::{Origin, write_release},
    pause::Move,
    view::{Pass, activations, images, is_same, name, open_activation, tag},
};
use crate::{
    image::ImageRef,
    judge::{RolloutState, judge},
    observed::{Forge, TargetRecord},
    time,
};

impl<'a> Pass<'a> {
    /// Whether any Release was active on this workload.
    pub(super) fn is_known(&self) -> bool {
        self.releases
            .iter()
            .any(|release| activations(release).iter().any(|one| self.is_of_this_workload(one)))
    }

    /// A workload without Releases is left alone until its own rollout has ended; then what runs
    /// becomes the baseline.
    pub(super) fn first_sight(&mut self) -> Flow {
        if self.active.is_some() || self.is_known() {
            return Flow::Continue(());
        }
        let terms = self.terms(self.workload.created);
        let judgement = judge(&self.rollout(), &terms, &Progress::default(), self.now);
        let is_complete = matches!(
            judgement.state,
            RolloutState::Baking { .. } | RolloutState::Healthy | RolloutState::ScaledToZero
        );
        if !is_complete {
            if self.workload.rollout.paused {
                self.frozen = true;
                let message = "its own rollout is paused (spec.paused)";
                self.draft.busy(ProgressingReason::TargetPaused, message);
                return Flow::Continue(());
            }
            let deadline = time::after(self.first_seen(), self.wants.deadline);
            if self.now >= deadline {
                let message = "its rollout makes no progress; a newer release may start";
                // The condition is the clock, and so it stays.
                self.draft.busy(ProgressingReason::FirstSight, message);
                self.draft.stalled = Some((StalledReason::Broken, message.to_owned()));
                return Flow::Continue(());
            }
            self.frozen = true;
            self.draft.awaits_pods = self.workload.rollout.wanted != 0;
            self.draft.busy(ProgressingReason::FirstSight, "its own rollout is under way");
            self.draft.wake(deadline);
            return Flow::Continue(());
        }
        self.draft.awaits_pods = !matches!(judgement.state, RolloutState::ScaledToZero);
        // Without GitHub's list the baseline could get the name of an image tag.
        if !matches!(self.forge(), Some(Forge::Found { .. })) {
            return Flow::Continue(());
        }
        self.baseline()
    }

    /// Since when this workload is waited for: the condition says so, which is True all the while.
    fn first_seen(&self) -> Timestamp {
        let is_same = |record: &&TargetRecord| {
            record.status.workload.as_ref().is_some_and(|one| one.uid == self.workload.uid)
        };
        let record = self.record.filter(is_same);
        let conditions = record.map(|record| record.status.conditions.as_slice());
        find(conditions.unwrap_or_default(), "Progressing")
            .filter(|one| one.status == belay_api::NamedValue::as_str(ConditionStatus::True))
            .map_or(self.now, |condition| condition.last_transition_time.0)
    }

    fn baseline(&mut self) -> Flow {
        let live = self.live_image().to_owned();
        if live.is_empty() {
            return Flow::Continue(());
        }
        let (version, _) = self.live_version();
        let is_release = self.github_release(&version).is_some();
        let repository = live.parse::<ImageRef>().map(|image| image.repository().to_string());
        let origin = if is_release {
            Origin { id: &version, source: self.wants.repo.as_str(), kind: "github" }
        } else {
            let source = repository.as_deref().unwrap_or(&live);
            Origin { id: &version, source, kind: "container_image" }
        };
        let Some(existing) = self.release(&self.release_name(origin.id)) else {
            let step = self.new_release(&origin);
            return self.draft.step(step);
        };
        let mut status = existing.status.clone().unwrap_or_default();
        // Its images are those that run: the next pass finds it active by them.
        status.images.clear();
        for container in &self.wants.containers {
            let image = self.live(container).to_owned();
            status.images.push(belay_api::release::ContainerImage {
                container: container.to_string(),
                asked: image.clone(),
                stored: Some(image),
                digest: None,
            });
        }
        if is_release && let Some(Forge::Found { repository_id, .. }) = self.forge() {
            status.repository_id = Some(*repository_id);
        }
        if images(existing) == status.images {
            return Flow::Continue(());
        }
        let step = write_release(existing, status);
        self.draft.step(step)
    }

    /// The Release that was good on the workload before this one, if what runs now is below it.
    fn to_restore(&self) -> Option<&'a Release> {
        let active = self.active?;
        let open = open_activation(active)?;
        let conditions = active.status.as_ref().map(|status| status.conditions.as_slice());
        let reason = find(conditions.unwrap_or_default(), "Active")
            .and_then(|condition| parse::<ActiveReason>(&condition.reason).ok())?;
        let is_found = matches!(reason, ActiveReason::Baseline | ActiveReason::WrittenByOther);
        let is_only = self.releases.iter().all(|release| {
            is_same(release, active)
                || activations(release).iter().all(|one| !self.is_of_this_workload(one))
        });
        if !self.is_of_this_workload(open) || !is_found || !is_only {
            return None;
        }
        let was_good = |release: &Release| {
            let mut earlier = activations(release).iter();
            let last = earlier.rfind(|one| !self.is_of_this_workload(one));
            let verdict = last.and_then(|last| last.verdict.as_ref()?.known());
            verdict == Some(Verdict::Healthy)
        };
        self.releases
            .iter()
            .copied()
            .filter(|release| !is_same(release, active) && !self.is_blocked(release))
            .filter(|release| was_good(release))
            .max_by(|one, other| self.by_age(one, other))
            .filter(|release| self.rank(active).is_below(&self.rank(release)))
    }

    /// Whether a Release that begins now was active on the workload before this one, and on this one
    /// never.
    pub(super) fn is_restored(&self, release: &Release) -> bool {
        !activations(release).is_empty()
            && activations(release).iter().all(|one| !self.is_of_this_workload(one))
    }

    /// A workload that came with a lower version than the one before it gets the good one back first.
    pub(super) fn restore(&mut self) -> Flow {
        let Some(good) = self.to_restore() else { return Flow::Continue(()) };
        if self.frozen || self.wants.hold.is_some() || self.pending().next().is_some() {
            return Flow::Continue(());
        }
        let is_under_way =
            matches!(self.state, Some(RolloutState::Rolling { .. } | RolloutState::Paused) | None);
        if is_under_way || self.workload.rollout.paused {
            return Flow::Continue(());
        }
        self.draft.busy(ProgressingReason::Restoring, format!("to {}", tag(good)));
        let image = super::rollback::image_of(good);
        self.draft.wanted = image.map(|image| (image, Some(name(good).to_owned())));
        let images = self.images_of(good, None);
        match self.apply(name(good), images, None, &|_| false) {
            Ok(step) => {
                self.freeze(&step, Move::Forward)?;
                self.keep_refusal(name(good));
                self.draft.tell(EventReason::Restored, format!("restoring {}", tag(good)));
                self.draft.step(step)
            }
            Err(why) => self.explain(why),
        }
    }
}

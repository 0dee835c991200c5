//! When somebody else changed the image (the operator specification, section 6).

use belay_api::{
    Release,
    annotations::TargetAnnotation,
    events::EventReason,
    gates::{Verdict, WaitReason},
    reasons::{BlockedReason, ProgressingReason, StalledReason},
    release::Activation,
    target::Revert,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Flow,
    pause::Move,
    view::{NOBODY, Pass, last_activation, name, tag},
};
use crate::{
    annotations::{ContainerName, Hold},
    image::ImageRef,
    selection::{GithubReleases, Running, RunningVersion},
    time,
    version::Rank,
};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How often an image is applied again within a day.
const MAX_REVERTS: usize = 3;

/// A Release that somebody else's image took the place of.
struct Lost<'a> {
    release: &'a Release,
    last: &'a Activation,
    ended: Timestamp,
}

impl<'a> Pass<'a> {
    pub(super) fn answer_change(&mut self) -> Flow {
        let Some(lost) = self.lost() else { return Flow::Continue(()) };
        if self.pending().next().is_some() {
            // A Rollback is the later word, and refuses what it leaves itself.
            return Flow::Continue(());
        }
        self.block_lost_failure(&lost)?;
        if let Some(manager) = self.gitops() {
            self.frozen = true;
            let message = format!("{manager} owns the image and would put its own back");
            self.draft.stalled = Some((StalledReason::ManagedByGitOps, message));
            return Flow::Continue(());
        }
        let others = self.others();
        let person = others.iter().find(|one| !self.is_taken_over(one));
        match (person, others.first()) {
            (None, Some(first)) => {
                let manager = first.manager.clone();
                self.answer_tool(&lost, &manager)
            }
            (person, _) => {
                let manager = person.map_or(NOBODY, |one| one.manager.as_str()).to_owned();
                self.answer_person(&lost, &manager)
            }
        }
    }

    /// What failed is refused, even if its image was changed before that was written down.
    fn block_lost_failure(&mut self, lost: &Lost<'a>) -> Flow {
        let verdict = lost.last.verdict.as_ref().and_then(belay_api::Open::known);
        let is_noted =
            self.block(lost.release).is_some_and(|block| block.ordinal == lost.last.ordinal);
        if verdict != Some(Verdict::Failed) || is_noted {
            return Flow::Continue(());
        }
        let reason = super::blocks::reason_of_failure(lost.release);
        let step = self.block_step(lost.release, None, reason, lost.last.ordinal);
        self.draft.step(step)
    }

    fn lost(&self) -> Option<Lost<'a>> {
        if self.is_ours() || self.active.is_some_and(|active| !Self::is_written_by_other(active)) {
            return None;
        }
        let release = self.last_active()?;
        // The image of another workload than the one that was written to moves nothing back.
        let last = last_activation(release).filter(|last| self.is_of_this_workload(last))?;
        last.changed_by()?;
        Some(Lost { release, last, ended: last.end_time.as_ref()?.0 })
    }

    /// A tool whose images are replaced put its own in place.
    fn answer_tool(&mut self, lost: &Lost<'a>, manager: &str) -> Flow {
        if let Some(active) = self.active
            && self.rank(active).is_below(&self.rank(lost.release))
            && self.is_taken_back_by_hand(lost)
        {
            return self.block_lost(lost, tag(active), BlockedReason::RolledBackByHelm);
        }
        if self.is_ahead(lost) {
            // To take it back would be a step down without a Rollback.
            return Flow::Continue(());
        }
        if self.is_blocked(lost.release) {
            // What was lost is not wanted back.
            return Flow::Continue(());
        }
        self.frozen = true;
        let image = super::rollback::image_of(lost.release);
        self.draft.wanted = image.map(|image| (image, Some(name(lost.release).to_owned())));
        self.put_back(lost, manager)
    }

    /// Whether what a tool put in place is above what was lost, and nothing speaks against it.
    fn is_ahead(&self, lost: &Lost<'_>) -> bool {
        let (tag, rank) = match self.active {
            Some(active) => (tag(active).to_owned(), self.rank(active)),
            None => self.live_version(),
        };
        let is_refused = self.blocks().iter().any(|block| {
            block.counts_at(self.now) && block.covers(&tag, &rank, &self.wants.tag_pattern)
        });
        rank.is_above(&self.rank(lost.release)) && !is_refused
    }

    /// Whether going back from a Release by `helm rollback` is meant: it is not healthy, or not for
    /// long.
    fn is_taken_back_by_hand(&self, lost: &Lost<'_>) -> bool {
        let verdict = lost.last.verdict.as_ref().and_then(belay_api::Open::known);
        if verdict != Some(Verdict::Healthy) {
            return true;
        }
        let conditions = lost.release.status.as_ref().map(|status| status.conditions.as_slice());
        let since = belay_api::conditions::find(conditions.unwrap_or_default(), "Healthy")
            .map_or(lost.last.start_time.0, |condition| condition.last_transition_time.0);
        lost.ended < time::after(since, self.settings.revert_window)
    }

    fn put_back(&mut self, lost: &Lost<'a>, manager: &str) -> Flow {
        let live = self.live_image().to_owned();
        let is_recent = |revert: &&Revert| time::plus(revert.time.0, DAY) > self.now;
        let all = self.record.map(|record| record.status.reverts.as_slice()).unwrap_or_default();
        let recent: Vec<&Revert> = all.iter().filter(is_recent).collect();
        // One that could not be answered within a day is still the same one.
        let noted = all.iter().find(|revert| revert.time.0 >= lost.ended);
        let message = format!("{manager} put {live} back; a post-renderer would keep the image");
        let Some(noted) = noted else {
            if recent.len() >= MAX_REVERTS {
                let oldest = recent.iter().map(|revert| revert.time.0).min();
                if let Some(oldest) = oldest {
                    self.draft.wake(time::plus(oldest, DAY));
                }
                let message = format!("{manager} put its image back {MAX_REVERTS} times in a day");
                self.draft.stalled = Some((StalledReason::TugOfWar, message));
                return Flow::Continue(());
            }
            // Noted before it is answered.
            self.draft.tell(EventReason::ImageReverted, &*message);
            self.draft.revert = Some((manager.to_owned(), live));
            self.draft.busy(ProgressingReason::ImageReverted, message);
            self.draft.wake_soon(self.now);
            return Flow::Continue(());
        };
        self.draft.busy(ProgressingReason::ImageReverted, message);
        let doublings = u32::try_from(recent.len().saturating_sub(1)).unwrap_or_default();
        let wait = self.settings.windows.reassert.as_secs().saturating_mul(1 << doublings.min(16));
        let due = time::after(noted.time.0, belay_api::Duration::from_secs(wait));
        if self.now < due {
            self.draft.wait(WaitReason::ReassertBackoff, due);
            return Flow::Continue(());
        }
        if self.is_held_elsewhere() || self.workload.rollout.paused {
            return Flow::Continue(());
        }
        let images = self.images_of(lost.release, None);
        match self.apply(name(lost.release), images, None, &|_| false) {
            Ok(step) => {
                self.freeze(&step, Move::Forward)?;
                self.draft.step(step)
            }
            Err(why) => self.explain(why),
        }
    }

    /// A person changed the image.
    fn answer_person(&mut self, lost: &Lost<'a>, manager: &str) -> Flow {
        let undone = self.active.filter(|active| self.annotated() == Some(name(active)));
        let (to, rank) = match self.active {
            Some(active) => (tag(active).to_owned(), self.rank(active)),
            None => self.live_version(),
        };
        if rank.is_below(&self.rank(lost.release)) {
            self.block_lost(lost, &to, BlockedReason::RolledBackByPerson)?;
        }
        if undone.is_some() {
            // The next free candidate may be forced against exactly this manager.
            self.leave.push(manager.to_owned());
            return Flow::Continue(());
        }
        if self.is_adopted() {
            return Flow::Continue(());
        }
        self.frozen = true;
        let live = self.image_of_holder(manager);
        let target = &self.wants.target;
        let key = self.settings.prefix.key(TargetAnnotation::Adopt);
        let message = format!(
            "{manager} changed the image to {live}; to follow again: kubectl release resume \
             {target} (it writes {key}: {manager}={live})"
        );
        self.draft.stalled = Some((StalledReason::ChangedByPerson, message));
        Flow::Continue(())
    }

    /// The image that a manager put in place: of the first followed container that it owns.
    fn image_of_holder(&self, manager: &str) -> &'a str {
        let owns = |name: &&ContainerName| {
            let owners = self.workload.container(name).map(|one| one.held_by.as_slice());
            owners.unwrap_or_default().iter().any(|one| one.manager == manager)
        };
        let owned = self.wants.containers.iter().find(owns);
        owned.map_or_else(|| self.live_image(), |name| self.live(name))
    }

    /// Refuses what was lost, and all between, unless that is written already.
    fn block_lost(&mut self, lost: &Lost<'a>, to: &str, reason: BlockedReason) -> Flow {
        let old = self.block(lost.release).filter(|block| block.ordinal == lost.last.ordinal);
        if old.is_some_and(|block| block.to.is_some_and(|mark| mark.tag == to)) {
            return Flow::Continue(());
        }
        let step = self.block_step(lost.release, Some(to), reason, lost.last.ordinal);
        self.draft.step(step)
    }

    /// What the live image's tag says, where no Release stands for it.
    pub(super) fn live_version(&self) -> (String, Rank) {
        let image = self.live_image().parse::<ImageRef>().ok();
        let image_tag = image.as_ref().and_then(ImageRef::tag);
        let none = GithubReleases::default();
        let releases = match self.forge() {
            Some(crate::observed::Forge::Found { releases, .. }) => releases,
            _ => &none,
        };
        let running = Running { release_tag: None, image_tag };
        let version = RunningVersion::of(running, releases, self.wants);
        let tag = version.tag.or_else(|| image_tag.map(ToOwned::to_owned));
        (tag.unwrap_or_else(|| self.live_image().to_owned()), version.rank)
    }

    /// Whether a person holds the target at a tag that does not run.
    pub(super) fn is_held_elsewhere(&self) -> bool {
        let Some(Hold::Tag(held)) = &self.wants.hold else { return false };
        let image = self.live_image().parse::<ImageRef>().ok();
        let is_live = image.as_ref().and_then(ImageRef::tag) == Some(held.as_str());
        !is_live && self.active.is_none_or(|active| tag(active) != held)
    }
}

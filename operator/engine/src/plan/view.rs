//! What all questions of a pass are answered from, and what the answers add up to.

use std::{cmp::Ordering, collections::BTreeMap};

use belay_api::{
    Release, Rollback,
    events::EventReason,
    gates::WaitReason,
    reasons::{BlockedReason, HeldReason, Note, ProgressingReason, StalledReason},
    release::{Activation, ContainerImage},
};
use jiff::{SignedDuration, Timestamp};

use super::{Flow, Look, Notice, Precondition, Step};
use crate::{
    annotations::{ContainerName, TargetSettings},
    block::{Block, Mark},
    judge::RolloutState,
    observed::{Forge, HeldBy, Observed, Surroundings, TargetRecord, WorkloadFacts},
    selection::{Candidate, GithubRelease},
    settings::Settings,
    time,
    version::{Rank, parse_version},
};

/// The name of the revision in Releases that Belay makes.
pub(super) const APPLICATION: &str = "application";
/// Who holds a field that nobody owns.
pub(super) const NOBODY: &str = "unknown";

pub(super) struct Pass<'a> {
    pub(super) observed: &'a Observed,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
    pub(super) workload: &'a WorkloadFacts,
    pub(super) wants: &'a TargetSettings,
    pub(super) record: Option<&'a TargetRecord>,
    pub(super) surroundings: &'a Surroundings,
    /// Releases of this target, by name.
    pub(super) releases: Vec<&'a Release>,
    /// Rollbacks of this target, oldest first.
    pub(super) rollbacks: Vec<&'a Rollback>,
    /// The Release that the workload's template names.
    pub(super) active: Option<&'a Release>,
    /// Where its rollout stands.
    pub(super) state: Option<RolloutState>,
    /// Managers that may be forced against in this pass, by a person's leave.
    pub(super) leave: Vec<String>,
    /// Whether no forward move may start, for a cause that the draft already names.
    pub(super) frozen: bool,
    pub(super) draft: Draft,
}

/// What the answers add up to.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) step: Option<Step>,
    pub(super) wake: Option<Timestamp>,
    pub(super) look: Vec<Look>,
    pub(super) notices: Vec<Notice>,
    pub(super) stalled: Option<(StalledReason, String)>,
    pub(super) progressing: Option<(ProgressingReason, String)>,
    pub(super) held: Option<(HeldReason, String)>,
    pub(super) notes: BTreeMap<&'static str, (Note, String)>,
    pub(super) unknown: Option<String>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) waiting: Option<(WaitReason, Option<Timestamp>)>,
    pub(super) wanted: Option<(String, Option<String>)>,
    pub(super) revert: Option<(String, String)>,
    /// Whether a look comes first: until then nothing new is to be said.
    pub(super) is_undecided: bool,
    /// Whether this pass only writes down who follows the target.
    pub(super) claims: bool,
    /// Whether the record is another's to write.
    pub(super) is_anothers: bool,
    /// A rollout that Belay did not begin, and that is waited for.
    pub(super) others_rollout: Option<String>,
    /// Whether something is waited for that pods show.
    pub(super) awaits_pods: bool,
    /// Whether images are about to be applied: a claim for them is live.
    pub(super) keeps_pause: bool,
    /// Whether the claim that was there last has gone, and it is not known yet what is there instead.
    pub(super) keeps_status_of_pause: bool,
}

impl Draft {
    pub(super) fn step(&mut self, step: Step) -> Flow {
        self.step = Some(step);
        Flow::Break(())
    }

    pub(super) fn stall(&mut self, reason: StalledReason, message: impl Into<String>) -> Flow {
        self.stalled = Some((reason, message.into()));
        Flow::Break(())
    }

    /// Stalls, and says so by an event, where no status of ours can.
    pub(super) fn refuse(&mut self, reason: StalledReason, message: String) -> Flow {
        self.notices.push(Notice::stalled(reason, message.clone()));
        self.stall(reason, message)
    }

    pub(super) fn busy(&mut self, reason: ProgressingReason, message: impl Into<String>) {
        self.progressing = Some((reason, message.into()));
    }

    pub(super) fn wake(&mut self, time: Timestamp) {
        time::earlier(&mut self.wake, time);
    }

    /// Once this status is written there is more to decide. Its own event says so, mostly.
    pub(super) fn wake_soon(&mut self, now: Timestamp) {
        self.wake(time::plus(now, SignedDuration::from_secs(1)));
    }

    pub(super) fn wait(&mut self, reason: WaitReason, until: Timestamp) {
        self.waiting = Some((reason, Some(until)));
        self.wake(until);
    }

    pub(super) fn note(&mut self, note: Note, message: impl Into<String>) {
        self.notes.insert(belay_api::NamedValue::as_str(note), (note, message.into()));
    }

    pub(super) fn tell(&mut self, reason: EventReason, message: impl Into<String>) {
        self.notices.push(Notice::of(reason, message));
    }
}

pub(super) fn name(release: &Release) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn rollback_name(rollback: &Rollback) -> &str {
    rollback.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn is_same(one: &Release, other: &Release) -> bool {
    name(one) == name(other)
}

/// The release tag that a Release stands for.
pub(super) fn tag(release: &Release) -> &str {
    let revisions = &release.config().revisions;
    let revision = revisions.iter().find(|one| one.name == APPLICATION).or(revisions.first());
    revision.map(|one| one.id.as_str()).unwrap_or_default()
}

pub(super) fn images(release: &Release) -> &[ContainerImage] {
    release.status.as_ref().map(|status| status.images.as_slice()).unwrap_or_default()
}

pub(super) fn activations(release: &Release) -> &[Activation] {
    release.status.as_ref().map(|status| status.activations.as_slice()).unwrap_or_default()
}

pub(super) fn last_activation(release: &Release) -> Option<&Activation> {
    activations(release).last()
}

pub(super) fn open_activation(release: &Release) -> Option<&Activation> {
    last_activation(release).filter(|one| one.end_time.is_none())
}

pub(super) fn precondition(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
) -> Precondition {
    Precondition {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// The image of a container in a Release; where the Release was made before that container was
/// followed, the image of its first one: all followed containers have the same.
pub(super) fn image_for<'r>(
    release: &'r Release,
    container: &ContainerName,
) -> Option<&'r ContainerImage> {
    let text = container.to_string();
    let images = images(release);
    images.iter().find(|one| one.container == text).or(images.first())
}

impl<'a> Pass<'a> {
    pub(super) fn forge(&self) -> Option<&'a Forge> {
        self.observed.forge.value()
    }

    pub(super) fn github_release(&self, tag: &str) -> Option<&'a GithubRelease> {
        match self.forge()? {
            Forge::Found { releases, .. } => releases.items.iter().find(|one| one.tag == tag),
            Forge::NotFound | Forge::NotAllowed | Forge::Throttled { .. } => None,
        }
    }

    pub(super) fn release(&self, wanted: &str) -> Option<&'a Release> {
        self.releases.iter().copied().find(|release| name(release) == wanted)
    }

    pub(super) fn live(&self, container: &ContainerName) -> &'a str {
        self.workload.image(container).unwrap_or_default()
    }

    /// The image of the first followed container.
    pub(super) fn live_image(&self) -> &'a str {
        self.wants.containers.first().map(|one| self.live(one)).unwrap_or_default()
    }

    /// The Release that the `release` annotation names.
    pub(super) fn named(&self) -> Option<&'a Release> {
        self.release(self.annotated()?)
    }

    pub(super) fn annotated(&self) -> Option<&'a str> {
        let key = self.settings.prefix.key(belay_api::annotations::OwnAnnotation::Release);
        self.workload.annotations.get(&key).map(String::as_str)
    }

    /// Whether every followed container's image is ours, alone or with others.
    pub(super) fn is_ours(&self) -> bool {
        self.owners(|owners| owners.iter().any(|one| self.is_our_entry(one)))
    }

    fn owners(&self, holds: impl Fn(&[HeldBy]) -> bool) -> bool {
        !self.wants.containers.is_empty()
            && self.wants.containers.iter().all(|name| {
                self.workload.container(name).is_some_and(|container| holds(&container.held_by))
            })
    }

    pub(super) fn is_our_entry(&self, owner: &HeldBy) -> bool {
        owner.manager == self.settings.field_manager && owner.applies
    }

    /// When our entry was written, by the API server's clock.
    pub(super) fn our_time(&self) -> Option<Timestamp> {
        let first = self.workload.container(self.wants.containers.first()?)?;
        first.held_by.iter().find(|owner| self.is_our_entry(owner))?.time
    }

    /// The others that own the image of a followed container.
    pub(super) fn others(&self) -> Vec<&'a HeldBy> {
        let mut others: Vec<&HeldBy> = Vec::new();
        for container in &self.wants.containers {
            let Some(state) = self.workload.container(container) else { continue };
            for owner in &state.held_by {
                let is_new = !others
                    .iter()
                    .any(|one| one.manager == owner.manager && one.applies == owner.applies);
                if !self.is_our_entry(owner) && is_new {
                    others.push(owner);
                }
            }
        }
        others
    }

    /// Who holds the image, for a sentence.
    pub(super) fn holder(&self) -> String {
        if self.is_ours() {
            return self.settings.field_manager.clone();
        }
        self.others().first().map_or(NOBODY.to_owned(), |owner| owner.manager.clone())
    }

    pub(super) fn rank(&self, release: &Release) -> Rank {
        self.rank_of_tag(tag(release))
    }

    pub(super) fn rank_of_tag(&self, tag: &str) -> Rank {
        let pattern = &self.wants.tag_pattern;
        Rank {
            version: pattern.version_of(tag).and_then(parse_version),
            published: self.github_release(tag).and_then(|one| one.published),
        }
    }

    pub(super) fn mark(&self, tag: &str) -> Mark {
        let published = self.github_release(tag).and_then(|one| one.published);
        Mark { tag: tag.to_owned(), published }
    }

    /// A mark with the time of its release, if that is known by now.
    pub(super) fn completed(&self, mark: &Mark) -> Mark {
        if mark.published.is_some() { mark.clone() } else { self.mark(&mark.tag) }
    }

    /// A Release's block. An annotation that cannot be read still refuses the Release itself.
    pub(super) fn block(&self, release: &Release) -> Option<Block> {
        let key = self.settings.prefix.key(belay_api::annotations::OwnAnnotation::Blocked);
        let text = release.metadata.annotations.as_ref()?.get(&key)?;
        let unreadable = || Block {
            from: self.mark(tag(release)),
            to: None,
            reason: BlockedReason::RolledBack,
            until: None,
            count: 1,
            ordinal: last_activation(release).map_or(0, |last| last.ordinal),
            allowed: None,
        };
        Some(Block::parse(text).unwrap_or_else(|_| unreadable()))
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        self.releases.iter().filter_map(|release| self.block(release)).collect()
    }

    /// Whether Belay refuses to go to a Release.
    pub(super) fn is_blocked(&self, release: &Release) -> bool {
        let rank = self.rank(release);
        self.blocks().iter().any(|block| {
            block.counts_at(self.now) && block.covers(tag(release), &rank, &self.wants.tag_pattern)
        })
    }

    /// Whether an activation was one of this very workload, and not of another one of the same target:
    /// an older twin, or the one of this name that was deleted.
    pub(super) fn is_of_this_workload(&self, activation: &Activation) -> bool {
        match &activation.workload {
            Some(workload) => workload.uid == self.workload.uid,
            None => activation.start_time.0 >= self.workload.created,
        }
    }

    /// The Release that was active last, but for the one that is.
    pub(super) fn last_active(&self) -> Option<&'a Release> {
        let ended = |release: &&Release| {
            last_activation(release).and_then(|last| last.end_time.as_ref()).map(|time| time.0)
        };
        self.releases
            .iter()
            .copied()
            .filter(|release| !self.active.is_some_and(|active| is_same(active, release)))
            .filter(|release| ended(release).is_some())
            .max_by(|one, other| {
                ended(one).cmp(&ended(other)).then_with(|| self.by_age(one, other))
            })
    }

    /// The older one first: by effective time, which is of whole seconds; then what had its turn
    /// earlier; then by version; by name only where nothing else tells.
    pub(super) fn by_age(&self, one: &Release, other: &Release) -> Ordering {
        let started = |release: &Release| {
            let created = release.metadata.creation_timestamp.as_ref().map(|time| time.0);
            last_activation(release).map(|last| last.start_time.0).or(created)
        };
        let ended = |release: &Release| {
            let last = last_activation(release)?;
            Some(last.end_time.as_ref().map_or(Timestamp::MAX, |time| time.0))
        };
        started(one)
            .cmp(&started(other))
            .then_with(|| ended(one).cmp(&ended(other)))
            .then_with(|| self.rank(one).order(&self.rank(other)))
            .then_with(|| name(one).cmp(name(other)))
    }

    /// The Rollbacks that have not ended.
    pub(super) fn pending(&self) -> impl Iterator<Item = &'a Rollback> {
        self.rollbacks.iter().copied().filter(|rollback| {
            !rollback.status.as_ref().is_some_and(belay_api::rollback::RollbackStatus::is_terminal)
        })
    }
}

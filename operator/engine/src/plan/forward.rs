//! Forward moves (the operator specification, sections 3.2 to 3.6 and 3.9).

use belay_api::{
    Release,
    annotations::{ImageCheck, TargetAnnotation},
    conditions::{ConditionStatus, ReleaseState},
    events::EventReason,
    gates::{Gate, WaitReason},
    reasons::{HeldReason, Note, ReleaseReadyReason, StalledReason},
    release::{ContainerImage, ReleaseStatus},
};

use super::{
    Flow,
    make::{Origin, put, write_release},
    pause::Move,
    registry::Checked,
    view::{Pass, images, is_same, last_activation, name, tag},
};
use crate::{
    annotations::Hold,
    image::{ImageRef, Repository},
    judge::RolloutState,
    observed::Forge,
    selection::{Candidate, Context, GithubReleases, Running, Selection, select},
    text,
};

impl Pass<'_> {
    /// What `hold` says to people.
    pub(super) fn hold(&mut self) {
        let Some(hold) = &self.wants.hold else { return };
        self.draft.held = Some(if self.is_held_elsewhere() {
            let target = &self.wants.target;
            let tag = hold.as_str();
            let message = format!(
                "held at {tag}, which does not run; to go there: kubectl release rollback \
                 {target} --to {tag}"
            );
            (HeldReason::Mismatch, message)
        } else {
            let message = match hold {
                Hold::Here => "no forward moves".to_owned(),
                Hold::Tag(tag) => format!("held at {tag}"),
            };
            (HeldReason::OnHold, message)
        });
    }

    /// In mode `observe`: what would be done, and nothing written.
    pub(super) fn only_report(&mut self) -> Flow {
        if let Some(selection) = self.selection() {
            let chosen = selection.chosen().map(|one| one.image_tag.clone());
            if let (Some(tag), Ok(repository)) = (chosen, self.repository()) {
                self.draft.wanted = Some((repository.with_tag(&tag), None));
            }
            self.show(selection);
        }
        Flow::Break(())
    }

    pub(super) fn move_forward(&mut self) -> Flow {
        if let Some(selection) = self.selection() {
            return self.consider(selection);
        }
        Flow::Continue(())
    }

    /// The candidates, if GitHub's answer is known.
    fn selection(&mut self) -> Option<Selection> {
        let (reason, message) = match self.observed.forge.get() {
            Ok(Forge::Found { releases, repository_id, is_anonymous, .. }) => {
                if *is_anonymous {
                    let message = "GitHub is asked without a token";
                    self.draft.note(Note::Unauthenticated, message);
                }
                if releases.truncated && self.wants.lists_all() {
                    let message = "the repository has more releases than are read";
                    self.draft.note(Note::ListTruncated, message);
                }
                if let Some(message) = self.other_repository(*repository_id) {
                    (StalledReason::RepositoryReplaced, message)
                } else {
                    return Some(self.select(releases));
                }
            }
            Ok(Forge::NotFound) => {
                let message = format!("GitHub shows no repository {}", self.wants.repo);
                (StalledReason::RepositoryNotFound, message)
            }
            Ok(Forge::NotAllowed) => {
                let message = format!("{} is not permitted, or does not exist", self.wants.repo);
                (StalledReason::NotAllowed, message)
            }
            Ok(Forge::Throttled { until }) => {
                self.draft.wait(WaitReason::GitHubThrottled, *until);
                return None;
            }
            Err(why) => {
                self.draft.unknown.get_or_insert_with(|| why.to_owned());
                return None;
            }
        };
        self.draft.stalled.get_or_insert((reason, message));
        None
    }

    /// The numeric id tells a repository from another one that took its name.
    fn other_repository(&self, now: i64) -> Option<String> {
        let newest = self
            .releases
            .iter()
            .filter(|release| {
                release.config().revisions.iter().any(|one| {
                    one.source.as_deref().is_some_and(|source| {
                        source.parse::<crate::annotations::RepoSlug>().ok().as_ref()
                            == Some(&self.wants.repo)
                    })
                })
            })
            .filter_map(|release| {
                let id = release.status.as_ref()?.repository_id?;
                Some((last_activation(release).map(|last| last.start_time.0), id))
            })
            .max()?;
        let (_, known) = newest;
        (known != now).then(|| {
            format!("{} is another repository now (id {now}, was {known})", self.wants.repo)
        })
    }

    fn select(&self, releases: &GithubReleases) -> Selection {
        let blocks = self.blocks();
        let missing = self.missing();
        let live = self.live_image().parse::<ImageRef>().ok();
        let running = Running {
            release_tag: self.active.map(tag),
            image_tag: live.as_ref().and_then(ImageRef::tag),
        };
        let context = Context {
            releases,
            running,
            blocks: &blocks,
            allowed: self.allowed(),
            missing: &missing,
            now: self.now,
        };
        select(self.wants, &context)
    }

    fn show(&mut self, selection: Selection) {
        if let Some(wake) = selection.wake {
            self.draft.wake(wake);
        }
        self.draft.candidates = selection.candidates;
    }

    fn consider(&mut self, selection: Selection) -> Flow {
        let choice = selection.choice;
        let overdue = selection.overdue.clone();
        let cannot_compare = selection.cannot_compare;
        self.record_late(&selection.candidates)?;
        self.show(selection);
        if let Some(index) = cannot_compare.filter(|_| choice.is_none() && !self.frozen) {
            let message = self.settle_comparison(index);
            self.draft.stalled.get_or_insert((StalledReason::CannotCompare, message));
        }
        for image_tag in overdue {
            if let Ok(repository) = self.repository() {
                let _ = self.answer(&repository.with_tag(&image_tag), None);
            }
        }
        let Some(index) = choice else { return Flow::Continue(()) };
        let Some(candidate) = self.draft.candidates.get(index).cloned() else {
            return Flow::Continue(());
        };
        if self.frozen {
            return Flow::Continue(());
        }
        if let Some((gate, message)) = self.not_now(&candidate) {
            return self.gate(index, gate, message);
        }
        let repository = match self.repository() {
            Ok(repository) => repository,
            Err(message) => {
                self.draft.stalled = Some((StalledReason::RepositoryDiffers, message));
                return Flow::Continue(());
            }
        };
        self.prepare(index, &candidate, &repository)
    }

    fn settle_comparison(&self, index: usize) -> String {
        let candidate = self.draft.candidates.get(index);
        let tag = candidate.map(|one| one.tag.clone()).unwrap_or_default();
        let namespace = &self.observed.namespace;
        let name = &self.workload.name;
        let live = self.live_image();
        if let Some(version) = candidate.and_then(|one| one.rank.version.as_ref()) {
            format!(
                "{tag} cannot be compared with {live}; to follow versions: kubectl annotate -n \
             {namespace} deployment/{name} {}='>={version}'",
                self.settings.prefix.key(TargetAnnotation::Range)
            )
        } else {
            let image_tag = candidate.map(|one| one.image_tag.clone()).unwrap_or_default();
            let container =
                self.wants.containers.first().map(|one| one.name.clone()).unwrap_or_default();
            let repository = live
                .parse::<ImageRef>()
                .map(|image| image.repository().to_string())
                .unwrap_or_default();
            format!(
                "{tag} cannot be compared with {live}; to start from it: kubectl set image -n \
                 {namespace} deployment/{name} {container}={repository}:{image_tag}"
            )
        }
    }

    pub(super) fn gate(&mut self, index: usize, gate: Gate, message: impl Into<String>) -> Flow {
        if let Some(candidate) = self.draft.candidates.get_mut(index) {
            candidate.gate = Some(gate);
            candidate.message = text::clipped(message.into(), belay_api::limits::ITEM_MESSAGE);
        }
        Flow::Continue(())
    }

    /// What keeps a free candidate waiting.
    fn not_now(&mut self, candidate: &Candidate) -> Option<(Gate, String)> {
        if self.pending().next().is_some() {
            return Some((Gate::InFlight, "a Rollback is under way".to_owned()));
        }
        match &self.state {
            // A Rollback that has failed is over, whatever becomes of what it began.
            Some(RolloutState::Rolling { .. } | RolloutState::Baking { .. })
                if self.failed_rollback().is_some() => {}
            Some(RolloutState::Rolling { .. } | RolloutState::Baking { .. }) => {
                return Some((Gate::InFlight, "a rollout is under way".to_owned()));
            }
            Some(RolloutState::Paused) => {
                return Some((Gate::InFlight, "the workload is paused".to_owned()));
            }
            Some(RolloutState::ScaledToZero | RolloutState::Healthy | RolloutState::Failed(_))
            | None => {}
        }
        if self.workload.rollout.paused {
            return Some((Gate::InFlight, "the workload is paused".to_owned()));
        }
        if let Some(message) = &self.draft.others_rollout {
            return Some((Gate::InFlight, message.clone()));
        }
        let allow = self.allowed();
        let is_allowed =
            allow.is_some_and(|allow| allow == candidate.tag || allow == candidate.image_tag);
        if let Some(until) = self.breaker().filter(|_| !is_allowed) {
            self.draft.wait(WaitReason::BreakerOpen, until);
            let message = "two moves were taken back within 24 hours".to_owned();
            let (target, tag) = (&self.wants.target, &candidate.tag);
            let key = self.settings.prefix.key(TargetAnnotation::Allow);
            let way_out = format!(
                "{message}; to try {tag} all the same: kubectl release resume {target} --allow \
                 {tag} (it writes {key}: {tag})"
            );
            self.draft.stalled.get_or_insert((StalledReason::BreakerOpen, way_out));
            return Some((Gate::Blocked, message));
        }
        if !is_allowed && self.surroundings.failed_elsewhere.contains(&candidate.tag) {
            let message = "it failed on another target of the namespace".to_owned();
            return Some((Gate::FailedElsewhere, message));
        }
        let running = self.surroundings.rollouts_elsewhere;
        if running >= self.settings.max_concurrent_rollouts {
            self.draft.waiting = Some((WaitReason::ConcurrencyLimit, None));
            return Some((Gate::ConcurrencyLimit, format!("{running} rollouts are under way")));
        }
        None
    }

    /// The repository that tags are appended to.
    pub(super) fn repository(&self) -> Result<Repository, String> {
        let live = self.live_image();
        let parsed = live.parse::<ImageRef>().map_err(|error| error.to_string())?;
        let asked = self.active.or_else(|| self.last_active()).and_then(|release| {
            let asked = images(release).first()?.asked.parse::<ImageRef>().ok()?;
            Some(asked.repository().clone())
        });
        let wanted = match (&self.wants.image, asked) {
            (Some(image), _) => image.clone(),
            (None, Some(asked)) if asked.is_mirror_of(parsed.repository()) => asked,
            (None, _) => parsed.repository().clone(),
        };
        if wanted.is_mirror_of(parsed.repository()) {
            return Ok(wanted);
        }
        Err(format!("{live} is live, which is not of {wanted}"))
    }

    fn prepare(&mut self, index: usize, candidate: &Candidate, repository: &Repository) -> Flow {
        let image = repository.with_tag(&candidate.image_tag);
        let wanted = self.release_name(&candidate.tag);
        if let Some(why) = self.still_refused(&wanted) {
            // The registry need not be asked again and again meanwhile.
            self.draft.wanted = Some((image, Some(wanted)));
            let _ = self.explain(why);
            return Flow::Continue(());
        }
        let digest = if self.wants.image_check == ImageCheck::Required {
            match self.check_image(index, candidate, &image)? {
                Checked::There(digest) => digest,
                Checked::NotNow => return Flow::Continue(()),
            }
        } else {
            None
        };
        let asked = match (&digest, self.wants.digest) {
            (Some(digest), true) => format!("{image}@{digest}"),
            (None, true) => {
                let message = "the registry gives no digest, and digest is set";
                return self.gate(index, Gate::RegistryUnavailable, message);
            }
            _ => image,
        };
        let Some(release) = self.release(&wanted) else {
            if !self.settings.intent_first {
                return self.apply_first(&wanted, &asked);
            }
            let origin =
                Origin { id: &candidate.tag, source: self.wants.repo.as_str(), kind: "github" };
            self.draft.wanted = Some((asked, Some(wanted.clone())));
            let taken = self.observed.releases.value().into_iter().flatten();
            if taken.into_iter().any(|one| name(one) == wanted) {
                let message = format!("a Release of another target is called {wanted}");
                self.draft.stalled = Some((StalledReason::ReleaseNameTaken, message));
                return Flow::Continue(());
            }
            let step = self.new_release(&origin);
            return self.draft.step(step);
        };
        if !self.is_ours_by_source(release) {
            let message = format!("{wanted} is a Release of another repository");
            self.draft.stalled = Some((StalledReason::ReleaseNameTaken, message));
            return Flow::Continue(());
        }
        let recorded = images(release).first().and_then(|one| one.digest.as_ref());
        if let (Some(recorded), Some(digest)) = (recorded, &digest)
            && recorded != digest
        {
            let message =
                format!("{} named {recorded} before, and names {digest} now", candidate.tag);
            self.draft.note(Note::TagMoved, message.clone());
            return self.gate(index, Gate::TagMoved, message);
        }
        self.draft.wanted = Some((asked.clone(), Some(wanted)));
        self.intend(release, &asked, digest.as_ref())?;
        let ordinal = last_activation(release).map_or(1, |last| last.ordinal.saturating_add(1));
        self.use_allow(&candidate.tag, ordinal)?;
        let images = self.images_of(release, None);
        match self.apply(name(release), images, None, &|_| false) {
            Ok(step) => {
                self.freeze(&step, Move::Forward)?;
                self.keep_refusal(name(release));
                let message = format!("moving to {}", candidate.tag);
                self.draft.tell(EventReason::Applying, message);
                self.draft.step(step)
            }
            Err(why) => {
                let _ = self.explain(why);
                Flow::Continue(())
            }
        }
    }

    /// Whether a Release of this name is about the repository that is followed.
    fn is_ours_by_source(&self, release: &Release) -> bool {
        let by_source = release.config().revisions.iter().any(|revision| {
            let source = revision.source.as_deref();
            source.and_then(|one| one.parse::<crate::annotations::RepoSlug>().ok()).as_ref()
                == Some(&self.wants.repo)
        });
        let id = release.status.as_ref().and_then(|status| status.repository_id);
        let by_id = matches!(
            self.forge(),
            Some(Forge::Found { repository_id, .. }) if id == Some(*repository_id)
        );
        by_source || by_id
    }

    /// The intent stands in the Release before the image is applied.
    fn intend(&mut self, release: &Release, asked: &str, digest: Option<&String>) -> Flow {
        let old = release.status.clone().unwrap_or_default();
        let mut status = ReleaseStatus {
            signature: Some(release.config().signature().as_str().to_owned()),
            ..old.clone()
        };
        if let Some(Forge::Found { repository_id, .. }) = self.forge() {
            status.repository_id = Some(*repository_id);
        }
        status.images = self
            .wants
            .containers
            .iter()
            .map(|container| {
                let text = container.to_string();
                let old = images(release).iter().find(|one| one.container == text);
                // What was stored belongs to what was asked then.
                let stored =
                    old.filter(|one| one.asked == asked).and_then(|one| one.stored.clone());
                ContainerImage {
                    container: text,
                    asked: asked.to_owned(),
                    stored,
                    digest: digest.cloned().or_else(|| old.and_then(|one| one.digest.clone())),
                }
            })
            .collect();
        if status == old || self.active.is_some_and(|active| is_same(active, release)) {
            return Flow::Continue(());
        }
        if self.will_pause() {
            let pausing = ReleaseState::from(ReleaseReadyReason::Pausing);
            put(&mut status.conditions, pausing, ConditionStatus::Unknown, "", self.now);
        }
        let step = write_release(release, status);
        self.draft.step(step)
    }
}

//! Where a Rollback goes (the operator specification, section 7).

use belay_api::{Duration, Release, Rollback, gates::Verdict, reasons::Rejection};
use jiff::Timestamp;

use super::view::{Pass, activations, image_for, images, is_same, name};
use crate::{
    image::{ImageRef, Repository},
    observed::{Fact, ImageAnswer, Registries},
    time,
};

/// Where a Rollback goes.
pub(super) enum Resolved<'a> {
    /// To this Release.
    To(&'a Release),
    /// Nowhere, because.
    Nowhere(Rejection),
}

/// What the registry says about a Release that would be gone back to.
pub(super) enum Recheck {
    /// Its image, character for character.
    AsItWas,
    /// Its image by the digest that was healthy: the tag names another one now.
    ByDigest(String),
    /// It is gone.
    Gone,
    /// The registry must be asked for this image first.
    Ask(String),
}

impl<'a> Pass<'a> {
    /// The Release that a Rollback from `from` goes to.
    pub(super) fn resolve(
        &self,
        from: &'a Release,
        named: Option<&str>,
        force: bool,
    ) -> Resolved<'a> {
        let Some(wanted) = named else {
            return match self.ways_back(from).first() {
                Some(release) => Resolved::To(release),
                None => Resolved::Nowhere(Rejection::NoReleaseToGoTo),
            };
        };
        let Some(release) = self.release(wanted) else {
            let is_others = self
                .observed
                .releases
                .value()
                .is_some_and(|all| all.iter().any(|one| name(one) == wanted));
            return Resolved::Nowhere(if is_others {
                Rejection::OtherTarget
            } else {
                Rejection::ReleaseNotFound
            });
        };
        if self.active.is_some_and(|active| is_same(active, release)) {
            return Resolved::Nowhere(Rejection::AlreadyActive);
        }
        if !self.is_of_our_repository(release) {
            return Resolved::Nowhere(Rejection::OtherRepository);
        }
        if !self.is_permitted(release) {
            return Resolved::Nowhere(Rejection::NotAllowed);
        }
        if !force && !was_healthy(release) {
            return Resolved::Nowhere(Rejection::NotHealthy);
        }
        if !force && self.is_blocked(release) {
            return Resolved::Nowhere(Rejection::Blocked);
        }
        Resolved::To(release)
    }

    /// The Releases that can be gone to, in the order in which they are tried: along
    /// `previousRelease`, and from a gap on the newest.
    pub(super) fn ways_back(&self, from: &'a Release) -> Vec<&'a Release> {
        let mut seen: Vec<&Release> = vec![from];
        let mut ways = Vec::new();
        let mut at = from;
        loop {
            let previous = at.status.as_ref().and_then(|status| status.previous_release.as_ref());
            let Some(previous) = previous else { return ways };
            let Some(release) = self.release(&previous.release_ref.name) else { break };
            if seen.iter().any(|one| is_same(one, release)) {
                return ways;
            }
            seen.push(release);
            if self.can_go_to(release) {
                ways.push(release);
            }
            at = release;
        }
        let mut others: Vec<&Release> = self
            .releases
            .iter()
            .copied()
            .filter(|release| !seen.iter().any(|one| is_same(one, release)))
            .filter(|release| self.can_go_to(release))
            .collect();
        others.sort_by(|one, other| self.by_age(other, one));
        ways.extend(others);
        ways
    }

    fn can_go_to(&self, release: &Release) -> bool {
        was_healthy(release)
            && !self.is_blocked(release)
            && !self.active.is_some_and(|active| is_same(active, release))
            && self.is_of_our_repository(release)
    }

    /// Whether a Release's images are of the repository that this target is about.
    pub(super) fn is_of_our_repository(&self, release: &Release) -> bool {
        !images(release).is_empty()
            && images(release).iter().all(|image| self.is_of_repository(&image.asked))
    }

    /// Whether the images of a Release that somebody names are of registries that may be run from.
    /// Whoever can write a Release can write an image of any host into it, and the same path there is
    /// no evidence that it is the same repository.
    fn is_permitted(&self, release: &Release) -> bool {
        match &self.surroundings.registries {
            Registries::Listed { refused } => {
                images(release).iter().all(|image| !refused.contains(&image.asked))
            }
            Registries::OfLiveImages => images(release).iter().all(|image| {
                let image = image.asked.parse::<ImageRef>();
                image.is_ok_and(|image| self.runs_from(image.repository().host()))
            }),
        }
    }

    /// Whether the target runs images of this registry, or was asked to: by its own annotation, or by
    /// what was applied last and put elsewhere by admission.
    fn runs_from(&self, host: &str) -> bool {
        let is_of = |image: &str| {
            image.parse::<ImageRef>().is_ok_and(|image| image.repository().host() == host)
        };
        let applied = self
            .active
            .filter(|active| self.is_ours() && self.annotated() == Some(name(active)))
            .map(images)
            .unwrap_or_default();
        self.wants.containers.iter().any(|container| is_of(self.live(container)))
            || self.wants.image.as_ref().is_some_and(|image| image.host() == host)
            || applied.iter().any(|image| is_of(&image.asked))
    }

    /// Whether an image is of the repository that this target is about.
    pub(super) fn is_of_repository(&self, image: &str) -> bool {
        let parse = |text: &str| text.parse::<ImageRef>().ok();
        let is_ours = |ours: &Repository| {
            parse(image).is_some_and(|image| image.repository().is_mirror_of(ours))
        };
        match &self.wants.image {
            Some(ours) => is_ours(ours),
            None => parse(self.live_image()).is_some_and(|live| is_ours(live.repository())),
        }
    }

    /// What the registry said about an image, unless that was before `asked` or is long ago.
    fn fresh(&self, image: &str, asked: Timestamp) -> Option<&'a Fact<ImageAnswer>> {
        let window = self.settings.windows.image_answer.max(Duration::from_secs(1));
        let is_fresh = |answer: &&Fact<ImageAnswer>| {
            answer.read() >= asked && self.now < time::after(answer.read(), window)
        };
        self.observed.images.get(image).filter(is_fresh)
    }

    /// Looks at the image before an automatic Rollback goes there: what the registry said before the
    /// Rollback was made tells nothing of now. An outage never stops one.
    pub(super) fn recheck(&self, rollback: &Rollback, release: &Release) -> Recheck {
        let created = rollback.metadata.creation_timestamp.as_ref();
        // Two clocks: what is asked now is never too old.
        let asked = created.map_or(Timestamp::MIN, |time| time.0.min(self.now));
        let Some(container) = self.wants.containers.first() else { return Recheck::AsItWas };
        let Some(image) = image_for(release, container) else { return Recheck::AsItWas };
        if self.wants.image_check == belay_api::annotations::ImageCheck::Skip {
            return Recheck::AsItWas;
        }
        let Some(answer) = self.fresh(&image.asked, asked) else {
            return Recheck::Ask(image.asked.clone());
        };
        let digest = match answer.value() {
            Some(ImageAnswer::Missing) => return Recheck::Gone,
            Some(ImageAnswer::Present { digest, .. }) => digest.as_ref(),
            _ => return Recheck::AsItWas,
        };
        let (Some(now), Some(healthy)) = (digest, &image.digest) else { return Recheck::AsItWas };
        if now == healthy {
            return Recheck::AsItWas;
        }
        let Ok(parsed) = image.asked.parse::<ImageRef>() else { return Recheck::AsItWas };
        let pinned = format!("{}@{healthy}", parsed.repository());
        match self.fresh(&pinned, asked).map(Fact::value) {
            None => Recheck::Ask(pinned),
            Some(Some(ImageAnswer::Missing)) => Recheck::Gone,
            Some(_) => Recheck::ByDigest(pinned),
        }
    }
}

/// Whether the last finished activation was judged healthy.
pub(super) fn was_healthy(release: &Release) -> bool {
    activations(release)
        .iter()
        .rev()
        .find(|one| one.end_time.is_some() || one.verdict.is_some())
        .and_then(|one| one.verdict.as_ref()?.known())
        .is_some_and(|verdict| verdict == Verdict::Healthy)
}

//! The wrong order: the image first, and then the Release that names it. It exists so that tests of
//! crashes can be seen to find what the right order prevents; see
//! [`Settings::intent_first`](crate::settings::Settings::intent_first).

use belay_api::release::ContainerImage;

use super::{
    Flow, IntendedImage,
    make::{Origin, write_release},
    view::{Pass, images},
};
use crate::{image::ImageRef, observed::ImageAnswer, selection::Candidate};

impl Pass<'_> {
    /// Applies an image that no Release names yet.
    pub(super) fn apply_first(&mut self, release: &str, asked: &str) -> Flow {
        let images = self.wants.containers.iter().map(|container| IntendedImage {
            container: container.clone(),
            image: asked.to_owned(),
        });
        match self.apply(release, images.collect(), None, &|_| false) {
            Ok(step) => self.draft.step(step),
            Err(why) => {
                let _ = self.explain(why);
                Flow::Continue(())
            }
        }
    }

    /// Makes up for the Release of an image that was applied first, by what only memory knows.
    pub(super) fn record_late(&mut self, candidates: &[Candidate]) -> Flow {
        if self.settings.intent_first || self.active.is_some() || !self.is_ours() {
            return Flow::Continue(());
        }
        let Some(annotated) = self.annotated().map(ToOwned::to_owned) else {
            return Flow::Continue(());
        };
        let live = self.live_image().to_owned();
        let answer = self.observed.images.get(&live).and_then(|answer| answer.value());
        let Some(ImageAnswer::Present { digest, .. }) = answer else { return Flow::Continue(()) };
        let Some(release) = self.release(&annotated) else {
            let made = candidates.iter().find(|one| self.release_name(&one.tag) == annotated);
            let Some(made) = made else { return Flow::Continue(()) };
            let origin = Origin { id: &made.tag, source: self.wants.repo.as_str(), kind: "github" };
            let step = self.new_release(&origin);
            return self.draft.step(step);
        };
        if !images(release).is_empty() || live.parse::<ImageRef>().is_err() {
            return Flow::Continue(());
        }
        let mut status = release.status.clone().unwrap_or_default();
        status.images = self
            .wants
            .containers
            .iter()
            .map(|container| ContainerImage {
                container: container.to_string(),
                asked: live.clone(),
                stored: None,
                digest: digest.clone(),
            })
            .collect();
        let step = write_release(release, status);
        self.draft.step(step)
    }
}

//! What the registry says about a candidate's image (the operator specification, section 3.5).

use std::{collections::BTreeMap, ops::ControlFlow};

use belay_api::{
    gates::{Gate, WaitReason},
    reasons::StalledReason,
};
use jiff::{SignedDuration, Timestamp};

use super::{Look, view::Pass};
use crate::{
    observed::{Fact, ImageAnswer},
    selection::{Candidate, Missing},
    time,
};

const MAX_IMAGE_WAIT: SignedDuration = SignedDuration::from_mins(5);

/// What the check of an image came to.
pub(super) enum Checked {
    /// It is there, with this digest if the registry gave one.
    There(Option<String>),
    /// It is not, or nobody knows; the candidate has its gate.
    NotNow,
}

impl Pass<'_> {
    /// Since when the images of candidates are waited for, by our own status.
    pub(super) fn missing(&self) -> BTreeMap<String, Missing> {
        let candidates = self.record.map(|record| record.status.candidates.as_slice());
        let repository = self.repository().ok();
        let is_there = |tag: &str| {
            let version = self.wants.tag_pattern.version_of(tag);
            let image = version
                .and_then(|version| self.wants.tag_template.render(tag, version))
                .zip(repository.as_ref())
                .map(|(image_tag, repository)| repository.with_tag(&image_tag));
            let answer = image.and_then(|image| self.observed.images.get(&image)?.value());
            matches!(answer, Some(ImageAnswer::Present { .. }))
        };
        candidates
            .unwrap_or_default()
            .iter()
            .filter(|one| {
                one.gate.as_ref().and_then(belay_api::Open::known) == Some(Gate::WaitingForImage)
                    && !is_there(&one.tag)
            })
            .filter_map(|one| {
                let since = one.since.as_ref()?.0;
                Some((one.tag.clone(), Missing { since }))
            })
            .collect()
    }

    /// Since when the registry keeps a candidate back, by our own status.
    fn gated_since(&self, tag: &str) -> Option<Timestamp> {
        let candidates = &self.record?.status.candidates;
        let candidate = candidates.iter().find(|one| one.tag == tag)?;
        let gate = candidate.gate.as_ref().and_then(belay_api::Open::known)?;
        let is_registrys = matches!(
            gate,
            Gate::WaitingForImage
                | Gate::RegistryUnavailable
                | Gate::RegistryDenied
                | Gate::PlatformMissing
        );
        Some(candidate.since.as_ref().filter(|_| is_registrys)?.0)
    }

    /// The registry's answer about an image; asks for it if it is not there or too old.
    pub(super) fn answer(
        &mut self,
        image: &str,
        since: Option<Timestamp>,
    ) -> Option<Fact<ImageAnswer>> {
        let Some(answer) = self.observed.images.get(image) else {
            self.draft.look.push(Look::Image(image.to_owned()));
            return None;
        };
        let again = match answer.value() {
            Some(ImageAnswer::Present { .. }) => {
                time::after(answer.read(), self.settings.windows.image_answer)
            }
            Some(ImageAnswer::Throttled { until }) => *until,
            _ => {
                // Grows with the time already waited.
                let first = time::signed(self.settings.windows.image);
                let waited =
                    since.map_or(MAX_IMAGE_WAIT, |since| time::between(since, answer.read()));
                time::plus(answer.read(), waited.clamp(first, MAX_IMAGE_WAIT.max(first)))
            }
        };
        if self.now >= again {
            self.draft.look.push(Look::Image(image.to_owned()));
            if matches!(answer.value(), Some(ImageAnswer::Present { .. })) {
                return None;
            }
        } else if !matches!(answer.value(), Some(ImageAnswer::Present { .. })) {
            self.draft.wake(again);
        }
        Some(answer.clone())
    }

    /// The digest, if the registry has the image; else the gate is set.
    pub(super) fn check_image(
        &mut self,
        index: usize,
        candidate: &Candidate,
        image: &str,
    ) -> ControlFlow<(), Checked> {
        use ControlFlow::{Break, Continue};
        let since = self.gated_since(&candidate.tag).unwrap_or(self.now);
        let Some(answer) = self.answer(image, Some(since)) else {
            // Nothing else can be decided before the registry was asked.
            self.draft.is_undecided = true;
            return Break(());
        };
        let (gate, message) = match answer.get() {
            Ok(ImageAnswer::Present { digest, missing_platforms }) => {
                if missing_platforms.is_empty() {
                    return Continue(Checked::There(digest.clone()));
                }
                let message = format!("{image} lacks {}", missing_platforms.join(", "));
                (Gate::PlatformMissing, message)
            }
            Ok(ImageAnswer::Missing) => {
                self.draft.waiting = Some((WaitReason::ImageBackoff, None));
                (Gate::WaitingForImage, format!("the registry does not have {image}"))
            }
            Ok(ImageAnswer::Denied { secret: Some(secret) }) => {
                (Gate::RegistryDenied, format!("{image} is denied with the pull secret {secret}"))
            }
            Ok(ImageAnswer::Denied { secret: None }) => {
                (Gate::RegistryDenied, format!("{image} is denied without a pull secret"))
            }
            Ok(ImageAnswer::NotAllowed) => {
                let message = format!("{image} is not permitted, or does not exist");
                self.draft.stalled.get_or_insert((StalledReason::NotAllowed, message.clone()));
                (Gate::RegistryDenied, message)
            }
            Ok(ImageAnswer::Throttled { until }) => {
                self.draft.wait(WaitReason::RegistryThrottled, *until);
                (Gate::RegistryUnavailable, "the registry asks for patience".to_owned())
            }
            Err(why) => (Gate::RegistryUnavailable, why.to_owned()),
        };
        let _ = self.gate(index, gate, message);
        Continue(Checked::NotNow)
    }
}

//! The whole status of the ReleaseTarget (the operator specification, section 1.4).

use belay_api::{
    annotations::ImageCheck,
    conditions::{ConditionStatus, State, TargetState, carry_transition_times},
    gates::{ForgeBudget, Verdict},
    limits,
    reasons::{HeldReason, Note, ProgressingReason, StalledReason, TargetReadyReason},
    target::{
        BlockStatus, CandidateStatus, Current, ForgeStatus, Revert, TargetStatus, Waiting, Wanted,
        Workload,
    },
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::view::{Draft, Pass, image_for, images, name, open_activation, tag};
use crate::{
    image::ImageRef,
    judge::RolloutState,
    observed::{Forge, WorkloadFacts},
    settings::Settings,
    text,
};

/// The status where the annotations of the target cannot be followed.
pub(super) fn invalid(
    problems: String,
    workload: &WorkloadFacts,
    settings: &Settings,
    old: Option<&TargetStatus>,
    now: Timestamp,
) -> TargetStatus {
    let mut draft = Draft::default();
    let _ = draft.stall(StalledReason::InvalidConfig, problems);
    let mut status = about(workload, settings, old);
    status.waiting = None;
    status.conditions = conditions(&draft, None, old, now);
    status
}

/// The status where other objects could not be read: all stays as it was, but for `Ready`.
pub(super) fn unknown(
    why: &str,
    workload: &WorkloadFacts,
    settings: &Settings,
    old: Option<&TargetStatus>,
    now: Timestamp,
) -> TargetStatus {
    let draft = Draft { unknown: Some(why.to_owned()), ..Draft::default() };
    let mut status = about(workload, settings, old);
    let mut new = conditions(&draft, None, old, now);
    for condition in std::mem::take(&mut status.conditions) {
        match new.iter_mut().find(|one| one.type_ == condition.type_) {
            Some(one) if one.type_ != READY => *one = condition,
            Some(_) => {}
            None => new.push(condition),
        }
    }
    status.conditions = new;
    status
}

/// The last status, as one that this operator writes about this workload.
fn about(
    workload: &WorkloadFacts,
    settings: &Settings,
    old: Option<&TargetStatus>,
) -> TargetStatus {
    let mut status = old.cloned().unwrap_or_default();
    status.instance = Some(settings.instance.clone());
    status.annotation_prefix = Some(settings.prefix.as_str().to_owned());
    status.workload = Some(workload_of(workload));
    status
}

const READY: &str = "Ready";

fn workload_of(workload: &WorkloadFacts) -> Workload {
    Workload {
        api_version: workload.api_version.clone(),
        kind: workload.kind.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
    }
}

fn conditions(
    draft: &Draft,
    ready: Option<(ConditionStatus, TargetReadyReason, String)>,
    old: Option<&TargetStatus>,
    now: Timestamp,
) -> Vec<Condition> {
    use ConditionStatus::{False, True, Unknown};
    let time = Time(now);
    let mut all = Vec::new();
    let (status, reason, message) = if let Some(why) = &draft.unknown {
        (Unknown, TargetReadyReason::Unknown, why.clone())
    } else if let Some((reason, message)) = &draft.stalled {
        let _: &StalledReason = reason;
        (False, TargetReadyReason::Stalled, message.clone())
    } else if let Some(ready) = ready {
        ready
    } else {
        (Unknown, TargetReadyReason::Unknown, String::new())
    };
    all.push(TargetState::from(reason).condition(status, &message, None, time.clone()));
    let progressing = match &draft.progressing {
        Some((reason, message)) => {
            TargetState::from(*reason).condition(True, message, None, time.clone())
        }
        None => TargetState::from(ProgressingReason::Idle).condition(False, "", None, time.clone()),
    };
    all.push(progressing);
    if let Some((reason, message)) = &draft.stalled {
        all.push(TargetState::from(*reason).condition(True, message, None, time.clone()));
    }
    if let Some((reason, message)) = &draft.held {
        let _: &HeldReason = reason;
        all.push(TargetState::from(*reason).condition(True, message, None, time.clone()));
    }
    for (note, message) in draft.notes.values() {
        let _: &Note = note;
        all.push(note.condition(True, message, None, time.clone()));
    }
    if let Some(old) = old {
        carry_transition_times(&mut all, &old.conditions);
    }
    all
}

impl Pass<'_> {
    pub(super) fn target_status(&mut self) -> TargetStatus {
        let old = self.record.map(|record| &record.status);
        if let Some(old) = old.filter(|_| self.draft.claims) {
            return about(self.workload, self.settings, Some(old));
        }
        self.notes();
        let ready = self.ready();
        TargetStatus {
            instance: Some(self.settings.instance.clone()),
            annotation_prefix: Some(self.settings.prefix.as_str().to_owned()),
            workload: Some(workload_of(self.workload)),
            containers: self.wants.containers.iter().map(ToString::to_string).collect(),
            current: self.current(),
            wanted: self.wanted(old),
            candidates: self.candidates(old),
            active: self.active.map(|active| name(active).to_owned()),
            hold: self.wants.hold.as_ref().map(|hold| hold.as_str().to_owned()),
            blocked: self.blocked(),
            reverts: self.reverts(old),
            pause: self.pause_status(),
            waiting: self.draft.waiting.as_ref().map(|(reason, until)| Waiting {
                reason: (*reason).into(),
                until: until.map(Time),
            }),
            forge: self.forge_status(old),
            conditions: conditions(&self.draft, Some(ready), old, self.now),
        }
    }

    fn notes(&mut self) {
        self.mind_overdue();
        if !self.wants.left_out.is_empty() {
            let names: Vec<_> = self.wants.left_out.iter().map(ToString::to_string).collect();
            let message = format!("not followed: {}", names.join(", "));
            self.draft.note(Note::ContainerLeftOut, message);
        }
        let handicaps = &self.observed.handicaps;
        if let Some(why) = &handicaps.pods_listed {
            self.draft.note(Note::PodsListed, why);
        }
        if handicaps.no_platforms && self.wants.image_check == ImageCheck::Required {
            let message =
                "nodes are not read, so nobody checks whether an image has their platforms";
            self.draft.note(Note::PlatformsNotChecked, message);
        }
        let Some(active) = self.active else { return };
        let changed = images(active)
            .iter()
            .find(|image| image.stored.as_ref().is_some_and(|stored| *stored != image.asked));
        if let Some(image) = changed.filter(|_| self.is_ours()) {
            let stored = image.stored.clone().unwrap_or_default();
            let message = format!("asked for {}, stored {stored}", image.asked);
            self.draft.note(Note::ChangedByAdmission, message);
        }
    }

    fn ready(&self) -> (ConditionStatus, TargetReadyReason, String) {
        use ConditionStatus::{False, True, Unknown};
        if let Some((_, message)) = &self.draft.held {
            return (Unknown, TargetReadyReason::Held, message.clone());
        }
        if let Some((_, message)) = &self.draft.progressing {
            return (Unknown, TargetReadyReason::Progressing, message.clone());
        }
        if self.draft.step.is_some() {
            return (Unknown, TargetReadyReason::Progressing, String::new());
        }
        let Some(active) = self.active else {
            if self.is_known() {
                let message = format!("no Release names {}, which runs", self.live_image());
                return (Unknown, TargetReadyReason::Unknown, message);
            }
            return (Unknown, TargetReadyReason::Progressing, String::new());
        };
        let tag = tag(active);
        match &self.state {
            Some(RolloutState::Failed(failure)) => {
                (False, TargetReadyReason::Failed, failure.message.clone())
            }
            Some(RolloutState::Healthy | RolloutState::ScaledToZero) => {
                if self.is_back(active) {
                    (True, TargetReadyReason::RolledBack, format!("{tag} runs"))
                } else {
                    (True, TargetReadyReason::Ready, format!("{tag} runs"))
                }
            }
            _ => (Unknown, TargetReadyReason::Progressing, String::new()),
        }
    }

    /// Whether what runs was gone back to from a Release that failed.
    fn is_back(&self, active: &belay_api::Release) -> bool {
        self.came_by_rollback(active)
            && self.releases.iter().any(|release| {
                super::view::last_activation(release)
                    .and_then(|last| last.verdict.as_ref()?.known())
                    .is_some_and(|verdict| verdict == Verdict::Failed)
                    && self
                        .block(release)
                        .is_some_and(|block| block.to.is_some_and(|mark| mark.tag == tag(active)))
            })
    }

    fn current(&self) -> Option<Current> {
        let live = self.live_image();
        if live.is_empty() {
            return None;
        }
        let parsed = live.parse::<ImageRef>().ok();
        let recorded = self
            .active
            .zip(self.wants.containers.first())
            .and_then(|(active, container)| image_for(active, container)?.digest.clone());
        let written = parsed.as_ref().and_then(|image| image.digest().map(ToOwned::to_owned));
        Some(Current {
            image: Some(text::clipped(live.to_owned(), limits::IMAGE)),
            tag: parsed.as_ref().and_then(|image| image.tag().map(ToOwned::to_owned)),
            digest: written.or(recorded),
            release: self
                .active
                .filter(|active| open_activation(active).is_some())
                .map(|active| name(active).to_owned()),
        })
    }

    fn wanted(&self, old: Option<&TargetStatus>) -> Option<Wanted> {
        let (image, release) = if let Some((image, release)) = &self.draft.wanted {
            (image.clone(), release.clone())
        } else {
            let active = self.active?;
            (images(active).first()?.asked.clone(), Some(name(active).to_owned()))
        };
        if image.is_empty() {
            return None;
        }
        let parsed = image.parse::<ImageRef>().ok();
        let tag = parsed.and_then(|image| image.tag().map(ToOwned::to_owned));
        let image = text::clipped(image, limits::IMAGE);
        let before = old.and_then(|old| old.wanted.as_ref());
        let since = before
            .filter(|before| before.image.as_ref() == Some(&image))
            .and_then(|before| before.since.clone());
        Some(Wanted { image: Some(image), tag, release, since: since.or(Some(Time(self.now))) })
    }

    fn candidates(&self, old: Option<&TargetStatus>) -> Vec<CandidateStatus> {
        let before = old.map(|old| old.candidates.as_slice()).unwrap_or_default();
        if self.draft.candidates.is_empty()
            && (self.draft.step.is_some()
                || self.draft.keeps_pause
                || !matches!(self.forge(), Some(Forge::Found { .. })))
        {
            // They were not looked at in this pass.
            return before.to_vec();
        }
        let mut all: Vec<CandidateStatus> = Vec::new();
        for candidate in &self.draft.candidates {
            let gate = candidate.gate.map(belay_api::Open::from);
            let old = before.iter().find(|one| one.tag == candidate.tag && one.gate == gate);
            let is_listed = all.iter().any(|one| one.tag == candidate.tag);
            if is_listed || candidate.tag.is_empty() {
                continue;
            }
            all.push(CandidateStatus {
                tag: candidate.tag.clone(),
                gate,
                message: Some(candidate.message.clone()).filter(|text| !text.is_empty()),
                since: old.and_then(|old| old.since.clone()).or(Some(Time(self.now))),
            });
        }
        all
    }

    fn blocked(&self) -> Vec<BlockStatus> {
        let mut blocks: Vec<_> =
            self.blocks().into_iter().filter(|block| block.counts_at(self.now)).collect();
        let rank = |block: &crate::block::Block| block.from.rank(&self.wants.tag_pattern);
        blocks.sort_by(|one, other| rank(other).order(&rank(one)));
        blocks
            .into_iter()
            .take(limits::BLOCKS)
            .map(|block| BlockStatus {
                from: limits::clip(&block.from.tag, limits::TAG),
                to: block.to.map(|mark| limits::clip(&mark.tag, limits::TAG)),
                reason: block.reason.into(),
                until: block.until.map(Time),
                count: Some(block.count),
            })
            .collect()
    }

    fn reverts(&self, old: Option<&TargetStatus>) -> Vec<Revert> {
        let mut reverts = old.map(|old| old.reverts.clone()).unwrap_or_default();
        if let Some((manager, value)) = &self.draft.revert {
            reverts.push(Revert {
                manager: limits::clip(manager, limits::FIELD_MANAGER),
                value: limits::clip(value, limits::IMAGE),
                time: Time(self.now),
            });
            let excess = reverts.len().saturating_sub(limits::REVERTS);
            reverts.drain(..excess);
        }
        reverts
    }

    fn forge_status(&self, old: Option<&TargetStatus>) -> Option<ForgeStatus> {
        match self.forge() {
            Some(Forge::Throttled { until }) => Some(ForgeStatus {
                budget: ForgeBudget::Exhausted.into(),
                reset_time: Some(Time(*until)),
            }),
            Some(Forge::Found { is_low: true, .. }) => {
                Some(ForgeStatus { budget: ForgeBudget::Low.into(), reset_time: None })
            }
            Some(_) => Some(ForgeStatus { budget: ForgeBudget::Ok.into(), reset_time: None }),
            None => old.and_then(|old| old.forge.clone()),
        }
    }
}

//! Which Release is active, and writing down that it is (the operator specification, section 1.1).
//!
//! "Active" is read off the workload in every pass, never remembered: the live image and the
//! `release` annotation say it, so that a crash between an apply and its record is mended by the
//! next pass.

use belay_api::{
    Release,
    conditions::{ConditionStatus, ReleaseState},
    events::EventReason,
    gates::Verdict,
    limits,
    reasons::{ActiveReason, HealthyReason, ReleaseReadyReason, RollbackRequiredReason},
    release::{
        Activation, ActivationWorkload, ContainerImage, PreviousRelease, ReleaseRef, ReleaseStatus,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Flow,
    make::{Health, put, put_health, write_release},
    view::{
        Pass, activations, image_for, images, is_same, last_activation, name, open_activation, tag,
    },
};
use crate::image::ImageRef;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Stored,
    Either,
}

impl<'a> Pass<'a> {
    /// The Release that the workload's template names.
    pub(super) fn find_active(&self) -> Option<&'a Release> {
        // Under our own hand and annotation the live string is what was stored, whatever admission
        // made of what was asked.
        if let Some(named) = self.named()
            && !images(named).is_empty()
            && (self.is_ours() || self.stands_for(named, Which::Either))
        {
            return Some(named);
        }
        let stored = |release: &&Release| self.stands_for(release, Which::Stored);
        let open = self
            .releases
            .iter()
            .copied()
            .find(|one| open_activation(one).is_some() && self.stands_for(one, Which::Stored));
        open.or_else(|| self.newest(|one| stored(&one)))
            .or_else(|| self.newest(|one| self.stands_for(one, Which::Either)))
    }

    fn newest(&self, holds: impl Fn(&'a Release) -> bool) -> Option<&'a Release> {
        let has_run = |release: &Release| last_activation(release).is_some();
        self.releases.iter().copied().filter(|release| holds(release)).max_by(|one, other| {
            has_run(one).cmp(&has_run(other)).then_with(|| self.by_age(one, other))
        })
    }

    fn stands_for(&self, release: &Release, which: Which) -> bool {
        self.wants.containers.iter().all(|container| {
            let live = self.live(container);
            image_for(release, container).is_some_and(|image| {
                image.stored.as_deref() == Some(live)
                    || (which == Which::Either && image.asked == live)
            })
        })
    }

    /// Writes down what became active and what ceased to be: first the end, then the beginning, so
    /// that at most one is active at any time.
    pub(super) fn record_activity(&mut self) -> Flow {
        // What was active on another workload is to be judged anew on this one, whatever its image.
        let ended = self.releases.iter().copied().find(|release| {
            open_activation(release).is_some_and(|open| {
                !self.is_of_this_workload(open)
                    || !self.active.is_some_and(|active| is_same(active, release))
            })
        });
        if let Some(ended) = ended {
            let status = self.ended(ended);
            let step = write_release(ended, status);
            return self.draft.step(step);
        }
        let Some(active) = self.active else { return Flow::Continue(()) };
        let old = active.status.clone().unwrap_or_default();
        let mut status = old.clone();
        if open_activation(active).is_none() {
            self.begun(active, &mut status);
        }
        self.store_images(&mut status);
        if status == old {
            return Flow::Continue(());
        }
        let step = write_release(active, status);
        self.draft.step(step)
    }

    fn ended(&mut self, release: &Release) -> ReleaseStatus {
        let mut status = release.status.clone().unwrap_or_default();
        let is_rolled_back = self.pending().any(|rollback| {
            let from = rollback.status.as_ref().and_then(|status| status.from_release_ref.as_ref());
            from.is_some_and(|from| from.name == name(release))
        });
        let holder = (!self.is_ours()).then(|| self.holder());
        let ours = self.our_time().filter(|_| self.active.is_some() && self.is_ours());
        let is_of_another =
            open_activation(release).is_some_and(|open| !self.is_of_this_workload(open));
        let Some(last) = status.activations.last_mut() else { return status };
        // What took its place began with our apply, not with this look at it: pods may have been
        // created in between, and their crashes count.
        let replaced = ours.filter(|applied| *applied >= last.start_time.0);
        last.end_time = Some(Time(replaced.unwrap_or(self.now).max(last.start_time.0)));
        let had_verdict = last.verdict.is_some();
        if !had_verdict {
            let verdict = if is_rolled_back { Verdict::RolledBack } else { Verdict::Superseded };
            last.verdict = Some(verdict.into());
        }
        match holder {
            _ if is_of_another => last.message = Some("the workload was made anew".to_owned()),
            Some(holder) => {
                last.message = Some(Activation::changed_by_message(&holder));
                let message = format!("{holder} changed the image away from {}", tag(release));
                self.draft.tell(EventReason::ImageChanged, message);
            }
            None => {}
        }
        status.progress = None;
        let active = if is_rolled_back {
            ActiveReason::RolledBack
        } else if self.active.is_some() {
            ActiveReason::Superseded
        } else {
            ActiveReason::ImageChanged
        };
        let state = ReleaseState::from(active);
        put(&mut status.conditions, state, ConditionStatus::False, "", self.now);
        if !had_verdict {
            let ready = if is_rolled_back {
                ReleaseReadyReason::RolledBack
            } else {
                ReleaseReadyReason::Superseded
            };
            let health = Health {
                healthy: (ConditionStatus::Unknown, HealthyReason::Superseded),
                ready,
                message: "",
            };
            put_health(&mut status, &health, self.now);
        }
        status
    }

    fn begun(&mut self, release: &Release, status: &mut ReleaseStatus) {
        let (reason, initiator) = self.why_active(release);
        let last_end = self
            .releases
            .iter()
            .filter_map(|one| last_activation(one)?.end_time.as_ref().map(|time| time.0))
            .max();
        let ours = self.our_time().filter(|_| self.is_ours());
        // Our entry's time is the API server's of the apply, unless the apply changed nothing.
        let start = match ours {
            Some(time) if last_end.is_none_or(|end| time >= end) => time,
            _ => self.now,
        };
        let ordinal = status.activations.last().map_or(1, |last| last.ordinal.saturating_add(1));
        status.activations.push(Activation {
            ordinal,
            start_time: Time(start),
            end_time: None,
            initiator: Some(limits::clip(&initiator, limits::PRINCIPAL)),
            verdict: None,
            message: None,
            workload: Some(ActivationWorkload { uid: self.workload.uid.clone() }),
        });
        let excess = status.activations.len().saturating_sub(limits::ACTIVATIONS);
        status.activations.drain(..excess);
        status.progress = None;
        status.signature.get_or_insert_with(|| release.config().signature().as_str().to_owned());
        if status.previous_release.is_none()
            && ordinal == 1
            && let Some(previous) = self.last_active()
        {
            status.previous_release = Some(PreviousRelease {
                release_ref: ReleaseRef {
                    target: self.wants.target.as_str().to_owned(),
                    name: name(previous).to_owned(),
                },
                transition_time: Time(start),
            });
        }
        let now = self.now;
        let state = ReleaseState::from(reason);
        put(&mut status.conditions, state, ConditionStatus::True, "", now);
        let health = Health {
            healthy: (ConditionStatus::Unknown, HealthyReason::Rolling),
            ready: ReleaseReadyReason::Rolling,
            message: "",
        };
        put_health(status, &health, now);
        let required = ReleaseState::from(RollbackRequiredReason::RolloutInProgress);
        put(&mut status.conditions, required, ConditionStatus::Unknown, "", now);
        let message = format!("{} is active, by {initiator}", tag(release));
        self.draft.tell(EventReason::Active, message);
    }

    fn why_active(&self, release: &Release) -> (ActiveReason, String) {
        if !self.is_ours() || self.annotated() != Some(name(release)) {
            let is_first = self.releases.iter().all(|one| activations(one).is_empty());
            let reason =
                if is_first { ActiveReason::Baseline } else { ActiveReason::WrittenByOther };
            return (reason, self.holder());
        }
        let rollback = self.pending().find(|rollback| {
            let status = rollback.status.as_ref();
            let to = status.and_then(|status| status.to_release_ref.as_ref());
            to.is_some_and(|to| to.name == name(release))
                && status.is_some_and(|status| status.attempt_count.is_some())
        });
        if let Some(rollback) = rollback {
            return (ActiveReason::Applied, rollback.spec.initiated_by.principal.clone());
        }
        let reason =
            if self.is_restored(release) { ActiveReason::Restored } else { ActiveReason::Applied };
        (reason, format!("GitHub {}", tag(release)))
    }

    /// Keeps the strings that the API server has stored.
    fn store_images(&self, status: &mut ReleaseStatus) {
        for container in &self.wants.containers {
            let text = container.to_string();
            let live = self.live(container);
            if live.is_empty() || live.chars().count() > limits::IMAGE {
                continue;
            }
            match status.images.iter_mut().find(|one| one.container == text) {
                Some(image) => image.stored = Some(live.to_owned()),
                None => status.images.push(ContainerImage {
                    container: text,
                    asked: live.to_owned(),
                    stored: Some(live.to_owned()),
                    digest: live
                        .parse::<ImageRef>()
                        .ok()
                        .and_then(|image| image.digest().map(ToOwned::to_owned)),
                }),
            }
        }
    }
}

//! Carrying out Rollbacks with the native driver (the operator specification, section 7).

use belay_api::{
    Duration, Release, Rollback,
    conditions::{ConditionStatus, RollbackState},
    events::EventReason,
    gates::{Verdict, WaitReason},
    limits,
    reasons::{BlockedReason, InProgressReason, ProgressingReason, Rejection, SucceededReason},
    release::ReleaseRef,
    rollback::{Driver, RollbackStatus},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Flow, IntendedImage, Look, Step,
    apply::NotNow,
    failure::is_system,
    make::put,
    pause::Move,
    resolve::{Recheck, Resolved},
    view::{Pass, image_for, is_same, last_activation, name, precondition, rollback_name, tag},
};
use crate::{judge::RolloutState, time};

const MAX_ATTEMPTS: i32 = 3;
const MAX_BACKOFF: u64 = 120;

/// How a Rollback ended.
pub(super) struct End {
    in_progress: InProgressReason,
    succeeded: SucceededReason,
    rejection: Option<Rejection>,
    message: String,
}

impl End {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self {
            in_progress: InProgressReason::Failed,
            succeeded: SucceededReason::DeploymentFailed,
            rejection: None,
            message: message.into(),
        }
    }

    pub(super) fn rejected(rejection: Rejection) -> Self {
        Self {
            in_progress: InProgressReason::Failed,
            succeeded: SucceededReason::Rejected,
            rejection: Some(rejection),
            message: belay_api::NamedValue::describe(rejection).to_owned(),
        }
    }

    fn superseded(message: impl Into<String>) -> Self {
        Self {
            in_progress: InProgressReason::Superseded,
            succeeded: SucceededReason::DeploymentSuperseded,
            rejection: None,
            message: message.into(),
        }
    }
}

impl End {
    /// A Rollback that is recorded only.
    pub(super) fn recorded() -> Self {
        Self {
            in_progress: InProgressReason::Completed,
            succeeded: SucceededReason::DeploymentSucceeded,
            rejection: None,
            message: "recorded only".to_owned(),
        }
    }

    fn is_good(&self) -> bool {
        self.succeeded == SucceededReason::DeploymentSucceeded
    }

    /// Writes the end down.
    pub(super) fn step(&self, rollback: &Rollback, namespace: &str, now: Timestamp) -> Step {
        let mut status = status_of(rollback);
        let message = limits::clip(&self.message, limits::CONDITION_MESSAGE);
        status.message = Some(message.clone());
        status.completion_time = Some(Time(now));
        status.next_attempt_time = None;
        status.rejection = self.rejection.map(Into::into);
        if rollback.spec.driver == Driver::Noop {
            status.deployment_id = Some(format!("noop-{namespace}-{}", rollback_name(rollback)));
        }
        let in_progress = RollbackState::from(self.in_progress);
        put(&mut status.conditions, in_progress, ConditionStatus::False, "", now);
        let succeeded = RollbackState::from(self.succeeded);
        let is_good = ConditionStatus::from(self.is_good());
        put(&mut status.conditions, succeeded, is_good, &message, now);
        Step::RollbackStatus {
            name: rollback_name(rollback).to_owned(),
            from: precondition(&rollback.metadata),
            status: Box::new(status),
        }
    }
}

pub(super) fn status_of(rollback: &Rollback) -> RollbackStatus {
    rollback.status.clone().unwrap_or_default()
}

pub(super) fn has_started(rollback: &Rollback) -> bool {
    rollback.status.as_ref().is_some_and(|status| status.start_time.is_some())
}

impl<'a> Pass<'a> {
    /// Carries the Rollback whose turn it is one step further.
    pub(super) fn roll_back(&mut self) -> Flow {
        let pending: Vec<&Rollback> = self.pending().collect();
        let users = || pending.iter().copied().filter(|one| !is_system(one));
        let started = |one: &&Rollback| has_started(one);
        if let Some(user) = users().next()
            && let Some(system) = pending.iter().copied().find(|one| is_system(one))
        {
            let message = format!("pre-empted by {}", rollback_name(user));
            let step = self.end(system, &End::superseded(message));
            return self.draft.step(step);
        }
        let current = users().find(started).or_else(|| users().next());
        let current = current
            .or_else(|| pending.iter().copied().find(started))
            .or_else(|| pending.first().copied());
        let Some(current) = current else { return Flow::Continue(()) };
        self.draft.awaits_pods = self.workload.rollout.wanted != 0;
        self.drive(current)
    }

    fn drive(&mut self, rollback: &'a Rollback) -> Flow {
        let status = status_of(rollback);
        let Some(started) = status.start_time.as_ref().map(|time| time.0) else {
            return self.start(rollback);
        };
        let timeout = time::after(started, rollback.spec.timeout);
        let to = status.to_release_ref.as_ref().and_then(|to| self.release(&to.name));
        let Some(to) = to else {
            let step = self.end(rollback, &End::failed("the Release to go to is gone"));
            return self.draft.step(step);
        };
        let is_there = self.active.is_some_and(|active| is_same(active, to));
        if is_there && let Some(end) = self.outcome(to) {
            let step = self.end(rollback, &end);
            return self.draft.step(step);
        }
        if self.now >= timeout {
            let end = End {
                succeeded: SucceededReason::DeadlineExceeded,
                ..End::failed(format!("it did not end within {}", rollback.spec.timeout))
            };
            let step = self.end(rollback, &end);
            return self.draft.step(step);
        }
        let message = format!("to {}", tag(to));
        self.draft.wanted = image_of(to).map(|image| (image, Some(name(to).to_owned())));
        if is_there && self.is_awaiting_resume() {
            // The next pass knows from the status that there is a pause to be seen off.
            self.draft.wake(timeout);
            return self.in_progress(rollback, InProgressReason::DeploymentTriggered);
        }
        self.draft.wait(WaitReason::RollbackTimeout, timeout);
        if self.workload.rollout.paused {
            self.draft.busy(ProgressingReason::TargetPaused, message);
            return self.in_progress(rollback, InProgressReason::TargetPaused);
        }
        self.draft.busy(ProgressingReason::RollingBack, message);
        if is_there {
            return self.in_progress(rollback, InProgressReason::DeploymentTriggered);
        }
        let left_again = last_activation(to).is_some_and(|last| {
            status.attempt_count.is_some()
                && last.start_time.0 >= started
                && last.end_time.is_some()
        });
        if left_again {
            let message = format!("{} changed the image meanwhile", self.holder());
            let step = self.end(rollback, &End::superseded(message));
            return self.draft.step(step);
        }
        self.block_left(rollback, to)?;
        self.attempt(rollback, to, &status)
    }

    fn start(&mut self, rollback: &'a Rollback) -> Flow {
        match rollback.spec.driver {
            Driver::Native => {}
            Driver::Noop => {
                let step = self.end(rollback, &End::recorded());
                return self.draft.step(step);
            }
            Driver::Github | Driver::Argocd => {
                let step = self.end(rollback, &End::rejected(Rejection::Followed));
                return self.draft.step(step);
            }
        }
        if self.gitops().is_some() {
            let step = self.end(rollback, &End::rejected(Rejection::ManagedByGitOps));
            return self.draft.step(step);
        }
        let Some(from) = self.active.or_else(|| self.last_active()) else {
            let step = self.end(rollback, &End::rejected(Rejection::NoReleaseToGoTo));
            return self.draft.step(step);
        };
        let named = Some(rollback.spec.to_release_ref.name.as_str()).filter(|one| !one.is_empty());
        let resolved = if is_system(rollback) && named.is_none() {
            self.resolve_checked(rollback, from)?
        } else {
            self.resolve(from, named, rollback.spec.force)
        };
        let to = match resolved {
            Resolved::To(to) => to,
            Resolved::Nowhere(rejection) => {
                let step = self.end(rollback, &End::rejected(rejection));
                return self.draft.step(step);
            }
        };
        let mut status = status_of(rollback);
        let reference = |release: &Release| ReleaseRef {
            target: self.wants.target.as_str().to_owned(),
            name: name(release).to_owned(),
        };
        status.from_release_ref = Some(reference(from));
        status.to_release_ref = Some(reference(to));
        status.start_time = Some(Time(self.now));
        status.automatic = is_system(rollback);
        status.message = Some(format!("from {} to {}", tag(from), tag(to)));
        self.put_progress(&mut status, InProgressReason::Queued);
        let message = format!("rolling back from {} to {}", tag(from), tag(to));
        self.draft.tell(EventReason::RollingBack, message);
        self.write_rollback(rollback, status)
    }

    /// The first Release on the way back whose image is still there.
    fn resolve_checked(
        &mut self,
        rollback: &Rollback,
        from: &'a Release,
    ) -> std::ops::ControlFlow<(), Resolved<'a>> {
        for release in self.ways_back(from) {
            match self.recheck(rollback, release) {
                Recheck::Gone => {}
                Recheck::AsItWas | Recheck::ByDigest(_) => {
                    return std::ops::ControlFlow::Continue(Resolved::To(release));
                }
                Recheck::Ask(image) => {
                    self.draft.look.push(Look::Image(image));
                    self.draft.is_undecided = true;
                    return std::ops::ControlFlow::Break(());
                }
            }
        }
        std::ops::ControlFlow::Continue(Resolved::Nowhere(Rejection::NoReleaseToGoTo))
    }

    /// Before the image is put back: all between is refused.
    fn block_left(&mut self, rollback: &Rollback, to: &Release) -> Flow {
        let from = rollback.status.as_ref().and_then(|status| status.from_release_ref.as_ref());
        let Some(from) = from.and_then(|from| self.release(&from.name)) else {
            return Flow::Continue(());
        };
        if !self.rank(to).is_below(&self.rank(from)) {
            return Flow::Continue(());
        }
        let Some(last) = last_activation(from) else { return Flow::Continue(()) };
        let old = self.block(from).filter(|block| block.ordinal == last.ordinal);
        let goes_there =
            |block: &crate::block::Block| block.to.as_ref().is_some_and(|mark| mark.tag == tag(to));
        if old.as_ref().is_some_and(goes_there) {
            return Flow::Continue(());
        }
        let verdict = last.verdict.as_ref().and_then(belay_api::Open::known);
        let reason = match (old, verdict) {
            (Some(old), _) => old.reason,
            (None, Some(Verdict::Healthy)) => BlockedReason::RolledBack,
            (None, Some(Verdict::Failed)) => BlockedReason::RolloutFailed,
            (None, _) => BlockedReason::Superseded,
        };
        let step = self.block_step(from, Some(tag(to)), reason, last.ordinal);
        self.draft.step(step)
    }

    fn attempt(&mut self, rollback: &'a Rollback, to: &'a Release, old: &RollbackStatus) -> Flow {
        let count = old.attempt_count.unwrap_or(0);
        if count == 0 {
            return self.count_attempt(rollback, 1);
        }
        let pinned = match is_system(rollback).then(|| self.recheck(rollback, to)) {
            None | Some(Recheck::AsItWas) => None,
            Some(Recheck::ByDigest(image)) => Some(image),
            Some(Recheck::Ask(image)) => {
                // The answer was lost since, and the tag may name another image by now.
                self.draft.look.push(Look::Image(image));
                self.draft.is_undecided = true;
                return Flow::Break(());
            }
            Some(Recheck::Gone) => {
                let message =
                    format!("the registry does not have the image of {} any more", tag(to));
                let step = self.end(rollback, &End::failed(message));
                return self.draft.step(step);
            }
        };
        let images = self.images_of(to, pinned.as_deref());
        let created = rollback.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let held_then: Vec<String> = self
            .others()
            .iter()
            .filter(|_| !is_system(rollback))
            .filter(|owner| owner.time.zip(created).is_some_and(|(time, created)| time <= created))
            .map(|owner| owner.manager.clone())
            .collect();
        let may = |manager: &str| held_then.iter().any(|one| one == manager);
        match self.apply(name(to), images, Some(count), &may) {
            Ok(step) => {
                self.freeze(&step, Move::Rollback)?;
                self.draft.step(step)
            }
            Err(NotNow::GitOps(_)) => {
                let step = self.end(rollback, &End::rejected(Rejection::ManagedByGitOps));
                self.draft.step(step)
            }
            Err(NotNow::Conflict(managers)) => {
                let message = format!("{} owns the image", managers.join(", "));
                let step = self.end(rollback, &End::failed(message));
                self.draft.step(step)
            }
            Err(NotNow::Repository(message) | NotNow::Denied { message, .. }) => {
                let step = self.end(rollback, &End::failed(message));
                self.draft.step(step)
            }
            Err(NotNow::Failed { message, .. }) => {
                let next = old.next_attempt_time.as_ref().map_or(self.now, |time| time.0);
                if self.now < next {
                    self.draft.wait(WaitReason::RollbackBackoff, next);
                    return Flow::Continue(());
                }
                if count >= MAX_ATTEMPTS {
                    let step = self.end(rollback, &End::failed(message));
                    return self.draft.step(step);
                }
                self.count_attempt(rollback, count.saturating_add(1))
            }
        }
    }

    /// An attempt is counted and stored before it is made.
    fn count_attempt(&mut self, rollback: &Rollback, count: i32) -> Flow {
        let mut status = status_of(rollback);
        status.attempt_count = Some(count);
        status.next_attempt_time = Some(Time(self.next_attempt(rollback, count)));
        let reason = if count == 1 {
            InProgressReason::DeploymentTriggered
        } else {
            InProgressReason::Retrying
        };
        self.put_progress(&mut status, reason);
        self.write_rollback(rollback, status)
    }

    /// Doubling from the first wait up to 2 minutes, and up to a quarter more that differs between
    /// Rollbacks.
    fn next_attempt(&self, rollback: &Rollback, count: i32) -> Timestamp {
        let first = self.settings.windows.attempt.as_secs();
        let doublings = u32::try_from(count.saturating_sub(1)).unwrap_or_default().min(16);
        let wait = first.saturating_mul(1 << doublings).min(MAX_BACKOFF);
        let spread = rollback_name(rollback).bytes().fold(0_u64, |sum, b| sum + u64::from(b));
        let more = wait.saturating_mul(spread % 26) / 100;
        time::after(self.now, Duration::from_secs(wait.saturating_add(more)))
    }

    /// The images that put `to` back.
    pub(super) fn images_of(&self, to: &Release, pinned: Option<&str>) -> Vec<IntendedImage> {
        let image = |container| {
            let image =
                pinned.or_else(|| image_for(to, container).map(|one| one.asked.as_str()))?;
            Some(IntendedImage { container: container.clone(), image: image.to_owned() })
        };
        self.wants.containers.iter().filter_map(image).collect()
    }

    fn outcome(&self, to: &Release) -> Option<End> {
        let succeeded = |message: String| End {
            in_progress: InProgressReason::Completed,
            succeeded: SucceededReason::DeploymentSucceeded,
            rejection: None,
            message,
        };
        match self.state.as_ref()? {
            RolloutState::Healthy => Some(succeeded(format!("{} is healthy", tag(to)))),
            RolloutState::ScaledToZero => {
                Some(succeeded(format!("{} is in place; there are no replicas", tag(to))))
            }
            RolloutState::Failed(failure) => Some(End::failed(failure.message.clone())),
            RolloutState::Rolling { .. } | RolloutState::Paused | RolloutState::Baking { .. } => {
                None
            }
        }
    }

    fn in_progress(&mut self, rollback: &Rollback, reason: InProgressReason) -> Flow {
        let old = status_of(rollback);
        let mut status = old.clone();
        self.put_progress(&mut status, reason);
        if status == old {
            return Flow::Continue(());
        }
        self.write_rollback(rollback, status)
    }

    fn put_progress(&self, status: &mut RollbackStatus, reason: InProgressReason) {
        let is_true = reason != InProgressReason::Queued;
        let (state, now) = (RollbackState::from(reason), self.now);
        put(&mut status.conditions, state, ConditionStatus::from(is_true), "", now);
        let pending = RollbackState::from(SucceededReason::Pending);
        put(&mut status.conditions, pending, ConditionStatus::Unknown, "", now);
    }

    fn write_rollback(&mut self, rollback: &Rollback, status: RollbackStatus) -> Flow {
        self.draft.step(Step::RollbackStatus {
            name: rollback_name(rollback).to_owned(),
            from: precondition(&rollback.metadata),
            status: Box::new(status),
        })
    }

    fn end(&mut self, rollback: &Rollback, end: &End) -> Step {
        let reason =
            if end.is_good() { EventReason::RolledBack } else { EventReason::RollbackFailed };
        self.draft.tell(reason, limits::clip(&end.message, limits::CONDITION_MESSAGE));
        end.step(rollback, &self.observed.namespace, self.now)
    }
}

pub(super) fn image_of(release: &Release) -> Option<String> {
    super::view::images(release).first().map(|image| image.asked.clone())
}

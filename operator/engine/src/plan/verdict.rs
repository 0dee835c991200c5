//! Judging the active Release, and writing the judgement down.

use belay_api::{
    Release,
    conditions::{ConditionStatus, ReleaseState},
    gates::{Verdict, WaitReason},
    limits,
    reasons::{HealthyReason, ProgressingReason, ReleaseReadyReason, RollbackRequiredReason},
    release::{Progress, ReleaseStatus},
};

use super::{
    Flow,
    make::{Health, put, put_health, write_release},
    view::{Pass, open_activation, tag},
};
use crate::judge::{Facts, Failure, RolloutState, Terms, judge};

impl Pass<'_> {
    /// The workload's numbers, as those of an image of ours.
    pub(super) fn rollout(&self) -> Facts {
        Facts {
            images_are_stored: true,
            pods: self.observed.pods.value().cloned(),
            ..self.workload.rollout.clone()
        }
    }

    pub(super) fn terms(&self, applied: jiff::Timestamp) -> Terms {
        Terms {
            applied,
            deadline: self.wants.deadline,
            bake: self.wants.bake,
            fast: self.settings.windows.fast_failure,
            followed: self.wants.containers.clone(),
        }
    }

    pub(super) fn judge_active(&mut self) -> Flow {
        let Some(active) = self.active else { return Flow::Continue(()) };
        let Some(open) = open_activation(active) else { return Flow::Continue(()) };
        if let Some(verdict) = &open.verdict {
            self.state = Some(match verdict.known() {
                Some(Verdict::Healthy) => RolloutState::Healthy,
                _ => RolloutState::Failed(Failure {
                    reason: HealthyReason::DeadlineExceeded,
                    message: open.message.clone().unwrap_or_default(),
                    is_temporary: false,
                }),
            });
            return Flow::Continue(());
        }
        let old = active.status.clone().unwrap_or_default();
        let progress = old.progress.clone().unwrap_or_default();
        let terms = self.terms(open.start_time.0);
        let judgement = judge(&self.rollout(), &terms, &progress, self.now);
        if let Some(wake) = judgement.wake {
            self.draft.wake(wake);
        }
        let mut status = old.clone();
        status.progress = Some(judgement.progress).filter(|one| *one != Progress::default());
        self.write_state(active, &judgement.state, &mut status);
        self.say(&judgement.state);
        self.state = Some(judgement.state);
        if status == old {
            return Flow::Continue(());
        }
        let step = write_release(active, status);
        self.draft.step(step)
    }

    fn write_state(&mut self, release: &Release, state: &RolloutState, to: &mut ReleaseStatus) {
        use ConditionStatus::{False, True, Unknown};
        let now = self.now;
        let (healthy, ready, message) = match state {
            RolloutState::Rolling { trouble, .. } => {
                let message = trouble.as_ref().map(|one| one.message.clone()).unwrap_or_default();
                ((Unknown, HealthyReason::Rolling), ReleaseReadyReason::Rolling, message)
            }
            RolloutState::Paused => {
                let message = "the workload is paused (spec.paused)".to_owned();
                ((Unknown, HealthyReason::Rolling), ReleaseReadyReason::Rolling, message)
            }
            RolloutState::ScaledToZero => (
                (Unknown, HealthyReason::ScaledToZero),
                ReleaseReadyReason::ScaledToZero,
                String::new(),
            ),
            RolloutState::Baking { .. } => {
                ((Unknown, HealthyReason::Baking), ReleaseReadyReason::Baking, String::new())
            }
            RolloutState::Healthy => {
                ((True, HealthyReason::Baked), ReleaseReadyReason::Healthy, String::new())
            }
            RolloutState::Failed(failure) => {
                ((False, failure.reason), ReleaseReadyReason::Failed, failure.message.clone())
            }
        };
        put_health(to, &Health { healthy, ready, message: &message }, now);
        let required = match state {
            RolloutState::Baking { .. } | RolloutState::Healthy => {
                Some((False, RollbackRequiredReason::RolloutHealthy))
            }
            RolloutState::Failed(_) => Some((True, RollbackRequiredReason::RolloutFailed)),
            RolloutState::Rolling { .. } | RolloutState::Paused | RolloutState::ScaledToZero => {
                None
            }
        };
        if let Some((status, reason)) = required {
            put(&mut to.conditions, ReleaseState::from(reason), status, "", now);
        }
        let verdict = match state {
            RolloutState::Healthy => Some(Verdict::Healthy),
            RolloutState::Failed(_) => Some(Verdict::Failed),
            _ => None,
        };
        if let (Some(verdict), Some(last)) = (verdict, to.activations.last_mut()) {
            last.verdict = Some(verdict.into());
            to.progress = None;
            if verdict == Verdict::Failed {
                last.message = Some(limits::clip(&message, limits::ITEM_MESSAGE));
                self.draft.tell(true, "Failed", format!("{} failed: {message}", tag(release)));
            } else {
                self.draft.tell(false, "Healthy", format!("{} is healthy", tag(release)));
            }
        }
    }

    /// What the ReleaseTarget says about it.
    fn say(&mut self, state: &RolloutState) {
        match state {
            RolloutState::Rolling { trouble, deadline } => {
                match trouble {
                    Some(one) => self.draft.busy(one.kind.progressing_reason(), &*one.message),
                    None => self.draft.busy(ProgressingReason::Rolling, ""),
                }
                if let Some(deadline) = deadline {
                    self.draft.waiting = Some((WaitReason::Deadline, Some(*deadline)));
                }
            }
            RolloutState::Paused => {
                let message = "the workload is paused (spec.paused)";
                self.draft.busy(ProgressingReason::TargetPaused, message);
            }
            RolloutState::Baking { until } => {
                self.draft.busy(ProgressingReason::Baking, "");
                if let Some(until) = until {
                    self.draft.waiting = Some((WaitReason::Bake, Some(*until)));
                }
            }
            RolloutState::ScaledToZero | RolloutState::Healthy | RolloutState::Failed(_) => {}
        }
    }
}

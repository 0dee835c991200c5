//! Judging the active Release, and writing the judgement down.

use belay_api::{
    NamedValue, Release,
    conditions::{ConditionStatus, ReleaseCondition, ReleaseState, TargetCondition, find},
    events::EventReason,
    gates::{Verdict, WaitReason},
    limits,
    reasons::{HealthyReason, ProgressingReason, ReleaseReadyReason, RollbackRequiredReason},
    release::{Progress, ReleaseStatus},
    values::parse,
};

use super::{
    Flow,
    make::{Health, put, put_health, write_release},
    view::{Pass, open_activation, tag},
};
use crate::judge::{Facts, Failure, RolloutState, Terms, judge};

const PAUSED: &str = "the workload is paused (spec.paused)";

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
            awaits_resume: false,
            resume: self.longest_resume(),
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
        let succeeded = progress.succeeded_time.as_ref().map(|time| time.0);
        let awaits_resume = self.awaits_resume(succeeded);
        let terms = Terms { awaits_resume, ..self.terms(open.start_time.0) };
        let judgement = judge(&self.rollout(), &terms, &progress, self.now);
        if let Some(wake) = judgement.wake {
            self.draft.wake(wake);
        }
        let mut status = old.clone();
        status.progress = Some(judgement.progress).filter(|one| *one != Progress::default());
        self.write_state(active, &judgement.state, &mut status);
        self.say(&judgement.state);
        if awaits_resume && matches!(judgement.state, RolloutState::Baking { .. }) {
            self.await_resume(succeeded.unwrap_or(self.now));
        }
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
                let message = match trouble {
                    Some(trouble) => trouble.message.clone(),
                    None => self.said_of_pods().map(|(_, message)| message).unwrap_or_default(),
                };
                ((Unknown, HealthyReason::Rolling), ReleaseReadyReason::Rolling, message)
            }
            RolloutState::Paused => {
                let message = PAUSED.to_owned();
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
                let message = format!("{} failed: {message}", tag(release));
                self.draft.tell(EventReason::Failed, message);
            } else {
                let message = format!("{} is healthy", tag(release));
                self.draft.tell(EventReason::Healthy, message);
            }
        }
    }

    /// What was said of the pods of this rollout, while they are not known, as for a moment after each
    /// start: it is neither forgotten nor taken back.
    fn said_of_pods(&self) -> Option<(ProgressingReason, String)> {
        if self.observed.pods.value().is_some() {
            return None;
        }
        let active = self.active?;
        let conditions = &active.status.as_ref()?.conditions;
        let said = find(conditions, NamedValue::as_str(ReleaseCondition::Healthy))?;
        let is_rolling = parse::<HealthyReason>(&said.reason).ok() == Some(HealthyReason::Rolling);
        if !is_rolling || said.message.is_empty() || said.message == PAUSED {
            return None;
        }
        let record = self.record.map(|record| record.status.conditions.as_slice());
        let told = find(record?, NamedValue::as_str(TargetCondition::Progressing))
            .and_then(|told| parse::<ProgressingReason>(&told.reason).ok());
        let reason = match told {
            Some(
                reason @ (ProgressingReason::ImagePullFailed | ProgressingReason::Unschedulable),
            ) => reason,
            _ => ProgressingReason::Rolling,
        };
        Some((reason, said.message.clone()))
    }

    /// What the ReleaseTarget says about it.
    fn say(&mut self, state: &RolloutState) {
        match state {
            RolloutState::Rolling { trouble, deadline } => {
                let (reason, message) = match trouble {
                    Some(one) => (one.kind.progressing_reason(), one.message.clone()),
                    None => {
                        self.said_of_pods().unwrap_or((ProgressingReason::Rolling, String::new()))
                    }
                };
                self.draft.busy(reason, message);
                if let Some(deadline) = deadline {
                    self.draft.waiting = Some((WaitReason::Deadline, Some(*deadline)));
                }
            }
            RolloutState::Paused => {
                self.draft.busy(ProgressingReason::TargetPaused, PAUSED);
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

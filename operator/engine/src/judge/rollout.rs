//! The predicates and the clocks.

use belay_api::{Duration, reasons::HealthyReason, release::Progress};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Facts, Failure, Judgement, RolloutState, Terms, Trouble, pods};
use crate::time;

/// Kubernetes stamps its conditions with whole seconds.
const RESOLUTION: SignedDuration = SignedDuration::from_secs(1);

/// Says where the rollout of our image stands at `now`. `progress` is what the last judgement of
/// this activation asked to be remembered; a new activation starts with none.
pub fn judge(facts: &Facts, terms: &Terms, progress: &Progress, now: Timestamp) -> Judgement {
    let pass = Pass { facts, terms, now };
    if facts.paused {
        return paused(progress);
    }
    if facts.wanted == 0 {
        return pass.scaled_to_zero(progress);
    }
    match progress.succeeded_time.clone() {
        Some(Time(succeeded)) => pass.after_success(progress, succeeded),
        None => pass.before_success(progress),
    }
}

struct Pass<'a> {
    facts: &'a Facts,
    terms: &'a Terms,
    now: Timestamp,
}

impl Pass<'_> {
    /// Whether the numbers in the status belong to our image.
    ///
    /// The present generation is asked for, which is never below that of our apply: another's
    /// change in between only means that there is no evidence for a moment.
    fn is_current(&self) -> bool {
        let facts = self.facts;
        facts.observed_generation >= facts.generation && facts.images_are_stored
    }

    /// How many must be there and available: what was wanted at first, or less if less is wanted
    /// now; a scale-out must not hold up the verdict.
    fn needed(&self, progress: &Progress) -> i32 {
        let first = progress.wanted.unwrap_or(self.facts.wanted);
        self.facts.wanted.min(first).max(1)
    }

    fn is_success(&self, progress: &Progress) -> bool {
        let facts = self.facts;
        let needed = self.needed(progress);
        // Old pods count as available too: only where all there are is new do the numbers tell.
        self.is_current()
            && facts.wanted > 0
            && facts.replicas == facts.updated
            && facts.updated >= needed
            && facts.available >= needed
    }

    /// Without replicas nothing is learnt and no clock runs; what was baked before is kept. Pods that
    /// are still there only wait for their end.
    fn scaled_to_zero(&self, progress: &Progress) -> Judgement {
        let baked = self.baked(progress);
        let kept =
            Progress { bake_total: (baked.as_secs() > 0).then_some(baked), ..Progress::default() };
        Judgement { state: RolloutState::ScaledToZero, progress: kept, wake: None }
    }

    fn before_success(&self, progress: &Progress) -> Judgement {
        let mut progress = progress.clone();
        progress.wanted.get_or_insert(self.facts.wanted);
        if self.is_success(&progress) {
            progress.succeeded_time = Some(Time(self.now));
            self.start_bake(&mut progress);
            self.mark(&mut progress);
            return self.baking(progress, self.now);
        }
        self.mark(&mut progress);
        let since = progress.last_progress_time.get_or_insert(Time(self.now)).0;
        let deadline = time::after(since, self.terms.deadline);
        let certain = self
            .facts
            .pods
            .as_deref()
            .filter(|_| self.is_current())
            .and_then(|pods| pods::certain(pods, self.terms));
        let is_late = self.now >= deadline || self.kubernetes_gave_up();
        let mut wake = deadline;
        if let Some(certain) = certain {
            let ends = pods::ends(&certain, self.terms);
            // A cause that is certain to stay does not become less so when time is over before.
            if is_late || self.now >= ends {
                return failed(progress, certain.failure);
            }
            wake = wake.min(ends);
        }
        let trouble = pods::trouble(self.facts);
        if is_late {
            return failed(progress, self.out_of_time(trouble));
        }
        let state = RolloutState::Rolling { trouble, deadline: Some(deadline) };
        Judgement { state, progress, wake: Some(wake) }
    }

    /// Whether Kubernetes' own deadline has passed for *this* rollout. The condition stays from an
    /// earlier one until the controller has seen progress; but one that belongs to us cannot be
    /// younger than our apply and the deadline. It says nothing where ours is longer.
    fn kubernetes_gave_up(&self) -> bool {
        let Some(condition) = &self.facts.progressing else { return false };
        let own = self.facts.progress_deadline.and_then(|seconds| u64::try_from(seconds).ok());
        let Some((own, last_update)) = own.map(Duration::from_secs).zip(condition.last_update)
        else {
            return false;
        };
        let earliest = time::plus(time::after(self.terms.applied, own), -RESOLUTION);
        self.is_current()
            && condition.reason == "ProgressDeadlineExceeded"
            && last_update >= earliest
            && self.terms.deadline <= own
    }

    fn out_of_time(&self, trouble: Option<Trouble>) -> Failure {
        match trouble {
            Some(trouble) => Failure {
                reason: trouble.kind.healthy_reason(),
                message: trouble.message,
                is_temporary: true,
            },
            None => Failure {
                reason: HealthyReason::DeadlineExceeded,
                message: format!(
                    "no progress for {}: {} of {} pods are new, {} available in all",
                    self.terms.deadline,
                    self.facts.updated,
                    self.facts.wanted,
                    self.facts.available
                ),
                is_temporary: false,
            },
        }
    }

    /// Notes progress: more new pods, more new pods available, fewer old ones. Numbers of another
    /// generation are none of ours.
    fn mark(&self, progress: &mut Progress) {
        if !self.is_current() {
            return;
        }
        let facts = self.facts;
        let old = facts.replicas.saturating_sub(facts.updated).max(0);
        // At least so many of the available ones are new.
        let available = facts.available.saturating_sub(old).max(0);
        let mut moved = false;
        let mut raise = |mark: &mut Option<i32>, value: i32| {
            if mark.is_none_or(|mark| value > mark) {
                // The first look is where the clock starts anyway.
                moved |= mark.is_some();
                *mark = Some(value);
            }
        };
        raise(&mut progress.updated, facts.updated);
        raise(&mut progress.available, available);
        if progress.old.is_none_or(|mark| old < mark) {
            moved |= progress.old.is_some();
            progress.old = Some(old);
        }
        if moved {
            progress.last_progress_time = Some(Time(self.now));
        }
    }

    fn after_success(&self, progress: &Progress, succeeded: Timestamp) -> Judgement {
        let mut progress = progress.clone();
        if !self.is_current() {
            // Somebody scaled or annotated the workload: for a moment nothing is known.
            return self.baking(progress, succeeded);
        }
        if self.is_success(&progress) {
            progress.broken_since = None;
            self.start_bake(&mut progress);
            return self.baking(progress, succeeded);
        }
        progress.bake_since = None;
        progress.bake_total = None;
        let evidence = match self.facts.pods.as_deref() {
            Some(pods) => {
                let evidence = pods::evidence_against(pods, succeeded, self.terms);
                if evidence.is_none() {
                    progress.broken_since = None;
                }
                evidence
            }
            // What is not known neither starts nor ends the count, and fails nothing.
            None => None,
        };
        if let Some(message) = evidence {
            let since = progress.broken_since.get_or_insert(Time(self.now)).0;
            if self.now >= time::after(since, self.terms.fast) {
                let failure =
                    Failure { reason: HealthyReason::BakeFailed, message, is_temporary: false };
                return failed(progress, failure);
            }
        }
        self.baking(progress, succeeded)
    }

    fn start_bake(&self, progress: &mut Progress) {
        if !self.terms.awaits_resume {
            progress.bake_since.get_or_insert(Time(self.now));
        }
    }

    /// Baking, healthy, or unstable for too long.
    fn baking(&self, progress: Progress, succeeded: Timestamp) -> Judgement {
        let bake = self.terms.bake;
        let until = progress.bake_since.as_ref().map(|since| {
            let earlier = progress.bake_total.unwrap_or_default();
            let remaining = bake.as_secs().saturating_sub(earlier.as_secs());
            time::after(since.0, Duration::from_secs(remaining))
        });
        if self.is_success(&progress) && until.is_some_and(|until| self.now >= until) {
            return Judgement { state: RolloutState::Healthy, progress, wake: None };
        }
        let window = time::signed(bake)
            .saturating_mul(3)
            .saturating_add(time::signed(self.terms.deadline))
            .saturating_add(time::signed(self.terms.resume));
        let unstable = time::plus(succeeded, window);
        // A bake that begins when that is over was not seen to come and go: nobody looked. Neither
        // does it count against the workload that its controller has not looked yet.
        let is_late_bake = progress.bake_since.as_ref().is_some_and(|since| since.0 >= unstable);
        if self.now >= unstable && self.is_current() && !is_late_bake {
            let message = format!("success came and went; it never held for {bake}");
            let reason = HealthyReason::BakeUnstable;
            let failure = Failure { reason, message, is_temporary: false };
            return failed(progress, failure);
        }
        let broken =
            progress.broken_since.as_ref().map(|since| time::after(since.0, self.terms.fast));
        // A broken count that cannot go on does not end by itself.
        let broken = broken.filter(|ends| *ends > self.now);
        let wake = [until.filter(|until| *until > self.now), broken].into_iter().flatten().min();
        let unstable = (unstable > self.now).then_some(unstable);
        let wake = [wake, unstable].into_iter().flatten().min();
        Judgement { state: RolloutState::Baking { until }, progress, wake }
    }

    /// What has been baked in all, up to now.
    fn baked(&self, progress: &Progress) -> Duration {
        let now = match &progress.bake_since {
            Some(since) => time::unsigned(time::between(since.0, self.now)),
            None => Duration::default(),
        };
        let before = progress.bake_total.unwrap_or_default();
        Duration::from_secs(before.as_secs().saturating_add(now.as_secs()))
    }
}

fn paused(progress: &Progress) -> Judgement {
    let progress = Progress {
        last_progress_time: None,
        succeeded_time: None,
        bake_since: None,
        bake_total: None,
        broken_since: None,
        ..progress.clone()
    };
    Judgement { state: RolloutState::Paused, progress, wake: None }
}

fn failed(progress: Progress, failure: Failure) -> Judgement {
    Judgement { state: RolloutState::Failed(failure), progress, wake: None }
}

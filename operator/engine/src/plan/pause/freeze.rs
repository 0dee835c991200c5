//! Before images are applied: the pause is claimed, and its proof awaited.

use belay_api::{
    annotations::TargetAnnotation,
    events::EventReason,
    gates::WaitReason,
    limits,
    reasons::{Note, ProgressingReason},
};
use jiff::Timestamp;

use super::{AGAIN, Wanted};
use crate::{
    observed::{ClaimFacts, Fact, Refusal, Scaler, ScalerFacts},
    plan::{Flow, Intent, Look, Precondition, Step, view::Pass},
    text, time,
};

/// What kind of move waits for the pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Move {
    /// One that can wait: forward, or putting something back that was changed.
    Forward,
    /// A Rollback, which nothing stops.
    Rollback,
}

/// Why nothing is claimed.
pub(super) enum Obstacle {
    /// Somebody else has paused it: that serves as well, and stays.
    Paused,
    /// It cannot be paused, and that will not change by itself soon.
    Cannot(String),
    /// Somebody else says that it is not to be paused.
    Refused(String),
    /// Nobody knows; it may be known soon.
    NotKnown(String),
}

/// Where the pause stands.
enum Stand {
    Frozen,
    Claim { from: Precondition, since: Timestamp, why: Why },
    Wait { until: Timestamp, message: String },
    Cannot(String),
}

/// Why something is claimed.
enum Why {
    Anew,
    Lost,
    Renewed,
}

impl<'a> Pass<'a> {
    /// Whether this apply may go on: nothing is to be paused, or scale-in is proven to be held, or it
    /// is said that it is not. Else the pass ends with what has to come first.
    pub(in crate::plan) fn freeze(&mut self, step: &Step, kind: Move) -> Flow {
        let Step::Apply(intent) = step else { return Flow::Continue(()) };
        let Some(wanted) = self.pause_wanted() else { return Flow::Continue(()) };
        if !self.is_pausable() || !self.moves_pods(intent) {
            return Flow::Continue(());
        }
        self.draft.keeps_pause = true;
        let Some(reading) = self.fresh_scaler() else { return self.look_first(wanted) };
        match self.stand(wanted, reading, &intent.release, kind) {
            Stand::Frozen => Flow::Continue(()),
            Stand::Claim { from, since, why } => {
                self.tell_of_claim(wanted.scaled_object, &why);
                let release = self.release_of_claim(&intent.release, kind);
                let step = self.claim(wanted, from, &release, since);
                self.draft.step(step)
            }
            Stand::Wait { until, message } => {
                self.draft.look.push(Look::Scaler);
                self.await_proof(until, message)
            }
            Stand::Cannot(cause) => self.without_pause(wanted, kind, cause, reading.read()),
        }
    }

    fn tell_of_claim(&mut self, name: &str, why: &Why) {
        match why {
            Why::Anew => {
                let message = format!("pausing the ScaledObject {name}");
                self.draft.tell(EventReason::Pausing, message);
            }
            Why::Lost => {
                let message = format!("somebody took the pause of the ScaledObject {name} away");
                self.draft.tell(EventReason::PauseLost, message);
            }
            Why::Renewed => {}
        }
    }

    fn moves_pods(&self, intent: &Intent) -> bool {
        intent.images.iter().any(|one| self.live(&one.container) != one.image)
    }

    /// A claim for a failed rollout stays one for it while its Rollback is carried out.
    fn release_of_claim(&self, release: &str, kind: Move) -> String {
        let claim = self.our_claim().and_then(|facts| facts.claim.as_ref());
        match claim {
            Some(claim) if kind == Move::Rollback => claim.release.clone(),
            _ => release.to_owned(),
        }
    }

    /// Without a reading nothing can be decided; what is waited for is said all the same.
    fn look_first(&mut self, wanted: Wanted<'_>) -> Flow {
        self.draft.look.push(Look::Scaler);
        let since = self.our_claim().and_then(|facts| Some(facts.claim.as_ref()?.since));
        match since.map(|since| self.proof_until(since)) {
            Some(until) if self.now < until => {
                let message = format!("the ScaledObject {} is being paused", wanted.scaled_object);
                self.await_proof(until, message)
            }
            _ => {
                self.draft.is_undecided = true;
                Flow::Break(())
            }
        }
    }

    fn await_proof(&mut self, until: Timestamp, message: String) -> Flow {
        self.busy_pausing(ProgressingReason::Pausing, message);
        self.draft.wait(WaitReason::PauseProof, until);
        Flow::Break(())
    }

    fn proof_until(&self, since: Timestamp) -> Timestamp {
        time::after(since, self.settings.windows.pause_proof)
    }

    fn stand(
        &mut self,
        wanted: Wanted<'_>,
        reading: &'a Fact<Scaler>,
        release: &str,
        kind: Move,
    ) -> Stand {
        let ours = self.our_claim();
        let claim = ours.and_then(|facts| facts.claim.as_ref());
        let until = claim.map_or_else(|| self.wait_until(), |claim| self.proof_until(claim.since));
        let facts = match self.claimable(wanted, reading) {
            Ok(facts) => facts,
            Err(Obstacle::Paused) => return Stand::Frozen,
            Err(Obstacle::Cannot(cause) | Obstacle::Refused(cause)) => return Stand::Cannot(cause),
            Err(Obstacle::NotKnown(message)) => {
                if let Some((_, again)) = self.pause_refused(wanted.scaled_object, false) {
                    self.draft.wake(again);
                }
                return if self.now < until {
                    Stand::Wait { until, message }
                } else {
                    Stand::Cannot(message)
                };
            }
        };
        let from = Precondition {
            uid: facts.uid.clone(),
            resource_version: facts.resource_version.clone(),
        };
        let Some(claim) = claim else {
            return Stand::Claim { from, since: self.now, why: Why::Anew };
        };
        // One that is for another Release, or of the other mode, begins anew.
        let is_other = kind == Move::Forward && claim.release != release;
        let is_switched =
            ours.is_some_and(|ours| ours.mode.is_some_and(|mode| mode != wanted.mode));
        if is_other || is_switched {
            return Stand::Claim { from, since: self.now, why: Why::Anew };
        }
        if facts.our_pause(wanted.mode).is_none() {
            if self.now < until {
                return Stand::Claim { from, since: claim.since, why: Why::Lost };
            }
            if kind == Move::Forward && wanted.is_written {
                return Stand::Claim { from, since: self.now, why: Why::Lost };
            }
            let name = wanted.scaled_object;
            return Stand::Cannot(format!(
                "somebody takes the pause of the ScaledObject {name} away"
            ));
        }
        if let Some(ours) = facts.claim.as_ref().filter(|one| self.is_our_claim(one))
            && let Some(Step::ClaimPause(intent)) = self.renewal(wanted, ours)
        {
            return Stand::Claim { from: intent.from, since: claim.since, why: Why::Renewed };
        }
        match facts.is_frozen(wanted.mode, claim.since, reading.read()) {
            Ok(()) => Stand::Frozen,
            Err(missing) => {
                let name = wanted.scaled_object;
                if self.now < until {
                    // What is missing changes within milliseconds, and would be a write each time.
                    let message = format!("the ScaledObject {name} is being paused");
                    Stand::Wait { until, message }
                } else {
                    let proof = self.settings.windows.pause_proof;
                    let cause = format!(
                        "the pause of the ScaledObject {name} was not proven within {proof}: \
                         {missing}"
                    );
                    Stand::Cannot(cause)
                }
            }
        }
    }

    /// The ScaledObject, if it can be claimed, or carries our claim.
    pub(super) fn claimable(
        &self,
        wanted: Wanted<'_>,
        reading: &'a Fact<Scaler>,
    ) -> Result<&'a ScalerFacts, Obstacle> {
        let name = wanted.scaled_object;
        let facts = match reading.get() {
            Err(why) => {
                let message = format!("the ScaledObject {name} cannot be read: {why}");
                return Err(Obstacle::NotKnown(clipped(message)));
            }
            Ok(Scaler::NoKeda) => {
                let cause = format!(
                    "the cluster serves no ScaledObjects (KEDA is not installed), so {name} cannot \
                     be paused"
                );
                return Err(Obstacle::Cannot(cause));
            }
            Ok(Scaler::Missing) => {
                return Err(Obstacle::Cannot(format!("there is no ScaledObject {name}")));
            }
            Ok(Scaler::Found(facts)) => facts.as_ref(),
        };
        if facts.deleting {
            return Err(Obstacle::Cannot(format!("the ScaledObject {name} is being deleted")));
        }
        if !self.is_scaled_by(facts) {
            let (kind, workload) = (&self.workload.kind, &self.workload.name);
            let cause = format!(
                "the ScaledObject {name} scales {} {}, not {kind} {workload}",
                facts.scales_kind, facts.scales_name
            );
            return Err(Obstacle::Cannot(clipped(cause)));
        }
        if facts.foreign_pause().is_some() || self.is_claimed_by_another(facts) {
            return Err(Obstacle::Paused);
        }
        if let Some(key) = facts.refusal(wanted.mode) {
            let cause = format!(
                "somebody else has set {} to {:?} on the ScaledObject {name}",
                key.kind.key(),
                key.value
            );
            return Err(Obstacle::Refused(clipped(cause)));
        }
        let is_there = facts.our_pause(wanted.mode).is_some() && self.our_claim().is_some();
        if let Some((said, _)) = self.pause_refused(name, false).filter(|_| !is_there) {
            let message =
                clipped(format!("the pause of the ScaledObject {name} is refused: {said}"));
            let cause = self.observed.pause_refused.as_ref().map(|refused| &refused.cause);
            return Err(match cause {
                Some(Refusal::Failed { .. }) => Obstacle::NotKnown(message),
                _ => Obstacle::Cannot(message),
            });
        }
        Ok(facts)
    }

    pub(super) fn is_scaled_by(&self, facts: &ScalerFacts) -> bool {
        facts.scales_kind == self.workload.kind && facts.scales_name == self.workload.name
    }

    /// Whether another operator, or another target, claims the pause, and its time is not over.
    fn is_claimed_by_another(&self, facts: &ScalerFacts) -> bool {
        let is_others = |claim: &ClaimFacts| {
            claim.claim.is_some()
                && !self.is_our_claim(claim)
                && claim.expires.is_some_and(|expires| expires > self.now)
        };
        facts.has_our_pause() && facts.claim.as_ref().is_some_and(is_others)
    }

    /// Until when it is waited to learn more where nothing is claimed yet: by our own status, which
    /// began to wait with the first pass that knew nothing.
    fn wait_until(&self) -> Timestamp {
        let release = self.draft.wanted.as_ref().and_then(|(_, release)| release.as_deref());
        let Some(record) = self.record.filter(|_| self.has_wanted(release)) else {
            return self.proof_until(self.now);
        };
        if self.has_said_unpaused(release) {
            return self.now;
        }
        let waiting = record.status.waiting.as_ref();
        match waiting.filter(|one| one.reason.known() == Some(WaitReason::PauseProof)) {
            // Without an end it was waited for in vain.
            Some(waiting) => waiting.until.as_ref().map_or(self.now, |until| until.0),
            None => self.proof_until(self.now),
        }
    }

    /// A pause that was asked for in writing is waited for, unless a Rollback needs to go on; else it
    /// is said first that there is none.
    fn without_pause(
        &mut self,
        wanted: Wanted<'_>,
        kind: Move,
        cause: String,
        read: Timestamp,
    ) -> Flow {
        if kind == Move::Forward && wanted.is_written {
            let key = self.settings.prefix.key(TargetAnnotation::Pause);
            let message = format!(
                "{cause}; the rollout waits, because {key} is set; to go on without a pause: \
                 kubectl annotate -n {} deployment/{} {key}-",
                self.observed.namespace, self.workload.name
            );
            self.busy_pausing(ProgressingReason::CouldNotFreeze, message);
            self.draft.waiting = Some((WaitReason::PauseProof, None));
            self.draft.wake(time::plus(read, AGAIN).max(self.soon()));
            return Flow::Break(());
        }
        self.draft.note(Note::RolledUnpaused, cause.clone());
        let release = self.draft.wanted.as_ref().and_then(|(_, release)| release.clone());
        if self.has_said_unpaused(release.as_deref()) {
            return Flow::Continue(());
        }
        self.draft.tell(EventReason::RolledUnpaused, cause.clone());
        self.busy_pausing(ProgressingReason::Pausing, cause);
        self.draft.wake_soon(self.now);
        Flow::Break(())
    }

    fn soon(&self) -> Timestamp {
        time::plus(self.now, jiff::SignedDuration::from_secs(1))
    }
}

fn clipped(message: String) -> String {
    text::clipped(message, limits::ITEM_MESSAGE)
}

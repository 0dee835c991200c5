//! One pass over one workload: observe → plan → act → report.

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use belay_adapters::{
    cluster::{Place, PodWatch},
    forge::Followed,
};
use belay_api::{
    NamedValue as _, ReleaseTarget,
    events::EventReason,
    gates::Gate,
    reasons::{ProgressingReason, StalledReason},
    target::TargetStatus,
};
use belay_engine::{
    observed::{Fact, Observed, WorkloadFacts},
    plan::{Look, Notice, Plan, Step, plan},
};

use crate::{
    act::Acted,
    forge,
    images::Question,
    key::Key,
    memory::wait_until,
    observe::{Ahead, record_of},
    operator::Operator,
    report,
    stores::{Seen, Workload},
};

/// The least time between two passes over a workload that nothing asks for.
const LEAST_NAP: Duration = Duration::from_millis(250);
/// How soon another operator's Lease is looked at again.
const NEXT_SIGHTING: Duration = Duration::from_secs(15);

/// A pass that had nothing to do.
pub(crate) const NOTHING: &str = "nothing";
/// A pass over a workload that is not followed.
const NOT_FOLLOWED: &str = "not-followed";

/// What was decided, with what it was decided from.
struct Decided {
    observed: Observed,
    plan: Plan,
}

impl Operator {
    /// Looks at one workload, and does at most one thing about it.
    pub(crate) async fn pass(self: Arc<Self>, key: Key) {
        let begun = Instant::now();
        let mut outcome = self.look_at(&key).await;
        if outcome == NOTHING {
            outcome = self.drop_former(&key).await;
        }
        if outcome == NOTHING || outcome == NOT_FOLLOWED {
            // A target may be called like a workload that is not its own.
            match self.end_unfollowed(&key).await {
                NOTHING => {}
                ended => outcome = ended,
            }
        }
        self.metrics.reconciled(outcome, begun.elapsed());
    }

    async fn look_at(self: &Arc<Self>, key: &Key) -> &'static str {
        let seen = self.stores.look(key);
        self.follow(key, &seen);
        if seen.workload.is_none() && seen.former.is_empty() {
            self.memory.forget(key);
            return NOT_FOLLOWED;
        }
        if let Some(workload) = &seen.workload {
            let (secrets, account) = (&workload.pull_secrets, &workload.service_account);
            self.memory.of(key, |of| of.ask_with(secrets, account));
        }
        let ahead = self.read_ahead(key, &seen).await;
        // What was read ahead took time: the stores may know more by now.
        let (seen, decided) = self.decide(key, &ahead);
        let Decided { observed, plan } = decided;
        if ahead.is_held() {
            self.bell.ring_in(key, NEXT_SIGHTING);
        }
        self.watch_pods(key, &seen, plan.pods);
        for look in &plan.look {
            match look {
                Look::Image(image) => self.ask_for(key, &seen, image),
                Look::Scaler => self.look_at_scaler(key, &seen),
            }
        }
        if let Some(wake) = plan.wake {
            let wait = wait_until(self.clock.now(), wake).max(LEAST_NAP);
            self.bell.ring_in(key, wait);
        }
        let workload = observed.workload.value().and_then(Option::as_ref);
        self.tell_handicap(key, workload).await;
        let Plan { step, status, notices, look, .. } = plan;
        let place = Place { namespace: key.namespace(), target: target_of(&seen), workload };
        if let Some(step) = step {
            let acted = self.act(key, place, &step).await;
            if acted == Acted::Written {
                if matches!(step, Step::Apply(_)) {
                    self.count_proof(key, &seen, &notices);
                }
                self.tell(key, workload, notices).await;
            }
            return acted.as_str();
        }
        let Some(status) = status else {
            if look.is_empty() {
                // The record is another's: an event is all that there is to say it with.
                self.tell(key, workload, notices).await;
            }
            return NOTHING;
        };
        // That nothing is known of GitHub for a moment, after each start, is not worth two writes to
        // each target.
        let is_ours = seen.target.as_ref().is_some_and(|target| {
            let instance = target.status.as_ref().and_then(|status| status.instance.as_ref());
            instance == Some(&self.settings.instance)
        });
        if is_ours && self.awaits_forge(key, &seen) {
            return NOTHING;
        }
        self.report(key, place, seen.target.as_deref(), &status, notices).await
    }

    /// Removes the ReleaseTarget that a workload had under another name: for that record it is
    /// followed no more.
    async fn drop_former(&self, key: &Key) -> &'static str {
        let seen = self.stores.look(key);
        let (Some(workload), Some(former)) = (&seen.workload, seen.former.first()) else {
            return NOTHING;
        };
        let now = self.clock.now();
        let mut facts = workload.facts.clone();
        facts.annotations.clear();
        let observed = Observed {
            workload: Fact::known(Some(facts), now),
            target: Fact::known(Some(record_of(former)), now),
            // These are claimed for the target that it has now.
            claims: Vec::new(),
            ..self.observe(key, &seen, &Ahead::default())
        };
        let Some(step) = plan(&observed, &self.settings, now).step else { return NOTHING };
        let target = former.metadata.name.as_deref().unwrap_or_default();
        let place = Place { namespace: key.namespace(), target, workload: Some(&workload.facts) };
        self.act(key, place, &step).await.as_str()
    }

    /// Facts and decision as one, so that no two targets decide by the same count of rollouts.
    fn decide(&self, key: &Key, ahead: &Ahead) -> (Seen, Decided) {
        let _deciding = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.stores.look(key);
        let observed = self.observe(key, &seen, ahead);
        let plan = plan(&observed, &self.settings, self.clock.now());
        // From the first step of a move to the pass that has none, its rollout counts.
        let is_moving = match &plan.step {
            Some(Step::CreateRelease(_) | Step::ClaimPause(_) | Step::Apply(_)) => true,
            Some(_) => self.memory.is_starting(key),
            // It waits for its pause to take hold.
            None => {
                plan.look.contains(&Look::Scaler)
                    && is_pausing(&plan, || self.memory.is_starting(key))
            }
        };
        self.memory.set_starting(key, seen.id.as_ref().filter(|_| is_moving));
        self.memory.set_waiting(key, plan.status.as_deref().is_some_and(waits_for_others));
        (seen, Decided { observed, plan })
    }

    /// Has GitHub asked for what this target must know.
    fn follow(&self, key: &Key, seen: &Seen) {
        let asked = self.ask(seen).filter(|ask| {
            let sight = self.sight(key, ask);
            sight.public || sight.private
        });
        let followed = asked.and_then(|ask| {
            Some(Followed { repo: ask.repo.as_str().parse().ok()?, wants: forge::wants(&ask) })
        });
        let is_new = self.memory.of(key, |of| {
            let is_new = of.followed != followed;
            of.followed.clone_from(&followed);
            is_new
        });
        match followed {
            Some(followed) if is_new => self.poller.follow(&key.to_string(), followed),
            None if is_new => self.poller.unfollow(&key.to_string()),
            Some(_) | None => {}
        }
    }

    /// Opens or closes the watch of a workload's pods.
    fn watch_pods(&self, key: &Key, seen: &Seen, wanted: bool) {
        let pods = seen.workload.as_ref().and_then(|workload| workload.pods.as_ref());
        let Some(pods) = pods.filter(|_| wanted) else {
            self.memory.of(key, |of| of.pods = None);
            return;
        };
        self.memory.of(key, |of| {
            if of.pods.as_ref().is_none_or(|(watched, _)| watched != pods) {
                let (bell, ringing) = (self.bell.clone(), key.clone());
                let ring = move || bell.ring(&ringing);
                let watch = PodWatch::open(&self.client, self.clock.clock(), pods, ring);
                of.pods = Some((pods.clone(), watch));
            }
        });
    }

    /// Says, once, that the pods can only be listed from time to time.
    async fn tell_handicap(&self, key: &Key, workload: Option<&WorkloadFacts>) {
        let handicap = self.memory.of(key, |of| {
            let handicap = of.pods.as_ref().and_then(|(_, watch)| watch.handicap());
            let is_new = handicap.is_some() && !of.handicap_told;
            of.handicap_told |= is_new;
            handicap.filter(|_| is_new)
        });
        if let (Some(message), Some(workload)) = (handicap, workload) {
            let notice = Notice::of(EventReason::PodsNotWatched, message);
            self.events.send(key.namespace(), workload, &[notice]).await;
        }
    }

    /// Asks the registry beside the passes, unless it is being asked.
    fn ask_for(self: &Arc<Self>, key: &Key, seen: &Seen, image: &str) {
        let Some(workload) = &seen.workload else { return };
        if !self.memory.of(key, |of| of.asking.insert(image.to_owned())) {
            return;
        }
        let question = Question {
            namespace: key.namespace().to_owned(),
            workload: workload.clone(),
            image: image.to_owned(),
            asked_before: asked_before(workload, seen),
            platforms: self.stores.platforms(),
        };
        let (this, key) = (Arc::downgrade(self), key.clone());
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        // What has ended is let go of.
        while beside.try_join_next().is_some() {}
        beside.spawn(async move {
            let Some(this) = this.upgrade() else { return };
            let answer = this.images.ask(&question, &this.clock).await;
            this.metrics.registry_asked(crate::images::category(&answer));
            this.memory.of(&key, |of| of.answer(&question.image, answer));
            this.bell.ring(&key);
        });
    }

    /// Report: the ReleaseTarget, if it says anything else, and then the events.
    async fn report(
        &self,
        key: &Key,
        place: Place<'_>,
        record: Option<&ReleaseTarget>,
        status: &TargetStatus,
        mut notices: Vec<Notice>,
    ) -> &'static str {
        let old = record.and_then(|record| record.status.as_ref());
        let is_anothers = || {
            let owner = old.and_then(|old| old.workload.as_ref());
            owner.is_some_and(|owner| Some(&owner.uid) != place.workload.map(|one| &one.uid))
        };
        if old == Some(status) && !is_anothers() {
            self.memory.of(key, |of| {
                of.succeeded();
                of.told = notices;
            });
            return NOTHING;
        }
        if self.memory.of(key, |of| of.is_settled(status)) {
            // The API server keeps something else than what is sent: once is enough.
            return NOTHING;
        }
        if place.target.is_empty() {
            // Its annotation is no name, and the name that it would have is somebody else's.
            self.tell(key, place.workload, report::transitions(None, status)).await;
            return NOTHING;
        }
        match self.writer.write_target(place, record, status).await {
            Ok(written) => {
                self.metrics.wrote("target", "ok");
                let differs = written.status.as_ref() != Some(status);
                self.memory.of(key, |of| {
                    of.succeeded();
                    of.settle(differs.then(|| status.clone()));
                });
                self.stores.put(*written);
                let changes = report::transitions(old, status);
                self.count_pause(old, status);
                if changes.iter().any(|one| one.reason == StalledReason::TugOfWar.as_str()) {
                    self.metrics.tug_of_war();
                }
                notices.extend(changes);
                self.tell(key, place.workload, notices).await;
                "reported"
            }
            Err(error) => self.failed(key, "target", &error, Duration::ZERO).as_str(),
        }
    }

    /// Sends the events that the last pass has not sent.
    pub(crate) async fn tell(
        &self,
        key: &Key,
        workload: Option<&WorkloadFacts>,
        notices: Vec<Notice>,
    ) {
        let news = self.memory.of(key, |of| of.news(notices));
        self.count_told(&news);
        let Some(workload) = workload else { return };
        self.events.send(key.namespace(), workload, &news).await;
    }
}

/// The name of the ReleaseTarget: of a workload that is followed no more, that of the one it had.
fn target_of(seen: &Seen) -> &str {
    let followed = seen.record_name.as_ref().map(belay_api::TargetName::as_str);
    let former = || seen.former.first()?.metadata.name.as_deref();
    followed.or_else(former).unwrap_or_default()
}

/// What was asked for where the API server stored what is live: admission may have put another
/// registry in its place.
fn asked_before(workload: &Workload, seen: &Seen) -> Vec<String> {
    let is_live = |stored: &String| {
        workload.facts.containers.iter().any(|container| container.live.image == *stored)
    };
    let images = seen.releases.iter().filter_map(|release| release.status.as_ref());
    let images = images.flat_map(|status| &status.images);
    let images = images.filter(|image| image.stored.as_ref().is_some_and(is_live));
    images.map(|image| image.asked.clone()).collect()
}

/// Whether a move waits until its pause is proven. One that waits because it cannot be takes no place
/// from others; `unless_told` decides where the status is not written.
fn is_pausing(plan: &Plan, unless_told: impl FnOnce() -> bool) -> bool {
    let Some(status) = &plan.status else { return unless_told() };
    let progressing = belay_api::conditions::find(&status.conditions, "Progressing");
    progressing.is_some_and(|one| one.reason == ProgressingReason::Pausing.as_str())
}

/// Whether a candidate waits for what other targets do.
fn waits_for_others(status: &TargetStatus) -> bool {
    status.candidates.iter().any(|candidate| {
        let gate = candidate.gate.as_ref().and_then(belay_api::Open::known);
        matches!(gate, Some(Gate::ConcurrencyLimit | Gate::FailedElsewhere))
    })
}

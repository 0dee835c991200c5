//! What is done to pauses, by the operator and by people, and what must never be.

use belay_api::{
    conditions::find, gates::Verdict, reasons::Note, release::ReleaseStatus,
    rollback::RollbackStatus,
};
use belay_engine::{
    observed::{PauseKey, PauseKind, PauseRefused, Refusal, Scaler, ScalerFacts},
    pause::Claim,
    plan::{Intent, PauseIntent, Precondition},
};

use crate::{
    keda::ScaledObject,
    world::{World, at},
};

/// For so many passes a claim may stand that is not live.
const PATIENCE: u32 = 15;

fn holds(key: &PauseKey) -> bool {
    key.value != "false" && key.kind != PauseKind::ScaleOut
}

impl World {
    // --- The operator.

    /// Server-side apply of a claim, unforced.
    pub(crate) fn claim_pause(&mut self, intent: &PauseIntent) -> Result<bool, String> {
        self.seen.scaler = None;
        let version = self.version;
        let kind = PauseKind::of(intent.mode).ok_or("a claim without a mode")?;
        if self.is_stale(&intent.scaled_object, &intent.from) {
            // KEDA wrote it since it was read: the next pass reads it anew.
            return Ok(true);
        }
        let Some(object) = self.object_mut(&intent.scaled_object) else { return Ok(false) };
        if object.keys.iter().any(|key| holds(key) && !key.is_ours) {
            return Err(format!("a claim on top of somebody else's pause: {intent:?}"));
        }
        if object.scales != "web" {
            return Err(format!("a claim on what scales something else: {intent:?}"));
        }
        let is_conflict =
            object.keys.iter().any(|key| key.kind == kind && !key.is_ours && key.value != "true");
        let conflict =
            is_conflict.then(|| Refusal::Conflict { managers: vec!["kubectl".to_owned()] });
        if self.ends_badly(&intent.scaled_object, false, conflict) {
            return Ok(true);
        }
        let Some(object) = self.object_mut(&intent.scaled_object) else { return Ok(false) };
        let_go(object, Some(kind));
        if !object.keys.iter().any(|key| key.kind == kind) {
            let value = "true".to_owned();
            object.keys.push(PauseKey { kind, value, is_ours: true, is_others: false });
        }
        object.claim = Some((intent.claim.clone(), intent.expires.as_second()));
        object.changed(version);
        Ok(true)
    }

    /// Server-side apply of nothing: what somebody else owns too stays.
    pub(crate) fn drop_pause(&mut self, name: &str, from: &Precondition) -> bool {
        self.seen.scaler = None;
        if self.is_stale(name, from) {
            return false;
        }
        if self.ends_badly(name, true, None) {
            return true;
        }
        let version = self.version;
        let Some(object) = self.object_mut(name) else { return false };
        let_go(object, None);
        object.claim = None;
        object.changed(version);
        true
    }

    fn is_stale(&mut self, name: &str, from: &Precondition) -> bool {
        self.object_mut(name).is_none_or(|object| {
            from.uid != object.uid.to_string()
                || from.resource_version != object.version.to_string()
        })
    }

    fn ends_badly(&mut self, name: &str, is_drop: bool, conflict: Option<Refusal>) -> bool {
        let Some(cause) = self.keda.trouble.pop().or(conflict) else {
            self.seen.pause_refused = None;
            return false;
        };
        let times = self.seen.pause_refused.as_ref().map_or(1, |old| old.times + 1);
        let scaled_object = name.to_owned();
        self.seen.pause_refused =
            Some(PauseRefused { scaled_object, is_drop, times, at: at(self.now), cause });
        true
    }

    // --- Everybody else.

    pub(crate) fn keda_moves(&mut self) {
        if self.annotation("scaledobject").is_none() && self.dice.roll(8) > 0 {
            return;
        }
        match self.dice.roll(12) {
            0..=2 => self.person_pauses(),
            3 => self.object_changes(),
            4 => {
                self.keda.is_down = !self.keda.is_down;
                let is_down = self.keda.is_down;
                self.show(|| format!("KEDA is down: {is_down}"));
            }
            5 => {
                let mode = *self.dice.pick(&[
                    None,
                    None,
                    Some("scale-in"),
                    Some("scale-in"),
                    Some("full"),
                    Some("none"),
                ]);
                self.show(|| format!("pause: {mode:?}"));
                self.annotate("pause", mode);
            }
            6 => {
                let name = *self.dice.pick(&[Some("web"), Some("web"), Some("other"), None]);
                self.show(|| format!("scaledobject: {name:?}"));
                self.annotate("scaledobject", name);
                // The reading is of what is named.
                self.seen.scaler = None;
            }
            7 => self.keda.is_unreadable = !self.keda.is_unreadable,
            8 => self.writes_fail(),
            9 => self.another_operator(),
            _ => self.hpa_scales(),
        }
    }

    fn person_pauses(&mut self) {
        let roll = self.dice.roll(6);
        self.version += 1;
        let version = self.version;
        let Some(index) =
            (!self.keda.objects.is_empty()).then(|| self.dice.roll(self.keda.objects.len()))
        else {
            return;
        };
        let object = &mut self.keda.objects[index];
        let name = object.name;
        let foreign = |kind, value: &str| PauseKey {
            kind,
            value: value.to_owned(),
            is_ours: false,
            is_others: true,
        };
        let set = |object: &mut ScaledObject, kind, value: &str| {
            // Measured: who writes the value that is there gets no share in it.
            if !object.keys.iter().any(|key| key.kind == kind && key.value == value) {
                object.keys.retain(|key| key.kind != kind);
                object.keys.push(foreign(kind, value));
            }
        };
        let what = match roll {
            0 => {
                set(object, PauseKind::Paused, "true");
                "pauses"
            }
            1 => {
                set(object, PauseKind::ScaleIn, "true");
                "pauses scale-in of"
            }
            2 => {
                set(object, PauseKind::ScaleIn, "false");
                "forbids to pause"
            }
            3 => {
                object.keys.clear();
                "strips"
            }
            4 => {
                object.keys.clear();
                object.claim = None;
                "strips all of"
            }
            _ => {
                for key in &mut object.keys {
                    key.is_others = true;
                }
                "applies the pauses of"
            }
        };
        object.changed(version);
        self.show(|| format!("a person {what} the ScaledObject {name}"));
    }

    fn object_changes(&mut self) {
        self.version += 1;
        let version = self.version;
        self.next += 1;
        let uid = self.next;
        match self.dice.roll(5) {
            0 => {
                self.show(|| "ScaledObjects are deleted".to_owned());
                self.keda.objects.clear();
            }
            1 => {
                self.keda.is_absent = !self.keda.is_absent;
                let is_absent = self.keda.is_absent;
                self.show(|| format!("KEDA is absent: {is_absent}"));
                self.keda.objects.clear();
                if !is_absent {
                    self.keda.objects.push(ScaledObject::new("web", uid));
                }
            }
            2 => {
                if let Some(object) = self.object_mut("web") {
                    object.scales = if object.scales == "web" { "api" } else { "web" };
                    object.changed(version);
                }
            }
            _ if !self.keda.is_absent => {
                self.show(|| "ScaledObjects are made anew".to_owned());
                self.keda.objects =
                    vec![ScaledObject::new("web", uid), ScaledObject::new("other", uid)];
            }
            _ => {}
        }
    }

    fn writes_fail(&mut self) {
        let message = "because".to_owned();
        let cause = match self.dice.roll(3) {
            0 => Refusal::Denied { message },
            _ => Refusal::Failed { message },
        };
        let times = 1 + self.dice.roll(3);
        self.keda.trouble = vec![cause; times];
    }

    /// Another operator claims it, for another target.
    fn another_operator(&mut self) {
        let (now, version) = (self.now, self.version + 1);
        let lasts = *self.dice.pick(&[-1, 60, 900]);
        let target = *self.dice.pick(&["web", "shop"]);
        let Some(object) = self.object_mut("web").filter(|object| object.keys.is_empty()) else {
            return;
        };
        let value = "true".to_owned();
        object.keys =
            vec![PauseKey { kind: PauseKind::ScaleIn, value, is_ours: true, is_others: false }];
        let claim = Claim {
            instance: "ops/other".to_owned(),
            target: target.to_owned(),
            release: "some".to_owned(),
            since: at(now),
        };
        object.claim = Some((claim, now + lasts));
        object.changed(version);
        self.version = version;
    }

    // --- What must never happen.

    /// Nothing that moves pods is applied before scale-in is seen to be held, or it is said that it
    /// is not.
    pub(crate) fn check_pause(&self, intent: &Intent) -> Result<(), String> {
        let live = |one: &belay_engine::plan::IntendedImage| {
            self.deployment.containers.iter().find(|part| part.name == one.container)
        };
        let moves =
            intent.images.iter().any(|one| live(one).is_some_and(|part| part.image != one.image));
        let mode = self.annotation("pause");
        if self.annotation("scaledobject").is_none()
            || mode == Some("none")
            || self.deployment.wanted == 0
            || !moves
        {
            return Ok(());
        }
        let is_said = self.target().is_some_and(|record| {
            let wanted = record.status.wanted.as_ref().and_then(|one| one.release.as_ref());
            let note = belay_api::NamedValue::as_str(Note::RolledUnpaused);
            wanted == Some(&intent.release) && find(&record.status.conditions, note).is_some()
        });
        if is_said && (mode.is_none() || intent.attempt.is_some()) {
            return Ok(());
        }
        let wrong = |what: &str| Err(format!("{what}: {intent:?} by {:?}", self.seen.scaler));
        let Some(reading) = &self.seen.scaler else { return wrong("applied without a reading") };
        if reading.read().as_second() < self.now - 10 {
            return wrong("applied by an old reading");
        }
        let Some(Scaler::Found(facts)) = reading.value() else {
            return wrong("applied without a pause");
        };
        if is_held_by_others(facts, self.now) {
            return Ok(());
        }
        if !is_held(facts, mode == Some("full"), self.keda.is_old) {
            return wrong("applied without proof");
        }
        let Some(object) = self.object() else { return Ok(()) };
        let is_as_read = self.keda.read == Some((object.uid, object.changes));
        let is_true = match object.hpa {
            Some(hpa) => hpa.holds(),
            None => !object.loop_runs,
        };
        if is_as_read && !is_true && !self.keda.is_old {
            return wrong("the proof was none");
        }
        Ok(())
    }

    /// The bake does not begin under our own pause, unless that was waited for in vain.
    pub(crate) fn check_bake(
        &self,
        new: &ReleaseStatus,
        old: &ReleaseStatus,
    ) -> Result<(), String> {
        let since = |status: &ReleaseStatus| {
            let progress = status.progress.clone()?;
            Some((progress.bake_since?, progress.succeeded_time?))
        };
        let (Some((_, succeeded)), None) = (since(new), since(old)) else { return Ok(()) };
        let is_pausing = self.annotation("pause") != Some("none");
        let is_ours = self.object().is_some_and(|object| self.is_our_claim(object));
        if is_pausing && is_ours && self.now < succeeded.0.as_second() + 30 {
            return Err("the bake begins under a pause".to_owned());
        }
        Ok(())
    }

    fn is_our_claim(&self, object: &ScaledObject) -> bool {
        object.claim.as_ref().is_some_and(|(claim, _)| {
            claim.target == "web" && claim.instance == self.settings.instance
        })
    }

    /// A claim of ours is live, or gone within a few passes.
    pub(crate) fn check_claims(&mut self) -> Result<(), String> {
        let objects = &self.keda.objects;
        let dead = objects.iter().find(|one| self.is_our_claim(one) && !self.may_be_live(one));
        let is_hindered = !self.keda.trouble.is_empty() || self.seen.pause_refused.is_some();
        if dead.is_none() || is_hindered {
            self.keda.dead = 0;
            return Ok(());
        }
        if self.keda.dead >= PATIENCE {
            return Err(format!("a claim that is not live stays: {dead:?}"));
        }
        self.keda.dead += 1;
        Ok(())
    }

    fn may_be_live(&self, object: &ScaledObject) -> bool {
        let is_wanted = self.annotation("scaledobject") == Some(object.name)
            && self.annotation("pause") != Some("none")
            && self.deployment.wanted > 0
            && !self.deployment.paused;
        let open = self.releases().iter().filter_map(|release| {
            let status = release.status.as_ref()?;
            let last = status.activations.last().filter(|last| last.end_time.is_none())?;
            let has_succeeded =
                status.progress.as_ref().is_some_and(|one| one.succeeded_time.is_some());
            Some((last.verdict.as_ref().and_then(belay_api::Open::known), has_succeeded))
        });
        let mut open = open;
        let is_rolling = open.any(|(verdict, has_succeeded)| match verdict {
            None => !has_succeeded,
            Some(verdict) => {
                verdict == Verdict::Failed && self.annotation("on-failure") != Some("stop")
            }
        });
        let goes_back = self
            .rollbacks()
            .iter()
            .any(|one| !one.status.as_ref().is_some_and(RollbackStatus::is_terminal));
        is_wanted && (is_rolling || goes_back || self.is_about_to_apply(object))
    }

    fn is_about_to_apply(&self, object: &ScaledObject) -> bool {
        let conditions = self.target().map(|record| record.status.conditions.as_slice());
        let progressing = find(conditions.unwrap_or_default(), "Progressing");
        let is_pausing = progressing
            .is_some_and(|one| ["Pausing", "CouldNotFreeze"].contains(&one.reason.as_str()));
        let has_failed = self
            .seen
            .refused
            .as_ref()
            .is_some_and(|refused| matches!(refused.cause, Refusal::Failed { .. }));
        let is_young =
            object.claim.as_ref().is_some_and(|(claim, _)| claim.since.as_second() + 60 > self.now);
        is_pausing || has_failed || (self.forge_is_down && is_young)
    }

    /// In the end nothing of ours is left, but where a rollout waits for its pause.
    pub(crate) fn check_rest(&self) -> Result<(), String> {
        let conditions = self.target().map(|record| record.status.conditions.as_slice());
        let waits = find(conditions.unwrap_or_default(), "Progressing")
            .is_some_and(|one| one.reason == "CouldNotFreeze");
        match self.keda.objects.iter().find(|object| self.is_our_claim(object)) {
            Some(object) if !waits => Err(format!("a pause was left behind: {object:?}")),
            _ => Ok(()),
        }
    }
}

/// What server-side apply lets go of: all that only we own but `kept`.
fn let_go(object: &mut ScaledObject, kept: Option<PauseKind>) {
    object.keys.retain(|key| key.is_others || !key.is_ours || Some(key.kind) == kept);
    for key in &mut object.keys {
        key.is_ours &= Some(key.kind) == kept;
    }
}

fn is_held_by_others(facts: &ScalerFacts, now: i64) -> bool {
    let is_others = facts.claim.as_ref().is_some_and(|facts| {
        facts.claim.as_ref().is_some_and(|claim| claim.target != "web")
            && facts.expires.is_some_and(|expires| expires.as_second() > now)
    });
    is_others || facts.pauses.iter().any(|key| holds(key) && !key.is_ours)
}

fn is_held(facts: &ScalerFacts, is_full: bool, is_old: bool) -> bool {
    let kind = if is_full { PauseKind::Paused } else { PauseKind::ScaleIn };
    let has_key = facts.pauses.iter().any(|key| key.kind == kind && key.is_ours && holds(key));
    let holds = match &facts.hpa {
        None => is_full && facts.is_paused,
        Some(hpa) => {
            !is_full
                && hpa.scale_down.as_deref() == Some("Disabled")
                && (is_old || hpa.observed_generation >= hpa.generation)
        }
    };
    has_key && holds
}

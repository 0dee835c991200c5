//! ScaledObjects, KEDA in its real sub-steps, and the HPA controller.

use belay_api::annotations::PauseMode;
use belay_engine::{
    observed::{ClaimFacts, Fact, HpaFacts, PauseKey, PauseKind, Refusal, Scaler, ScalerFacts},
    pause::Claim,
};

use crate::world::{World, at};

/// An HPA, as KEDA made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hpa {
    pub(crate) is_disabled: bool,
    generation: i64,
    observed: i64,
}

impl Hpa {
    /// The HPA controller scales in no more.
    pub(crate) fn holds(self) -> bool {
        self.is_disabled && self.observed >= self.generation
    }
}

/// A ScaledObject and what KEDA has made of it.
#[derive(Debug, Clone)]
pub(crate) struct ScaledObject {
    pub(crate) name: &'static str,
    pub(crate) uid: u32,
    pub(crate) version: u64,
    /// How often its annotations were changed.
    pub(crate) changes: u64,
    pub(crate) keys: Vec<PauseKey>,
    pub(crate) claim: Option<(Claim, i64)>,
    pub(crate) scales: &'static str,
    /// KEDA's condition.
    is_paused: bool,
    pub(crate) loop_runs: bool,
    pub(crate) hpa: Option<Hpa>,
    /// How often the condition still flips after a pause.
    flaps: u8,
}

impl ScaledObject {
    pub(crate) fn new(name: &'static str, uid: u32) -> Self {
        Self {
            name,
            uid,
            version: 1,
            changes: 1,
            keys: Vec::new(),
            claim: None,
            scales: "web",
            is_paused: false,
            loop_runs: true,
            hpa: Some(Hpa { is_disabled: false, generation: 1, observed: 1 }),
            flaps: 0,
        }
    }

    fn has(&self, kinds: &[PauseKind]) -> bool {
        self.keys.iter().any(|key| kinds.contains(&key.kind) && key.value != "false")
    }

    /// KEDA's next sub-step. What the annotations say now decides, whatever they said before.
    fn keda_acts(&mut self) -> bool {
        if self.has(&[PauseKind::Paused, PauseKind::Replicas]) {
            // Paused=True comes first, and the HPA goes last.
            if !self.is_paused {
                self.is_paused = true;
            } else if self.loop_runs {
                self.loop_runs = false;
            } else if self.hpa.is_some() {
                self.hpa = None;
            } else {
                return false;
            }
            return true;
        }
        let holds = self.has(&[PauseKind::ScaleIn]);
        match &mut self.hpa {
            None => self.hpa = Some(Hpa { is_disabled: holds, generation: 1, observed: 0 }),
            Some(hpa) if hpa.is_disabled != holds => {
                hpa.is_disabled = holds;
                hpa.generation += 1;
            }
            Some(_) if !self.loop_runs => self.loop_runs = true,
            Some(_) if self.flaps > 0 => {
                self.flaps -= 1;
                self.is_paused = self.flaps == 1 || holds;
            }
            Some(_) if self.is_paused != holds => {
                self.is_paused = holds;
                self.flaps = if holds { 0 } else { 2 };
            }
            Some(_) => return false,
        }
        true
    }

    /// The HPA controller sees the present spec.
    fn hpa_controller_acts(&mut self) -> bool {
        let Some(hpa) = &mut self.hpa else { return false };
        let has_seen = hpa.observed < hpa.generation;
        hpa.observed = hpa.generation;
        has_seen
    }

    /// The pause of our manager that stands there.
    fn mode(&self) -> Option<PauseMode> {
        let ours = |kind| self.keys.iter().any(|key| key.kind == kind && key.is_ours);
        let scale_in = ours(PauseKind::ScaleIn).then_some(PauseMode::ScaleIn);
        scale_in.or_else(|| ours(PauseKind::Paused).then_some(PauseMode::Full))
    }

    pub(crate) fn claim_facts(&self) -> Option<ClaimFacts> {
        let mode = self.mode();
        if self.claim.is_none() && mode.is_none() {
            return None;
        }
        Some(ClaimFacts {
            scaled_object: self.name.to_owned(),
            uid: self.uid.to_string(),
            resource_version: self.version.to_string(),
            claim: self.claim.as_ref().map(|(claim, _)| claim.clone()),
            expires: self.claim.as_ref().map(|(_, expires)| at(*expires)),
            mode,
            marks: Vec::new(),
        })
    }

    fn facts(&self, is_old: bool) -> ScalerFacts {
        let hpa = |hpa: Hpa| HpaFacts {
            scale_down: hpa.is_disabled.then(|| "Disabled".to_owned()),
            generation: (!is_old).then_some(hpa.generation),
            observed_generation: (!is_old).then_some(hpa.observed),
        };
        ScalerFacts {
            name: self.name.to_owned(),
            uid: self.uid.to_string(),
            resource_version: self.version.to_string(),
            deleting: false,
            scales_kind: "Deployment".to_owned(),
            scales_name: self.scales.to_owned(),
            pauses: self.keys.clone(),
            claim: self.claim_facts(),
            is_paused: self.is_paused,
            scale_down: None,
            hpa: self.hpa.map(hpa),
        }
    }

    /// Somebody changed the annotations.
    pub(crate) fn changed(&mut self, version: u64) {
        self.version = version;
        self.changes += 1;
    }
}

/// KEDA, and how it can be reached.
#[derive(Default)]
pub(crate) struct Keda {
    pub(crate) objects: Vec<ScaledObject>,
    pub(crate) is_absent: bool,
    pub(crate) is_down: bool,
    pub(crate) is_unreadable: bool,
    /// The server does not say which generation of an HPA was seen.
    pub(crate) is_old: bool,
    /// How the next writes of a pause end.
    pub(crate) trouble: Vec<Refusal>,
    /// Which ScaledObject was read last: uid and changes.
    pub(crate) read: Option<(u32, u64)>,
    /// The versions that the watch has shown.
    shown: u64,
    /// For how many passes a claim of ours has stood that is not live.
    pub(crate) dead: u32,
}

impl World {
    /// One sub-step of KEDA or of the HPA controller.
    pub(crate) fn keda_acts(&mut self) -> bool {
        let is_down = self.keda.is_down;
        self.version += 1;
        let version = self.version;
        let act = |object: &mut ScaledObject| {
            if object.hpa_controller_acts() {
                return true;
            }
            let acts = !is_down && object.keda_acts();
            if acts {
                object.version = version;
            }
            acts
        };
        self.keda.objects.iter_mut().any(act)
    }

    /// The HPA scales, as far as it may.
    pub(crate) fn hpa_scales(&mut self) {
        let wanted = self.deployment.wanted;
        let object = self.keda.objects.iter().find(|object| object.scales == "web");
        let Some(hpa) = object.and_then(|object| object.hpa) else { return };
        let new = if self.dice.roll(2) == 0 { wanted + 1 } else { wanted - 1 };
        if wanted == 0 || !(1..=3).contains(&new) || (new < wanted && hpa.holds()) {
            return;
        }
        self.show(|| format!("the HPA scales to {new}"));
        self.deployment.wanted = new;
        self.touch(true);
    }

    pub(crate) fn object_mut(&mut self, name: &str) -> Option<&mut ScaledObject> {
        self.keda.objects.iter_mut().find(|object| object.name == name)
    }

    /// The ScaledObject that the workload names.
    pub(crate) fn object(&self) -> Option<&ScaledObject> {
        let name = self.annotation("scaledobject")?;
        self.keda.objects.iter().find(|object| object.name == name)
    }

    /// The watch shows the claims for this target.
    pub(crate) fn show_claims(&mut self) {
        let shown = self.keda.objects.iter().map(|object| object.version).sum::<u64>()
            + u64::try_from(self.keda.objects.len()).unwrap();
        if shown == self.keda.shown {
            return;
        }
        self.keda.shown = shown;
        let of_us =
            |facts: &ClaimFacts| facts.claim.as_ref().is_none_or(|claim| claim.target == "web");
        let claims = self.keda.objects.iter().filter_map(ScaledObject::claim_facts);
        self.seen.claims = claims.filter(of_us).collect();
    }

    /// Reads the ScaledObject that the workload names; whether there is anything new.
    pub(crate) fn look_at_scaler(&mut self) -> bool {
        let now = at(self.now);
        let fact = if self.keda.is_unreadable {
            Fact::Unknown { why: "forbidden".to_owned(), read: now }
        } else if self.keda.is_absent {
            Fact::known(Scaler::NoKeda, now)
        } else if let Some(object) = self.object() {
            let read = (object.uid, object.changes);
            let facts = Box::new(object.facts(self.keda.is_old));
            self.keda.read = Some(read);
            Fact::known(Scaler::Found(facts), now)
        } else {
            Fact::known(Scaler::Missing, now)
        };
        let is_new = self.seen.scaler.as_ref() != Some(&fact);
        self.seen.scaler = Some(fact);
        is_new
    }
}

//! ScaledObjects, KEDA and the HPA controller, as far as a pass can tell them apart: KEDA has done all
//! it does whenever it is looked at, or nothing.

use belay_api::annotations::{PauseMode, TargetAnnotation};
use belay_engine::{
    observed::{
        ClaimFacts, Fact, HpaFacts, PauseKey, PauseKind, PauseRefused, Refusal, Scaler, ScalerFacts,
    },
    pause::Claim,
    plan::{PauseIntent, Precondition, Step},
};

use crate::case::{Case, at};

pub(crate) const INSTANCE: &str = "belay/belay-operator";

/// ScaledObjects, and what becomes of them.
#[derive(Default)]
pub(crate) struct Keda {
    pub(crate) objects: Vec<ScalerFacts>,
    /// KEDA does nothing at all.
    pub(crate) is_down: bool,
    /// There is none.
    pub(crate) is_absent: bool,
    /// Why ScaledObjects cannot be read.
    pub(crate) unreadable: Option<String>,
    /// Servers before 1.37 do not say what the HPA controller has seen.
    pub(crate) is_old: bool,
    /// How the next writes of a pause end.
    pub(crate) refusals: Vec<Refusal>,
}

/// A ScaledObject that scales the workload.
pub(crate) fn scaled_object(name: &str) -> ScalerFacts {
    ScalerFacts {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        deleting: false,
        scales_kind: "Deployment".to_owned(),
        scales_name: "web".to_owned(),
        pauses: Vec::new(),
        claim: None,
        is_paused: false,
        scale_down: None,
        hpa: Some(HpaFacts { scale_down: None, generation: Some(1), observed_generation: Some(1) }),
    }
}

impl Case {
    /// 1.0.0 runs, healthy since a day, and KEDA scales it.
    pub(crate) fn scaled() -> Self {
        let mut case = Self::new();
        case.scale();
        case
    }

    pub(crate) fn scale(&mut self) {
        self.settings.scaled_objects = true;
        self.keda.objects.push(scaled_object("web"));
        self.annotate(TargetAnnotation::ScaledObject, "web");
        self.passes();
    }

    pub(crate) fn object(&mut self) -> &mut ScalerFacts {
        &mut self.keda.objects[0]
    }

    /// Somebody sets one of KEDA's annotations, by update.
    pub(crate) fn somebody_pauses(&mut self, kind: PauseKind, value: &str) {
        self.version += 1;
        let version = self.version.to_string();
        let object = self.object();
        object.resource_version = version;
        object.pauses.retain(|key| key.kind != kind);
        let value = value.to_owned();
        object.pauses.push(PauseKey { kind, value, is_ours: false, is_others: true });
        self.show_claims();
    }

    /// Somebody takes every pause away.
    pub(crate) fn somebody_strips(&mut self) {
        self.version += 1;
        let version = self.version.to_string();
        let object = self.object();
        object.resource_version = version;
        object.pauses.clear();
        self.show_claims();
    }

    /// A claim stands on the first ScaledObject.
    pub(crate) fn claimed(
        &mut self,
        by: &str,
        target: &str,
        release: &str,
        since: i64,
        expires: i64,
    ) {
        let claim = Claim {
            instance: by.to_owned(),
            target: target.to_owned(),
            release: release.to_owned(),
            since: at(since),
        };
        let object = self.object();
        object.pauses = vec![PauseKey {
            kind: PauseKind::ScaleIn,
            value: "true".to_owned(),
            is_ours: true,
            is_others: false,
        }];
        object.claim = Some(facts_of(object, Some(claim), Some(expires)));
        self.show_claims();
    }

    /// The watch shows what stands on ScaledObjects.
    pub(crate) fn show_claims(&mut self) {
        for object in &mut self.keda.objects {
            let mode = mode_of(object);
            let (uid, version) = (object.uid.clone(), object.resource_version.clone());
            if let Some(facts) = &mut object.claim {
                (facts.mode, facts.uid, facts.resource_version) = (mode, uid, version);
            }
        }
        self.observed.claims =
            self.keda.objects.iter().filter_map(|object| object.claim.clone()).collect();
    }

    /// Reads the ScaledObject that the workload names; whether that told anything.
    pub(crate) fn look_at_scaler(&mut self) -> bool {
        let now = at(self.now);
        let name = self.workload().annotations.get("belay.dev/scaledobject").cloned();
        if !self.keda.is_down {
            for object in &mut self.keda.objects {
                keda_acts(object, self.keda.is_old);
            }
        }
        let found = self.keda.objects.iter().find(|one| Some(&one.name) == name.as_ref());
        let fact = match (&self.keda.unreadable, found) {
            (Some(why), _) => Fact::Unknown { why: why.clone(), read: now },
            _ if self.keda.is_absent => Fact::known(Scaler::NoKeda, now),
            (None, None) => Fact::known(Scaler::Missing, now),
            (None, Some(facts)) => Fact::known(Scaler::Found(Box::new(facts.clone())), now),
        };
        let is_new = self.observed.scaler.as_ref() != Some(&fact);
        self.observed.scaler = Some(fact);
        is_new
    }

    pub(crate) fn claim_pause(&mut self, intent: &PauseIntent) {
        self.observed.scaler = None;
        if self.is_refused(&intent.scaled_object, false) {
            return;
        }
        let version = self.version.to_string();
        let object = self.find_object(&intent.scaled_object, &intent.from);
        let kind = PauseKind::of(intent.mode).unwrap();
        release_keys(object, Some(kind));
        match object.pauses.iter_mut().find(|key| key.kind == kind) {
            Some(key) => {
                assert_eq!(key.value, "true", "a claim over somebody else's value");
                key.is_ours = true;
            }
            None => object.pauses.push(PauseKey {
                kind,
                value: "true".to_owned(),
                is_ours: true,
                is_others: false,
            }),
        }
        object.resource_version = version;
        let claim = Some(intent.claim.clone());
        object.claim = Some(facts_of(object, claim, Some(intent.expires.as_second())));
        self.show_claims();
    }

    pub(crate) fn drop_pause(&mut self, name: &str, from: &Precondition) {
        self.observed.scaler = None;
        if self.is_refused(name, true) {
            return;
        }
        let version = self.version.to_string();
        let object = self.find_object(name, from);
        release_keys(object, None);
        object.resource_version = version;
        object.claim = None;
        self.show_claims();
    }

    pub(crate) fn remove_pause(&mut self, name: &str, marks: &[String]) {
        self.observed.scaler = None;
        let object = self.keda.objects.iter_mut().find(|one| one.name == name).unwrap();
        let facts = object.claim.as_mut().unwrap();
        facts.marks.retain(|mark| !marks.contains(mark));
        object.pauses.clear();
        object.claim = None;
        self.show_claims();
    }

    fn is_refused(&mut self, name: &str, is_drop: bool) -> bool {
        let Some(cause) = self.keda.refusals.pop() else {
            self.observed.pause_refused = None;
            return false;
        };
        let times = self.observed.pause_refused.as_ref().map_or(1, |old| old.times + 1);
        self.observed.pause_refused = Some(PauseRefused {
            scaled_object: name.to_owned(),
            is_drop,
            times,
            at: at(self.now),
            cause,
        });
        true
    }

    fn find_object(&mut self, name: &str, from: &Precondition) -> &mut ScalerFacts {
        let object = self.keda.objects.iter_mut().find(|one| one.name == name).unwrap();
        let now = Precondition {
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
        };
        assert_eq!(*from, now);
        object
    }

    /// The pauses of KEDA's that stand on the first ScaledObject, and their owners: us, others.
    pub(crate) fn pauses(&self) -> Vec<(PauseKind, bool, bool)> {
        let pauses = self.keda.objects.iter().flat_map(|object| &object.pauses);
        pauses.map(|key| (key.kind, key.is_ours, key.is_others)).collect()
    }
}

/// What server-side apply lets go of: all but `kept` that only we own.
fn release_keys(object: &mut ScalerFacts, kept: Option<PauseKind>) {
    object.pauses.retain(|key| key.is_others || !key.is_ours || Some(key.kind) == kept);
    for key in &mut object.pauses {
        key.is_ours &= Some(key.kind) == kept;
    }
}

pub(crate) fn facts_of(
    object: &ScalerFacts,
    claim: Option<Claim>,
    expires: Option<i64>,
) -> ClaimFacts {
    ClaimFacts {
        scaled_object: object.name.clone(),
        uid: object.uid.clone(),
        resource_version: object.resource_version.clone(),
        claim,
        expires: expires.map(at),
        mode: mode_of(object),
        marks: Vec::new(),
    }
}

fn mode_of(object: &ScalerFacts) -> Option<PauseMode> {
    let is_there = |kind| object.pauses.iter().any(|key| key.kind == kind && key.is_ours);
    let scale_in = is_there(PauseKind::ScaleIn).then_some(PauseMode::ScaleIn);
    scale_in.or_else(|| is_there(PauseKind::Paused).then_some(PauseMode::Full))
}

/// KEDA and the HPA controller do all that the annotations ask for.
fn keda_acts(object: &mut ScalerFacts, is_old: bool) {
    let has = |kind| object.pauses.iter().any(|key| key.kind == kind && key.value != "false");
    let is_full = has(PauseKind::Paused) || has(PauseKind::Replicas);
    let holds = has(PauseKind::ScaleIn);
    object.is_paused = is_full || holds;
    let policy = if holds { Some("Disabled".to_owned()) } else { object.scale_down.clone() };
    let numbers = (!is_old).then_some(2);
    object.hpa = (!is_full).then_some(HpaFacts {
        scale_down: policy,
        generation: numbers,
        observed_generation: numbers,
    });
}

/// What steps do to pauses, and where they apply.
pub(crate) fn brief(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::ClaimPause(intent) => Some(format!("claim {}", intent.mode)),
            Step::DropPause { .. } => Some("drop".to_owned()),
            Step::RemovePause { .. } => Some("remove".to_owned()),
            Step::Apply(intent) => {
                Some(format!("apply {}", intent.images[0].image.rsplit(':').next().unwrap()))
            }
            Step::CreateRollback(_) => Some("rollback".to_owned()),
            _ => None,
        })
        .collect()
}

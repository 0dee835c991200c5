//! What a pass decides is carried out as the API server would let it: one step, or the status.

use belay_api::{Release, Rollback};
use belay_engine::{
    observed::{Fact, Refusal, Refused, TargetRecord},
    plan::{Intent, Look, Plan, Step, plan},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::case::{Case, Fate, US, at, held_by};

impl Case {
    /// What a pass decides now.
    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed, &self.settings, at(self.now))
    }

    /// One pass, carried out; whether anything came of it.
    pub(crate) fn pass(&mut self) -> (Plan, bool) {
        let decided = self.plan();
        let mut moved = false;
        for look in &decided.look {
            let Look::Image(image) = look else {
                moved |= self.look_at_scaler();
                continue;
            };
            let answer = self.registry.get(image).cloned();
            let answer = answer.unwrap_or(belay_engine::observed::ImageAnswer::Missing);
            let fact = Fact::known(answer, at(self.now));
            moved |= self.observed.images.insert(image.clone(), fact.clone()) != Some(fact);
        }
        if let Some(step) = &decided.step {
            self.told.extend(decided.notices.iter().map(|one| one.reason.clone()));
            self.act(step);
            return (decided, true);
        }
        if let Some(status) = &decided.status {
            let record =
                TargetRecord { uid: "uid-record".to_owned(), status: status.as_ref().clone() };
            let Fact::Known { value: old, .. } = &mut self.observed.target else { panic!() };
            if old.as_ref() != Some(&record) {
                *old = Some(record);
                self.told.extend(decided.notices.iter().map(|one| one.reason.clone()));
                moved = true;
            }
        }
        (decided, moved)
    }

    /// Passes at this moment, as long as anything comes of them; the steps.
    pub(crate) fn passes(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..60 {
            let (decided, moved) = self.pass();
            steps.extend(decided.step);
            if !moved {
                return steps;
            }
        }
        panic!("no rest: {steps:?}");
    }

    /// The same, with time going on to each wake until `seconds` are over.
    pub(crate) fn work(&mut self, seconds: i64) -> Vec<Step> {
        let end = self.now + seconds;
        let mut steps = Vec::new();
        for _ in 0..2_000 {
            steps.extend(self.passes());
            let wake = self.plan().wake.map(belay_engine::Timestamp::as_second);
            let Some(wake) = wake.filter(|wake| *wake <= end) else {
                self.now = end;
                return steps;
            };
            self.now = wake.max(self.now + 1);
        }
        panic!("no rest: {steps:?}");
    }

    fn metadata(&mut self, name: Option<&String>) -> ObjectMeta {
        self.version += 1;
        ObjectMeta {
            name: name.cloned(),
            uid: Some(format!("uid-{}", self.version)),
            resource_version: Some(self.version.to_string()),
            creation_timestamp: Some(Time(at(self.now))),
            ..ObjectMeta::default()
        }
    }

    fn named<'r>(all: &'r mut [Release], wanted: &str) -> &'r mut Release {
        all.iter_mut().find(|one| one.metadata.name.as_deref() == Some(wanted)).unwrap()
    }

    fn named_rollback<'r>(all: &'r mut [Rollback], wanted: &str) -> &'r mut Rollback {
        all.iter_mut().find(|one| one.metadata.name.as_deref() == Some(wanted)).unwrap()
    }

    fn act(&mut self, step: &Step) {
        self.version += 1;
        let version = self.version.to_string();
        match step {
            Step::CreateRelease(release) => {
                let metadata = self.metadata(release.metadata.name.as_ref());
                let mut release = release.as_ref().clone();
                release.metadata = metadata;
                self.releases().push(release);
            }
            Step::ReleaseStatus { name, from, status } => {
                let release = Self::named(self.releases(), name);
                assert_eq!(release.metadata.resource_version, Some(from.resource_version.clone()));
                release.status = Some(status.as_ref().clone());
                release.metadata.resource_version = Some(version);
            }
            Step::BlockRelease { name, value, .. } => {
                let release = Self::named(self.releases(), name);
                let annotations = release.metadata.annotations.get_or_insert_default();
                annotations.insert("belay.dev/blocked".to_owned(), value.clone());
                release.metadata.resource_version = Some(version);
            }
            Step::Apply(intent) => self.apply(intent),
            Step::ClaimPause(intent) => self.claim_pause(intent),
            Step::DropPause { scaled_object, from } => self.drop_pause(scaled_object, from),
            Step::RemovePause { scaled_object, marks, .. } => {
                self.remove_pause(scaled_object, marks);
            }
            Step::CreateRollback(rollback) => {
                let metadata = self.metadata(rollback.metadata.name.as_ref());
                let mut rollback = rollback.as_ref().clone();
                rollback.metadata = metadata;
                self.rollbacks().push(rollback);
            }
            Step::RollbackStatus { name, from, status } => {
                let rollback = Self::named_rollback(self.rollbacks(), name);
                assert_eq!(rollback.metadata.resource_version, Some(from.resource_version.clone()));
                rollback.status = Some(status.as_ref().clone());
                rollback.metadata.resource_version = Some(version);
            }
            Step::DeleteRelease { name, .. } => {
                self.releases().retain(|one| one.metadata.name.as_ref() != Some(name));
            }
            Step::DeleteRollback { name, .. } => {
                self.rollbacks().retain(|one| one.metadata.name.as_ref() != Some(name));
            }
            Step::DeleteTarget { .. } => {
                let now = at(self.now);
                self.observed.target = Fact::known(None, now);
            }
        }
    }

    /// Server-side apply, as far as images and one annotation need it.
    fn apply(&mut self, intent: &Intent) {
        let now = self.now;
        let workload = self.workload().clone();
        assert_eq!(intent.from.resource_version, workload.resource_version);
        let cause = self.refusals.pop().or_else(|| conflict(&workload, intent));
        if let Some(cause) = cause {
            let times = self.observed.refused.as_ref().map_or(1, |old| old.times + 1);
            self.observed.refused = Some(Refused {
                release: intent.release.clone(),
                attempt: intent.attempt,
                times,
                generation: workload.rollout.generation,
                at: at(now),
                cause,
            });
            return;
        }
        self.observed.refused = None;
        for one in &intent.images {
            let containers = &mut self.workload().containers;
            let container = containers.iter_mut().find(|live| live.live.name == one.container);
            let container = container.unwrap();
            container.live.image.clone_from(&one.image);
            container.held_by = vec![held_by(US, true, now)];
        }
        let workload = self.workload();
        workload.annotations.insert("belay.dev/release".to_owned(), intent.release.clone());
        workload.annotation_held_by = vec![held_by(US, true, now)];
        self.changed();
        match self.fate {
            Fate::Hangs => self.hang(),
            Fate::Succeeds => self.complete(),
        }
    }
}

/// The managers that an unforced apply would take something from.
fn conflict(workload: &belay_engine::observed::WorkloadFacts, intent: &Intent) -> Option<Refusal> {
    let image = |one: &belay_engine::plan::IntendedImage| {
        let container = workload.container(&one.container).unwrap();
        (container.live.image != one.image).then(|| container.held_by.clone())
    };
    let mut owners: Vec<_> = intent.images.iter().filter_map(image).flatten().collect();
    let annotation = workload.annotations.get("belay.dev/release");
    if annotation.is_some_and(|value| *value != intent.release) {
        owners.extend(workload.annotation_held_by.clone());
    }
    let mut managers: Vec<_> = owners
        .into_iter()
        .filter(|one| one.manager != US || !one.applies)
        .map(|one| one.manager)
        .collect();
    managers.sort();
    managers.dedup();
    (!managers.is_empty() && !intent.force).then_some(Refusal::Conflict { managers })
}

/// The applies among steps: image, forced.
pub(crate) fn applies(steps: &[Step]) -> Vec<(String, bool)> {
    steps
        .iter()
        .filter_map(|step| match step {
            Step::Apply(intent) => Some((intent.images[0].image.clone(), intent.force)),
            _ => None,
        })
        .collect()
}

/// Whether any step writes the workload.
pub(crate) fn writes_workload(steps: &[Step]) -> bool {
    !applies(steps).is_empty()
}

//! The operator: observes this world, and carries a plan out as the API server would let it: one
//! step, or where there is none the status.

use belay_api::{NamedValue as _, Release, Rollback, gates::Gate};
use belay_engine::{
    Timestamp,
    observed::{Fact, ImageAnswer, Observed, Refusal, Refused, TargetRecord},
    plan::{Intent, Look, Plan, Step, plan},
    settings::Settings,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::world::{US, World, at, mirrored, origin, value_mut};

/// Where the operator dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    Never,
    BeforeTheStep,
    AfterTheStep,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Did {
    /// It wrote something.
    pub(crate) wrote: bool,
    /// It learnt something: from the registry, or by beginning to watch pods.
    pub(crate) looked: bool,
}

impl World {
    /// One pass.
    pub(crate) fn pass(&mut self, crash: Crash) -> Result<(Did, Plan), String> {
        self.passes += 1;
        self.show_workload();
        self.show_claims();
        let now = at(self.now);
        let decided = plan(&self.seen, &self.settings, now);
        if self.passes.is_multiple_of(512) {
            replayed(&self.seen, &self.settings, now, &decided)?;
        }
        let mut did = Did::default();
        if crash == Crash::BeforeTheStep {
            self.forget();
            return Ok((did, decided));
        }
        did.looked = decided.pods && !self.watches_pods;
        self.watches_pods = decided.pods;
        if let Some(step) = &decided.step {
            self.show(|| format!("  step {}", brief(step)));
            self.check_step(step)?;
            self.meet(kind(step));
            for notice in decided.notices.iter().filter(|one| one.reason == "PauseLost") {
                self.meet(&format!("told {}", notice.reason));
            }
            did.wrote |= self.act(step)?;
        } else if let Some(status) = &decided.status {
            self.check_status(status, &decided)?;
            did.wrote |= self.report(status);
        }
        if crash == Crash::AfterTheStep {
            self.forget();
            return Ok((did, decided));
        }
        for look in &decided.look {
            let Look::Image(image) = look else {
                did.looked |= self.look_at_scaler();
                continue;
            };
            did.looked = true;
            let answer = self.answer(image);
            self.seen.images.insert(image.clone(), answer);
        }
        self.check_world()?;
        self.check_claims()?;
        if did == Did::default() && decided.wake.is_some_and(|wake| wake <= now) {
            return Err(format!("nothing to do, and a wake in the past: {decided:?}"));
        }
        Ok((did, decided))
    }

    fn report(&mut self, status: &belay_api::target::TargetStatus) -> bool {
        if self.target().is_some_and(|record| record.status == *status) {
            return false;
        }
        let record = TargetRecord { uid: "target".to_owned(), status: status.clone() };
        self.show(|| format!("  status {}", brief_status(&record)));
        for condition in &status.conditions {
            self.meet(&format!("{} {}", condition.type_, condition.reason));
        }
        for gate in status.candidates.iter().filter_map(|one| one.gate.as_ref()?.known()) {
            self.meet(gate_name(gate));
        }
        for block in &status.blocked {
            self.meet(&format!("block {}", block.reason));
        }
        *value_mut(&mut self.seen.target) = Some(record);
        true
    }

    /// What the registry says about an image.
    fn answer(&self, image: &str) -> Fact<ImageAnswer> {
        let read = at(self.now);
        if self.registry_is_down {
            return Fact::Unknown { why: "connection refused".to_owned(), read };
        }
        if !self.registry.contains(&origin(image)) {
            return Fact::known(ImageAnswer::Missing, read);
        }
        let is_moved = self.moved.contains(image);
        let digest = format!("sha256:{}", if is_moved { "b" } else { "a" }.repeat(64));
        let answer = ImageAnswer::Present { digest: Some(digest), missing_platforms: Vec::new() };
        Fact::known(answer, read)
    }

    /// A crash loses what is only in memory.
    pub(crate) fn forget(&mut self) {
        self.seen.images.clear();
        self.seen.refused = None;
        self.seen.pause_refused = None;
        self.seen.scaler = None;
        self.watches_pods = false;
    }

    fn created(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{}", self.version)),
            resource_version: Some(self.version.to_string()),
            creation_timestamp: Some(Time(at(self.now))),
            ..ObjectMeta::default()
        }
    }

    fn act(&mut self, step: &Step) -> Result<bool, String> {
        self.version += 1;
        let version = self.version.to_string();
        match step {
            Step::CreateRelease(release) => {
                let name = release.metadata.name.as_deref().ok_or("a Release without name")?;
                if self.release(name).is_some() {
                    return Ok(false);
                }
                let (metadata, spec) = (self.created(name), release.spec.clone());
                let release = Release { metadata, spec, status: None };
                value_mut(&mut self.seen.releases).push(release);
            }
            Step::ReleaseStatus { name, from, status } => {
                let Some(old) = self.release(name) else { return Ok(false) };
                if old.metadata.resource_version.as_ref() != Some(&from.resource_version) {
                    return Ok(false);
                }
                self.check_release(status, old.status.as_ref())?;
                let release = named(&mut self.seen.releases, name);
                release.status = Some(status.as_ref().clone());
                release.metadata.resource_version = Some(version);
            }
            Step::BlockRelease { name, value, .. } => {
                let release = named(&mut self.seen.releases, name);
                let annotations = release.metadata.annotations.get_or_insert_default();
                annotations.insert("belay.dev/blocked".to_owned(), value.clone());
                release.metadata.resource_version = Some(version);
            }
            Step::Apply(intent) => return Ok(self.apply(intent)),
            Step::ClaimPause(intent) => return self.claim_pause(intent),
            Step::DropPause { scaled_object, from } => {
                return Ok(self.drop_pause(scaled_object, from));
            }
            Step::RemovePause { .. } => return Err("there are no marks".to_owned()),
            Step::CreateRollback(rollback) => {
                let name = rollback.metadata.name.as_deref().ok_or("a Rollback without name")?;
                if self.rollback(name).is_some() {
                    return Ok(false);
                }
                let (metadata, spec) = (self.created(name), rollback.spec.clone());
                let rollback = Rollback { metadata, spec, status: None };
                value_mut(&mut self.seen.rollbacks).push(rollback);
            }
            Step::RollbackStatus { name, status, .. } => {
                let Some(old) = self.rollback(name) else { return Ok(false) };
                self.check_rollback(status, old)?;
                for condition in &status.conditions {
                    self.meet(&format!("rollback {}", condition.reason));
                }
                let all = value_mut(&mut self.seen.rollbacks);
                let is_named = |one: &&mut Rollback| one.metadata.name.as_ref() == Some(name);
                let rollback = all.iter_mut().find(is_named).ok_or("no such Rollback")?;
                rollback.status = Some(status.as_ref().clone());
                rollback.metadata.resource_version = Some(version);
            }
            Step::DeleteRelease { name, .. } => {
                let all = value_mut(&mut self.seen.releases);
                all.retain(|one| one.metadata.name.as_ref() != Some(name));
            }
            Step::DeleteRollback { name, .. } => {
                let all = value_mut(&mut self.seen.rollbacks);
                all.retain(|one| one.metadata.name.as_ref() != Some(name));
            }
            Step::DeleteTarget { .. } => *value_mut(&mut self.seen.target) = None,
        }
        Ok(true)
    }

    /// Server-side apply, as far as images and one annotation need it.
    fn apply(&mut self, intent: &Intent) -> bool {
        let deployment = &self.deployment;
        if intent.from.uid != deployment.uid.to_string()
            || intent.from.resource_version != deployment.version.to_string()
        {
            return false;
        }
        let cause = self.trouble.pop().or_else(|| self.conflict(intent));
        if let Some(cause) = cause {
            let old = self.seen.refused.as_ref();
            self.seen.refused = Some(Refused {
                release: intent.release.clone(),
                attempt: intent.attempt,
                times: old.map_or(1, |refused| refused.times + 1),
                generation: self.deployment.generation,
                at: at(self.now),
                cause,
            });
            return true;
        }
        for one in &intent.images {
            let image = self.stored(&one.image);
            let parts = &mut self.deployment.containers;
            let Some(part) = parts.iter_mut().find(|part| part.name == one.container) else {
                continue;
            };
            if part.image != image {
                part.owners.clear();
                part.image = image;
            }
            part.owners.insert(US.to_owned(), self.now);
        }
        self.deployment.release = Some(intent.release.clone());
        self.deployment.release_by = [US.to_owned()].into();
        self.seen.refused = None;
        self.by_person = None;
        self.touch(true);
        true
    }

    /// What admission makes of an image.
    fn stored(&self, image: &str) -> String {
        if self.mirrors { mirrored(image) } else { image.to_owned() }
    }

    /// Whom an unforced apply would take something from.
    fn conflict(&self, intent: &Intent) -> Option<Refusal> {
        if intent.force {
            return None;
        }
        let deployment = &self.deployment;
        let mut managers: Vec<String> = Vec::new();
        for one in &intent.images {
            let part = deployment.containers.iter().find(|part| part.name == one.container)?;
            if part.image != self.stored(&one.image) {
                managers.extend(part.owners.keys().cloned());
            }
        }
        if deployment.release.as_ref() != Some(&intent.release) {
            managers.extend(deployment.release_by.iter().cloned());
        }
        managers.retain(|one| one != US);
        managers.sort();
        managers.dedup();
        (!managers.is_empty()).then_some(Refusal::Conflict { managers })
    }
}

fn named<'r>(all: &'r mut Fact<Vec<Release>>, name: &str) -> &'r mut Release {
    value_mut(all).iter_mut().find(|one| one.metadata.name.as_deref() == Some(name)).unwrap()
}

/// The facts written to a file and read again give the same plan.
fn replayed(
    observed: &Observed,
    settings: &Settings,
    now: Timestamp,
    decided: &Plan,
) -> Result<(), String> {
    let text = serde_json::to_string(observed).map_err(|error| error.to_string())?;
    let read: Observed = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if plan(&read, settings, now) != *decided {
        return Err("the replayed facts gave another plan, or the same facts gave two".to_owned());
    }
    let text = serde_json::to_string(decided).map_err(|error| error.to_string())?;
    let read: Plan = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if read == *decided { Ok(()) } else { Err("the plan did not survive its file".to_owned()) }
}

pub(crate) fn kind(step: &Step) -> &'static str {
    match step {
        Step::CreateRelease(_) => "step CreateRelease",
        Step::ReleaseStatus { .. } => "step ReleaseStatus",
        Step::BlockRelease { .. } => "step BlockRelease",
        Step::Apply(intent) if intent.force => "step Apply forced",
        Step::Apply(_) => "step Apply",
        Step::ClaimPause(_) => "step ClaimPause",
        Step::DropPause { .. } => "step DropPause",
        Step::RemovePause { .. } => "step RemovePause",
        Step::CreateRollback(_) => "step CreateRollback",
        Step::RollbackStatus { .. } => "step RollbackStatus",
        Step::DeleteRelease { .. } => "step DeleteRelease",
        Step::DeleteRollback { .. } => "step DeleteRollback",
        Step::DeleteTarget { .. } => "step DeleteTarget",
    }
}

fn gate_name(gate: Gate) -> &'static str {
    match gate {
        Gate::Blocked => "gate Blocked",
        Gate::InFlight => "gate InFlight",
        Gate::WaitingForImage => "gate WaitingForImage",
        Gate::TagMoved => "gate TagMoved",
        other => other.as_str(),
    }
}

fn brief(step: &Step) -> String {
    match step {
        Step::CreateRelease(release) => {
            format!("create {:?} {}", release.metadata.name, release.config().revisions[0].id)
        }
        Step::ReleaseStatus { name, status, .. } => {
            let last = status.activations.last();
            format!("status of {name}: {last:?} {:?}", status.progress)
        }
        other => format!("{other:?}").chars().take(400).collect(),
    }
}

fn brief_status(record: &TargetRecord) -> String {
    let conditions = record.status.conditions.iter();
    let words: Vec<_> =
        conditions.map(|one| format!("{}={}/{}", one.type_, one.status, one.reason)).collect();
    let candidates: Vec<_> = record
        .status
        .candidates
        .iter()
        .map(|one| format!("{} {:?}", one.tag, one.gate.as_ref().map(ToString::to_string)))
        .collect();
    format!("{words:?} {candidates:?}")
}

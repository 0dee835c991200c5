//! The operator: observes this world, and carries a plan out as the API server would let it.

use belay_api::{Release, Rollback};
use belay_engine::{
    Timestamp,
    observed::{Fact, Forge, ImageAnswer, Observed, Refusal, Refused, Surroundings, TargetRecord},
    plan::{Intent, Look, Plan, Step, plan},
    selection::GithubReleases,
    settings::Settings,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::{World, at, mirrored, origin};

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
    /// It asked the registry.
    pub(crate) looked: bool,
}

impl World {
    pub(crate) fn observe(&self) -> Observed {
        let now = at(self.now);
        let latest = self.github.iter().max_by_key(|release| release.published);
        let releases = GithubReleases {
            items: self.github.clone(),
            latest: latest.map(|release| release.tag.clone()),
            truncated: false,
        };
        let forge = if self.forge_is_down {
            Fact::Unknown { why: "GitHub cannot be reached".to_owned(), read: now }
        } else {
            Fact::known(Forge::Found { repository_id: 7, releases, is_anonymous: false }, now)
        };
        let images = self
            .answers
            .iter()
            .map(|(image, (read, answer))| {
                let read = at(*read);
                let fact = match answer {
                    Some(answer) => Fact::known(answer.clone(), read),
                    None => Fact::Unknown { why: "connection refused".to_owned(), read },
                };
                (image.clone(), fact)
            })
            .collect();
        Observed {
            namespace: "shop".to_owned(),
            workload: Fact::known(Some(self.workload()), now),
            target: Fact::known(self.target.clone(), now),
            releases: Fact::known(self.releases.values().cloned().collect(), now),
            rollbacks: Fact::known(self.rollbacks.values().cloned().collect(), now),
            forge,
            images,
            pods: Fact::known(self.pods(), now),
            surroundings: Fact::known(Surroundings::default(), now),
            refused: self.refused.clone(),
        }
    }

    /// One pass.
    pub(crate) fn pass(&mut self, crash: Crash) -> Result<(Did, Plan), String> {
        self.passes += 1;
        let observed = self.observe();
        let decided = plan(&observed, &self.settings, at(self.now));
        if self.passes.is_multiple_of(512) {
            replayed(&observed, &self.settings, at(self.now), &decided)?;
        }
        let mut did = Did::default();
        if crash == Crash::BeforeTheStep {
            self.forget();
            return Ok((did, decided));
        }
        if let Some(step) = &decided.step {
            self.show(|| format!("  step {}", brief(step)));
            self.check_step(step)?;
            self.see(kind(step));
            did.wrote |= self.act(step)?;
        }
        if crash == Crash::AfterTheStep {
            self.forget();
            return Ok((did, decided));
        }
        if let Some(status) = &decided.status {
            let uid = "target".to_owned();
            let record = TargetRecord { uid, status: status.as_ref().clone() };
            if self.target.as_ref() != Some(&record) {
                self.show(|| format!("  status {}", brief_status(&record, self.target.as_ref())));
                for condition in &record.status.conditions {
                    self.see(&format!("{} {}", condition.type_, condition.reason));
                }
                for candidate in &record.status.candidates {
                    if let Some(gate) = &candidate.gate {
                        self.see(&format!("gate {gate}"));
                    }
                }
                for block in &record.status.blocked {
                    self.see(&format!("block {}", block.reason));
                }
                self.target = Some(record);
                did.wrote = true;
            }
        }
        for Look::Image(image) in &decided.look {
            let exists = self.registry.contains(&origin(image));
            let answer = if self.registry_is_down {
                None
            } else if exists {
                let is_moved = self.moved.contains(image);
                let digest =
                    Some(format!("sha256:{}", if is_moved { "b" } else { "a" }.repeat(64)));
                Some(ImageAnswer::Present { digest, missing_platforms: Vec::new() })
            } else {
                Some(ImageAnswer::Missing)
            };
            self.answers.insert(image.clone(), (self.now, answer));
            did.looked = true;
        }
        self.check_world()?;
        if did == Did::default() && decided.wake.is_some_and(|wake| wake <= at(self.now)) {
            return Err(format!("nothing to do, and a wake in the past: {decided:?}"));
        }
        Ok((did, decided))
    }

    fn see(&mut self, what: &str) {
        *self.seen.entry(what.to_owned()).or_default() += 1;
    }

    /// A crash loses what is only in memory.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
        self.refused = None;
    }

    fn act(&mut self, step: &Step) -> Result<bool, String> {
        self.version += 1;
        let version = self.version.to_string();
        match step {
            Step::CreateRelease(release) => {
                let mut release: Release = release.as_ref().clone();
                let name = release.metadata.name.clone().ok_or("a Release without name")?;
                release.status = None;
                release.metadata.uid = Some(format!("uid-{version}"));
                release.metadata.resource_version = Some(version);
                release.metadata.creation_timestamp = Some(Time(at(self.now)));
                self.releases.entry(name).or_insert(release);
            }
            Step::ReleaseStatus { name, from, status } => {
                let Some(release) = self.releases.get(name) else { return Ok(false) };
                if release.metadata.resource_version.as_ref() != Some(&from.resource_version) {
                    return Ok(false);
                }
                let mut new = release.clone();
                new.status = Some(status.as_ref().clone());
                new.metadata.resource_version = Some(version);
                self.check_release(&new, release)?;
                self.releases.insert(name.clone(), new);
            }
            Step::BlockRelease { name, value, .. } => {
                let Some(release) = self.releases.get_mut(name) else { return Ok(false) };
                let annotations = release.metadata.annotations.get_or_insert_default();
                annotations.insert("belay.dev/blocked".to_owned(), value.clone());
                release.metadata.resource_version = Some(version);
            }
            Step::Apply(intent) => return Ok(self.apply(intent)),
            Step::CreateRollback(rollback) => {
                let mut rollback: Rollback = rollback.as_ref().clone();
                let name = rollback.metadata.name.clone().ok_or("a Rollback without name")?;
                rollback.metadata.uid = Some(format!("uid-{version}"));
                rollback.metadata.resource_version = Some(version);
                rollback.metadata.creation_timestamp = Some(Time(at(self.now)));
                self.rollbacks.entry(name).or_insert(rollback);
            }
            Step::RollbackStatus { name, status, .. } => {
                let Some(rollback) = self.rollbacks.get(name) else { return Ok(false) };
                let mut new = rollback.clone();
                new.status = Some(status.as_ref().clone());
                new.metadata.resource_version = Some(version);
                self.check_rollback(&new, rollback)?;
                let reasons: Vec<_> =
                    status.conditions.iter().map(|one| one.reason.clone()).collect();
                for reason in reasons {
                    self.see(&format!("rollback {reason}"));
                }
                self.rollbacks.insert(name.clone(), new);
            }
            Step::DeleteRelease { name, .. } => {
                self.releases.remove(name);
            }
            Step::DeleteRollback { name, .. } => {
                self.rollbacks.remove(name);
            }
            Step::DeleteTarget { .. } => self.target = None,
        }
        Ok(true)
    }

    /// Server-side apply, as far as one image and one annotation need it.
    fn apply(&mut self, intent: &Intent) -> bool {
        let us = "belay-operator".to_owned();
        let image = intent.images[0].image.clone();
        let deployment = &mut self.deployment;
        if intent.from.uid != deployment.uid.to_string()
            || intent.from.resource_version != deployment.version.to_string()
        {
            return false;
        }
        if let Some(cause) = self.trouble.pop() {
            self.refused = Some(Refused {
                release: intent.release.clone(),
                attempt: intent.attempt,
                times: self.refused.as_ref().map_or(1, |refused| refused.times + 1),
                generation: deployment.generation,
                at: at(self.now),
                cause,
            });
            return true;
        }
        let image = if self.mirrors { mirrored(&image) } else { image };
        let mut managers: Vec<String> = Vec::new();
        if deployment.image != image {
            managers.extend(deployment.image_by.keys().filter(|one| **one != us).cloned());
        }
        if deployment.release.as_ref() != Some(&intent.release) {
            let others = deployment.release_by.iter().filter(|one| **one != us);
            managers.extend(others.cloned());
        }
        managers.sort();
        managers.dedup();
        if !managers.is_empty() && !intent.force {
            self.refused = Some(Refused {
                release: intent.release.clone(),
                attempt: intent.attempt,
                times: 1,
                generation: deployment.generation,
                at: at(self.now),
                cause: Refusal::Conflict { managers },
            });
            return true;
        }
        if deployment.image == image {
            deployment.image_by.insert(us.clone(), self.now);
        } else {
            deployment.image_by = [(us.clone(), self.now)].into();
        }
        deployment.image = image;
        deployment.release = Some(intent.release.clone());
        deployment.release_by = [us].into();
        self.refused = None;
        self.by_person = None;
        self.touch(true);
        true
    }
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
        Step::CreateRollback(_) => "step CreateRollback",
        Step::RollbackStatus { .. } => "step RollbackStatus",
        Step::DeleteRelease { .. } => "step DeleteRelease",
        Step::DeleteRollback { .. } => "step DeleteRollback",
        Step::DeleteTarget { .. } => "step DeleteTarget",
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

fn brief_status(new: &TargetRecord, old: Option<&TargetRecord>) -> String {
    let words = |record: &TargetRecord| {
        let conditions = record.status.conditions.iter();
        conditions
            .map(|one| format!("{}={}/{}", one.type_, one.status, one.reason))
            .collect::<Vec<_>>()
    };
    let candidates: Vec<_> = new
        .status
        .candidates
        .iter()
        .map(|one| format!("{} {:?}", one.tag, one.gate.as_ref().map(ToString::to_string)))
        .collect();
    let changed = old.map(words) == Some(words(new));
    format!("{:?} {:?} {}", words(new), candidates, if changed { "(other)" } else { "" })
}

//! What a recording says at each of its moments: the numbers and pods that are judged, and what was
//! true, read from the pods alone.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use belay_engine::{
    judge::{Facts, PodFacts},
    observed::WorkloadFacts,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    objects::{image_of, is_alive},
    recording::{Applied, Change, Moment, Recording, What},
};

/// How far what is written may lag behind what is so, and the resolution of Kubernetes' stamps.
pub const LAG: SignedDuration = SignedDuration::from_secs(1);

/// One rollout of a recording: from a write of an image to the next one.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The write.
    pub applied: Applied,
    /// What was seen of it.
    pub samples: Vec<Sample>,
    /// Whether another rollout followed.
    pub is_superseded: bool,
}

/// What was seen at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Whether the Deployment was written, rather than a ReplicaSet or pod, or nothing.
    pub is_write: bool,
    /// The Deployment.
    pub deployment: Deployment,
    /// What the engine reads from it and the pods. The images are those that were applied.
    pub facts: Facts,
    /// What was true.
    pub truth: Truth,
}

/// What the pods say, whatever the Deployment's status does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Truth {
    /// `spec.replicas`.
    pub wanted: i32,
    /// `spec.paused`.
    pub is_paused: bool,
    /// Pods of the current template that are neither ended nor being deleted.
    pub new: i32,
    /// Those of them that have been ready for `minReadySeconds`.
    pub available: i32,
    /// Pods of other templates that are neither ended nor being deleted.
    pub old: i32,
    /// How many the rule of success asks for.
    pub needed: i32,
}

impl Truth {
    /// Whether all pods are new, and enough of them available.
    pub fn has_succeeded(&self) -> bool {
        !self.is_paused
            && self.wanted > 0
            && self.old == 0
            && self.new >= self.needed
            && self.available >= self.needed
    }
}

impl Rollout {
    /// Whether what holds of the truth did so at this sample or shortly before, within this rollout:
    /// a status that says it was right when the controller looked.
    pub fn was(&self, sample: usize, holds: impl Fn(&Truth) -> bool) -> bool {
        let Some(now) = self.samples.get(sample).map(|sample| sample.at) else { return false };
        // A state lasts until the next one, so the last one before the window counts as well.
        let mut until = now;
        for one in self.samples[..=sample].iter().rev() {
            if now.duration_since(until) > LAG {
                return false;
            }
            if holds(&one.truth) {
                return true;
            }
            until = one.at;
        }
        false
    }

    /// Whether it succeeded in the end, with nobody rolling anything else.
    pub fn ends_well(&self) -> bool {
        self.samples.last().is_some_and(|last| last.truth.has_succeeded())
    }
}

/// The rollouts of a recording, in order.
///
/// # Errors
/// When an object in it is none.
pub fn rollouts(recording: &Recording) -> Result<Vec<Rollout>> {
    let mut picture = Picture::default();
    let mut rollouts: Vec<Rollout> = Vec::new();
    let mut needed = None;
    for moment in &recording.moments {
        match &moment.what {
            What::Applied(applied) => {
                if let Some(last) = rollouts.last_mut() {
                    last.is_superseded = true;
                }
                needed = None;
                let (applied, samples) = (applied.clone(), Vec::new());
                rollouts.push(Rollout { applied, samples, is_superseded: false });
                continue;
            }
            What::Did(_) => {}
            What::Deployment(change) => picture.deployments.see(change)?,
            What::ReplicaSet(change) => picture.sets.see(change)?,
            What::Pod(change) => picture.pods.see(change)?,
        }
        let Some(rollout) = rollouts.last_mut() else { continue };
        rollout.samples.extend(picture.sample(moment, &rollout.applied, &mut needed));
    }
    ensure!(rollouts.iter().all(|one| !one.samples.is_empty()), "a rollout without any event");
    Ok(rollouts)
}

/// Objects of one kind as they are now.
#[derive(Debug)]
struct Objects<K>(BTreeMap<String, (Map<String, Value>, K)>);

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: DeserializeOwned> Objects<K> {
    fn see(&mut self, change: &Change) -> Result<()> {
        let name = &change.name;
        let before = self.0.remove(name);
        if change.gone {
            return Ok(());
        }
        let mut sections = before.map(|(sections, _)| sections).unwrap_or_default();
        for (section, value) in &change.sections {
            sections.insert(section.clone(), value.clone());
        }
        let mut object = sections.clone();
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        metadata["name"] = json!(name);
        let object = serde_json::from_value(Value::Object(object))
            .with_context(|| format!("read {name} of version {}", change.version))?;
        self.0.insert(name.clone(), (sections, object));
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &K> {
        self.0.values().map(|(_, object)| object)
    }
}

#[derive(Debug, Default)]
struct Picture {
    deployments: Objects<Deployment>,
    sets: Objects<ReplicaSet>,
    pods: Objects<Pod>,
}

impl Picture {
    /// `None` as long as there is no Deployment.
    fn sample(
        &self,
        moment: &Moment,
        applied: &Applied,
        needed: &mut Option<i32>,
    ) -> Option<Sample> {
        let deployment = self.deployments.all().next()?;
        let spec = deployment.spec.as_ref()?;
        // The hash of the ReplicaSet whose template is the Deployment's.
        let has_template = |set: &&ReplicaSet| {
            set.spec.as_ref().is_some_and(|set| set.template.as_ref() == Some(&spec.template))
        };
        let current = self.sets.all().find(has_template).and_then(hash);
        let is_new = |pod: &Pod| current.is_some() && hash(pod) == current;
        let wanted = spec.replicas.unwrap_or(1);
        if wanted > 0 {
            needed.get_or_insert(wanted);
        }
        let mut truth = Truth {
            wanted,
            is_paused: spec.paused == Some(true),
            needed: needed.unwrap_or(wanted).min(wanted).max(1),
            ..Truth::default()
        };
        let min_ready = SignedDuration::from_secs(spec.min_ready_seconds.unwrap_or(0).into());
        for pod in self.pods.all().filter(|pod| is_alive(pod)) {
            if !is_new(pod) {
                truth.old += 1;
                continue;
            }
            truth.new += 1;
            let is_available = ready_since(pod)
                .is_some_and(|since| min_ready.is_zero() || moment.at >= since + min_ready);
            truth.available += i32::from(is_available);
        }
        let facts = Facts {
            images_are_stored: image_of(deployment).as_ref() == Some(&applied.image),
            pods: Some(self.pods.all().map(|pod| PodFacts::of(pod, is_new(pod))).collect()),
            ..WorkloadFacts::of(deployment, "belay.dev/release").rollout
        };
        let is_write = matches!(moment.what, What::Deployment(_));
        let deployment = deployment.clone();
        Some(Sample { at: moment.at, is_write, deployment, facts, truth })
    }
}

/// When a pod became ready, by its own stamp; `None` if it is not.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready" && one.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// What a ReplicaSet and its pods have in common.
fn hash<K: ResourceExt>(object: &K) -> Option<&str> {
    object.labels().get("pod-template-hash").map(String::as_str)
}

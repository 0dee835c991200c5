//! A workload as it was observed.

use std::collections::BTreeMap;

use belay_ownership::{FieldPath, Ownership};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentCondition},
    core::v1::Container,
};
use serde::{Deserialize, Serialize};

use crate::{
    annotations::{ContainerName, LiveContainer, Reading, Subject, Support, read},
    judge::{Facts, ProgressingFacts, ReplicaFailure},
    settings::Settings,
};

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadFacts {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion, the precondition of a write.
    pub resource_version: String,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// All of its annotations but kubectl's copy of the manifest, which may be large.
    pub annotations: BTreeMap<String, String>,
    /// The managers that own its `release` annotation.
    #[serde(default)]
    pub annotation_held_by: Vec<HeldBy>,
    /// The containers of its pod template, init containers first.
    pub containers: Vec<ContainerState>,
    /// Its numbers. Whether images are the stored ones, and the pods, are filled in later.
    pub rollout: Facts,
}

/// A container of a pod template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerState {
    /// Which one, and its image.
    #[serde(flatten)]
    pub live: LiveContainer,
    /// The managers that own the image.
    pub held_by: Vec<HeldBy>,
}

/// A manager that owns a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBy {
    /// Its name.
    pub manager: String,
    /// Whether it applies (server-side), rather than updates.
    pub applies: bool,
    /// When its entry was written last: the field's value is at most as old as this from it.
    #[serde(default)]
    pub time: Option<Timestamp>,
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl WorkloadFacts {
    /// What a Deployment says; `release_key` is the whole key of the `release` annotation.
    pub fn of(deployment: &Deployment, release_key: &str) -> Self {
        let metadata = &deployment.metadata;
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        let ownership = Ownership::decode(entries);
        let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let init = pod.and_then(|pod| pod.init_containers.as_deref()).unwrap_or_default();
        let ordinary = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
        let state = |is_init: bool, container: &Container| {
            let name = ContainerName { is_init, name: container.name.clone() };
            let path = FieldPath::image(name.list(), &name.name);
            ContainerState {
                held_by: held_by(&ownership, &path),
                live: LiveContainer { image: container.image.clone().unwrap_or_default(), name },
            }
        };
        let containers = init
            .iter()
            .map(|container| state(true, container))
            .chain(ordinary.iter().map(|container| state(false, container)))
            .collect();
        let mut annotations = metadata.annotations.clone().unwrap_or_default();
        annotations.remove(LAST_APPLIED);
        let path = FieldPath::of_fields(["metadata", "annotations", release_key]);
        Self {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0),
            deleting: metadata.deletion_timestamp.is_some(),
            annotations,
            annotation_held_by: held_by(&ownership, &path),
            containers,
            rollout: facts(deployment),
        }
    }

    /// What its annotations say.
    pub fn reading(&self, settings: &Settings) -> Reading {
        let live: Vec<_> = self.containers.iter().map(|one| one.live.clone()).collect();
        let subject = Subject {
            kind: &self.kind,
            name: &self.name,
            annotations: &self.annotations,
            containers: &live,
            progress_deadline: self.rollout.progress_deadline,
        };
        let support = Support {
            scaled_objects: settings.scaled_objects,
            image_check_skip: settings.image_check_skip,
        };
        read(&settings.prefix, subject, support)
    }

    /// The live image of a container.
    pub fn image(&self, name: &ContainerName) -> Option<&str> {
        self.container(name).map(|container| container.live.image.as_str())
    }

    /// A container.
    pub fn container(&self, name: &ContainerName) -> Option<&ContainerState> {
        self.containers.iter().find(|container| container.live.name == *name)
    }
}

fn held_by(ownership: &Ownership, path: &FieldPath) -> Vec<HeldBy> {
    ownership
        .at(path)
        .owners
        .iter()
        .map(|owner| HeldBy {
            manager: owner.entry.manager().to_owned(),
            applies: owner.entry.operation() == belay_ownership::Operation::Apply,
            time: owner.entry.time(),
        })
        .collect()
}

fn facts(deployment: &Deployment) -> Facts {
    let spec = deployment.spec.as_ref();
    let status = deployment.status.as_ref();
    let condition = |kind: &str| -> Option<&DeploymentCondition> {
        status?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
    };
    let number = |read: fn(&k8s_openapi::api::apps::v1::DeploymentStatus) -> Option<i32>| {
        status.and_then(read).unwrap_or_default()
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Facts {
        generation: deployment.metadata.generation.unwrap_or_default(),
        observed_generation: status.and_then(|one| one.observed_generation).unwrap_or_default(),
        images_are_stored: false,
        paused: spec.and_then(|spec| spec.paused).unwrap_or_default(),
        // The API server fills in 1; only a broken object has none.
        wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        replicas: number(|status| status.replicas),
        updated: number(|status| status.updated_replicas),
        available: number(|status| status.available_replicas),
        progressing: condition("Progressing").map(|condition| ProgressingFacts {
            reason: text(&condition.reason),
            last_update: condition.last_update_time.as_ref().map(|time| time.0),
        }),
        progress_deadline: spec.and_then(|spec| spec.progress_deadline_seconds),
        replica_failure: condition("ReplicaFailure")
            .filter(|condition| condition.status == "True")
            .map(|condition| ReplicaFailure {
                reason: text(&condition.reason),
                message: text(&condition.message),
            }),
        pods: None,
    }
}

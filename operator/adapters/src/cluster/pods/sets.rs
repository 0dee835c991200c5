//! Which ReplicaSet is of the current template.

use std::collections::BTreeMap;

use belay_engine::{annotations::ContainerName, observed::WorkloadFacts};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Container};

/// Where a Deployment's controller counts its ReplicaSets.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// What is kept of a ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetFacts {
    pub(super) uid: String,
    pub(super) revision: i64,
    /// The image of each container, init containers included.
    pub(super) images: BTreeMap<ContainerName, String>,
}

impl SetFacts {
    /// What a ReplicaSet says; `None` if it is not the Deployment's.
    pub(super) fn of(set: &ReplicaSet, deployment_uid: &str) -> Option<Self> {
        let metadata = &set.metadata;
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        if !owners.iter().any(|it| it.controller == Some(true) && it.uid == deployment_uid) {
            return None;
        }
        let revision = metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
        let pod = set.spec.as_ref()?.template.as_ref()?.spec.as_ref()?;
        let image = |is_init: bool, container: &Container| {
            let name = ContainerName { is_init, name: container.name.clone() };
            (name, container.image.clone().unwrap_or_default())
        };
        let init = pod.init_containers.iter().flatten().map(|it| image(true, it));
        Some(Self {
            uid: metadata.uid.clone()?,
            revision: revision.and_then(|text| text.parse().ok()).unwrap_or_default(),
            images: init.chain(pod.containers.iter().map(|it| image(false, it))).collect(),
        })
    }
}

/// The uid of the ReplicaSet that is of the workload's current template.
///
/// The controller compares whole templates; images are what a move of ours changes, and right after
/// it the newest ReplicaSet by revision is still the old one. Once the controller has seen the current
/// generation, its newest one is the one, whatever admission has made of the images in it.
pub(super) fn current<'s>(
    sets: impl Iterator<Item = &'s SetFacts> + Clone,
    workload: &WorkloadFacts,
) -> Option<&'s str> {
    let has_images = |set: &&SetFacts| {
        set.images.len() == workload.containers.len()
            && workload.containers.iter().all(|container| {
                set.images.get(&container.live.name) == Some(&container.live.image)
            })
    };
    let newest = |set: &&SetFacts| set.revision;
    let rollout = &workload.rollout;
    sets.clone()
        .filter(has_images)
        .max_by_key(newest)
        .or_else(|| {
            let seen = rollout.observed_generation >= rollout.generation;
            seen.then(|| sets.max_by_key(newest)).flatten()
        })
        .map(|set| set.uid.as_str())
}

//! Workloads that are followed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use belay_adapters::cluster::PodsOf;
use belay_api::{
    AnnotationPrefix, TargetName,
    annotations::{OwnAnnotation, TargetAnnotation},
};
use belay_engine::{
    annotations::{RepoSlug, target_name},
    observed::WorkloadFacts,
};
use k8s_openapi::api::apps::v1::Deployment;

use super::version::replaces;
use crate::key::Key;

/// A followed workload: the facts, and what is needed to look further.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) facts: WorkloadFacts,
    /// The target's name; `None` where the annotation holds none.
    pub(crate) target: Option<TargetName>,
    /// The ScaledObject that its annotation names.
    pub(crate) scaled_object: Option<String>,
    /// The repository that it follows; `None` where the annotation holds none.
    pub(crate) repo: Option<RepoSlug>,
    /// Its pods; `None` for a selector that nobody can ask for.
    pub(crate) pods: Option<PodsOf>,
    /// The pull secrets of its pod template.
    pub(crate) pull_secrets: Vec<String>,
    /// The ServiceAccount of its pod template.
    pub(crate) service_account: String,
}

impl Workload {
    /// `None` for a workload that is not followed.
    pub(crate) fn of(deployment: &Deployment, prefix: &AnnotationPrefix) -> Option<Self> {
        let repo = prefix.key(TargetAnnotation::Repo);
        let annotations = deployment.metadata.annotations.as_ref()?;
        annotations.contains_key(&repo).then(|| Self::any(deployment, prefix))
    }

    /// A workload, followed or not.
    pub(crate) fn any(deployment: &Deployment, prefix: &AnnotationPrefix) -> Self {
        let mut facts = WorkloadFacts::of(deployment, &prefix.key(OwnAnnotation::Release));
        // Others' may be large or secret: `last-applied-configuration` holds a whole manifest.
        facts.annotations.retain(|key, _| prefix.strip(key).is_some());
        let spec = deployment.spec.as_ref();
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let secrets = pod.and_then(|pod| pod.image_pull_secrets.as_deref()).unwrap_or_default();
        Self {
            repo: facts
                .annotations
                .get(&prefix.key(TargetAnnotation::Repo))
                .and_then(|text| text.parse().ok()),
            scaled_object: facts
                .annotations
                .get(&prefix.key(TargetAnnotation::ScaledObject))
                .filter(|name| !name.is_empty())
                .cloned(),
            target: target_name(prefix, &facts.kind, &facts.name, &facts.annotations),
            pods: PodsOf::of(deployment).ok(),
            pull_secrets: secrets.iter().map(|one| one.name.clone()).collect(),
            service_account: pod
                .and_then(|pod| pod.service_account_name.clone())
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "default".to_owned()),
            facts,
        }
    }
}

/// Followed workloads, and which of them share a target.
#[derive(Default)]
pub(super) struct Workloads {
    all: HashMap<Key, Arc<Workload>>,
    by_target: HashMap<(String, TargetName), BTreeSet<Key>>,
    by_scaled_object: HashMap<(String, String), BTreeSet<Key>>,
}

impl Workloads {
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all.keys()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.all.get(key)
    }

    /// The workloads of one target.
    pub(super) fn of(&self, namespace: &str, target: &TargetName) -> impl Iterator<Item = &Key> {
        self.by_target.get(&(namespace.to_owned(), target.clone())).into_iter().flatten()
    }

    /// The workloads that name this ScaledObject.
    pub(super) fn of_scaled_object(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &Key> {
        self.by_scaled_object.get(&(namespace.to_owned(), name.to_owned())).into_iter().flatten()
    }

    /// Returns the workloads that are concerned.
    pub(super) fn put(&mut self, key: &Key, workload: Option<Workload>) -> Vec<Key> {
        let Some(workload) = workload else { return self.remove(key) };
        if let Some(before) = self.all.get(key) {
            let (old, new) = (&before.facts, &workload.facts);
            let is_same = old.uid == new.uid;
            if is_same && !replaces(Some(&old.resource_version), Some(&new.resource_version)) {
                return Vec::new();
            }
        }
        let mut concerned = self.remove(key);
        if let Some(target) = &workload.target {
            let id = (key.namespace().to_owned(), target.clone());
            let sharing = self.by_target.entry(id).or_default();
            concerned.extend(sharing.iter().cloned());
            sharing.insert(key.clone());
        }
        if let Some(name) = &workload.scaled_object {
            let id = (key.namespace().to_owned(), name.clone());
            let sharing = self.by_scaled_object.entry(id).or_default();
            concerned.extend(sharing.iter().cloned());
            sharing.insert(key.clone());
        }
        self.all.insert(key.clone(), Arc::new(workload));
        concerned.push(key.clone());
        concerned.sort();
        concerned.dedup();
        concerned
    }

    pub(super) fn remove(&mut self, key: &Key) -> Vec<Key> {
        let Some(workload) = self.all.remove(key) else { return Vec::new() };
        let mut concerned = vec![key.clone()];
        if let Some(target) = &workload.target {
            let id = (key.namespace().to_owned(), target.clone());
            if let Some(sharing) = self.by_target.get_mut(&id) {
                sharing.remove(key);
                concerned.extend(sharing.iter().cloned());
                if sharing.is_empty() {
                    self.by_target.remove(&id);
                }
            }
        }
        if let Some(name) = &workload.scaled_object {
            let id = (key.namespace().to_owned(), name.clone());
            if let Some(sharing) = self.by_scaled_object.get_mut(&id) {
                sharing.remove(key);
                concerned.extend(sharing.iter().cloned());
                if sharing.is_empty() {
                    self.by_scaled_object.remove(&id);
                }
            }
        }
        concerned
    }
}

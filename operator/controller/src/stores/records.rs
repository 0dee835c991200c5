//! Belay's own objects, by namespace and target.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use belay_api::{Release, ReleaseTarget, Rollback};
use kube::ResourceExt as _;

use super::version::replaces;
use crate::surroundings;

/// A namespace and a target's name.
pub(crate) type TargetId = (String, String);

/// An object that belongs to a target.
pub(super) trait Record: kube::Resource {
    /// Whether it is looked at where no workload has its target: a Rollback then ends.
    const ENDS_ALONE: bool;

    fn target(&self) -> &str;

    /// The name of the workload that it says it is of.
    fn workload(&self) -> Option<&str> {
        None
    }

    /// Whether others may go on that waited, now that it took the place of `before`.
    fn frees(&self, _before: Option<&Self>) -> bool {
        false
    }
}

impl Record for Release {
    const ENDS_ALONE: bool = false;

    fn target(&self) -> &str {
        &self.config().target_name
    }

    fn frees(&self, before: Option<&Self>) -> bool {
        before.is_some_and(|before| {
            let ended = surroundings::is_rolling(before) && !surroundings::is_rolling(self);
            let succeeded = surroundings::is_healthy(self) && !surroundings::is_healthy(before);
            ended || succeeded
        })
    }
}

impl Record for Rollback {
    const ENDS_ALONE: bool = true;

    fn target(&self) -> &str {
        &self.spec.to_release_ref.target
    }
}

impl Record for ReleaseTarget {
    // Rollbacks have waited for it to go.
    const ENDS_ALONE: bool = true;

    fn target(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn workload(&self) -> Option<&str> {
        Some(&self.status.as_ref()?.workload.as_ref()?.name)
    }
}

/// Objects of one kind.
pub(super) struct Records<T> {
    by_target: HashMap<TargetId, BTreeMap<String, Arc<T>>>,
    /// The target of each object by namespace and name, which never changes.
    targets: HashMap<(String, String), String>,
    /// Names of those that say of which workload they are, by namespace and workload.
    by_workload: HashMap<(String, String), BTreeSet<String>>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { by_target: HashMap::new(), targets: HashMap::new(), by_workload: HashMap::new() }
    }
}

impl<T: Record> Records<T> {
    /// Returns the target that it concerns, unless nothing is new.
    pub(super) fn put(&mut self, object: T) -> Option<(TargetId, Arc<T>)> {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        let id = (namespace.clone(), object.target().to_owned());
        let of_target = self.by_target.entry(id.clone()).or_default();
        let before = of_target.get(&name);
        let (old, new) = (before.and_then(|one| one.meta().uid.clone()), object.uid());
        let is_same_object = before.is_some() && old == new;
        let known = before.and_then(|one| one.meta().resource_version.as_deref());
        let version = object.meta().resource_version.as_deref();
        if is_same_object && !replaces(known, version) {
            return None;
        }
        let object = Arc::new(object);
        if let Some(before) = of_target.insert(name.clone(), object.clone()) {
            self.forget_workload(&namespace, &name, before.workload());
        }
        if let Some(workload) = object.workload() {
            let of_workload = self.by_workload.entry((namespace.clone(), workload.to_owned()));
            of_workload.or_default().insert(name.clone());
        }
        self.targets.insert((namespace, name), id.1.clone());
        Some((id, object))
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<(TargetId, Arc<T>)> {
        let target = self.targets.remove(&(namespace.to_owned(), name.to_owned()))?;
        let id = (namespace.to_owned(), target);
        let of_target = self.by_target.get_mut(&id)?;
        let object = of_target.remove(name)?;
        if of_target.is_empty() {
            self.by_target.remove(&id);
        }
        self.forget_workload(namespace, name, object.workload());
        Some((id, object))
    }

    fn forget_workload(&mut self, namespace: &str, name: &str, workload: Option<&str>) {
        let Some(workload) = workload else { return };
        let id = (namespace.to_owned(), workload.to_owned());
        let Some(names) = self.by_workload.get_mut(&id) else { return };
        names.remove(name);
        if names.is_empty() {
            self.by_workload.remove(&id);
        }
    }

    /// Those that say that they are of this workload, by name.
    pub(super) fn of_workload(
        &self,
        namespace: &str,
        workload: &str,
    ) -> impl Iterator<Item = Arc<T>> {
        let id = (namespace.to_owned(), workload.to_owned());
        let names = self.by_workload.get(&id).into_iter().flatten();
        names.filter_map(move |name| self.get(&id.0, name))
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let target = self.targets.get(&(namespace.to_owned(), name.to_owned()))?;
        self.by_target.get(&(namespace.to_owned(), target.clone()))?.get(name).cloned()
    }

    pub(super) fn names(&self) -> Vec<(String, String)> {
        self.targets.keys().cloned().collect()
    }

    /// Those of one target, by name.
    pub(super) fn of(&self, id: &TargetId) -> impl Iterator<Item = &Arc<T>> {
        self.by_target.get(id).into_iter().flat_map(BTreeMap::values)
    }

    /// Those of all targets of one namespace.
    pub(super) fn all(&self) -> impl Iterator<Item = (&TargetId, &Arc<T>)> {
        self.by_target.iter().flat_map(|(id, all)| all.values().map(move |one| (id, one)))
    }
}

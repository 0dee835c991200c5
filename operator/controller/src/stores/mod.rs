//! What the watches have seen: followed workloads and the objects that belong to them.
//!
//! Only what a pass needs is kept. A workload is kept as the facts about it, and only while it is
//! followed; the Deployments of everyone else are dropped as they arrive. Whatever changes here asks
//! for a pass over the workloads that it concerns, through [`Change`].

mod claims;
mod index;
mod nodes;
mod records;
mod version;
mod workloads;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use belay_adapters::cluster::{PauseKeys, ScaledObject};
use belay_api::{AnnotationPrefix, Release, ReleaseTarget, Rollback};
use belay_engine::observed::ClaimFacts;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use tokio::time::Instant;

use self::{
    claims::Claims,
    nodes::Nodes,
    records::{Record as _, Records},
    workloads::Workloads,
};
pub(crate) use self::{index::Seen, records::TargetId, workloads::Workload};
use crate::key::Key;

/// What the stores ask for when something changed.
pub(crate) type Change = Box<dyn Fn(&Key) + Send + Sync>;

/// The kinds that are watched, and how their events reach the stores.
pub(crate) trait Kept: Sized {
    /// Its namespace and name.
    fn id(&self) -> (String, String);
    /// It was added or modified, or is the newer answer to a write.
    fn put(self, stores: &Stores);
    /// It is gone.
    fn remove(stores: &Stores, namespace: &str, name: &str);
    /// The namespaces and names of all that are kept.
    fn names(stores: &Stores) -> Vec<(String, String)>;
}

/// Everything that was seen.
pub(crate) struct Stores {
    prefix: AnnotationPrefix,
    pause: PauseKeys,
    inner: Mutex<Inner>,
    change: Change,
    /// Called when a Release stops being rolled out, or becomes healthy: others may have waited.
    freed: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Inner {
    workloads: Workloads,
    releases: Records<Release>,
    rollbacks: Records<Rollback>,
    targets: Records<ReleaseTarget>,
    nodes: Nodes,
    claims: Claims,
}

impl Stores {
    pub(crate) fn new(prefix: AnnotationPrefix, pause: PauseKeys, change: Change) -> Self {
        Self { prefix, pause, inner: Mutex::default(), change, freed: OnceLock::new() }
    }

    /// Says, once, what to call when others may go on.
    pub(crate) fn when_freed(&self, freed: impl Fn() + Send + Sync + 'static) {
        let _ = self.freed.set(Box::new(freed));
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            (self.change)(&key);
        }
    }

    /// Workloads changed, or one of them is followed no more, whose rollout then takes no place.
    fn gone(&self, goes: bool, keys: Vec<Key>) {
        let frees = goes && !keys.is_empty();
        self.changed(keys);
        if frees && let Some(freed) = self.freed.get() {
            freed();
        }
    }

    /// Whether a workload has this target.
    pub(crate) fn is_followed(&self, target: &TargetId) -> bool {
        index::is_followed(&self.inner(), target)
    }

    /// The Rollbacks of a target that nobody will carry out.
    pub(crate) fn unfollowed(&self, target: &TargetId) -> Vec<Arc<Rollback>> {
        index::unfollowed(&self.inner(), target)
    }

    /// The pauses that are claimed for a target, or stand on a ScaledObject, that no workload has.
    pub(crate) fn unfollowed_claims(&self, target: &TargetId) -> Vec<Arc<ClaimFacts>> {
        index::unfollowed_claims(&self.inner(), target)
    }

    /// When a ScaledObject was last seen to change in what a rollout depends on; what was read of it
    /// before is out of date.
    pub(crate) fn scaler_changed(&self, namespace: &str, name: &str) -> Option<Instant> {
        self.inner().claims.changed(&(namespace.to_owned(), name.to_owned()))
    }

    /// All pauses that are claimed.
    pub(crate) fn claims(&self) -> Vec<Arc<ClaimFacts>> {
        self.inner().claims.all().map(|(_, claim)| claim.clone()).collect()
    }

    /// What has to be looked at where a pause is claimed.
    pub(crate) fn claimed(&self) -> Vec<Key> {
        let inner = self.inner();
        let mut keys: Vec<Key> =
            inner.claims.all().flat_map(|(whose, _)| index::of_claim(&inner, &whose)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// What is known of one workload and all that belongs to it, at one moment.
    pub(crate) fn look(&self, key: &Key) -> Seen {
        index::look(&self.inner(), key, &self.prefix)
    }

    /// An object as the API server answered to a write, unless the watch has shown a newer one.
    pub(crate) fn put<K: Kept>(&self, object: K) {
        object.put(self);
    }

    /// An object that was deleted.
    pub(crate) fn forget<K: Kept>(&self, namespace: &str, name: &str) {
        K::remove(self, namespace, name);
    }

    /// A Release by namespace and name.
    pub(crate) fn release(&self, namespace: &str, name: &str) -> Option<Arc<Release>> {
        self.inner().releases.get(namespace, name)
    }

    /// A Rollback by namespace and name.
    pub(crate) fn rollback(&self, namespace: &str, name: &str) -> Option<Arc<Rollback>> {
        self.inner().rollbacks.get(namespace, name)
    }

    /// All followed workloads.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.inner().workloads.keys().cloned().collect()
    }

    /// The reason of each target that is stalled.
    pub(crate) fn stalled(&self) -> Vec<String> {
        let inner = self.inner();
        let stalled = inner.targets.all().filter_map(|(_, target)| {
            let conditions = &target.status.as_ref()?.conditions;
            let stalled = belay_api::conditions::find(conditions, "Stalled")?;
            (stalled.status == "True").then(|| stalled.reason.clone())
        });
        stalled.collect()
    }

    /// The platforms of the cluster's nodes, `os/architecture`.
    pub(crate) fn platforms(&self) -> Vec<(String, String)> {
        self.inner().nodes.platforms()
    }
}

impl Kept for Deployment {
    fn id(&self) -> (String, String) {
        id(&self.metadata)
    }

    fn put(self, stores: &Stores) {
        let workload = Workload::of(&self, &stores.prefix);
        let (namespace, name) = Kept::id(&self);
        let key = Key::new(&namespace, &name);
        let goes = workload.is_none();
        let keys = index::put_workload(&mut stores.inner(), &key, workload);
        stores.gone(goes, keys);
    }

    fn remove(stores: &Stores, namespace: &str, name: &str) {
        let key = Key::new(namespace, name);
        let keys = index::put_workload(&mut stores.inner(), &key, None);
        stores.gone(true, keys);
    }

    fn names(stores: &Stores) -> Vec<(String, String)> {
        let inner = stores.inner();
        inner
            .workloads
            .keys()
            .map(|key| (key.namespace().to_owned(), key.name().to_owned()))
            .collect()
    }
}

macro_rules! record {
    ($kind:ty, $records:ident) => {
        impl Kept for $kind {
            fn id(&self) -> (String, String) {
                id(&self.metadata)
            }

            fn put(mut self, stores: &Stores) {
                // Nothing decides by it, and it is as large as the rest.
                self.metadata.managed_fields = None;
                let mut inner = stores.inner();
                let (namespace, name) = Kept::id(&self);
                let before = inner.$records.get(&namespace, &name);
                let concerned = inner.$records.put(self);
                let after = concerned.as_ref().map(|(_, object)| object.clone());
                let keys = index::concerned(&inner, concerned);
                drop(inner);
                stores.changed(keys);
                if let Some(after) = after
                    && after.frees(before.as_deref())
                    && let Some(freed) = stores.freed.get()
                {
                    freed();
                }
            }

            fn remove(stores: &Stores, namespace: &str, name: &str) {
                let mut inner = stores.inner();
                let concerned = inner.$records.remove(namespace, name);
                let keys = index::concerned(&inner, concerned);
                drop(inner);
                stores.changed(keys);
            }

            fn names(stores: &Stores) -> Vec<(String, String)> {
                stores.inner().$records.names()
            }
        }
    };
}

record!(Release, releases);
record!(Rollback, rollbacks);
record!(ReleaseTarget, targets);

impl Kept for ScaledObject {
    fn id(&self) -> (String, String) {
        id(&self.metadata)
    }

    fn put(self, stores: &Stores) {
        let mut inner = stores.inner();
        let id = Kept::id(&self);
        let changed = inner.claims.put(id.clone(), &self, &stores.pause);
        let keys = index::concerned_by_pause(&inner, &id, &changed);
        drop(inner);
        stores.changed(keys);
    }

    fn remove(stores: &Stores, namespace: &str, name: &str) {
        let mut inner = stores.inner();
        let id = (namespace.to_owned(), name.to_owned());
        let changed = inner.claims.remove(&id);
        let keys = index::concerned_by_pause(&inner, &id, &changed);
        drop(inner);
        stores.changed(keys);
    }

    fn names(stores: &Stores) -> Vec<(String, String)> {
        stores.inner().claims.names()
    }
}

impl Kept for Node {
    fn id(&self) -> (String, String) {
        id(&self.metadata)
    }

    fn put(self, stores: &Stores) {
        let mut inner = stores.inner();
        if inner.nodes.put(&self) {
            let keys: Vec<_> = inner.workloads.keys().cloned().collect();
            drop(inner);
            stores.changed(keys);
        }
    }

    fn remove(stores: &Stores, _namespace: &str, name: &str) {
        stores.inner().nodes.remove(name);
    }

    fn names(stores: &Stores) -> Vec<(String, String)> {
        stores.inner().nodes.names()
    }
}

fn id(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod pause_tests;
#[cfg(test)]
mod tests;

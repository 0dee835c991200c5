//! What is known of pods and ReplicaSets.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use belay_engine::{
    judge::PodFacts,
    observed::{Fact, WorkloadFacts},
};
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};

use super::sets::{self, SetFacts};
use crate::clock::Clock;

/// What is known, shared between the watches and those who ask.
pub(super) struct View {
    clock: Clock,
    deployment_uid: String,
    changed: Box<dyn Fn() + Send + Sync>,
    known: Mutex<Known>,
}

#[derive(Debug)]
pub(super) struct Known {
    pods: Kept<PodSeen>,
    sets: Kept<SetFacts>,
}

/// What is kept of a pod. Whether it is new is decided when somebody asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodSeen {
    /// The uid of its controller.
    owner: String,
    facts: PodFacts,
}

/// The objects of one kind.
#[derive(Debug)]
pub(super) struct Kept<T> {
    /// By name; or why they are not known.
    objects: Result<BTreeMap<String, T>, String>,
    read: Timestamp,
    handicap: Option<String>,
}

impl<T> Kept<T> {
    fn none(read: Timestamp, kind: &str) -> Self {
        Self { objects: Err(format!("{kind} have not been listed yet")), read, handicap: None }
    }
}

/// A kind of objects that is watched.
pub(super) trait Watched: kube::Resource<DynamicType = ()> {
    /// What is kept of one.
    type Seen: PartialEq;

    /// What people call several.
    const PLURAL: &str;

    /// What is kept of this one; `None` if it is of no interest.
    fn seen(&self, deployment_uid: &str) -> Option<Self::Seen>;

    /// Where they are kept.
    fn kept(known: &mut Known) -> &mut Kept<Self::Seen>;
}

impl Watched for Pod {
    type Seen = PodSeen;

    const PLURAL: &str = "pods";

    fn seen(&self, _: &str) -> Option<PodSeen> {
        let owners = self.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
        Some(PodSeen { owner: owner.uid.clone(), facts: PodFacts::of(self, false) })
    }

    fn kept(known: &mut Known) -> &mut Kept<PodSeen> {
        &mut known.pods
    }
}

impl Watched for ReplicaSet {
    type Seen = SetFacts;

    const PLURAL: &str = "ReplicaSets";

    fn seen(&self, deployment_uid: &str) -> Option<SetFacts> {
        SetFacts::of(self, deployment_uid)
    }

    fn kept(known: &mut Known) -> &mut Kept<SetFacts> {
        &mut known.sets
    }
}

impl View {
    pub(super) fn new(
        clock: Clock,
        deployment_uid: &str,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let now = clock.now();
        let known =
            Known { pods: Kept::none(now, Pod::PLURAL), sets: Kept::none(now, ReplicaSet::PLURAL) };
        Self {
            clock,
            deployment_uid: deployment_uid.to_owned(),
            changed: Box::new(changed),
            known: Mutex::new(known),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what is known of a kind by a list.
    pub(super) fn listed<K: Watched>(&self, objects: &[K]) {
        let seen =
            |object: &K| Some((object.meta().name.clone()?, object.seen(&self.deployment_uid)?));
        let objects: BTreeMap<_, _> = objects.iter().filter_map(seen).collect();
        self.change::<K>(|known| {
            let differs = known.as_ref() != Ok(&objects);
            *known = Ok(objects);
            differs
        });
    }

    /// An object was made or changed.
    pub(super) fn applied<K: Watched>(&self, object: &K) {
        let Some(name) = object.meta().name.clone() else { return };
        let seen = object.seen(&self.deployment_uid);
        self.change::<K>(|known| {
            let Ok(objects) = known else { return false };
            match seen {
                None => objects.remove(&name).is_some(),
                Some(seen) if objects.get(&name) == Some(&seen) => false,
                Some(seen) => {
                    objects.insert(name, seen);
                    true
                }
            }
        });
    }

    /// An object is gone.
    pub(super) fn deleted<K: Watched>(&self, object: &K) {
        let name = object.meta().name.clone().unwrap_or_default();
        self.change::<K>(|known| {
            known.as_mut().is_ok_and(|objects| objects.remove(&name).is_some())
        });
    }

    /// A list failed.
    pub(super) fn failed<K: Watched>(&self, why: String) {
        self.change::<K>(|known| {
            let differs = known.as_ref().err() != Some(&why);
            *known = Err(why);
            differs
        });
    }

    fn change<K: Watched>(
        &self,
        change: impl FnOnce(&mut Result<BTreeMap<String, K::Seen>, String>) -> bool,
    ) {
        let now = self.clock.now();
        let differs = {
            let mut known = self.lock();
            let kept = K::kept(&mut known);
            kept.read = now;
            change(&mut kept.objects)
        };
        if differs {
            (self.changed)();
        }
    }

    /// Objects of a kind are listed from time to time, or watched again.
    pub(super) fn set_handicap<K: Watched>(&self, why: Option<String>) {
        K::kept(&mut self.lock()).handicap = why;
    }

    pub(super) fn handicap(&self) -> Option<String> {
        let known = self.lock();
        known.pods.handicap.clone().or_else(|| known.sets.handicap.clone())
    }

    pub(super) fn facts(&self, workload: &WorkloadFacts) -> Fact<Vec<PodFacts>> {
        let known = self.lock();
        let read = known.pods.read.min(known.sets.read);
        let (pods, sets) = match (&known.pods.objects, &known.sets.objects) {
            (Ok(pods), Ok(sets)) => (pods, sets),
            (Err(why), _) | (_, Err(why)) => return Fact::Unknown { why: why.clone(), read },
        };
        let current = sets::current(sets.values(), workload);
        let is_own = |pod: &&PodSeen| sets.values().any(|set| set.uid == pod.owner);
        let facts = pods.values().filter(is_own).map(|pod| {
            let is_new = current == Some(pod.owner.as_str());
            PodFacts { is_new, ..pod.facts.clone() }
        });
        Fact::known(facts.collect(), read)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("known", &self.known).finish_non_exhaustive()
    }
}

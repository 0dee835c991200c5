//! Claims of pauses, and which ScaledObjects have changed in what a rollout depends on.
//!
//! Of a ScaledObject without a claim nothing is kept but which version was seen and a number that
//! stands for it.

use std::{
    collections::{BTreeSet, HashMap, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    sync::Arc,
};

use belay_adapters::cluster::{PauseKeys, ScaledObject};
use belay_engine::observed::ClaimFacts;

use tokio::time::Instant;

use super::{records::TargetId, version::replaces};

/// A namespace and the name of a ScaledObject.
pub(super) type ObjectId = (String, String);

/// Where a claim belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// It names its target.
    Target(TargetId),
    /// It names none that can be read: it is the business of whoever has that ScaledObject.
    Object(ObjectId),
}

/// What an event changed.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Where the claims belong that were there before, or are now.
    pub(super) claims: Vec<Whose>,
    /// Whether anything changed that a rollout depends on, and not only what KEDA writes all the time.
    pub(super) matters: bool,
}

struct Seen {
    uid: Option<String>,
    version: Option<String>,
    print: u64,
    /// When it was seen to be what `print` stands for.
    since: Instant,
}

/// All claims.
#[derive(Default)]
pub(super) struct Claims {
    seen: HashMap<ObjectId, Seen>,
    all: HashMap<ObjectId, Arc<ClaimFacts>>,
    by_target: HashMap<TargetId, BTreeSet<String>>,
}

impl Claims {
    pub(super) fn put(&mut self, id: ObjectId, object: &ScaledObject, keys: &PauseKeys) -> Changed {
        let metadata = &object.metadata;
        let before = self.seen.get(&id);
        let is_same = before.is_some_and(|before| before.uid == metadata.uid);
        let known = before.and_then(|before| before.version.as_deref());
        if is_same && !replaces(known, metadata.resource_version.as_deref()) {
            return Changed::default();
        }
        let print = print_of(object, keys);
        let matters = before.is_none_or(|before| before.print != print);
        let (uid, version) = (metadata.uid.clone(), metadata.resource_version.clone());
        let since = match before {
            Some(before) if !matters => before.since,
            _ => Instant::now(),
        };
        self.seen.insert(id.clone(), Seen { uid, version, print, since });
        let mut claims: Vec<Whose> = self.take(&id).into_iter().collect();
        if let Some(claim) = keys.claim(metadata) {
            let whose = whose(&id, &claim);
            if let Whose::Target(target) = &whose {
                self.by_target.entry(target.clone()).or_default().insert(id.1.clone());
            }
            if !claims.contains(&whose) {
                claims.push(whose);
            }
            self.all.insert(id, Arc::new(claim));
        }
        Changed { claims, matters }
    }

    pub(super) fn remove(&mut self, id: &ObjectId) -> Changed {
        let matters = self.seen.remove(id).is_some();
        Changed { claims: self.take(id).into_iter().collect(), matters }
    }

    fn take(&mut self, id: &ObjectId) -> Option<Whose> {
        let whose = whose(id, &*self.all.remove(id)?);
        if let Whose::Target(target) = &whose
            && let Some(names) = self.by_target.get_mut(target)
        {
            names.remove(&id.1);
            if names.is_empty() {
                self.by_target.remove(target);
            }
        }
        Some(whose)
    }

    /// Those of a target, by the ScaledObject's name.
    pub(super) fn of(&self, target: &TargetId) -> impl Iterator<Item = &Arc<ClaimFacts>> {
        let names = self.by_target.get(target).into_iter().flatten();
        names.filter_map(|name| self.all.get(&(target.0.clone(), name.clone())))
    }

    /// The one on a ScaledObject that names no target.
    pub(super) fn without_target(&self, id: &ObjectId) -> Option<&Arc<ClaimFacts>> {
        self.all.get(id).filter(|claim| claim.claim.is_none())
    }

    /// All of them, with where they belong.
    pub(super) fn all(&self) -> impl Iterator<Item = (Whose, &Arc<ClaimFacts>)> {
        self.all.iter().map(|(id, claim)| (whose(id, claim), claim))
    }

    /// When a ScaledObject was last seen to change in what a rollout depends on.
    pub(super) fn changed(&self, id: &ObjectId) -> Option<Instant> {
        self.seen.get(id).map(|seen| seen.since)
    }

    pub(super) fn names(&self) -> Vec<ObjectId> {
        self.seen.keys().cloned().collect()
    }
}

fn whose(id: &ObjectId, claim: &ClaimFacts) -> Whose {
    match &claim.claim {
        Some(claim) => Whose::Target((id.0.clone(), claim.target.clone())),
        None => Whose::Object(id.clone()),
    }
}

/// A number for what a rollout depends on: which object it is, its spec, and its pauses. Its status
/// changes with each look that KEDA takes.
fn print_of(object: &ScaledObject, keys: &PauseKeys) -> u64 {
    let metadata = &object.metadata;
    let mut hasher = DefaultHasher::new();
    metadata.uid.hash(&mut hasher);
    metadata.generation.hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    for (key, value) in metadata.annotations.iter().flatten() {
        if keys.is_of_pauses(key) {
            (key, value).hash(&mut hasher);
        }
    }
    hasher.finish()
}

//! What belongs together: a workload, its target's objects, and what others say about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use belay_api::{AnnotationPrefix, Release, ReleaseTarget, Rollback, TargetName};
use belay_engine::observed::ClaimFacts;

use super::{
    Inner,
    claims::{Changed, ObjectId, Whose},
    records::{Record, TargetId},
    workloads::Workload,
};
use crate::{key::Key, surroundings};

/// All that was seen of one workload.
#[derive(Default)]
pub(crate) struct Seen {
    /// `None` if it is not followed.
    pub(crate) workload: Option<Arc<Workload>>,
    /// The name of its ReleaseTarget: of its target, or, where its annotation is no name, the one
    /// that it would have without, unless somebody else has that.
    pub(crate) record_name: Option<TargetName>,
    /// The ReleaseTarget under that name.
    pub(crate) target: Option<Arc<ReleaseTarget>>,
    /// ReleaseTargets of this workload under other names: it was renamed, or is followed no more.
    pub(crate) former: Vec<Arc<ReleaseTarget>>,
    pub(crate) releases: Vec<Arc<Release>>,
    pub(crate) rollbacks: Vec<Arc<Rollback>>,
    /// The older workload that has this target's name, `Kind/name`.
    pub(crate) duplicate_of: Option<String>,
    /// The older workload that has this target's ScaledObject, `Kind/name`.
    pub(crate) scaled_object_of: Option<String>,
    /// Pauses that are claimed for this target.
    pub(crate) claims: Vec<Arc<ClaimFacts>>,
    /// Its namespace and target.
    pub(crate) id: Option<TargetId>,
    /// Other targets whose rollouts are under way.
    pub(crate) rolling_elsewhere: BTreeSet<TargetId>,
    /// Release tags of its repository that failed elsewhere in the namespace.
    pub(crate) failed_elsewhere: Vec<String>,
}

/// The workloads that a changed object concerns.
pub(super) fn concerned<T: Record>(inner: &Inner, changed: Option<(TargetId, Arc<T>)>) -> Vec<Key> {
    let Some(((namespace, target), _)) = changed else { return Vec::new() };
    let mut keys: Vec<Key> = match target.parse() {
        Ok(name) => inner.workloads.of(&namespace, &name).cloned().collect(),
        Err(_) => Vec::new(),
    };
    // A ReleaseTarget whose workload is not followed any more is known by what it says.
    if let Some(record) = inner.targets.of(&(namespace.clone(), target.clone())).next()
        && let Some(workload) = record.status.as_ref().and_then(|status| status.workload.as_ref())
    {
        keys.push(Key::new(&namespace, &workload.name));
    }
    if keys.is_empty() && T::ENDS_ALONE {
        keys.push(Key::new(&namespace, &target));
    }
    keys.sort();
    keys.dedup();
    keys
}

pub(super) fn look(inner: &Inner, key: &Key, prefix: &AnnotationPrefix) -> Seen {
    let mut seen = Seen { workload: inner.workloads.get(key).cloned(), ..Seen::default() };
    let target = seen.workload.as_ref().and_then(|workload| workload.target.clone());
    seen.record_name = target.clone().or_else(|| default_name(inner, key, &seen));
    seen.former = former(inner, key, seen.record_name.as_ref().map(TargetName::as_str), prefix);
    seen.target = seen.record_name.as_ref().and_then(|name| {
        let id = (key.namespace().to_owned(), name.as_str().to_owned());
        inner.targets.of(&id).next().cloned()
    });
    if let Some(workload) = seen.workload.clone()
        && let Some(name) = &workload.scaled_object
    {
        let sharing = inner.workloads.of_scaled_object(key.namespace(), name);
        seen.scaled_object_of = older(inner, &workload, sharing);
        if seen.scaled_object_of.is_none() {
            let object = (key.namespace().to_owned(), name.clone());
            seen.claims.extend(inner.claims.without_target(&object).cloned());
        }
    }
    let (Some(workload), Some(target)) = (seen.workload.clone(), target) else { return seen };
    let id = (key.namespace().to_owned(), target.as_str().to_owned());
    seen.id = Some(id.clone());
    seen.releases = inner.releases.of(&id).cloned().collect();
    seen.rollbacks = inner.rollbacks.of(&id).cloned().collect();
    seen.duplicate_of = older(inner, &workload, inner.workloads.of(key.namespace(), &target));
    // Else they are the older one's business.
    if seen.duplicate_of.is_none() {
        seen.claims.extend(inner.claims.of(&id).cloned());
    }
    let elsewhere = || inner.releases.all().filter(|(of, _)| **of != id);
    seen.rolling_elsewhere = elsewhere()
        .filter(|(of, release)| surroundings::is_rolling(release) && is_followed(inner, of))
        .map(|(of, _)| of.clone())
        .collect();
    if let Some(repo) = &workload.repo {
        let of_namespace =
            elsewhere().filter(|(of, _)| of.0 == id.0).map(|(_, release)| &**release);
        seen.failed_elsewhere = surroundings::failed(of_namespace, repo, prefix);
    }
    // What a Rollback names may be another target's, which is another answer than "unknown".
    let named = seen.rollbacks.iter().map(|rollback| &*rollback.spec.to_release_ref.name);
    let others: BTreeMap<_, _> = named
        .filter_map(|name| inner.releases.get(&id.0, name))
        .filter(|release| release.target() != target.as_str())
        .map(|release| (release.metadata.name.clone(), release))
        .collect();
    seen.releases.extend(others.into_values());
    seen
}

/// The oldest of these workloads that is older than `workload`, `Kind/name`.
fn older<'k>(
    inner: &Inner,
    workload: &Workload,
    sharing: impl Iterator<Item = &'k Key>,
) -> Option<String> {
    let age = |workload: &Workload| (workload.facts.created, workload.facts.name.clone());
    sharing
        .filter_map(|other| inner.workloads.get(other))
        .filter(|other| age(other) < age(workload))
        .min_by_key(|other| age(other))
        .map(|other| format!("{}/{}", other.facts.kind, other.facts.name))
}

/// Keeps a workload, or forgets it; returns what is to be looked at. Claims of the target that it had
/// are then of a target that nobody has.
pub(super) fn put_workload(inner: &mut Inner, key: &Key, workload: Option<Workload>) -> Vec<Key> {
    let before = inner.workloads.get(key).cloned();
    let mut keys = inner.workloads.put(key, workload);
    let namespace = || key.namespace().to_owned();
    let Some(before) = before.filter(|_| !keys.is_empty()) else { return keys };
    if let Some(target) = &before.target {
        let id = (namespace(), target.as_str().to_owned());
        if !is_followed(inner, &id) && inner.claims.of(&id).next().is_some() {
            keys.push(Key::new(&id.0, &id.1));
        }
    }
    if let Some(name) = &before.scaled_object {
        let id = (namespace(), name.clone());
        if inner.claims.without_target(&id).is_some() {
            keys.extend(of_claim(inner, &Whose::Object(id)));
        }
    }
    keys
}

/// The workloads whose business a claim is; without any, a key by which it is found.
pub(super) fn of_claim(inner: &Inner, whose: &Whose) -> Vec<Key> {
    let ((namespace, name), keys): (_, Vec<Key>) = match whose {
        Whose::Target(id) => {
            let target = id.1.parse().ok();
            let of = target.iter().flat_map(|target| inner.workloads.of(&id.0, target));
            (id, of.cloned().collect())
        }
        Whose::Object(id) => {
            (id, inner.workloads.of_scaled_object(&id.0, &id.1).cloned().collect())
        }
    };
    if keys.is_empty() { vec![Key::new(namespace, name)] } else { keys }
}

/// What is to be looked at after a ScaledObject has changed.
pub(super) fn concerned_by_pause(inner: &Inner, id: &ObjectId, changed: &Changed) -> Vec<Key> {
    let mut keys: Vec<Key> =
        changed.claims.iter().flat_map(|whose| of_claim(inner, whose)).collect();
    if changed.matters || !changed.claims.is_empty() {
        keys.extend(inner.workloads.of_scaled_object(&id.0, &id.1).cloned());
    }
    keys.sort();
    keys.dedup();
    keys
}

/// The claims that are found by this name alone: for a target, or on a ScaledObject, that no workload
/// has.
pub(super) fn unfollowed_claims(inner: &Inner, id: &TargetId) -> Vec<Arc<ClaimFacts>> {
    let mut claims = Vec::new();
    if !is_followed(inner, id) {
        claims.extend(inner.claims.of(id).cloned());
    }
    if inner.workloads.of_scaled_object(&id.0, &id.1).next().is_none() {
        claims.extend(inner.claims.without_target(id).cloned());
    }
    claims
}

/// The Rollbacks of a target that nobody will carry out: they have not ended, no workload has the
/// target, and there is no ReleaseTarget, which goes after its workload and may be of an operator
/// that follows by other annotations.
pub(super) fn unfollowed(inner: &Inner, id: &TargetId) -> Vec<Arc<Rollback>> {
    if is_followed(inner, id) || inner.targets.of(id).next().is_some() {
        return Vec::new();
    }
    let is_pending = |rollback: &&Arc<Rollback>| {
        !rollback.status.as_ref().is_some_and(belay_api::rollback::RollbackStatus::is_terminal)
    };
    inner.rollbacks.of(id).filter(is_pending).cloned().collect()
}

/// Whether a workload has this target. Without one nothing is rolled out, whatever Releases say.
pub(super) fn is_followed(inner: &Inner, (namespace, target): &TargetId) -> bool {
    target.parse().is_ok_and(|name| inner.workloads.of(namespace, &name).next().is_some())
}

fn default_name(inner: &Inner, key: &Key, seen: &Seen) -> Option<TargetName> {
    let facts = &seen.workload.as_ref()?.facts;
    let name = TargetName::default_for(&facts.kind, &facts.name).ok()?;
    let is_free = inner.workloads.of(key.namespace(), &name).next().is_none();
    is_free.then_some(name)
}

fn former(
    inner: &Inner,
    key: &Key,
    target: Option<&str>,
    prefix: &AnnotationPrefix,
) -> Vec<Arc<ReleaseTarget>> {
    // The record of an operator that follows by other annotations is its own.
    let is_of_ours = |record: &ReleaseTarget| {
        let status = record.status.as_ref();
        let named = status.and_then(|status| status.annotation_prefix.as_deref());
        named.is_none_or(|named| named == prefix.as_str())
    };
    let all = inner.targets.of_workload(key.namespace(), key.name());
    all.filter(|record| record.metadata.name.as_deref() != target && is_of_ours(record)).collect()
}

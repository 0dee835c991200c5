//! Observe: all facts about one target, from the stores, the shared readings and what is remembered.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use belay_api::{Release, ReleaseTarget, Rollback, annotations::NamespaceAnnotation};
use belay_engine::{
    observed::{
        Fact, Forge, Handicaps, Observed, Registries, Surroundings, TargetRecord, WorkloadFacts,
    },
    selection::ForgeAsk,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::Api;
use tokio::time::Instant;

use crate::{
    forge::{self, Sight},
    images::words,
    key::Key,
    operator::Operator,
    stores::{Seen, TargetId, Workload},
};

/// How long what a namespace says is used.
const NAMESPACE_KEPT: Duration = Duration::from_mins(5);

/// What a pass reads beyond the stores, before it plans.
#[derive(Default)]
pub(crate) struct Ahead {
    /// A workload that the stores do not keep, since it is not followed.
    workload: Option<Fact<Option<WorkloadFacts>>>,
    /// The namespace's annotation `release-limit`.
    release_limit: Option<String>,
    /// The other operator's Lease, if it is held.
    held_leases: Vec<String>,
}

impl Ahead {
    /// Whether another operator's Lease is in the way.
    pub(crate) fn is_held(&self) -> bool {
        !self.held_leases.is_empty()
    }
}

/// A ReleaseTarget as decisions see it.
pub(crate) fn record_of(target: &ReleaseTarget) -> TargetRecord {
    TargetRecord {
        uid: target.metadata.uid.clone().unwrap_or_default(),
        status: target.status.clone().unwrap_or_default(),
    }
}

/// Answers about namespaces, each used for a while.
#[derive(Default)]
pub(crate) struct Namespaces(Mutex<HashMap<String, (Instant, Option<String>)>>);

impl Operator {
    /// Reads what only some passes need, and the stores do not have.
    pub(crate) async fn read_ahead(&self, key: &Key, seen: &Seen) -> Ahead {
        let mut ahead = Ahead::default();
        if seen.workload.is_none() {
            ahead.workload = Some(self.read_workload(key).await);
            return ahead;
        }
        // Nothing is removed while there is only one.
        if seen.releases.len() > 1 {
            ahead.release_limit = self.release_limit(key.namespace()).await;
        }
        let instance =
            seen.target.as_ref().and_then(|target| target.status.as_ref()?.instance.clone());
        if let Some(other) = instance.filter(|other| *other != self.settings.instance)
            && self.sightings.look(&other).await.is_held()
        {
            ahead.held_leases.push(other);
        }
        ahead
    }

    async fn read_workload(&self, key: &Key) -> Fact<Option<WorkloadFacts>> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), key.namespace());
        let read = api.get_opt(key.name()).await;
        let now = self.clock.now();
        match read {
            Ok(found) => {
                let facts = found.map(|found| Workload::any(&found, &self.settings.prefix).facts);
                Fact::known(facts, now)
            }
            Err(error) => Fact::Unknown {
                why: format!("read Deployment {key}: {}", words(&error)),
                read: now,
            },
        }
    }

    /// What the namespace says about how many Releases are kept. Where it cannot be read, the default
    /// counts.
    async fn release_limit(&self, namespace: &str) -> Option<String> {
        let known = {
            let known = self.namespaces.0.lock();
            let known = known.unwrap_or_else(std::sync::PoisonError::into_inner);
            known.get(namespace).cloned()
        };
        if let Some((read, limit)) = known
            && read.elapsed() < NAMESPACE_KEPT
        {
            return limit;
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        let limit = match api.get_metadata_opt(namespace).await {
            Ok(found) => {
                let key = self.settings.prefix.key(NamespaceAnnotation::ReleaseLimit);
                found.and_then(|found| found.metadata.annotations?.remove(&key))
            }
            Err(error) => {
                tracing::debug!(namespace, error = words(&error), "read a namespace");
                None
            }
        };
        let mut known = self.namespaces.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.insert(namespace.to_owned(), (Instant::now(), limit.clone()));
        limit
    }

    /// All facts, at one moment.
    pub(crate) fn observe(&self, key: &Key, seen: &Seen, ahead: &Ahead) -> Observed {
        let now = self.clock.now();
        let workload = match (&seen.workload, &ahead.workload) {
            (Some(workload), _) => Fact::known(Some(workload.facts.clone()), now),
            (None, Some(read)) => read.clone(),
            (None, None) => {
                Fact::Unknown { why: format!("Deployment {key} was not read"), read: now }
            }
        };
        // Of a workload that is not followed there is nothing but the record that goes.
        let record = seen.target.as_ref().or(match &seen.workload {
            Some(_) => None,
            None => seen.former.first(),
        });
        let record = record.map(|record| record_of(record));
        let releases: Vec<Release> = seen.releases.iter().map(|one| (**one).clone()).collect();
        let rollbacks: Vec<Rollback> = seen.rollbacks.iter().map(|one| (**one).clone()).collect();
        let pods = self.memory.peek(key, |of| {
            let workload = &seen.workload.as_ref()?.facts;
            of.pods.as_ref().map(|(_, watch)| watch.facts(workload))
        });
        let not_watched =
            || Fact::Unknown { why: "the pods are not watched".to_owned(), read: now };
        let handicaps = Handicaps {
            pods_listed: self
                .memory
                .peek(key, |of| of.pods.as_ref().and_then(|(_, watch)| watch.handicap()))
                .flatten(),
            no_platforms: !self.images.config.check_platforms,
        };
        let scaler = seen.workload.as_ref().and_then(|one| one.scaled_object.as_ref());
        let scaler = scaler.and_then(|name| {
            let changed = self.stores.scaler_changed(key.namespace(), name);
            self.memory.peek(key, |of| of.scaling.current(name, changed).cloned()).flatten()
        });
        let (images, refused, pause_refused) = self
            .memory
            .peek(key, |of| (of.images.clone(), of.refused.clone(), of.pause_refused.clone()))
            .unwrap_or_default();
        Observed {
            namespace: key.namespace().to_owned(),
            forge: self.forge_fact(key, seen),
            workload,
            target: Fact::known(record, now),
            releases: Fact::known(releases, now),
            rollbacks: Fact::known(rollbacks, now),
            images,
            pods: pods.flatten().unwrap_or_else(not_watched),
            scaler,
            claims: seen.claims.iter().map(|claim| (**claim).clone()).collect(),
            surroundings: Fact::known(self.surroundings(seen, ahead), now),
            refused,
            pause_refused,
            handicaps,
        }
    }

    fn surroundings(&self, seen: &Seen, ahead: &Ahead) -> Surroundings {
        let mut rolling = seen.rolling_elsewhere.clone();
        let is_elsewhere =
            |one: &TargetId| Some(one) != seen.id.as_ref() && self.stores.is_followed(one);
        rolling.extend(self.memory.starting().into_iter().filter(is_elsewhere));
        Surroundings {
            duplicate_of: seen.duplicate_of.clone(),
            scaled_object_of: seen.scaled_object_of.clone(),
            held_leases: ahead.held_leases.clone(),
            rollouts_elsewhere: u32::try_from(rolling.len()).unwrap_or(u32::MAX),
            failed_elsewhere: seen.failed_elsewhere.clone(),
            release_limit: ahead.release_limit.clone(),
            registries: self.registries(seen),
        }
    }

    /// Which registries the target's Releases may be run from.
    fn registries(&self, seen: &Seen) -> Registries {
        if !self.allow.lists_registries() {
            return Registries::OfLiveImages;
        }
        let statuses = seen.releases.iter().filter_map(|release| release.status.as_ref());
        let images = statuses.flat_map(|status| &status.images).map(|image| &image.asked);
        let mut refused: Vec<String> =
            images.filter(|image| !self.allow.may_run(image)).cloned().collect();
        refused.sort();
        refused.dedup();
        Registries::Listed { refused }
    }

    /// What this target must know of GitHub; `None` where it follows nothing.
    pub(crate) fn ask(&self, seen: &Seen) -> Option<ForgeAsk> {
        let workload = seen.workload.as_ref()?;
        ForgeAsk::of(&workload.facts, seen.releases.iter().map(|one| &**one), &self.settings)
    }

    pub(crate) fn sight(&self, key: &Key, ask: &ForgeAsk) -> Sight {
        let repo = ask.repo.as_str();
        let may = |is_private| self.allow.may_follow(key.namespace(), repo, is_private);
        Sight {
            public: may(false),
            private: may(true),
            is_anonymous: self.poller.forge().client().is_anonymous(),
        }
    }

    /// Whether GitHub's answer to what this target must know is still under way, so that the poller
    /// will ask for another pass.
    pub(crate) fn awaits_forge(&self, key: &Key, seen: &Seen) -> bool {
        let Some(ask) = self.ask(seen) else { return false };
        let Ok(repo) = ask.repo.as_str().parse() else { return false };
        let view = self.poller.view(&repo);
        forge::is_under_way(view.as_deref(), &ask, self.sight(key, &ask))
    }

    fn forge_fact(&self, key: &Key, seen: &Seen) -> Fact<Forge> {
        let now = self.clock.now();
        let Some(ask) = self.ask(seen) else {
            return Fact::Unknown { why: "no repository is followed".to_owned(), read: now };
        };
        let view = ask.repo.as_str().parse().ok().and_then(|repo| self.poller.view(&repo));
        forge::fact(view.as_deref(), &ask, self.sight(key, &ask), now)
    }
}

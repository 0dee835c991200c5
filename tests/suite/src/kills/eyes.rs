//! What became of the objects of the namespace, as watches tell it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use belay_api::{
    NamedValue as _, Release, Rollback, conditions::find, gates::Verdict,
    names::PAUSE_FIELD_MANAGER,
};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DynamicObject, ListParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;

use crate::keda;

/// All that was seen.
#[derive(Debug, Clone)]
pub(super) struct Eyes(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The images that each workload had, in order.
    pub(super) images: BTreeMap<String, Vec<String>>,
    /// The Releases as they were last, by name; also those that are culled.
    pub(super) releases: BTreeMap<String, Release>,
    /// The Rollbacks as they were last, by name; also those that were deleted.
    pub(super) rollbacks: BTreeMap<String, Rollback>,
    /// Releases that had both verdicts.
    pub(super) undecided: BTreeSet<String>,
}

impl Eyes {
    /// Begins to watch a namespace. The watches end with the runtime.
    pub(super) fn open(client: &Client, namespace: &str) -> Self {
        let eyes = Self(Arc::default());
        eyes.follow(client, namespace, |seen, workload: Deployment| {
            let pod = workload.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
            let image = pod.and_then(|pod| pod.containers.first()?.image.clone());
            let all = seen.images.entry(workload.name_any()).or_default();
            if let Some(image) = image.filter(|image| all.last() != Some(image)) {
                all.push(image);
            }
        });
        eyes.follow(client, namespace, |seen, release: Release| {
            let name = release.name_any();
            let before = seen.releases.get(&name).and_then(verdict);
            let now = verdict(&release);
            // A Release that is gone back to is judged anew.
            if before == Some(Verdict::Failed) && now == Some(Verdict::Healthy) {
                seen.undecided.insert(name.clone());
            }
            seen.releases.insert(name, release);
        });
        eyes.follow(client, namespace, |seen, rollback: Rollback| {
            seen.rollbacks.insert(rollback.name_any(), rollback);
        });
        eyes
    }

    fn follow<K>(&self, client: &Client, namespace: &str, see: fn(&mut Seen, K))
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::namespaced(client.clone(), namespace);
        let seen = self.clone();
        tokio::spawn(async move {
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let mut objects = std::pin::pin!(events.applied_objects());
            while let Some(object) = objects.next().await {
                // What cannot be watched for a moment is tried again by the watcher.
                if let Ok(object) = object {
                    see(&mut seen.lock(), object);
                }
            }
        });
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// The Release of a target and tag.
    pub(super) fn release(&self, target: &str, tag: &str) -> Option<&Release> {
        self.releases.values().find(|release| {
            let config = release.config();
            config.target_name == target && config.revisions.iter().any(|one| one.id == tag)
        })
    }
}

/// The verdict of a Release's last activation.
pub(super) fn verdict(release: &Release) -> Option<Verdict> {
    let last = release.status.as_ref()?.activations.last()?;
    last.verdict.as_ref().and_then(belay_api::Open::known)
}

/// Whether a condition is True.
pub(super) fn is_true(
    conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    kind: &str,
) -> bool {
    find(conditions, kind)
        .is_some_and(|one| one.status == belay_api::conditions::ConditionStatus::True.as_str())
}

/// The ScaledObjects of a namespace on which a pause of the operator's is held.
pub(super) async fn held(client: &Client, namespace: &str) -> kube::Result<Vec<String>> {
    let resource = keda::Kind::ScaledObject.resource();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let all = api.list(&ListParams::default()).await?;
    let is_held = |object: &&DynamicObject| {
        let mut entries = object.managed_fields().iter();
        entries.any(|entry| entry.manager.as_deref() == Some(PAUSE_FIELD_MANAGER))
    };
    Ok(all.items.iter().filter(is_held).map(kube::ResourceExt::name_any).collect())
}

//! How a [`Snapshot`] is read: the ReleaseTarget first, then everything else side by side.

use belay_api::{Release, ReleaseTarget, Rollback, target::Workload};
use futures::join;
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        core::v1::{Pod, Secret},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
    core::Selector,
};
use serde::de::DeserializeOwned;

use super::{
    api::{Reader, kind_of, typed},
    fact::{Fact, Why},
    snapshot::{Object, Parts, Snapshot},
};
use crate::error::{Class, Error};

/// Helm's annotations of what belongs to a release.
const HELM_NAME: &str = "meta.helm.sh/release-name";
const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// The labels of the chart's Deployment.
const OPERATOR: &str = "app.kubernetes.io/name=belay";

impl Reader {
    /// Everything that `parts` names about the Target `name` of `namespace`. What cannot be read is
    /// unknown in the snapshot, with the reason.
    pub async fn snapshot(&self, namespace: &str, name: &str, parts: Parts) -> Snapshot {
        Box::pin(self.read(namespace, name, parts)).await
    }

    async fn read(&self, namespace: &str, name: &str, parts: Parts) -> Snapshot {
        let mut unread = Vec::new();
        let target = self.get(&kind_of::<ReleaseTarget>(), Some(namespace), name).await;
        if let Err(error) = &target
            && error.class == Class::Unreachable
        {
            // Whoever does not answer the first question does not answer the others.
            return Snapshot {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                target: Fact::Unknown(error.clone().into()),
                ..Snapshot::default()
            };
        }
        let target = target.and_then(|found| found.map(Object::read).transpose());
        let status = target.as_ref().ok().and_then(Option::as_ref);
        let status = status.and_then(|object: &Object<ReleaseTarget>| object.value.status.as_ref());
        let told = status.and_then(|status| status.workload.clone());
        let instance = status.and_then(|status| status.instance.clone());
        let (behind, releases, rollbacks, operator) = join!(
            self.workload_and_below(namespace, name, told, parts),
            self.records::<Release>(namespace, name, "config.targetName", parts.releases),
            self.records::<Rollback>(namespace, name, "spec.toReleaseRef.target", parts.rollbacks),
            self.operator(instance.as_deref(), parts.operator),
        );
        let releases = releases.map(|all| keep(all, &mut unread));
        let rollbacks = rollbacks.map(|all| keep(all, &mut unread));
        Snapshot {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            target: target.into(),
            workload: behind.workload,
            resource: behind.resource,
            releases: releases.map(newest_first),
            rollbacks: rollbacks.map(newest_first),
            replica_sets: behind.replica_sets,
            pods: behind.pods,
            helm: behind.helm,
            operator,
            unread,
        }
    }

    async fn workload_and_below(
        &self,
        namespace: &str,
        name: &str,
        told: Option<Workload>,
        parts: Parts,
    ) -> Behind {
        // Where nobody has said anything yet, a target has the name of its Deployment.
        let told = told.unwrap_or_else(|| Workload {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        });
        let mut behind = Behind::default();
        let workload: Fact<_> = match self.resource_of(&told.api_version, &told.kind).await {
            Ok(kind) => {
                let read = self.get(&kind, Some(namespace), &told.name).await;
                behind.resource = Some(kind);
                read.into()
            }
            Err(error) => Fact::Unknown(error.into()),
        };
        let why = match &workload {
            Fact::Known(Some(found)) => {
                let selector = selector_of(found);
                (behind.replica_sets, behind.pods, behind.helm) = join!(
                    self.replica_sets(namespace, found, selector.as_ref(), parts.replica_sets),
                    self.pods(namespace, selector.as_ref(), parts.pods),
                    self.helm(namespace, found, parts.helm),
                );
                None
            }
            Fact::Known(None) => Some("there is no workload".to_owned()),
            Fact::Unknown(why) => Some(format!("the workload could not be read: {}", why.words())),
        };
        if let Some(why) = why {
            let why = Why::Depends(why);
            behind.replica_sets = unless(parts.replica_sets, &why);
            behind.pods = unless(parts.pods, &why);
            behind.helm = unless(parts.helm, &why);
        }
        behind.workload = workload;
        behind
    }

    /// The workload that a ReleaseTarget names.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn workload(
        &self,
        namespace: &str,
        told: &Workload,
    ) -> Result<Option<DynamicObject>, Error> {
        let kind = self.resource_of(&told.api_version, &told.kind).await?;
        self.get(&kind, Some(namespace), &told.name).await
    }

    /// The resource of a kind; those of Kubernetes itself without asking.
    pub(super) async fn resource_of(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<ApiResource, Error> {
        match (api_version, kind) {
            ("apps/v1", "Deployment") => return Ok(kind_of::<Deployment>()),
            ("apps/v1", "StatefulSet") => return Ok(kind_of::<StatefulSet>()),
            ("apps/v1", "DaemonSet") => return Ok(kind_of::<DaemonSet>()),
            _ => {}
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let client = &self.cluster.client;
        let attempt = format!("look up the resource of {kind} in {api_version}");
        let found = self.within(&attempt, kube::discovery::pinned_kind(client, &gvk)).await?;
        Ok(found.0)
    }

    async fn records<K>(
        &self,
        namespace: &str,
        target: &str,
        field: &str,
        wanted: bool,
    ) -> Fact<Vec<Result<Object<K>, String>>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + OfTarget,
    {
        if !wanted {
            return Fact::default();
        }
        let kind = kind_of::<K>();
        let params = ListParams::default().fields(&format!("{field}={target}"));
        let listed = match self.list(&kind, Some(namespace), &params).await {
            // Fields can be selected since Kubernetes 1.30.
            Err(error) if error.reason.as_deref() == Some("BadRequest") => {
                self.list(&kind, Some(namespace), &ListParams::default()).await
            }
            listed => listed,
        };
        Fact::from(listed).map(|all| {
            all.into_iter()
                .map(|one| {
                    let name = one.name_any();
                    Object::<K>::read(one)
                        .map_err(|error| format!("{} {name}: {}", K::kind(&()), error.message))
                })
                .filter(|one| one.as_ref().map_or(true, |one| one.value.target() == target))
                .collect()
        })
    }

    async fn replica_sets(
        &self,
        namespace: &str,
        workload: &DynamicObject,
        selector: Result<&Selector, &Why>,
        wanted: bool,
    ) -> Fact<Vec<ReplicaSet>> {
        let is_deployment = workload.types.as_ref().is_some_and(|types| types.kind == "Deployment");
        if !wanted || !is_deployment {
            return Fact::default();
        }
        let selector = match selector {
            Ok(selector) => selector,
            Err(why) => return Fact::Unknown(why.clone()),
        };
        let api: Api<ReplicaSet> = Api::namespaced(self.cluster.client.clone(), namespace);
        let params = ListParams::default().labels_from(selector);
        let listed = self.within("list replicasets.apps", api.list(&params)).await;
        let uid = workload.uid();
        Fact::from(listed).map(|all| {
            let is_own = |one: &ReplicaSet| {
                one.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref())
            };
            let mut own: Vec<_> = all.items.into_iter().filter(is_own).collect();
            own.sort_by_key(|one| std::cmp::Reverse(revision(one)));
            own
        })
    }

    async fn pods(
        &self,
        namespace: &str,
        selector: Result<&Selector, &Why>,
        wanted: bool,
    ) -> Fact<Vec<Pod>> {
        if !wanted {
            return Fact::default();
        }
        let selector = match selector {
            Ok(selector) => selector,
            Err(why) => return Fact::Unknown(why.clone()),
        };
        let api: Api<Pod> = Api::namespaced(self.cluster.client.clone(), namespace);
        let params = ListParams::default().labels_from(selector);
        Fact::from(self.within("list pods", api.list(&params)).await).map(|all| all.items)
    }

    /// The newest of Helm's records and, if that is another one, the newest that is deployed.
    async fn helm(
        &self,
        namespace: &str,
        workload: &DynamicObject,
        wanted: bool,
    ) -> Fact<Vec<Secret>> {
        let told = |key: &str| workload.annotations().get(key).cloned();
        let Some(release) = told(HELM_NAME).filter(|_| wanted) else {
            return if wanted { Fact::Known(Vec::new()) } else { Fact::default() };
        };
        let namespace = told(HELM_NAMESPACE).unwrap_or_else(|| namespace.to_owned());
        self.records_of_helm(&namespace, &release).await.into()
    }

    async fn records_of_helm(&self, namespace: &str, release: &str) -> Result<Vec<Secret>, Error> {
        let api: Api<Secret> = Api::namespaced(self.cluster.client.clone(), namespace);
        let params = ListParams::default().labels(&format!("owner=helm,name={release}"));
        let listed = self.within("list secrets", api.list_metadata(&params)).await?;
        let number = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get("version").and_then(|version| version.parse::<u64>().ok())
        };
        let mut records: Vec<_> =
            listed.items.iter().filter_map(|one| Some((number(one.labels())?, one))).collect();
        records.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        let is_deployed = |(_, one): &&(u64, &kube::core::PartialObjectMeta<Secret>)| {
            one.labels().get("status").is_some_and(|status| status == "deployed")
        };
        let newest = records.first();
        let newest_version = newest.map(|(version, _)| *version);
        let deployed = records
            .iter()
            .find(is_deployed)
            .filter(|(version, _)| Some(*version) != newest_version);
        let mut secrets = Vec::new();
        for (_, one) in newest.into_iter().chain(deployed) {
            let name = one.name_any();
            let attempt = format!("get secrets \"{name}\"");
            secrets.push(self.within(&attempt, api.get(&name)).await?);
        }
        Ok(secrets)
    }

    /// The operator's Deployments of all namespaces.
    pub async fn operators(&self) -> Fact<Vec<Deployment>> {
        self.operator(None, true).await
    }

    /// The version of Kubernetes.
    pub async fn server_version(&self) -> Fact<String> {
        let read = self.cluster.client.apiserver_version();
        let version = self.within("get the version of the API server", read).await;
        Fact::from(version).map(|version| version.git_version)
    }

    async fn operator(&self, instance: Option<&str>, wanted: bool) -> Fact<Vec<Deployment>> {
        if !wanted {
            return Fact::default();
        }
        let params = ListParams::default().labels(OPERATOR);
        let client = || self.cluster.client.clone();
        let all: Api<Deployment> = Api::all(client());
        let listed = self.within("list deployments.apps", all.list(&params)).await;
        let near = instance.and_then(|instance| instance.split_once('/')).map(|(space, _)| space);
        let listed = match (listed, near) {
            (Err(error), Some(near)) if error.class == Class::Forbidden => {
                let own: Api<Deployment> = Api::namespaced(client(), near);
                self.within("list deployments.apps", own.list(&params)).await
            }
            (listed, _) => listed,
        };
        Fact::from(listed).map(|all| all.items)
    }
}

/// A workload, and what hangs below it.
#[derive(Default)]
struct Behind {
    workload: Fact<Option<DynamicObject>>,
    resource: Option<ApiResource>,
    replica_sets: Fact<Vec<ReplicaSet>>,
    pods: Fact<Vec<Pod>>,
    helm: Fact<Vec<Secret>>,
}

fn unless<T>(wanted: bool, why: &Why) -> Fact<T> {
    if wanted { Fact::Unknown(why.clone()) } else { Fact::default() }
}

/// What belongs to a target.
trait OfTarget {
    fn target(&self) -> &str;
}

impl OfTarget for Release {
    fn target(&self) -> &str {
        &self.config().target_name
    }
}

impl OfTarget for Rollback {
    fn target(&self) -> &str {
        &self.spec.to_release_ref.target
    }
}

fn keep<T>(all: Vec<Result<T, String>>, unread: &mut Vec<String>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        match one {
            Ok(one) => kept.push(one),
            Err(why) => unread.push(why),
        }
    }
    kept
}

fn newest_first<K: Resource>(mut all: Vec<Object<K>>) -> Vec<Object<K>> {
    all.sort_by(|one, other| {
        let created =
            |object: &Object<K>| object.value.meta().creation_timestamp.as_ref().map(|time| time.0);
        created(other)
            .cmp(&created(one))
            .then_with(|| one.value.meta().name.cmp(&other.value.meta().name))
    });
    all
}

/// The revision that the Deployment controller gave to a ReplicaSet.
pub fn revision(replica_set: &ReplicaSet) -> Option<u64> {
    replica_set.annotations().get("deployment.kubernetes.io/revision")?.parse().ok()
}

/// The selector of a workload's pods.
///
/// # Errors
/// It has none, or one that selects everything.
pub fn selector_of(workload: &DynamicObject) -> Result<Selector, Why> {
    let failed = |why: String| Why::Failed(format!("read the workload's selector: {why}"));
    let told = workload.data.get("spec").and_then(|spec| spec.get("selector"));
    let told = told.ok_or_else(|| failed("it has none".to_owned()))?;
    let told: LabelSelector = typed(told).map_err(|error| failed(error.message.clone()))?;
    let selector = Selector::try_from(told).map_err(|error| failed(error.to_string()))?;
    if selector.selects_all() {
        return Err(failed("it is empty".to_owned()));
    }
    Ok(selector)
}

impl<T: DeserializeOwned> Object<T> {
    /// An object under a type of this version.
    ///
    /// # Errors
    /// It cannot be read as one.
    pub fn read(object: DynamicObject) -> Result<Self, Error> {
        let raw = serde_json::to_value(object)
            .map_err(|error| Error::other(format!("read the object: {error}")))?;
        Ok(Self { value: typed(&raw)?, raw })
    }
}

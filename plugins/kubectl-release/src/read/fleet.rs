//! All Targets of a namespace or of the cluster, with their workloads.

use std::collections::{BTreeMap, BTreeSet};

use belay_api::{AnnotationPrefix, ReleaseTarget};
use futures::future::join_all;
use kube::{
    ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::Value;

use super::{
    api::{Reader, kind_of},
    fact::{Fact, Why},
    snapshot::Object,
};
use crate::{error::Error, facts::live::Live, print::object};

/// How many objects come with one answer.
const PAGE: u32 = 500;

/// So few workloads are read one by one: a namespace may hold many others.
const FEW: usize = 8;

/// A Target in a list.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its ReleaseTarget.
    pub target: Object<ReleaseTarget>,
    /// Its workload; `None` if it is not there.
    pub live: Fact<Option<Live>>,
}

/// A list of Targets.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// By namespace and name.
    pub members: Vec<Member>,
    /// Objects that were listed and that this version does not understand, and why.
    pub unread: Vec<String>,
}

/// What of a Target is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The ReleaseTarget alone.
    Target,
    /// Its workload too.
    Workload,
}

impl Reader {
    /// The Targets of a namespace, or of all.
    ///
    /// # Errors
    /// ReleaseTargets cannot be listed.
    pub async fn fleet(
        &self,
        namespace: Option<&str>,
        selector: Option<&str>,
        depth: Depth,
        prefix: Option<&AnnotationPrefix>,
    ) -> Result<Fleet, Error> {
        let kind = kind_of::<ReleaseTarget>();
        let listed = self.pages(&kind, namespace, selector).await?;
        let mut fleet = Fleet::default();
        for one in listed {
            let name = format!("{}/{}", one.namespace().unwrap_or_default(), one.name_any());
            match Object::<ReleaseTarget>::read(one) {
                Ok(target) => {
                    fleet.members.push(Member { target, live: Fact::default() });
                }
                Err(error) => fleet.unread.push(format!("releasetarget {name}: {}", error.message)),
            }
        }
        if depth == Depth::Workload {
            self.workloads(namespace, &mut fleet.members, prefix).await;
        }
        Ok(fleet)
    }

    /// Lists a kind page by page.
    async fn pages(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Vec<DynamicObject>, Error> {
        let mut params = ListParams::default().limit(PAGE);
        if let Some(selector) = selector {
            params = params.labels(selector);
        }
        let mut all = Vec::new();
        loop {
            let (mut items, next) = self.page(kind, namespace, &params).await?;
            all.append(&mut items);
            match next.filter(|next| !next.is_empty()) {
                Some(next) => params = params.continue_token(&next),
                None => return Ok(all),
            }
        }
    }

    async fn workloads(
        &self,
        namespace: Option<&str>,
        members: &mut [Member],
        prefix: Option<&AnnotationPrefix>,
    ) {
        let mut kinds: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter_mut().enumerate() {
            let status = member.target.value.status.as_ref();
            if let Some(told) = status.and_then(|status| status.workload.as_ref()) {
                let kind = (told.api_version.clone(), told.kind.clone());
                kinds.entry(kind).or_default().push(index);
            } else {
                let why = "the operator has not named its workload yet".to_owned();
                member.live = Fact::Unknown(Why::Depends(why));
            }
        }
        let reads = kinds.iter().map(|((api_version, kind), indexes)| {
            let wanted: BTreeSet<(String, String)> =
                indexes.iter().filter_map(|index| key(members.get(*index)?)).collect();
            async move {
                let found = self.found(api_version, kind, namespace, &wanted).await;
                (indexes, found)
            }
        });
        let found = join_all(reads).await;
        for (indexes, found) in found {
            for index in indexes {
                let Some(member) = members.get_mut(*index) else { continue };
                member.live = match &found {
                    Ok(objects) => {
                        let object = key(member).and_then(|key| objects.get(&key));
                        let prefix = prefix_of(&member.target.value, prefix);
                        Fact::Known(object.map(|object| Live::of(object, &prefix)))
                    }
                    Err(why) => Fact::Unknown(why.clone()),
                };
            }
        }
    }

    async fn found(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        wanted: &BTreeSet<(String, String)>,
    ) -> Result<BTreeMap<(String, String), DynamicObject>, Why> {
        let resource = self.resource_of(api_version, kind).await?;
        let objects = if wanted.len() <= FEW {
            let reads =
                wanted.iter().map(|(namespace, name)| self.get(&resource, Some(namespace), name));
            let read: Result<Vec<_>, Error> = join_all(reads).await.into_iter().collect();
            read?.into_iter().flatten().collect()
        } else {
            self.pages(&resource, namespace, None).await?
        };
        let keyed = objects
            .into_iter()
            .map(|object| ((object.namespace().unwrap_or_default(), object.name_any()), object));
        Ok(keyed.filter(|(key, _)| wanted.contains(key)).collect())
    }
}

/// The prefix of a Target's annotations.
pub fn prefix_of(target: &ReleaseTarget, asked: Option<&AnnotationPrefix>) -> AnnotationPrefix {
    let told = target.status.as_ref().and_then(|status| status.annotation_prefix.as_ref());
    asked.cloned().or_else(|| told?.parse().ok()).unwrap_or_default()
}

fn key(member: &Member) -> Option<(String, String)> {
    let target = &member.target.value;
    let workload = target.status.as_ref()?.workload.as_ref()?;
    Some((target.namespace().unwrap_or_default(), workload.name.clone()))
}

impl Fleet {
    /// As kubectl prints a list.
    pub fn raw(&self) -> Value {
        let items: Vec<Value> = self
            .members
            .iter()
            .map(|member| {
                let mut raw = member.target.raw.clone();
                object::without_managed_fields(&mut raw);
                raw
            })
            .collect();
        object::list(&items)
    }

    /// The lines of `-o name`.
    pub fn names(&self) -> Vec<String> {
        let name = |member: &Member| {
            object::name("belay.dev/v1alpha1", "ReleaseTarget", &member.target.value.name_any())
        };
        self.members.iter().map(name).collect()
    }
}

//! What became of the objects of a namespace, in the order in which the API server stored it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use belay_testkit::wait;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;

use crate::{rollouts::objects::version, states};

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// KEDA's.
    ScaledObject,
    /// What KEDA makes of it.
    Hpa,
    /// What is scaled.
    Deployment,
}

impl Kind {
    const ALL: [Self; 3] = [Self::ScaledObject, Self::Hpa, Self::Deployment];

    /// How it is asked for.
    pub fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::ScaledObject => ("keda.sh", "v1alpha1", "ScaledObject"),
            Self::Hpa => ("autoscaling", "v2", "HorizontalPodAutoscaler"),
            Self::Deployment => ("apps", "v1", "Deployment"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }
}

/// One stored state of an object.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision of the store: those of two kinds can be compared, times of arrival cannot.
    pub version: u64,
    /// What it is of.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Whether this is its end.
    pub gone: bool,
    /// The object.
    pub object: Value,
}

/// The log of a namespace, from when it was opened. Its watches end with the test's runtime.
#[derive(Debug, Clone)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    changes: BTreeMap<(u64, Kind), Change>,
    broken: Option<String>,
}

impl Log {
    /// Begins to watch.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn open(client: &Client, namespace: &str) -> Result<Self> {
        let log = Self(Arc::default());
        for kind in Kind::ALL {
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &kind.resource());
            let list = api.list(&ListParams::default()).await.context("list")?;
            let from = list.metadata.resource_version.unwrap_or_default();
            let log = log.clone();
            tokio::spawn(async move {
                let see = |gone, object| log.see(kind, gone, object);
                let error = states::follow(&api, from, see).await.err();
                let words = error.map_or_else(|| "ended".to_owned(), |error| format!("{error:#}"));
                log.lock().broken = Some(format!("the watch of {kind:?}: {words}"));
            });
        }
        Ok(log)
    }

    /// Waits for the first state of an object, after a revision, that is as `look` wants it.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn first(
        &self,
        after: u64,
        (kind, name): (Kind, &str),
        what: &str,
        look: impl Fn(&Change) -> bool,
    ) -> Result<Change> {
        let found = wait::until(&format!("{kind:?} {name}: {what}"), wait::SOON, || {
            let state = self.lock();
            let of_it =
                || state.changes.values().filter(|one| one.kind == kind && one.name == name);
            let found = of_it().find(|one| one.version > after && look(one)).cloned();
            let last = of_it().next_back().map(|one| one.object.to_string());
            std::future::ready(found.ok_or_else(|| format!("{last:?}; {:?}", state.broken)))
        })
        .await;
        Ok(found?)
    }

    /// All states of an object after a revision, up to now.
    ///
    /// # Errors
    /// When a watch has ended.
    pub fn after(&self, version: u64, kind: Kind, name: &str) -> Result<Vec<Change>> {
        let state = self.lock();
        ensure!(state.broken.is_none(), "{:?}", state.broken);
        let of_it = state.changes.values();
        let of_it =
            of_it.filter(|one| one.kind == kind && one.name == name && one.version > version);
        Ok(of_it.cloned().collect())
    }

    fn see(&self, kind: Kind, gone: bool, object: DynamicObject) -> Result<()> {
        let version = version(object.metadata.resource_version.as_deref())?;
        let name = object.name_any();
        let object = serde_json::to_value(object)?;
        let change = Change { version, kind, name, gone, object };
        self.lock().changes.insert((version, kind), change);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Every state that the objects of a run went through, in the order in which the API server took them.
//!
//! One watch of each kind for all runs: the API server leaves nothing out of a watch, and all kinds
//! share etcd's one count of revisions, so that the events of several watches can be put in order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use anyhow::{Context as _, Result};
use belay_api::{Release, ReleaseTarget, Rollback};
use belay_testkit::{
    cluster::{self, identity::Access},
    wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{keda, operator::World, rollouts, states};

/// The kinds that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// What is rolled.
    Deployment,
    /// Belay's record of a release.
    Release,
    /// Belay's record of a way back.
    Rollback,
    /// Belay's view of a workload.
    Target,
    /// What KEDA scales it by.
    ScaledObject,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 5] =
        [Self::Deployment, Self::Release, Self::Rollback, Self::Target, Self::ScaledObject];

    fn resource(self) -> ApiResource {
        match self {
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::Release => ApiResource::erase::<Release>(&()),
            Self::Rollback => ApiResource::erase::<Rollback>(&()),
            Self::Target => ApiResource::erase::<ReleaseTarget>(&()),
            Self::ScaledObject => keda::Kind::ScaledObject.resource(),
        }
    }

    /// All objects of this kind in a namespace.
    pub(super) fn api(self, client: Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client, namespace, &self.resource())
    }

    /// Its plural, as in paths.
    pub(super) fn plural(self) -> String {
        self.resource().plural
    }
}

/// A state of an object.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The revision of the whole store with which it began.
    pub(super) version: u64,
    /// Its kind.
    pub(super) kind: Kind,
    /// Its name.
    pub(super) name: String,
    /// Whether the object is gone with it.
    pub(super) gone: bool,
    /// The object.
    pub(super) object: Value,
}

#[derive(Default)]
struct History {
    all: Vec<Seen>,
    now: Objects,
}

/// The objects of a namespace, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct Objects(BTreeMap<(Kind, String), Value>);

impl Objects {
    /// All of a kind, by name.
    pub(super) fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        let of_kind = self.0.iter().filter(move |((one, _), _)| *one == kind);
        of_kind.map(|((_, name), object)| (name.as_str(), object))
    }

    /// One of them; null if there is none.
    pub(super) fn one(&self, kind: Kind, name: &str) -> &Value {
        self.0.get(&(kind, name.to_owned())).unwrap_or(&Value::Null)
    }
}

/// A condition of an object as `STATUS/REASON`; empty if there is none.
pub(super) fn condition(object: &Value, kind: &str) -> String {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|one| one["type"] == kind);
    found.map_or_else(String::new, |one| {
        let part = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        format!("{}/{}", part("status"), part("reason"))
    })
}

/// The states of the objects of open namespaces.
#[derive(Default)]
pub(super) struct Timeline(Mutex<State>);

#[derive(Default)]
struct State {
    open: HashMap<String, History>,
    /// Why nothing can be said any more.
    broken: Option<String>,
}

impl Timeline {
    /// The one of this process. It watches from a thread of its own, for the runtime of a test ends
    /// with the test.
    ///
    /// # Errors
    /// What could not be begun.
    pub(super) async fn shared() -> Result<&'static Self> {
        static SHARED: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
        static TIMELINE: OnceLock<Timeline> = OnceLock::new();
        let timeline = TIMELINE.get_or_init(Self::default);
        SHARED
            .get_or_try_init(|| async {
                let world = World::with_keda().await?;
                let access = world.cluster.admin_access().clone();
                let (begun, begins) = tokio::sync::oneshot::channel();
                std::thread::Builder::new().name("timeline".to_owned()).spawn(move || {
                    let outcome = wait::block_on(watch_all(&access, timeline, begun));
                    let why = match outcome {
                        Ok(Ok(())) => "it ended".to_owned(),
                        Ok(Err(error)) => format!("{error:#}"),
                        Err(error) => error.to_string(),
                    };
                    timeline.lock().broken = Some(why);
                })?;
                begins.await.context("begin to watch")
            })
            .await?;
        Ok(timeline)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what happens in a namespace from now on.
    pub(super) fn open(&self, namespace: &str) {
        self.lock().open.insert(namespace.to_owned(), History::default());
    }

    /// Looks at the objects of a namespace.
    pub(super) fn look<T>(&self, namespace: &str, look: impl FnOnce(&Objects) -> T) -> T {
        let state = self.lock();
        let nothing = Objects::default();
        look(state.open.get(namespace).map_or(&nothing, |history| &history.now))
    }

    /// All that happened in a namespace, up to these states of its objects, in order.
    ///
    /// # Errors
    /// What was not seen in time, or why nothing is seen any more.
    pub(super) async fn close(
        &self,
        namespace: &str,
        upto: &[(Kind, String, u64)],
    ) -> Result<Vec<Seen>> {
        wait::until("the watches to catch up", wait::SOON, || async {
            let state = self.lock();
            let seen = state.open.get(namespace).map_or(&[][..], |history| &history.all);
            let behind = upto.iter().find(|(kind, name, version)| {
                !seen
                    .iter()
                    .any(|one| one.kind == *kind && one.name == *name && one.version >= *version)
            });
            match (&state.broken, behind) {
                (None, None) => Ok(()),
                (broken, behind) => Err(format!("{behind:?} was not seen; {broken:?}")),
            }
        })
        .await?;
        let mut seen = self.lock().open.remove(namespace).unwrap_or_default().all;
        seen.sort_by_key(|one| one.version);
        Ok(seen)
    }

    fn see(&self, kind: Kind, gone: bool, object: &DynamicObject) -> Result<()> {
        let seen = Seen {
            version: version(object)?,
            kind,
            name: object.name_any(),
            gone,
            object: serde_json::to_value(object)?,
        };
        let namespace = object.namespace().unwrap_or_default();
        if let Some(open) = self.lock().open.get_mut(&namespace) {
            let key = (seen.kind, seen.name.clone());
            if seen.gone {
                open.now.0.remove(&key);
            } else {
                open.now.0.insert(key, seen.object.clone());
            }
            open.all.push(seen);
        }
        Ok(())
    }
}

async fn watch_all(
    access: &Access,
    timeline: &'static Timeline,
    begun: tokio::sync::oneshot::Sender<()>,
) -> Result<()> {
    let client = Client::try_from(cluster::config(access)?)?;
    let mut watches = JoinSet::new();
    for kind in Kind::ALL {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        let list = api.list(&ListParams::default().limit(1)).await.context("list")?;
        let from = list.metadata.resource_version.unwrap_or_default();
        watches.spawn(async move {
            let see = |gone, object| timeline.see(kind, gone, &object);
            states::follow(&api, from, see).await
        });
    }
    // Whoever asked may have given up.
    let _ = begun.send(());
    match watches.join_next().await {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

/// The revision of an object.
pub(super) fn version(object: &impl Resource) -> Result<u64> {
    rollouts::objects::version(object.meta().resource_version.as_deref())
}

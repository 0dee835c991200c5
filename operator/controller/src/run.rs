//! The operator from start to end: schema, Lease, watches, passes.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use belay_adapters::{
    cluster::{
        Events, Marker, MarkerTerms, PauseKeys, ScaledObject, Scalers, ServerClock, Sightings,
        Writer, WriterSettings, check_crds,
    },
    forge::{Forge, Poller, PollerSettings},
    registry::Registry,
};
use belay_api::{Release, ReleaseTarget, Rollback};
use belay_engine::{plan::plan, settings::Settings};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    admin::Inspect,
    config::{Allow, RegistryConfig},
    images::{Images, words},
    key::Key,
    memory::Memory,
    metrics::Metrics,
    observe::{Ahead, Namespaces},
    operator::Operator,
    pauses,
    queue::{self, bell},
    replay::DebugFile,
    stores::{Kept, Stores},
    watch::follow,
};

/// How soon CRDs that do not fit are looked at again.
const SCHEMA_AGAIN: Duration = Duration::from_secs(10);

/// Everything that an operator is made of: the outside world and the configuration.
pub struct Parts {
    /// The API server.
    pub client: kube::Client,
    /// Its time.
    pub clock: ServerClock,
    /// GitHub.
    pub forge: Forge,
    /// How repositories are polled.
    pub poll: PollerSettings,
    /// Registries.
    pub registry: Registry,
    /// What decisions depend on.
    pub settings: Settings,
    /// Everything else.
    pub options: Options,
}

/// What an operator may see and do beyond decisions.
pub struct Options {
    /// The one namespace that is followed; all where it is absent.
    pub only: Option<String>,
    /// How registries are asked.
    pub registry: RegistryConfig,
    /// What tenants may have asked.
    pub allow: Allow,
    /// Who holds the Lease that marks the instance: the name of the pod.
    pub holder: String,
    /// How long the Lease that marks the instance counts after it was renewed.
    pub lease: Duration,
    /// How many workloads are looked at at a time.
    pub at_once: usize,
    /// Where counts go.
    pub metrics: Arc<Metrics>,
}

/// The operator as others see it: whether it lives, whether it is ready, and what it knows.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    operator: Mutex<Option<Arc<Operator>>>,
    /// Why it is not ready; `None` once it is.
    unready: Mutex<Option<String>>,
}

impl Default for Handle {
    fn default() -> Self {
        let unready = Mutex::new(Some("starting".to_owned()));
        Self(Arc::new(Shared { operator: Mutex::new(None), unready }))
    }
}

impl Handle {
    fn unready(&self, why: Option<String>) {
        *self.0.unready.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn operator(&self) -> Option<Arc<Operator>> {
        self.0.operator.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("ready", &self.ready()).finish_non_exhaustive()
    }
}

impl Inspect for Handle {
    fn alive(&self) -> Result<(), String> {
        Ok(())
    }

    fn ready(&self) -> Result<(), String> {
        match &*self.0.unready.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn debug(&self, namespace: &str, name: &str) -> Option<serde_json::Value> {
        let operator = self.operator()?;
        let key = Key::new(namespace, name);
        let seen = operator.stores.look(&key);
        seen.workload.as_ref()?;
        let observed = operator.observe(&key, &seen, &Ahead::default());
        let now = operator.clock.now();
        let plan = plan(&observed, &operator.settings, now);
        let settings = operator.settings.clone();
        serde_json::to_value(DebugFile { observed, settings, now, plan: Some(plan) }).ok()
    }
}

/// Follows all targets until `stop`; then ends what has begun and gives the Lease back.
///
/// Dropping the future ends everything at once, as a crash would.
///
/// # Errors
/// When the Lease belongs to another operator that lives, or cannot be written at all.
pub async fn operate(
    parts: Parts,
    handle: Handle,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let Parts { client, clock, forge, poll, registry, settings, options } = parts;
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = &mut stop => return Ok(()),
        () = until_the_schema_fits(&client, &settings, &handle) => {}
    }
    let (namespace, name) = settings.instance.split_once('/').unwrap_or_default();
    let terms = MarkerTerms {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        holder: options.holder,
        duration: options.lease,
    };
    let marker = Marker::start(client.clone(), clock.clock(), terms);
    let (bell, requests) = bell();
    let stores = stores(&settings, &bell);
    let poller = {
        let bell = bell.clone();
        Arc::new(Poller::new(forge, poll, move |_, followers| {
            for key in followers.iter().filter_map(|one| one.parse().ok()) {
                bell.ring(&key);
            }
        }))
    };
    let writer = Writer::new(
        client.clone(),
        clock.clock(),
        WriterSettings {
            prefix: settings.prefix.clone(),
            field_manager: settings.field_manager.clone(),
            pause: PauseKeys::of(&settings),
            ..WriterSettings::default()
        },
    );
    let check_platforms = options.registry.check_platforms;
    let images = Images {
        client: client.clone(),
        registry,
        config: options.registry,
        allow: options.allow.clone(),
    };
    let operator = Arc::new(Operator {
        events: Events::new(client.clone(), &settings.field_manager, &settings.instance),
        sightings: Sightings::new(client.clone()),
        scalers: Scalers::new(client.clone(), clock.clock(), PauseKeys::of(&settings)),
        pause: PauseKeys::of(&settings),
        settings,
        clock,
        memory: Memory::default(),
        poller: poller.clone(),
        images,
        writer,
        metrics: options.metrics,
        allow: options.allow,
        namespaces: Namespaces::default(),
        deciding: Mutex::default(),
        beside: Mutex::default(),
        bell: bell.clone(),
        stores: stores.clone(),
        client: client.clone(),
    });
    let (waiting, ringing) = (Arc::downgrade(&operator), bell.clone());
    stores.when_freed(move || {
        for key in waiting.upgrade().iter().flat_map(|operator| operator.memory.waiting()) {
            ringing.ring(&key);
        }
    });
    *handle.0.operator.lock().unwrap_or_else(PoisonError::into_inner) = Some(operator.clone());
    let mut watches = Watches::new(client, options.only, stores.clone());
    watches.follow_scaled_objects();
    watches.follow::<Release>();
    watches.follow::<Rollback>();
    watches.follow::<ReleaseTarget>();
    watches.follow::<Deployment>();
    if check_platforms {
        watches.follow_all::<Node>();
    }
    let Watches { mut tasks, listed, .. } = watches;
    tasks.spawn(pauses::sweep(stores, bell));
    tasks.spawn(async move { poller.run(std::future::pending()).await });
    handle.unready(Some("reading the cluster".to_owned()));
    tokio::select! {
        () = &mut stop => {}
        () = all_listed(listed) => {
            handle.unready(None);
            tracing::info!(targets = operator.stores.keys().len(), "following");
            let passes = queue::run(requests, options.at_once, &mut stop, |key| {
                operator.clone().pass(key)
            });
            tokio::select! {
                () = passes => {}
                Some(ended) = tasks.join_next() => {
                    anyhow::bail!("a watch ended, which it never should: {ended:?}");
                }
            }
        }
    }
    handle.unready(Some("shutting down".to_owned()));
    *handle.0.operator.lock().unwrap_or_else(PoisonError::into_inner) = None;
    if let Err(error) = marker.release().await {
        tracing::warn!(error = words(&error), "give the Lease back; it expires by itself");
    }
    Ok(())
}

fn stores(settings: &Settings, bell: &queue::Bell) -> Arc<Stores> {
    let bell = bell.clone();
    let change = Box::new(move |key: &Key| bell.ring(key));
    Arc::new(Stores::new(settings.prefix.clone(), PauseKeys::of(settings), change))
}

/// Nothing is written while the CRDs in the cluster are older than this operator.
async fn until_the_schema_fits(client: &kube::Client, settings: &Settings, handle: &Handle) {
    let mut told: Option<String> = None;
    let mut looks = tokio::time::interval(SCHEMA_AGAIN);
    loop {
        looks.tick().await;
        let Err(problem) = check_crds(client, &settings.prefix).await else { return };
        let why = words(&problem);
        if told.as_ref() != Some(&why) {
            tracing::error!(problem = why, "the CRDs do not fit; nothing is written");
        }
        handle.unready(Some(why.clone()));
        told = Some(why);
    }
}

/// The watches, and which of them have read their first list.
struct Watches {
    client: kube::Client,
    only: Option<String>,
    stores: Arc<Stores>,
    tasks: JoinSet<()>,
    listed: Vec<watch::Receiver<bool>>,
}

impl Watches {
    fn new(client: kube::Client, only: Option<String>, stores: Arc<Stores>) -> Self {
        Self { client, only, stores, tasks: JoinSet::new(), listed: Vec::new() }
    }

    /// Follows a kind in the namespaces that are followed.
    fn follow<K>(&mut self)
    where
        K: Kept
            + Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
        K::DynamicType: Default + Clone + Eq + std::hash::Hash + Send + Sync + Unpin + Debug,
    {
        let api: Api<K> = match &self.only {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        self.start(api);
    }

    /// Follows ScaledObjects, if the cluster has them.
    fn follow_scaled_objects(&mut self) {
        let api: Api<ScaledObject> = match &self.only {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let (sender, receiver) = watch::channel(false);
        self.listed.push(receiver);
        self.tasks.spawn(pauses::follow(api, self.stores.clone(), sender));
    }

    /// Follows a kind that has no namespaces.
    fn follow_all<K>(&mut self)
    where
        K: Kept + Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        K::DynamicType: Default,
    {
        self.start(Api::<K>::all(self.client.clone()));
    }

    fn start<K>(&mut self, api: Api<K>)
    where
        K: Kept + Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        K::DynamicType: Default,
    {
        let (sender, receiver) = watch::channel(false);
        self.listed.push(receiver);
        self.tasks.spawn(follow(api, self.stores.clone(), sender));
    }
}

async fn all_listed(listed: Vec<watch::Receiver<bool>>) {
    for mut one in listed {
        // The watch itself never ends.
        let _ = one.wait_for(|is_listed| *is_listed).await;
    }
}

//! Follows ScaledObjects, of a kind that the cluster may not have, and looks at all claims from time
//! to time.

use std::{collections::HashSet, sync::Arc, time::Duration};

use belay_adapters::cluster::ScaledObject;
use futures::StreamExt as _;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::{sync::watch, time::Instant};

use crate::{
    images::words,
    queue::Bell,
    stores::{Kept, Stores},
    watch::PAGE,
};

/// How soon is looked again for a kind that the cluster does not have, or does not show.
const AGAIN: Duration = Duration::from_secs(30);
/// How often all claims are looked at, whatever their watch says.
const SWEEP: Duration = Duration::from_hours(1);
/// After so many failures in a row nobody waits for the first list any more.
const PATIENCE: u32 = 3;

/// Why ScaledObjects are not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blind {
    /// The cluster has no such kind.
    NoKeda,
    /// The operator has no right to see them.
    Forbidden,
}

impl Blind {
    fn of(error: &watcher::Error) -> Option<Self> {
        let (watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error)) = error
        else {
            return None;
        };
        match error {
            kube::Error::Api(status) if status.code == 404 => Some(Self::NoKeda),
            kube::Error::Api(status) if status.code == 403 => Some(Self::Forbidden),
            _ => None,
        }
    }
}

/// Follows all ScaledObjects that `api` shows, for as long as it is polled. `listed` turns true once
/// they are known, or it is known that they cannot be.
pub(crate) async fn follow(
    api: Api<ScaledObject>,
    stores: Arc<Stores>,
    listed: watch::Sender<bool>,
) {
    let mut told: Option<Blind> = None;
    loop {
        let blind = until_blind(api.clone(), &stores, &listed, &mut told).await;
        if told != Some(blind) {
            match blind {
                Blind::NoKeda => tracing::info!(
                    "the cluster has no ScaledObjects of keda.sh/v1alpha1: nothing is paused"
                ),
                Blind::Forbidden => tracing::warn!(
                    "ScaledObjects may not be listed and watched: pauses that are left behind are \
                     not found, and nothing is paused; grant list and watch of \
                     scaledobjects.keda.sh, as the chart does"
                ),
            }
            told = Some(blind);
        }
        if blind == Blind::NoKeda {
            // With the kind all of its objects have gone.
            forget_all_but(&stores, &HashSet::new());
        }
        listed.send_replace(true);
        tokio::time::sleep_until(Instant::now() + AGAIN).await;
    }
}

async fn until_blind(
    api: Api<ScaledObject>,
    stores: &Stores,
    listed: &watch::Sender<bool>,
    told: &mut Option<Blind>,
) -> Blind {
    let config = watcher::Config::default().page_size(PAGE);
    let events = watcher(api, config).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut named: HashSet<(String, String)> = HashSet::new();
    let mut failures: u32 = 0;
    loop {
        let Some(event) = events.next().await else { return Blind::NoKeda };
        match event {
            Ok(watcher::Event::Init) => named.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                named.insert(object.id());
                object.put(stores);
            }
            Ok(watcher::Event::InitDone) => {
                // What went while nobody watched.
                forget_all_but(stores, &named);
                named = HashSet::new();
                failures = 0;
                if told.take().is_some() {
                    tracing::info!("ScaledObjects are followed");
                }
                listed.send_replace(true);
            }
            Ok(watcher::Event::Apply(object)) => object.put(stores),
            Ok(watcher::Event::Delete(object)) => {
                let (namespace, name) = object.id();
                ScaledObject::remove(stores, &namespace, &name);
            }
            Err(error) => {
                if let Some(blind) = Blind::of(&error) {
                    return blind;
                }
                let error = words(&error);
                tracing::warn!(kind = "ScaledObject", error, "watch; it is tried again");
                failures = failures.saturating_add(1);
                if failures >= PATIENCE {
                    listed.send_replace(true);
                }
            }
        }
    }
}

fn forget_all_but(stores: &Stores, named: &HashSet<(String, String)>) {
    for (namespace, name) in ScaledObject::names(stores) {
        if !named.contains(&(namespace.clone(), name.clone())) {
            ScaledObject::remove(stores, &namespace, &name);
        }
    }
}

/// Looks at all claims once in a while: those of an operator that lives no more end by time alone.
pub(crate) async fn sweep(stores: Arc<Stores>, bell: Bell) {
    let mut sweeps = tokio::time::interval(SWEEP);
    loop {
        sweeps.tick().await;
        for key in stores.claimed() {
            bell.ring(&key);
        }
    }
}

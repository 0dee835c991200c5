//! Watches that fill the stores.

use std::{collections::HashSet, fmt::Debug, sync::Arc};

use futures::StreamExt as _;
use kube::{
    Api, Resource,
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::stores::{Kept, Stores};

/// Objects of a page. Small, since a page is in memory as a whole while what is kept of it is laid out
/// between: most of a Deployment, or all of it, is dropped at once.
pub(crate) const PAGE: u32 = 25;

/// Follows all objects that `api` shows, for as long as it is polled. `listed` turns true with the
/// first complete list.
pub(crate) async fn follow<K>(api: Api<K>, stores: Arc<Stores>, listed: watch::Sender<bool>)
where
    K: Kept + Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
{
    let config = watcher::Config::default().page_size(PAGE);
    let events = watcher(api, config).default_backoff();
    let mut events = std::pin::pin!(events);
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    // What the list that is being read has named so far.
    let mut named: HashSet<(String, String)> = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => named.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                named.insert(object.id());
                object.put(&stores);
            }
            Ok(watcher::Event::InitDone) => {
                // What went while nobody watched.
                for (namespace, name) in K::names(&stores) {
                    if !named.contains(&(namespace.clone(), name.clone())) {
                        K::remove(&stores, &namespace, &name);
                    }
                }
                named = HashSet::new();
                listed.send_replace(true);
            }
            Ok(watcher::Event::Apply(object)) => object.put(&stores),
            Ok(watcher::Event::Delete(object)) => {
                let (namespace, name) = object.id();
                K::remove(&stores, &namespace, &name);
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(kind, error, "watch; it is tried again");
            }
        }
    }
}

//! In which order the pause and the image came and went: by the resourceVersions of the API server's
//! one store, which both watches share.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, WatchEvent, WatchParams},
};
use tokio::task::JoinHandle;

/// What was seen of an object: its resourceVersion, and what was looked for in it.
type Seen = Arc<Mutex<Vec<(u64, Option<String>)>>>;

/// A watch of one object.
pub(super) struct Timeline {
    seen: Seen,
    watching: JoinHandle<()>,
}

impl Timeline {
    /// Watches the object of this name from now on.
    pub(super) async fn of(
        api: Api<DynamicObject>,
        name: &str,
        look: fn(&DynamicObject) -> Option<String>,
    ) -> Result<Self> {
        let now = api.get(name).await.with_context(|| format!("read {name}"))?;
        let version = now.resource_version().context("no resourceVersion")?;
        let seen = Seen::default();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push((number(&now), look(&now)));
        let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
        let events = api.watch(&params, &version).await?.boxed();
        let kept = Arc::clone(&seen);
        let watching = tokio::spawn(async move {
            let mut events = events;
            while let Ok(Some(event)) = events.try_next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                    let mut seen = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push((number(&object), look(&object)));
                }
            }
        });
        Ok(Self { seen, watching })
    }

    /// The resourceVersion with which a value came first after `since`.
    pub(super) fn when(&self, since: u64, is_it: impl Fn(Option<&str>) -> bool) -> Option<u64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().find(|(at, what)| *at > since && is_it(what.as_deref())).map(|(at, _)| *at)
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn number(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|text| text.parse().ok()).unwrap_or_default()
}

//! What watches saw, with nothing left out.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, WatchEvent, WatchParams},
};

use super::{
    objects::version,
    stage::WEB,
    trim::{Kind, Raw, Seen},
};

/// Longer than any scenario; the server ends a watch then, and a recording must not have a gap.
const WATCH_SECONDS: u32 = 290;

/// Everything that was seen and done.
#[derive(Debug, Default)]
pub struct Log(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    seen: Vec<Seen>,
    trouble: Vec<String>,
}

impl Log {
    /// Notes something that made a version.
    pub fn note(&self, version: u64, what: Raw) {
        self.lock().seen.push(Seen { at: Timestamp::now(), version, what });
    }

    /// Notes something that happens now and makes no version.
    pub fn did(&self, what: &str) {
        let mut log = self.lock();
        let version = log.seen.iter().map(|seen| seen.version).max().unwrap_or_default();
        let what = Raw::Did(what.to_owned());
        log.seen.push(Seen { at: Timestamp::now(), version, what });
    }

    /// All of it.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// When the last thing was seen.
    pub fn last(&self) -> Option<Timestamp> {
        self.lock().seen.last().map(|seen| seen.at)
    }

    /// Every state of the Deployment, in order.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn deployments(&self) -> Result<Vec<Deployment>> {
        let log = self.lock();
        let states = log.seen.iter().filter_map(|seen| match &seen.what {
            Raw::Object { kind: Kind::Deployment, object, .. } => Some(object.clone()),
            _ => None,
        });
        states.map(|one| serde_json::from_value(one).context("read the Deployment")).collect()
    }

    /// The Deployment as last seen.
    ///
    /// # Errors
    /// When none has been seen.
    pub fn deployment(&self) -> Result<Deployment> {
        let log = self.lock();
        let last = log.seen.iter().rev().find_map(|seen| match &seen.what {
            Raw::Object { kind: Kind::Deployment, object, .. } => Some(object.clone()),
            _ => None,
        });
        drop(log);
        serde_json::from_value(last.context("no Deployment was seen")?)
            .context("read the Deployment")
    }

    /// The pods as last seen.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn pods(&self) -> Result<Vec<Pod>> {
        let mut pods = BTreeMap::new();
        for seen in &self.lock().seen {
            match &seen.what {
                Raw::Object { kind: Kind::Pod, name, gone: true, .. } => {
                    pods.remove(name);
                }
                Raw::Object { kind: Kind::Pod, name, object, .. } => {
                    pods.insert(name.clone(), object.clone());
                }
                _ => {}
            }
        }
        pods.into_values().map(|pod| serde_json::from_value(pod).context("read a pod")).collect()
    }

    /// Checks that nothing was missed.
    ///
    /// # Errors
    /// Why a watch has ended.
    pub fn without_gap(&self) -> Result<()> {
        let log = self.lock();
        ensure!(log.trouble.is_empty(), "the recording has a gap: {}", log.trouble.join("; "));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches objects until the watch ends, which is trouble.
pub async fn watch(api: Api<DynamicObject>, kind: Kind, version: String, log: Arc<Log>) {
    let why = match follow(&api, kind, &version, &log).await {
        Ok(()) => "it ended".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    log.lock().trouble.push(format!("the watch of {kind:?}s: {why}"));
}

async fn follow(api: &Api<DynamicObject>, kind: Kind, from: &str, log: &Log) -> Result<()> {
    let params = WatchParams::default()
        .labels(&format!("app={WEB}"))
        .timeout(WATCH_SECONDS)
        .disable_bookmarks();
    let mut events = api.watch(&params, from).await.context("begin")?.boxed();
    while let Some(event) = events.next().await {
        let (gone, object) = match event.context("read an event")? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
            WatchEvent::Deleted(object) => (true, object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => bail!("the API server says {status:?}"),
        };
        let version = version(object.metadata.resource_version.as_deref())?;
        let name = object.name_any();
        let object = serde_json::to_value(object)?;
        log.note(version, Raw::Object { kind, name, gone, object });
    }
    Ok(())
}

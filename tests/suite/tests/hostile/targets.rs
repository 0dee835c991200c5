//! What ReleaseTargets say, by a watch: the last word of each, and when each was first called invalid.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use belay_api::{ReleaseTarget, conditions::find, target::TargetStatus};
use belay_suite::operator::Bed;
use belay_testkit::{TestbedError, wait};
use futures::StreamExt as _;
use kube::{
    ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::task::JoinHandle;

/// What one of them says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// Its last status.
    pub(crate) status: TargetStatus,
    /// The first word that it is invalid.
    pub(crate) invalid: Option<Invalid>,
}

/// That something is invalid.
#[derive(Debug, Clone)]
pub(crate) struct Invalid {
    /// When the watch showed it.
    pub(crate) seen: Instant,
    /// Why it is.
    pub(crate) message: String,
}

type All = Arc<Mutex<HashMap<String, Told>>>;

/// The ReleaseTargets of a namespace. Dropping it ends the watch.
pub(crate) struct Targets {
    all: All,
    watch: JoinHandle<()>,
}

impl Targets {
    pub(crate) fn watch(bed: &Bed) -> Self {
        let all = All::default();
        let (seen, api) = (all.clone(), bed.targets());
        let watch = tokio::spawn(async move {
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Apply(target) | watcher::Event::InitApply(target)) => {
                        note(&seen, &target);
                    }
                    Ok(watcher::Event::Delete(target)) => {
                        lock(&seen).remove(&target.name_any());
                    }
                    Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
                    Err(error) => eprintln!("watch ReleaseTargets: {error}"),
                }
            }
        });
        Self { all, watch }
    }

    /// What one says, if it is there.
    pub(crate) fn of(&self, name: &str) -> Option<Told> {
        lock(&self.all).get(name).cloned()
    }

    /// Whether what one says is what is waited for.
    pub(crate) fn says(&self, name: &str, is_it: impl FnOnce(&Told) -> bool) -> bool {
        lock(&self.all).get(name).is_some_and(is_it)
    }

    /// Whether one runs this image tag and is healthy.
    ///
    /// # Errors
    /// What it says instead.
    pub(crate) fn is_healthy(&self, name: &str, tag: &str) -> Result<(), String> {
        let Some(Told { status, .. }) = self.of(name) else { return Err("nothing".to_owned()) };
        let current = status.current.as_ref().and_then(|current| current.tag.as_deref());
        let is_ready = find(&status.conditions, "Ready").is_some_and(|one| one.status == "True");
        if is_ready && current == Some(tag) { Ok(()) } else { Err(format!("{status:?}")) }
    }

    /// Waits until it is.
    pub(crate) async fn healthy(&self, name: &str, tag: &str) -> Result<(), TestbedError> {
        wait::until(&format!("{name} to be healthy at {tag}"), wait::SOON, || {
            std::future::ready(self.is_healthy(name, tag))
        })
        .await
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn note(all: &All, target: &ReleaseTarget) {
    let status = target.status.clone().unwrap_or_default();
    let mut all = lock(all);
    let told = all.entry(target.name_any()).or_default();
    if told.invalid.is_none()
        && let Some(stalled) = find(&status.conditions, "Stalled")
        && stalled.reason == "InvalidConfig"
    {
        told.invalid = Some(Invalid { seen: Instant::now(), message: stalled.message.clone() });
    }
    told.status = status;
}

fn lock(all: &All) -> MutexGuard<'_, HashMap<String, Told>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

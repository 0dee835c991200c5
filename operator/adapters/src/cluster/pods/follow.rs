//! Keeps a view of the objects of one kind up to date.

use std::{fmt, time::Duration};

use futures::{StreamExt as _, pin_mut};
use kube::{
    Api,
    api::ListParams,
    runtime::watcher::{self, DefaultBackoff, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::view::{View, Watched};

/// How often is listed what may not be watched.
const POLL: Duration = Duration::from_secs(10);
/// After so many lists it is tried to watch again: the right may have been given meanwhile.
const POLLS: u32 = 30;

/// Follows all objects with these labels, for as long as it is polled.
///
/// After each error it begins anew with a list: that shows whether the objects are still known, which
/// a watch that is taken up again does not until something changes.
pub(super) async fn follow<K>(api: Api<K>, selector: &str, view: &View)
where
    K: Watched + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let mut waits = DefaultBackoff::default();
    loop {
        let error = watch(&api, selector, view).await;
        match &error {
            Some(watcher::Error::InitialListFailed(error)) => view.failed::<K>(why::<K>(error)),
            Some(watcher::Error::WatchStartFailed(error)) if is_forbidden(error) => {
                poll(&api, selector, view).await;
                continue;
            }
            _ => {}
        }
        let wait = waits.next().unwrap_or(POLL);
        tokio::time::sleep_until(Instant::now() + wait).await;
    }
}

/// Watches until that fails.
async fn watch<K>(api: &Api<K>, selector: &str, view: &View) -> Option<watcher::Error>
where
    K: Watched + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let events = watcher(api.clone(), watcher::Config::default().labels(selector));
    pin_mut!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => listing.push(object),
            Ok(Event::InitDone) => view.listed(&std::mem::take(&mut listing)),
            Ok(Event::Apply(object)) => view.applied(&object),
            Ok(Event::Delete(object)) => view.deleted(&object),
            Err(error) => return Some(error),
        }
    }
    None
}

/// Lists from time to time, and returns when it is worth trying to watch again.
async fn poll<K>(api: &Api<K>, selector: &str, view: &View)
where
    K: Watched + Clone + DeserializeOwned + fmt::Debug,
{
    let plural = K::PLURAL;
    view.set_handicap::<K>(Some(format!(
        "the operator has no right to watch {plural}, and lists them every {} s",
        POLL.as_secs()
    )));
    let params = ListParams::default().labels(selector);
    for _ in 0..POLLS {
        tokio::time::sleep_until(Instant::now() + POLL).await;
        match api.list(&params).await {
            Ok(list) => view.listed(&list.items),
            Err(error) => view.failed::<K>(why::<K>(&error)),
        }
    }
    view.set_handicap::<K>(None);
}

fn why<K: Watched>(error: &kube::Error) -> String {
    let plural = K::PLURAL;
    match error {
        kube::Error::Api(status) => {
            format!("list {plural}: the API server answered {}: {}", status.code, status.message)
        }
        error => format!("list {plural}: {error}"),
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

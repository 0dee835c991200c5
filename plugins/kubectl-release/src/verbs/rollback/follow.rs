//! Follows a Rollback to its end: one line for each change.

use std::{pin::pin, time::Duration};

use belay_api::{
    Rollback,
    conditions::{RollbackCondition, find},
    reasons::SucceededReason,
    rollback::RollbackStatus,
    values::NamedValue as _,
};
use futures::TryStreamExt as _;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};

use super::super::change::Target;
use crate::{Error, Exit, Session, error::Class, facts::words::explain};

/// Watches until the Rollback has ended, at most `within`.
pub(super) async fn follow(
    target: &Target,
    name: &str,
    within: Duration,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    match tokio::time::timeout(within, watch(target, name, session)).await {
        Ok(end) => end,
        Err(_) => Err(Error::new(
            Class::Timeout,
            format!("rollback.belay.dev/{name} has not ended within {}s", within.as_secs()),
        )
        .hint(format!("it goes on: kubectl release status {} -w", target.said()))),
    }
}

async fn watch(target: &Target, name: &str, session: &mut Session<'_>) -> Result<Exit, Error> {
    let client = target.reader.cluster.client.clone();
    let api: Api<Rollback> = Api::namespaced(client, &target.snapshot.namespace);
    let mut changes = pin!(watcher::watch_object(api, name).default_backoff());
    let mut last = String::new();
    let mut was_there = false;
    loop {
        let found = match changes.try_next().await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(Error::other(format!("the watch of {name} ended"))),
            Err(
                watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error),
            ) => {
                return Err(Error::of_kube("watch rollbacks.belay.dev", &error));
            }
            // A watch that breaks off is opened again.
            Err(_) => continue,
        };
        let Some(rollback) = found else {
            if was_there {
                return Err(Error::new(
                    Class::NotFound,
                    format!("the Rollback {name} was deleted"),
                ));
            }
            continue;
        };
        was_there = true;
        let status = rollback.status.unwrap_or_default();
        let line = line(&status);
        if line != last {
            let time = session.out.now();
            let (space, target) = (&target.snapshot.namespace, &target.snapshot.name);
            session.out.line(format!("{time:.0} {space}/{target} {line}"))?;
            session.out.flush()?;
            last = line;
        }
        if status.is_terminal() {
            return end(target, &status, session);
        }
    }
}

/// What a status says in one line.
fn line(status: &RollbackStatus) -> String {
    let reason = |kind: RollbackCondition| {
        find(&status.conditions, kind.as_str()).map(|one| one.reason.clone())
    };
    let word = if status.is_terminal() {
        reason(RollbackCondition::Succeeded)
    } else {
        reason(RollbackCondition::InProgress)
    };
    let word = word.unwrap_or_else(|| "Pending".to_owned());
    match status.message.as_deref().filter(|message| !message.is_empty()) {
        Some(message) => format!("{word} {message}"),
        None => word,
    }
}

fn end(target: &Target, status: &RollbackStatus, session: &mut Session<'_>) -> Result<Exit, Error> {
    let succeeded = find(&status.conditions, RollbackCondition::Succeeded.as_str());
    if succeeded.is_some_and(|one| one.status == "True") {
        return Ok(Exit::Done);
    }
    let words = succeeded.and_then(|one| explain::<SucceededReason>(&one.reason));
    for command in words.map(|words| words.commands(&target.said(), None)).unwrap_or_default() {
        session.out.note(format!("hint: {command}"))?;
    }
    Ok(Exit::Bad)
}

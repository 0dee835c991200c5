//! Ends every pause that an operator has claimed, before Belay leaves a cluster.

use std::{collections::BTreeMap, io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use belay_adapters::cluster::{
    Class, Found, Place, Scalers, ServerClock, Stopper, WriteError, Writer, WriterSettings,
};
use belay_engine::{
    Timestamp,
    plan::{Precondition, Step},
};
use tokio::time::Instant;

use crate::{images::words, memory::wait_until};

/// The wait between two rounds.
const ROUND: Duration = Duration::from_millis(500);
/// For how long an operator that was told to stop is waited for: a little longer than one of its writes
/// may take.
const STOPPING: Duration = Duration::from_secs(45);
/// How often is looked whether it has.
const LOOK: Duration = Duration::from_millis(200);

/// What is ended, and where.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// The one namespace; all without it.
    pub(crate) namespace: Option<String>,
    /// How pauses are told from others'.
    pub(crate) writer: WriterSettings,
    /// The Deployment of an operator that is stopped first.
    pub(crate) stop: Option<(String, String)>,
    /// For how long is tried.
    pub(crate) timeout: Duration,
}

/// Ends all pauses that are claimed, and those that an earlier operator marked; writes one line for
/// each to `out`. A cluster without KEDA has none.
///
/// # Errors
/// Which pauses are left, and why.
pub(crate) async fn release_pauses(
    client: kube::Client,
    clock: ServerClock,
    task: &Task,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let end = Instant::now() + task.timeout;
    if let Some((namespace, name)) = &task.stop {
        let stopper = Stopper::new(client.clone(), clock.clock());
        stop(&stopper, namespace, name, end).await?;
    }
    let scalers = Scalers::new(client.clone(), clock.clock(), task.writer.pause.clone());
    let writer = Writer::new(client, clock.clock(), task.writer.clone());
    loop {
        let round = round(&scalers, &writer, task, out).await?;
        let is_clear = round.left.is_empty() && round.trouble.is_none();
        if is_clear && round.released == 0 {
            return Ok(());
        }
        // Only a look that finds nothing proves that nothing is left.
        let wait = match round.until {
            _ if is_clear => Duration::ZERO,
            Some(until) => wait_until(clock.now(), until).max(ROUND),
            None => ROUND,
        };
        if Instant::now() + wait >= end {
            return Err(failure(&round));
        }
        tokio::time::sleep_until(Instant::now() + wait).await;
    }
}

/// What one look at all ScaledObjects came to.
#[derive(Debug, Default)]
struct Round {
    released: usize,
    /// Pauses that are left, with the reason.
    left: BTreeMap<String, String>,
    /// Why it is not known which there are.
    trouble: Option<String>,
    /// Before then the API server wants no call.
    until: Option<Timestamp>,
}

impl Round {
    fn note(&mut self, error: &WriteError) {
        if let Class::Throttled { until } = error.class() {
            self.until = self.until.max(Some(until));
        }
    }
}

async fn round(
    scalers: &Scalers,
    writer: &Writer,
    task: &Task,
    out: &mut (dyn Write + Send),
) -> Result<Round> {
    let mut round = Round::default();
    let found = match scalers.claimed(task.namespace.as_deref()).await {
        Ok(found) => found,
        Err(error) => {
            round.note(&error);
            round.trouble = Some(words(&error));
            return Ok(round);
        }
    };
    for one in found {
        let name = format!("{}/{}", one.namespace, one.claim.scaled_object);
        match release(writer, &one).await {
            Ok(()) => {
                round.released += 1;
                writeln!(out, "{name}: {}", what(&one)).context("write the result")?;
            }
            Err(error) => {
                round.note(&error);
                round.left.insert(name, words(&error));
            }
        }
    }
    Ok(round)
}

/// Takes the next thing away that makes a pause ours: what our manager owns, then the marks of an
/// earlier operator, then annotations of ours that somebody else holds.
async fn release(writer: &Writer, found: &Found) -> Result<(), WriteError> {
    let claim = &found.claim;
    let place = Place { namespace: &found.namespace, target: "", workload: None };
    let scaled_object = claim.scaled_object.clone();
    let from =
        Precondition { uid: claim.uid.clone(), resource_version: claim.resource_version.clone() };
    if found.is_owned {
        writer.act(place, &Step::DropPause { scaled_object, from }).await?;
    } else if !claim.marks.is_empty() {
        let marks = claim.marks.clone();
        writer.act(place, &Step::RemovePause { scaled_object, from, marks }).await?;
    } else {
        writer.remove_annotations(place, &scaled_object, &from, &found.left_over).await?;
    }
    Ok(())
}

fn what(found: &Found) -> String {
    if !found.is_owned {
        return if found.claim.marks.is_empty() {
            "removed what was left of a claim".to_owned()
        } else {
            "removed the pause of an earlier operator".to_owned()
        };
    }
    match &found.claim.claim {
        Some(claim) => {
            format!("dropped the pause of Release {}, target {}", claim.release, claim.target)
        }
        None => "dropped the pause of a claim that cannot be read".to_owned(),
    }
}

fn failure(round: &Round) -> anyhow::Error {
    if let Some(trouble) = &round.trouble {
        return anyhow::anyhow!(
            "it is not known whether pauses are left, since ScaledObjects could not be listed: \
             {trouble}"
        );
    }
    if round.left.is_empty() {
        return anyhow::anyhow!(
            "pauses are claimed again as soon as they are dropped: stop the operator first, by --stop"
        );
    }
    let left: Vec<_> = round.left.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    anyhow::anyhow!(
        "pauses are left on these ScaledObjects: {}; run it again, or remove their annotations \
         autoscaling.keda.sh/paused and autoscaling.keda.sh/paused-scale-in",
        left.join(", ")
    )
}

/// Has an operator stop, and waits until it has.
async fn stop(stopper: &Stopper, namespace: &str, name: &str, end: Instant) -> Result<()> {
    loop {
        match stopper.scale_to_none(namespace, name).await {
            Ok(()) => break,
            Err(error) if Instant::now() + ROUND >= end => {
                bail!("stop the operator before its pauses are dropped: {}", words(&error));
            }
            Err(error) => {
                tracing::warn!(error = words(&error), "stop the operator; it is tried again");
                tokio::time::sleep_until(Instant::now() + ROUND).await;
            }
        }
    }
    let patience = (Instant::now() + STOPPING).min(end - ROUND);
    loop {
        let said = match stopper.is_held(namespace, name).await {
            Ok(false) => return Ok(()),
            Ok(true) => "it holds its Lease".to_owned(),
            Err(error) => words(&error),
        };
        if Instant::now() >= patience {
            // One that was killed gives nothing back. Whatever claims again is found by the rounds.
            tracing::warn!(said, "the operator has not said that it stopped; going on");
            return Ok(());
        }
        tokio::time::sleep_until(Instant::now() + LOOK).await;
    }
}

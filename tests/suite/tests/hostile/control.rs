//! How soon this machine and its API server answer somebody who has nothing to do with the operator.
//!
//! A deadline in seconds says something of the operator only on a machine that has time for it. So
//! somebody else writes a ConfigMap and waits for the watch to show it, again and again: on a thread, a
//! runtime and connections of his own, so that nothing that the operator does to its own can excuse
//! it. One such round is half of the operator's way to a word about an object: an event, a write,
//! another write, an event.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use belay_suite::operator::Bed;
use belay_testkit::{Cluster, wait};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{MissedTickBehavior, interval},
};

/// The object that is written.
const NAME: &str = "control";
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(100);
/// A machine is calm when so many rounds in a row took less than [`CALM`].
const ROUNDS: usize = 10;
const CALM: Duration = Duration::from_millis(100);

/// The rounds of a bed. Dropping it ends them.
pub(crate) struct Control {
    rounds: Arc<Mutex<Rounds>>,
    _stop: oneshot::Sender<()>,
}

#[derive(Default)]
struct Rounds {
    /// When each ended, and how long it took.
    done: Vec<(Instant, Duration)>,
    /// When the one that is under way began.
    begun: Option<Instant>,
    /// Why there are no more.
    broken: Option<String>,
}

impl Control {
    pub(crate) fn start(bed: &Bed) -> Result<Self> {
        let rounds = Arc::<Mutex<Rounds>>::default();
        let (stop, stopped) = oneshot::channel();
        let (cluster, namespace, kept) = (bed.world.cluster, bed.namespace.clone(), rounds.clone());
        thread::Builder::new().name(NAME.to_owned()).spawn(move || {
            if let Err(error) = run(cluster, &namespace, &kept, stopped) {
                lock(&kept).broken = Some(format!("{error:#}"));
            }
        })?;
        Ok(Self { rounds, _stop: stop })
    }

    /// The longest of the rounds that ended after `since`, or are under way.
    pub(crate) fn longest(&self, since: Instant) -> Result<Duration> {
        let rounds = lock(&self.rounds);
        ensure!(rounds.broken.is_none(), "the control has ended: {:?}", rounds.broken);
        let done = rounds.done.iter().rev().take_while(|(end, _)| *end >= since);
        let done = done.map(|(_, took)| *took);
        let under_way = rounds.begun.map(|begun| begun.elapsed());
        done.chain(under_way).max().context("there was no round")
    }

    /// Waits until the machine has time.
    pub(crate) async fn calm(&self) -> Result<()> {
        let since = Instant::now();
        wait::until("the machine to have time", wait::SOON, || {
            let rounds = lock(&self.rounds);
            let last = rounds.done.iter().rev().take_while(|(end, _)| *end >= since);
            let last: Vec<_> = last.map(|(_, took)| *took).take(ROUNDS).collect();
            let longest = last.iter().max().copied().unwrap_or_default();
            let is_calm = last.len() == ROUNDS && longest < CALM;
            std::future::ready(if is_calm { Ok(()) } else { Err(format!("{longest:?}")) })
        })
        .await?;
        Ok(())
    }
}

fn run(
    cluster: &Cluster,
    namespace: &str,
    rounds: &Mutex<Rounds>,
    mut stop: oneshot::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let api: Api<ConfigMap> = Api::namespaced(cluster.admin()?, namespace);
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        api.create(&PostParams::default(), &object).await?;
        let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut shown = pin!(watcher(api.clone(), only).default_backoff().applied_objects());
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0_u64.. {
            tokio::select! {
                _ = &mut stop => break,
                _ = ticks.tick() => {}
            }
            let begun = Instant::now();
            lock(rounds).begun = Some(begun);
            tokio::select! {
                _ = &mut stop => break,
                ended = round(&api, &mut shown, number) => ended?,
            }
            let mut rounds = lock(rounds);
            rounds.begun = None;
            rounds.done.push((Instant::now(), begun.elapsed()));
        }
        Ok(())
    })
}

/// Writes once, and waits until that is shown.
async fn round(
    api: &Api<ConfigMap>,
    shown: &mut (impl Stream<Item = Result<ConfigMap, watcher::Error>> + Unpin),
    number: u64,
) -> Result<()> {
    let data = BTreeMap::from([("number", number.to_string())]);
    let patch = Patch::Merge(json!({ "data": data }));
    api.patch(NAME, &PatchParams::default(), &patch).await?;
    loop {
        let object = shown.next().await.context("the watch has ended")?;
        // A watch that broke is begun again, and that takes its time too.
        let Ok(object) = object else { continue };
        let last = object.data.as_ref().and_then(|data| data.get("number"));
        if last == Some(&number.to_string()) {
            return Ok(());
        }
    }
}

fn lock(rounds: &Mutex<Rounds>) -> MutexGuard<'_, Rounds> {
    rounds.lock().unwrap_or_else(PoisonError::into_inner)
}

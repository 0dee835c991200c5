//! When a watch looks again: as soon as something is said to have changed, but not more often than a
//! reader can follow; and from time to time where nothing can be said, because watches are refused.

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

/// How often ages are counted on.
const TICK: Duration = Duration::from_secs(1);

/// Something happened, or a watch cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Changed,
    Refused,
}

/// What it is time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// To end.
    Over,
    /// To read anew.
    Read,
    /// To count ages on.
    Tick,
}

/// How often a watch reads at most, and where watches are refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// The least time between two reads.
    pub(super) pace: Duration,
    /// How many seconds pass between reads where watches are refused.
    pub(super) poll: u32,
}

pub(super) struct Pulse {
    signals: BoxStream<'static, Signal>,
    rate: Rate,
    /// Whether changes may go unsaid.
    polls: bool,
    tick: Interval,
    ticks: u32,
    deadline: Option<Instant>,
}

impl Pulse {
    /// Of these signals, until `timeout` has passed.
    pub(super) fn new(
        signals: BoxStream<'static, Signal>,
        rate: Rate,
        timeout: Option<Duration>,
    ) -> Self {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.reset();
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        Self { signals, rate, polls: false, tick, ticks: 0, deadline }
    }

    /// Reads from time to time from now on, if `is_needed`.
    pub(super) fn poll_if(&mut self, is_needed: bool) {
        self.polls |= is_needed;
    }

    /// Waits for the next.
    pub(super) async fn next(&mut self) -> Beat {
        let deadline = self.deadline;
        let over = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = over => Beat::Over,
            signal = self.signals.next() => {
                self.polls |= signal != Some(Signal::Changed);
                Beat::Read
            }
            _ = self.tick.tick() => {
                self.ticks = self.ticks.wrapping_add(1);
                let is_due = self.polls && self.ticks.is_multiple_of(self.rate.poll);
                if is_due { Beat::Read } else { Beat::Tick }
            }
        }
    }

    /// Waits until the next read may begin, after one that began at `read`. It answers all that was said
    /// meanwhile.
    pub(super) async fn keep_pace(&mut self, read: Instant) {
        sleep_until(read + self.rate.pace).await;
        while let Some(Some(signal)) = self.signals.next().now_or_never() {
            self.polls |= signal != Signal::Changed;
        }
    }
}

/// What is said of changes of a kind. After a refusal nothing more is: it would be the same.
pub(super) fn changes<K>(api: Api<K>, config: watcher::Config) -> BoxStream<'static, Signal>
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + 'static + serde::de::DeserializeOwned,
{
    watcher(api, config)
        .default_backoff()
        .map(|event| match event {
            Ok(_) => Signal::Changed,
            Err(_) => Signal::Refused,
        })
        .boxed()
}

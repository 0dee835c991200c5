//! What the operator remembers of each workload between passes.
//!
//! Nothing here is needed for the next step: a process that lost it reads it again.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use belay_adapters::{
    cluster::{PodWatch, PodsOf},
    forge::Followed,
};
use belay_api::target::TargetStatus;
use belay_engine::{
    Timestamp,
    observed::{Fact, ImageAnswer, PauseRefused, Refused, Scaler},
    plan::Notice,
};
use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{key::Key, stores::TargetId};

/// How long an answer of a registry is kept that no pass has asked for again.
const ANSWER_KEPT: SignedDuration = SignedDuration::from_hours(2);
/// The first wait after a write that failed; doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// All of it.
#[derive(Default)]
pub(crate) struct Memory(Mutex<All>);

#[derive(Default)]
struct All {
    workloads: HashMap<Key, OfWorkload>,
    /// The target of each workload whose rollout was decided and does not show in a Release yet.
    starting: HashMap<Key, TargetId>,
    /// Workloads whose next step depends on other targets.
    waiting_for_others: HashSet<Key>,
}

/// What is remembered of one workload.
#[derive(Default)]
pub(crate) struct OfWorkload {
    /// What is read of GitHub for it.
    pub(crate) followed: Option<Followed>,
    /// The answer to the last apply, if it was refused.
    pub(crate) refused: Option<Refused>,
    /// The answer to the last write of a pause, if it was refused.
    pub(crate) pause_refused: Option<PauseRefused>,
    /// The registry's answers, by image.
    pub(crate) images: BTreeMap<String, Fact<ImageAnswer>>,
    /// Images that the registry is being asked for.
    pub(crate) asking: HashSet<String>,
    /// What was read of its ScaledObject.
    pub(crate) scaling: Scaling,
    /// The pull secrets and the ServiceAccount that registries are asked with.
    asked_with: Option<(Vec<String>, String)>,
    /// The watch of its pods, while it is open, and of which pods it is.
    pub(crate) pods: Option<(PodsOf, PodWatch)>,
    /// Whether it was told that its pods cannot be watched.
    pub(crate) handicap_told: bool,
    /// Since when the pause was claimed that was proven last, so that it counts once.
    pub(crate) proven: Option<Timestamp>,
    /// What the last pass wanted to tell, so that it is told once.
    pub(crate) told: Vec<Notice>,
    /// Writes that failed in a row.
    failures: u32,
    /// The last status that the API server did not keep as it was sent.
    unkept: Option<TargetStatus>,
}

/// What was read of a ScaledObject.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) scaled_object: String,
    pub(crate) found: Fact<Scaler>,
    /// When the read began.
    pub(crate) begun: Instant,
}

/// What is known of a target's ScaledObject.
#[derive(Debug, Default)]
pub(crate) struct Scaling {
    /// What was read last.
    pub(crate) known: Option<Reading>,
    /// The one that is being read, until it is another than it was, and by which look.
    pub(crate) looking: Option<(String, u64)>,
    /// Looks that have begun.
    pub(crate) looks: u64,
}

impl Memory {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on what is remembered of one workload.
    pub(crate) fn of<T>(&self, key: &Key, work: impl FnOnce(&mut OfWorkload) -> T) -> T {
        work(self.all().workloads.entry(key.clone()).or_default())
    }

    /// Works on it, unless nothing is remembered.
    pub(crate) fn peek<T>(&self, key: &Key, work: impl FnOnce(&OfWorkload) -> T) -> Option<T> {
        self.all().workloads.get(key).map(work)
    }

    /// The same, to change it.
    pub(crate) fn with<T>(&self, key: &Key, work: impl FnOnce(&mut OfWorkload) -> T) -> Option<T> {
        self.all().workloads.get_mut(key).map(work)
    }

    /// Forgets a workload that is not followed any more.
    pub(crate) fn forget(&self, key: &Key) {
        let mut all = self.all();
        all.workloads.remove(key);
        all.starting.remove(key);
        all.waiting_for_others.remove(key);
    }

    /// Remembers the target of a workload whose rollout begins; none once it shows by itself, or the
    /// workload has no target any more.
    pub(crate) fn set_starting(&self, key: &Key, target: Option<&TargetId>) {
        let mut all = self.all();
        if let Some(target) = target {
            all.starting.insert(key.clone(), target.clone());
        } else {
            all.starting.remove(key);
        }
    }

    /// Whether a workload's rollout has begun that does not show yet.
    pub(crate) fn is_starting(&self, key: &Key) -> bool {
        self.all().starting.contains_key(key)
    }

    /// The targets whose rollouts have begun and do not show yet.
    pub(crate) fn starting(&self) -> Vec<TargetId> {
        self.all().starting.values().cloned().collect()
    }

    /// Remembers whether a workload waits for what others do.
    pub(crate) fn set_waiting(&self, key: &Key, is_waiting: bool) {
        let mut all = self.all();
        if is_waiting {
            all.waiting_for_others.insert(key.clone());
        } else {
            all.waiting_for_others.remove(key);
        }
    }

    /// Those that wait for what others do.
    pub(crate) fn waiting(&self) -> Vec<Key> {
        self.all().waiting_for_others.iter().cloned().collect()
    }
}

impl OfWorkload {
    /// Keeps what the registry said, and drops what nobody has asked for lately.
    pub(crate) fn answer(&mut self, image: &str, answer: Fact<ImageAnswer>) {
        self.asking.remove(image);
        let now = answer.read();
        self.images.retain(|_, one| now.duration_since(one.read()) < ANSWER_KEPT);
        self.images.insert(image.to_owned(), answer);
    }

    /// With other credentials a registry that refused may answer otherwise: only what is there stays.
    pub(crate) fn ask_with(&mut self, pull_secrets: &[String], service_account: &str) {
        let new = (pull_secrets.to_vec(), service_account.to_owned());
        if self.asked_with.as_ref() != Some(&new) {
            let is_there = |answer: &Fact<ImageAnswer>| {
                matches!(answer.value(), Some(ImageAnswer::Present { .. }))
            };
            self.images.retain(|_, answer| is_there(answer));
            self.asked_with = Some(new);
        }
    }

    /// Counts a write that failed; returns how long to wait before the next.
    pub(crate) fn failed(&mut self) -> Duration {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT)
    }

    /// A write succeeded.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Remembers a status that was not kept as it was sent.
    pub(crate) fn settle(&mut self, unkept: Option<TargetStatus>) {
        self.unkept = unkept;
    }

    /// Whether a status was sent before and not kept: it is not sent again until it is another.
    pub(crate) fn is_settled(&self, status: &TargetStatus) -> bool {
        self.unkept.as_ref() == Some(status)
    }

    /// Keeps an apply that was refused, counting those in a row.
    pub(crate) fn refuse(&mut self, new: Refused) {
        let times = self
            .refused
            .as_ref()
            .filter(|old| old.release == new.release && old.attempt == new.attempt)
            .map_or(0, |old| old.times);
        self.refused = Some(Refused { times: times.saturating_add(1), ..new });
    }

    /// Keeps a write of a pause that was refused, counting those in a row.
    pub(crate) fn refuse_pause(&mut self, new: PauseRefused) {
        let is_same = |old: &&PauseRefused| {
            old.scaled_object == new.scaled_object && old.is_drop == new.is_drop
        };
        let times = self.pause_refused.as_ref().filter(is_same).map_or(0, |old| old.times);
        self.pause_refused = Some(PauseRefused { times: times.saturating_add(1), ..new });
    }

    /// Which notices of a pass are new.
    pub(crate) fn news(&mut self, notices: Vec<Notice>) -> Vec<Notice> {
        let news = notices.iter().filter(|one| !self.told.contains(one)).cloned().collect();
        self.told = notices;
        news
    }
}

/// The first wait of a workload whose write failed at `now`, until `until`.
pub(crate) fn wait_until(now: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(target: &str) -> TargetId {
        ("shop".to_owned(), target.to_owned())
    }

    #[test]
    fn a_rollout_that_begins_is_forgotten_with_its_workload() {
        let memory = Memory::default();
        let (web, api) = (Key::new("shop", "web"), Key::new("shop", "api"));
        memory.set_starting(&web, Some(&id("web")));
        memory.set_starting(&api, Some(&id("api")));
        memory.forget(&web);
        assert_eq!(memory.starting(), [id("api")]);
        assert!(!memory.is_starting(&web) && memory.is_starting(&api));
    }

    #[test]
    fn a_workload_begins_one_rollout_at_a_time_whatever_its_target_is_called() {
        let memory = Memory::default();
        let web = Key::new("shop", "web");
        memory.set_starting(&web, Some(&id("web")));
        memory.set_starting(&web, Some(&id("renamed")));
        assert_eq!(memory.starting(), [id("renamed")]);
        memory.set_starting(&web, None);
        assert_eq!(memory.starting(), []);
    }
}

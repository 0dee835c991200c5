//! One reading of each repository, for all who follow it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use belay_api::gates::ForgeBudget;
use futures::{StreamExt as _, stream::FuturesUnordered};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{
    Forge, Outcome, Pace, Reading, RepoSlug, Unknown, Wants, next_poll, reading::Requests,
};
use crate::clock::between;

/// The longest sleep: a clock that is set ahead is noticed within it.
const NAP: Duration = Duration::from_mins(1);

/// How a [`Poller`] works.
#[derive(Debug, Clone, Copy)]
pub struct PollerSettings {
    /// The shortest interval between two readings of a repository.
    pub interval: Duration,
    /// How many repositories are read at a time.
    pub at_once: usize,
    /// Makes the random part of the intervals this process's own.
    pub seed: u64,
}

impl Default for PollerSettings {
    fn default() -> Self {
        Self { interval: Duration::from_mins(1), at_once: 4, seed: 0 }
    }
}

/// What somebody follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The repository.
    pub repo: RepoSlug,
    /// What is wanted of it.
    pub wants: Wants,
}

/// The last reading of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What it says.
    pub reading: Reading,
    /// When the next one is due.
    pub next: Timestamp,
    /// Whether little was left of the credential's rate limit then.
    pub is_low: bool,
}

/// Called with each repository whose reading says something else than the one before, and its
/// followers.
type OnChange = Box<dyn Fn(&RepoSlug, &[String]) + Send + Sync>;

/// Reads repositories for their followers. It works while [`Poller::run`] does.
pub struct Poller {
    forge: Forge,
    settings: PollerSettings,
    state: Mutex<State>,
    wake: Notify,
    on_change: OnChange,
}

#[derive(Default)]
struct State {
    followers: BTreeMap<String, Followed>,
    repositories: BTreeMap<RepoSlug, Entry>,
    totals: Totals,
}

/// Sums of all requests since the start, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Readings.
    pub readings: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// Of these with 304.
    pub not_modified: u64,
    /// When a repository was last read without trouble.
    pub last_success: Option<Timestamp>,
}

struct Entry {
    wants: Wants,
    /// None while it is being read.
    due: Option<Timestamp>,
    /// More is wanted than the reading under way will say.
    again: bool,
    failures: u32,
    readings: u64,
    view: Option<Arc<View>>,
}

impl Poller {
    /// A poller that nobody uses yet. `on_change` must return at once.
    pub fn new(
        forge: Forge,
        settings: PollerSettings,
        on_change: impl Fn(&RepoSlug, &[String]) + Send + Sync + 'static,
    ) -> Self {
        Self {
            forge,
            settings,
            state: Mutex::default(),
            wake: Notify::new(),
            on_change: Box::new(on_change),
        }
    }

    /// What it reads with.
    pub fn forge(&self) -> &Forge {
        &self.forge
    }

    /// Somebody follows this now, and nothing else. What nobody has read yet is read at once.
    pub fn follow(&self, follower: &str, followed: Followed) {
        let now = self.forge.client().now();
        let mut state = self.state();
        let before = state.followers.insert(follower.to_owned(), followed.clone());
        let left = before.map(|before| before.repo);
        let gone = state.settle(left, now);
        state.settle(Some(followed.repo), now);
        drop(state);
        self.leave(gone);
        self.wake.notify_one();
    }

    /// Somebody follows nothing any more.
    pub fn unfollow(&self, follower: &str) {
        let now = self.forge.client().now();
        let mut state = self.state();
        let before = state.followers.remove(follower);
        let gone = state.settle(before.map(|before| before.repo), now);
        drop(state);
        self.leave(gone);
    }

    fn leave(&self, gone: Option<RepoSlug>) {
        if let Some(repo) = gone {
            self.forge.forget(&repo);
        }
    }

    /// The last reading of a repository, if there is one.
    pub fn view(&self, repo: &RepoSlug) -> Option<Arc<View>> {
        self.state().repositories.get(repo)?.view.clone()
    }

    /// How many requests there were.
    pub fn totals(&self) -> Totals {
        self.state().totals
    }

    /// Reads until `stop` ends. Readings under way are dropped then.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut running = FuturesUnordered::new();
        loop {
            let free = self.settings.at_once.max(1).saturating_sub(running.len());
            let (due, next) = self.state().take(self.forge.client().now(), free);
            for (repo, wants) in due {
                running.push(async move {
                    let reading = self.forge.read(&repo, &wants).await;
                    (repo, wants, reading)
                });
            }
            // A full house wakes when a reading ends.
            let nap = if running.len() < self.settings.at_once.max(1) { next } else { None };
            tokio::select! {
                () = &mut stop => return,
                Some((repo, wants, reading)) = running.next() => {
                    self.record(&repo, &wants, reading);
                }
                () = self.woken(nap) => {}
            }
        }
    }

    /// Ends when somebody follows something, or the time has come.
    async fn woken(&self, time: Option<Timestamp>) {
        let now = self.forge.client().now();
        let wait = time.map_or(NAP, |time| between(now, time).min(NAP));
        let _ = tokio::time::timeout(wait, self.wake.notified()).await;
    }

    fn record(&self, repo: &RepoSlug, wants: &Wants, reading: Reading) {
        let now = self.forge.client().now();
        let client = self.forge.client();
        let pace = |state: &State| Pace {
            interval: self.settings.interval,
            anonymous: client.is_anonymous(),
            repositories: u32::try_from(state.repositories.len()).unwrap_or(u32::MAX),
            requests: reading.requests.all,
            quota: client.budget().quota(now),
        };
        let is_low = client.budget().level(now).0 == ForgeBudget::Low;
        let mut state = self.state();
        state.totals.add(&reading);
        let pace = pace(&state);
        let Some(entry) = state.repositories.get_mut(repo) else {
            // Nobody follows it any more, and this reading has remembered it again.
            drop(state);
            self.forge.forget(repo);
            return;
        };
        entry.readings += 1;
        let outcome = entry.outcome(&reading);
        let seed = seed(self.settings.seed, repo, entry.readings);
        let next = next_poll(now, outcome, &pace, seed);
        let more =
            std::mem::take(&mut entry.again) && !matches!(outcome, Outcome::Throttled { .. });
        let next = if more { now } else { next };
        entry.due = Some(next);
        let changed = match &entry.view {
            Some(view) => view.is_low != is_low || !view.reading.says_the_same(&reading),
            None => true,
        };
        tracing::debug!(%repo, %next, changed, ?wants, "read a repository");
        entry.view = Some(Arc::new(View { reading, next, is_low }));
        if changed {
            let followers = state.followers_of(repo);
            drop(state);
            (self.on_change)(repo, &followers);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl State {
    fn followers_of(&self, repo: &RepoSlug) -> Vec<String> {
        let followers = self.followers.iter().filter(|(_, followed)| followed.repo == *repo);
        followers.map(|(follower, _)| follower.clone()).collect()
    }

    /// Makes the entry of a repository what its followers want. Returns one that has none any more.
    fn settle(&mut self, repo: Option<RepoSlug>, now: Timestamp) -> Option<RepoSlug> {
        let repo = repo?;
        let followers = self.followers.values().filter(|followed| followed.repo == repo);
        let wants = followers.map(|followed| &followed.wants).fold(None, |all, wants| {
            let mut all: Wants = all.unwrap_or_default();
            all.join(wants);
            Some(all)
        });
        let Some(wants) = wants else {
            self.repositories.remove(&repo);
            return Some(repo);
        };
        let entry = self.repositories.entry(repo).or_insert_with(|| Entry {
            wants: Wants::default(),
            due: Some(now),
            again: false,
            failures: 0,
            readings: 0,
            view: None,
        });
        let mut joined = entry.wants.clone();
        joined.join(&wants);
        let more = joined != entry.wants;
        entry.wants = wants;
        if more {
            match &mut entry.due {
                // What GitHub asked for holds for the additional request as well; the client sees to
                // that, and says so in the reading.
                Some(due) => *due = now,
                None => entry.again = true,
            }
        }
        None
    }

    /// Takes up to `free` repositories that are due; also says when the next one is.
    fn take(&mut self, now: Timestamp, free: usize) -> (Vec<(RepoSlug, Wants)>, Option<Timestamp>) {
        let mut order: Vec<_> = self
            .repositories
            .iter()
            .filter_map(|(repo, entry)| Some((entry.due?, repo.clone())))
            .collect();
        order.sort();
        let is_due = |(due, _): &&(Timestamp, RepoSlug)| *due <= now;
        let taken = order.iter().take_while(is_due).take(free).count();
        let next = order.get(taken).map(|(due, _)| *due);
        let due = order.into_iter().take(taken).filter_map(|(_, repo)| {
            let entry = self.repositories.get_mut(&repo)?;
            entry.due = None;
            Some((repo, entry.wants.clone()))
        });
        (due.collect(), next)
    }
}

impl Totals {
    fn add(&mut self, reading: &Reading) {
        let Requests { all, not_modified } = reading.requests;
        self.readings += 1;
        self.requests += u64::from(all);
        self.not_modified += u64::from(not_modified);
        if reading.problem().is_none() {
            self.last_success = self.last_success.max(Some(reading.at));
        }
    }
}

impl Entry {
    fn outcome(&mut self, reading: &Reading) -> Outcome {
        match reading.problem() {
            // A repository that is hidden may appear at any time; that is no failure of GitHub's.
            None | Some(Unknown::Hidden) => {
                self.failures = 0;
                Outcome::Read
            }
            Some(Unknown::Throttled { until }) => Outcome::Throttled { until: *until },
            Some(Unknown::Denied { .. } | Unknown::Failed { .. }) => {
                self.failures = self.failures.saturating_add(1);
                Outcome::Failed { in_a_row: self.failures }
            }
        }
    }
}

fn seed(own: u64, repo: &RepoSlug, readings: u64) -> u64 {
    let name = repo.as_str().bytes().fold(own, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte.to_ascii_lowercase()))
    });
    name.wrapping_add(readings.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

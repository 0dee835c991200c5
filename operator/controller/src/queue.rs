//! When which workload is looked at: one pass at a time for each, as soon as something asks for it.

use std::{
    collections::{HashSet, VecDeque},
    panic::AssertUnwindSafe,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use crate::key::Key;

/// The longest time until a workload that waits for a time is looked at again. Timers stand still
/// while a machine sleeps, so no time is waited for at one stretch.
const LONGEST_NAP: Duration = Duration::from_mins(15);

/// Asks for passes.
#[derive(Debug, Clone)]
pub(crate) struct Bell(mpsc::UnboundedSender<ScheduleRequest<Key>>);

/// Where the bell rings.
pub(crate) type Requests = mpsc::UnboundedReceiver<ScheduleRequest<Key>>;

/// A bell and its other end.
pub(crate) fn bell() -> (Bell, Requests) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Bell(sender), receiver)
}

impl Bell {
    /// Asks for a pass as soon as possible.
    pub(crate) fn ring(&self, key: &Key) {
        self.ring_in(key, Duration::ZERO);
    }

    /// Asks for a pass after `wait`. Of several requests for one workload the earliest counts.
    pub(crate) fn ring_in(&self, key: &Key, wait: Duration) {
        let run_at = Instant::now() + wait.min(LONGEST_NAP);
        // Nobody listens any more while the operator ends.
        let _ = self.0.send(ScheduleRequest { message: key.clone(), run_at });
    }
}

/// Runs `pass` for every workload that is asked for, at most `at_once` at a time and never two for
/// one workload, until `stop`; then waits for those that have begun.
pub(crate) async fn run<F, P>(
    requests: Requests,
    at_once: usize,
    stop: impl Future<Output = ()>,
    pass: F,
) where
    F: Fn(Key) -> P,
    P: Future<Output = ()> + Send + 'static,
{
    let requests = stream::unfold(requests, |mut requests| async move {
        requests.recv().await.map(|request| (request, requests))
    });
    let mut due = std::pin::pin!(scheduler(requests));
    let mut stop = std::pin::pin!(stop);
    let mut running: JoinSet<Key> = JoinSet::new();
    let mut busy: HashSet<Key> = HashSet::new();
    // Whose time has come, in that order. The scheduler could hold them back itself, but hands them out
    // in none: one without luck would wait for as long as others ask again and again.
    let mut line: VecDeque<Key> = VecDeque::new();
    let mut in_line: HashSet<Key> = HashSet::new();
    loop {
        while busy.len() < at_once.max(1)
            && let Some(first) = line.iter().position(|key| !busy.contains(key))
            && let Some(key) = line.remove(first)
        {
            in_line.remove(&key);
            busy.insert(key.clone());
            let work = pass(key.clone());
            running.spawn(async move {
                // One bad object must not stop the others; the panic itself is on stderr.
                if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                    tracing::error!(workload = %key, "a pass panicked; this is a bug of belay");
                }
                key
            });
        }
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(ended) = running.join_next(), if !running.is_empty() => {
                if let Ok(key) = ended {
                    busy.remove(&key);
                }
            }
            key = due.next() => {
                let Some(key) = key else { break };
                if in_line.insert(key.clone()) {
                    line.push_back(key);
                }
            }
        }
    }
    while running.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    fn key(name: &str) -> Key {
        Key::new("shop", name)
    }

    /// A queue whose passes wait until they are let go, and say how many have begun and ended.
    struct Watched {
        begun: mpsc::UnboundedReceiver<Key>,
        go: Arc<Semaphore>,
        at_once: Arc<AtomicUsize>,
        stop: oneshot::Sender<()>,
        run: tokio::task::JoinHandle<()>,
        bell: Bell,
    }

    fn watched(at_once: usize) -> Watched {
        let (bell, requests) = bell();
        let (begin, begun) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (go, running) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (gate, count) = (go.clone(), running.clone());
        let run = tokio::spawn(async move {
            let stop = async { drop(stopped.await) };
            run(requests, at_once, stop, |key: Key| {
                let (begin, gate, count) = (begin.clone(), gate.clone(), count.clone());
                async move {
                    count.fetch_add(1, Ordering::SeqCst);
                    begin.send(key.clone()).unwrap();
                    gate.acquire().await.unwrap().forget();
                    count.fetch_sub(1, Ordering::SeqCst);
                    assert_ne!(key.name(), "bad", "a bug");
                }
            })
            .await;
        });
        Watched { begun, go, at_once: running, stop, run, bell }
    }

    #[tokio::test]
    async fn one_workload_has_one_pass_at_a_time() {
        let mut queue = watched(8);
        queue.bell.ring(&key("web"));
        assert_eq!(queue.begun.recv().await, Some(key("web")));
        // These two are one, and wait for the first.
        queue.bell.ring(&key("web"));
        queue.bell.ring(&key("web"));
        queue.bell.ring(&key("api"));
        assert_eq!(queue.begun.recv().await, Some(key("api")), "others do not wait");
        queue.go.add_permits(1);
        assert_eq!(queue.begun.recv().await, Some(key("web")));
        queue.go.add_permits(2);
        queue.stop.send(()).unwrap();
        queue.run.await.unwrap();
        assert_eq!(queue.begun.recv().await, None, "it was looked at twice and no more");
    }

    #[tokio::test]
    async fn no_more_passes_run_at_once_than_permitted() {
        let mut queue = watched(2);
        for name in ["a", "b", "c", "d"] {
            queue.bell.ring(&key(name));
        }
        for _ in 0..4 {
            queue.begun.recv().await.unwrap();
            assert!(queue.at_once.load(Ordering::SeqCst) <= 2);
            queue.go.add_permits(1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_waits_behind_those_that_have_waited_longer() {
        let mut queue = watched(1);
        queue.bell.ring(&key("busy"));
        queue.begun.recv().await.unwrap();
        for number in 0..20 {
            queue.bell.ring(&key(&format!("w{number}")));
        }
        let mut seen = HashSet::new();
        for _ in 0..20 {
            // All that have asked are in the line.
            tokio::time::advance(Duration::from_millis(5)).await;
            tokio::time::advance(Duration::from_millis(5)).await;
            queue.go.add_permits(1);
            let begun = queue.begun.recv().await.unwrap();
            queue.bell.ring(&begun);
            assert!(seen.insert(begun.clone()), "{begun} had a pass before others");
        }
    }

    #[tokio::test]
    async fn a_pass_that_panics_stops_no_other() {
        let mut queue = watched(1);
        queue.bell.ring(&key("bad"));
        queue.begun.recv().await.unwrap();
        queue.bell.ring(&key("good"));
        queue.go.add_permits(2);
        assert_eq!(queue.begun.recv().await, Some(key("good")));
    }

    #[tokio::test]
    async fn a_pass_that_has_begun_ends_before_the_queue_does() {
        let mut queue = watched(1);
        queue.bell.ring(&key("web"));
        queue.begun.recv().await.unwrap();
        queue.stop.send(()).unwrap();
        queue.go.add_permits(1);
        queue.run.await.unwrap();
        assert_eq!(queue.at_once.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_times_the_earlier_counts() {
        let mut queue = watched(1);
        let begun = Instant::now();
        queue.bell.ring_in(&key("web"), Duration::from_mins(1));
        queue.bell.ring_in(&key("web"), Duration::from_secs(5));
        queue.begun.recv().await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(6));
        // A far one comes after the longest nap at the latest.
        queue.bell.ring_in(&key("api"), Duration::from_hours(24));
        queue.go.add_permits(1);
        queue.begun.recv().await.unwrap();
        assert!(begun.elapsed() < LONGEST_NAP + Duration::from_mins(1));
    }
}

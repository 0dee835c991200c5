//! How much of this machine goes to processes that have nothing to do with the test.

use std::{
    collections::HashMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// CPU time so far, in the kernel's ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    at: Instant,
    /// Of all processes, with what the host of a virtual machine took from it.
    all: u64,
    /// Of this process and those that it started, the control plane among them.
    own: u64,
    cores: u32,
}

impl Usage {
    /// # Errors
    /// What `/proc` does not say.
    pub(crate) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let (all, cores) = of_machine(&stat).with_context(|| format!("not understood: {stat}"))?;
        let processes = fs::read_dir("/proc")?.filter_map(|entry| {
            // A process that has ended meanwhile has nothing to say.
            let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            Process::of(&stat)
        });
        let own = of_family(std::process::id(), processes);
        Ok(Self { at: Instant::now(), all, own, cores })
    }

    /// The part of the machine, 0 to 1, that strangers have had since `before`.
    pub(crate) fn strangers_since(&self, before: &Self) -> f64 {
        // Linux tells user space 100 ticks a second on every architecture that Rust has a std for.
        const TICK: Duration = Duration::from_millis(10);
        let all = self.all.saturating_sub(before.all);
        let strangers = all.saturating_sub(self.own.saturating_sub(before.own));
        let ticks = u32::try_from(strangers).unwrap_or(u32::MAX);
        let there_was = self.at.saturating_duration_since(before.at) * self.cores;
        (TICK * ticks).as_secs_f64() / there_was.as_secs_f64().max(TICK.as_secs_f64())
    }
}

/// One line of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    ticks: u64,
}

impl Process {
    fn of(stat: &str) -> Option<Self> {
        let id = stat.split(' ').next()?.parse().ok()?;
        // The name is in brackets, and may have blanks and brackets itself.
        let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let [user, system] = [11, 12].map(|at| fields.get(at)?.parse::<u64>().ok());
        Some(Self { id, parent: fields.get(1)?.parse().ok()?, ticks: user? + system? })
    }
}

/// The busy time and the number of cores. Interrupts are left out: whom they serve nobody knows.
fn of_machine(stat: &str) -> Option<(u64, u32)> {
    let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let [user, nice, system, _, _, _, _, stolen] =
        std::array::from_fn(|_| fields.next().and_then(|field| field.parse::<u64>().ok()));
    let is_core = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    };
    let cores = u32::try_from(stat.lines().filter(is_core).count()).ok()?;
    Some((user? + nice? + system? + stolen?, cores))
}

/// The time of a process and of all that descend from it.
fn of_family(head: u32, processes: impl Iterator<Item = Process>) -> u64 {
    let processes: HashMap<u32, Process> = processes.map(|one| (one.id, one)).collect();
    let descends = |process: &&Process| {
        let mut next = Some(*process);
        // A number that was given anew while the list was read could close a circle.
        for _ in 0..processes.len() {
            match next {
                Some(one) if one.id == head => return true,
                Some(one) => next = processes.get(&one.parent),
                None => break,
            }
        }
        false
    };
    processes.values().filter(descends).map(|one| one.ticks).sum()
}

#[test]
fn the_kernels_words_are_understood() {
    let stat = "cpu  10 20 30 400 50 60 70 8 90 9\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";
    assert_eq!(of_machine(stat), Some((68, 2)));
    let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 9 9 9 9 120 34 5 6 20 0 3 0 100 1 1";
    assert_eq!(Process::of(stat), Some(Process { id: 77, parent: 1, ticks: 154 }));
}

#[test]
fn strangers_have_what_the_family_has_not() {
    let process = |id, parent, ticks| Process { id, parent, ticks };
    let all = [process(1, 0, 1), process(5, 1, 10), process(6, 5, 100), process(7, 6, 1_000)];
    assert_eq!(of_family(5, all.into_iter()), 1_110);
    let at = Instant::now();
    let before = Usage { at, all: 1_000, own: 500, cores: 2 };
    let now = Usage { at: at + Duration::from_secs(1), all: 1_150, own: 600, cores: 2 };
    let part = now.strangers_since(&before);
    assert!((part - 0.25).abs() < 0.001, "{part}");
}

#[test]
fn this_machine_tells() {
    let before = Usage::now().unwrap();
    let now = Usage::now().unwrap();
    assert!(now.cores > 0 && now.all > 0 && now.own <= now.all, "{now:?}");
    assert!(now.strangers_since(&before) >= 0.0);
}

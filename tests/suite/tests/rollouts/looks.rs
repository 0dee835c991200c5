//! The judgements of one rollout, as the operator comes to them: at each event and at each wake-up
//! that it asked for, carrying what it asked to have remembered.

use belay_api::{Duration, reasons::HealthyReason, release::Progress};
use belay_engine::{
    annotations::ContainerName,
    judge::{Facts, Failure, Judgement, RolloutState, Terms, judge},
};
use belay_suite::rollouts::replay::{LAG, Rollout, Truth};
use jiff::{SignedDuration, Timestamp};

/// More wake-ups than any rollout asks for after its last event.
const MOST_WAKES: usize = 20;
/// Events that are merged are not further apart than this.
const SOON: SignedDuration = SignedDuration::from_millis(200);
/// So much later than the other one a watch may be.
const LATE: SignedDuration = SignedDuration::from_millis(400);

/// What a Target asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The default: the deadline of the Deployment itself, and 30 s for what is certain, which is
    /// longer here.
    OfKubernetes,
    /// A deadline that is longer than Kubernetes' own, and 3 s for what is certain.
    Long,
}

impl Patience {
    pub(crate) const ALL: [Self; 2] = [Self::OfKubernetes, Self::Long];

    fn terms(self, rollout: &Rollout) -> Terms {
        let (deadline, fast) = self.seconds();
        Terms {
            applied: rollout.applied.time,
            deadline: Duration::from_secs(deadline),
            bake: Duration::from_secs(60),
            fast: Duration::from_secs(fast),
            followed: vec![ContainerName { is_init: false, name: "app".to_owned() }],
            awaits_resume: false,
            resume: Duration::from_secs(0),
        }
    }

    fn seconds(self) -> (u64, u64) {
        match self {
            Self::OfKubernetes => (10, 30),
            Self::Long => (600, 3),
        }
    }

    /// How long a cause must have stood to end a rollout.
    pub(crate) fn window(self, failure: &Failure) -> SignedDuration {
        let (deadline, fast) = self.seconds();
        let (deadline, fast) = (deadline.cast_signed(), fast.cast_signed());
        let seconds = match failure.reason {
            HealthyReason::BakeFailed => fast,
            // Three bakes and a deadline after the success, which is not when it broke.
            HealthyReason::BakeUnstable => 0,
            HealthyReason::DeadlineExceeded => deadline,
            _ if failure.is_temporary => deadline,
            _ => fast.min(deadline),
        };
        SignedDuration::from_secs(seconds)
    }
}

/// What of the events reaches the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All of them, in their order.
    Everything,
    /// Those of the Deployment, with the pods as they were then; the others were merged into them.
    WritesOnly,
    /// Every third, the others merged into it.
    Third(usize),
    /// Those of pods come late.
    PodsLate,
    /// Those of the Deployment come late.
    DeploymentLate,
    /// The pods may not be read.
    WithoutPods,
}

impl View {
    pub(crate) const ALL: [Self; 8] = [
        Self::Everything,
        Self::WritesOnly,
        Self::Third(0),
        Self::Third(1),
        Self::Third(2),
        Self::PodsLate,
        Self::DeploymentLate,
        Self::WithoutPods,
    ];

    /// What is seen, and when.
    fn of(self, rollout: &Rollout) -> Vec<Seen> {
        let samples = &rollout.samples;
        // Events are merged only with others that follow soon: a watch does not hold back the last one.
        let is_last = |number: usize| {
            let next = samples.get(number + 1);
            next.is_none_or(|next| next.at.duration_since(samples[number].at) > SOON)
        };
        let see = |number: usize, pods: Option<usize>| Seen {
            at: samples[number].at,
            sample: number,
            facts: Facts {
                pods: pods.and_then(|pods| samples[pods].facts.pods.clone()),
                ..samples[number].facts.clone()
            },
        };
        let all = 0..samples.len();
        match self {
            Self::Everything => all.map(|number| see(number, Some(number))).collect(),
            Self::WithoutPods => all.map(|number| see(number, None)).collect(),
            Self::WritesOnly => all
                .filter(|number| samples[*number].is_write || is_last(*number))
                .map(|number| see(number, Some(number)))
                .collect(),
            Self::Third(offset) => all
                .filter(|number| number % 3 == offset || is_last(*number))
                .map(|number| see(number, Some(number)))
                .collect(),
            Self::PodsLate => Self::late(rollout, |now, before| see(now, Some(before))),
            Self::DeploymentLate => Self::late(rollout, |now, before| {
                let pods = samples[now].facts.pods.clone();
                let seen = see(before, None);
                Seen { at: samples[now].at, sample: now, facts: Facts { pods, ..seen.facts } }
            }),
        }
    }

    /// Everything arrives twice: one half of it at once, the other later.
    fn late(rollout: &Rollout, see: impl Fn(usize, usize) -> Seen) -> Vec<Seen> {
        let samples = &rollout.samples;
        let arrivals = |late: SignedDuration| samples.iter().map(move |sample| sample.at + late);
        let mut times: Vec<_> = arrivals(SignedDuration::ZERO).chain(arrivals(LATE)).collect();
        times.sort();
        times.dedup();
        let until = |time: Timestamp| samples.iter().rposition(|sample| sample.at <= time);
        times
            .into_iter()
            .filter_map(|at| {
                let now = until(at)?;
                // Before the first one is late, it is all there is.
                let before = until(at - LATE).unwrap_or_default();
                Some(Seen { at, ..see(now, before) })
            })
            .collect()
    }
}

/// What is seen at one time.
struct Seen {
    at: Timestamp,
    /// The last sample until then.
    sample: usize,
    facts: Facts,
}

/// One judgement.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) at: Timestamp,
    /// The sample that it saw.
    pub(crate) sample: usize,
    /// Whether it was because of the time, not of an event.
    pub(crate) is_wake: bool,
    pub(crate) state: RolloutState,
}

impl Look {
    pub(crate) fn word(&self) -> String {
        match &self.state {
            RolloutState::Rolling { trouble: Some(trouble), .. } => {
                format!("rolling {:?}", trouble.kind)
            }
            RolloutState::Rolling { .. } => "rolling".to_owned(),
            RolloutState::Paused => "paused".to_owned(),
            RolloutState::ScaledToZero => "zero".to_owned(),
            RolloutState::Baking { until: Some(_) } => "baking".to_owned(),
            RolloutState::Baking { until: None } => "broken".to_owned(),
            RolloutState::Healthy => "healthy".to_owned(),
            RolloutState::Failed(failure) => format!("failed {}", failure.reason),
        }
    }

    fn is_verdict(&self) -> bool {
        matches!(self.state, RolloutState::Healthy | RolloutState::Failed(_))
    }
}

/// All judgements of a rollout, up to its verdict. A rollout that nothing follows goes on after its
/// last event, as it is.
pub(crate) fn looks(rollout: &Rollout, patience: Patience, view: View) -> Vec<Look> {
    let terms = patience.terms(rollout);
    let mut looker = Looker { terms, progress: Progress::default(), wake: None, looks: Vec::new() };
    let mut before = None;
    for seen in view.of(rollout) {
        if let Some(before) = &before {
            looker.wake_until(before, Some(seen.at));
        }
        looker.look(&seen, seen.at, false);
        before = Some(seen);
    }
    if let Some(last) = before.filter(|_| !rollout.is_superseded) {
        looker.wake_until(&last, None);
    }
    looker.looks
}

/// The different words, in order.
pub(crate) fn words(looks: &[Look]) -> String {
    let mut words: Vec<_> = looks.iter().map(Look::word).collect();
    words.dedup();
    words.join(" > ")
}

struct Looker {
    terms: Terms,
    progress: Progress,
    wake: Option<Timestamp>,
    looks: Vec<Look>,
}

impl Looker {
    fn is_done(&self) -> bool {
        self.looks.last().is_some_and(Look::is_verdict)
    }

    fn look(&mut self, seen: &Seen, at: Timestamp, is_wake: bool) {
        if self.is_done() {
            return;
        }
        let Judgement { state, progress, wake } =
            judge(&seen.facts, &self.terms, &self.progress, at);
        let again = judge(&seen.facts, &self.terms, &progress, at);
        assert_eq!(again.state, state, "a second look at {at} says something else");
        assert_eq!(again.progress, progress, "a second look at {at} has something to remember");
        assert!(wake.is_none_or(|wake| wake > at), "a wake-up in the past at {at}: {wake:?}");
        self.looks.push(Look { at, sample: seen.sample, is_wake, state });
        (self.progress, self.wake) = (progress, wake);
    }

    /// The wake-ups before a time; without one, all that come.
    fn wake_until(&mut self, seen: &Seen, end: Option<Timestamp>) {
        for _ in 0..MOST_WAKES {
            let due = self.wake.filter(|wake| end.is_none_or(|end| *wake < end));
            let Some(wake) = due.filter(|_| !self.is_done()) else { return };
            self.look(seen, wake, true);
        }
        panic!("{MOST_WAKES} wake-ups without an event");
    }
}

/// When there was progress last before a look: more new pods, or more of them available, or fewer old
/// ones than ever since the rollout began, was resumed, or got its first replicas; and, after success,
/// any change at all.
pub(crate) fn moved(rollout: &Rollout, look: &Look) -> Timestamp {
    let samples = &rollout.samples[..=look.sample];
    let mut best: Option<Truth> = None;
    let mut moved = rollout.applied.time;
    let mut has_succeeded = false;
    let mut before = None;
    for sample in samples {
        let now = sample.truth;
        has_succeeded |= now.has_succeeded();
        let stands = |truth: Truth| truth.is_paused || truth.wanted == 0;
        let begins = best.is_none_or(|best| stands(best) || stands(now));
        let mark = match best.filter(|_| !begins) {
            None => now,
            Some(best) => Truth {
                wanted: now.wanted,
                new: best.new.max(now.new),
                available: best.available.max(now.available),
                old: best.old.min(now.old),
                ..best
            },
        };
        let marks = |truth: Truth| (truth.new, truth.available, truth.old);
        let is_mark = begins || best.is_some_and(|best| marks(best) != marks(mark));
        if is_mark || has_succeeded && before.is_some_and(|before| before != now) {
            moved = moved.max(sample.at);
        }
        best = Some(mark);
        before = Some(now);
    }
    moved
}

/// When success began that lasted for longer than the status may lag behind.
pub(crate) fn lasting_success(rollout: &Rollout) -> Option<Timestamp> {
    let mut since = None;
    for sample in &rollout.samples {
        if !sample.truth.has_succeeded() {
            since = None;
            continue;
        }
        let start = *since.get_or_insert(sample.at);
        if sample.at.duration_since(start) > LAG {
            return since;
        }
    }
    since.filter(|_| !rollout.is_superseded)
}

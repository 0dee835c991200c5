//! What is seen of a rollout, sample by sample.

use belay_api::{Duration, release::Progress};
use belay_engine::{
    Timestamp,
    judge::{
        ContainerFacts, Facts, Judgement, PodFacts, ProgressingFacts, RolloutState, Terms, judge,
    },
};

/// When our image was applied.
pub(crate) const T: i64 = 100_000;
pub(crate) const GAVE_UP: &str = "ProgressDeadlineExceeded";
pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(T + second).unwrap()
}

pub(crate) fn terms() -> Terms {
    Terms {
        awaits_resume: false,
        resume: Duration::from_secs(0),
        applied: at(0),
        deadline: Duration::from_secs(600),
        bake: Duration::from_secs(60),
        fast: Duration::from_secs(30),
        followed: vec!["app".parse().unwrap()],
    }
}

/// A Deployment whose controller has seen our generation: wanted, replicas, updated, available.
pub(crate) fn numbers(wanted: i32, replicas: i32, updated: i32, available: i32) -> Facts {
    Facts {
        generation: 7,
        observed_generation: 7,
        images_are_stored: true,
        wanted,
        replicas,
        updated,
        available,
        progress_deadline: Some(600),
        pods: Some(Vec::new()),
        ..Facts::default()
    }
}

pub(crate) fn unobserved(mut facts: Facts) -> Facts {
    facts.observed_generation -= 1;
    facts
}

pub(crate) fn progressing(mut facts: Facts, reason: &str, second: i64) -> Facts {
    let last_update = Some(at(second));
    facts.progressing = Some(ProgressingFacts { reason: reason.to_owned(), last_update });
    facts
}

pub(crate) fn with_pods(mut facts: Facts, pods: &[PodFacts]) -> Facts {
    facts.pods = Some(pods.to_vec());
    facts
}

pub(crate) fn pod(name: &str, created: i64) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        is_new: true,
        created: at(created),
        started: Some(at(created)),
        ready: false,
        deleting: false,
        disrupted: false,
        unschedulable: None,
        containers: Vec::new(),
    }
}

pub(crate) fn waiting(mut pod: PodFacts, container: &str, reason: &str, message: &str) -> PodFacts {
    pod.containers.push(ContainerFacts {
        name: container.parse().unwrap(),
        waiting: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        restarts: 0,
        pulled: false,
    });
    pod
}

pub(crate) fn crashing(pod: PodFacts, container: &str, restarts: i32) -> PodFacts {
    let mut pod = waiting(pod, container, "CrashLoopBackOff", "back-off 40s");
    if let Some(container) = pod.containers.last_mut() {
        container.restarts = restarts;
        container.pulled = true;
    }
    pod
}

pub(crate) fn ready(mut pod: PodFacts) -> PodFacts {
    pod.ready = true;
    pod
}

pub(crate) fn word(state: &RolloutState) -> String {
    match state {
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

/// Judges each sample in turn, remembering what was asked to be remembered.
pub(crate) fn replay(terms: &Terms, samples: &[(i64, Facts)]) -> (Vec<String>, Judgement) {
    let mut progress = Progress::default();
    let mut words = Vec::new();
    let mut last = None;
    for (second, facts) in samples {
        let judgement = judge(facts, terms, &progress, at(*second));
        // A second look at the same moment says the same, and asks for nothing else to be stored.
        let again = judge(facts, terms, &judgement.progress, at(*second));
        assert_eq!(word(&again.state), word(&judgement.state), "at {second}");
        assert_eq!(again.progress, judgement.progress, "at {second}");
        if let Some(wake) = judgement.wake {
            assert!(wake > at(*second), "wake in the past at {second}");
        }
        progress = judgement.progress.clone();
        words.push(word(&judgement.state));
        last = Some(judgement);
    }
    (words, last.unwrap())
}

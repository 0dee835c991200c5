//! What pods say about a rollout.

use belay_api::{limits, reasons::HealthyReason};
use jiff::Timestamp;

use super::{ContainerFacts, Facts, Failure, PodFacts, Terms, Trouble, TroubleKind};
use crate::time;

/// From so many restarts on a crash loop is certain.
const CRASHES: i32 = 3;
/// The longest part of a message of others that is repeated.
const MAX_MESSAGE: usize = 500;

/// A cause that ends a rollout before its deadline, and when it may.
pub(super) struct Certain {
    pub(super) since: Timestamp,
    pub(super) failure: Failure,
}

/// The certain cause that has stood longest.
pub(super) fn certain(pods: &[PodFacts], terms: &Terms) -> Option<Certain> {
    new(pods)
        .flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)))
        .filter_map(|(pod, container)| {
            let reason = certain_reason(pods, pod, container, terms)?;
            // A pod that waited for a node has not tried anything yet.
            let since = pod.started.unwrap_or(pod.created).max(terms.applied);
            let message = describe(pod, container);
            let failure = Failure { reason, message, is_temporary: false };
            Some(Certain { since, failure })
        })
        .min_by_key(|certain| certain.since)
}

fn certain_reason(
    pods: &[PodFacts],
    pod: &PodFacts,
    container: &ContainerFacts,
    terms: &Terms,
) -> Option<HealthyReason> {
    match container.waiting.as_deref()? {
        "InvalidImageName" => Some(HealthyReason::InvalidImageName),
        "CreateContainerConfigError" => Some(HealthyReason::CreateContainerConfigError),
        _ if is_pull_error(container) => {
            let says = container.message.as_deref().is_some_and(says_there_is_no_image);
            (says && !was_pulled(pods, container)).then_some(HealthyReason::ImagePullFailed)
        }
        _ if crash_loops(pod, container, terms) => Some(HealthyReason::CrashLoopBackOff),
        _ => None,
    }
}

/// Restarts before our apply are others' doing: only pods that were made since are counted.
fn crash_loops(pod: &PodFacts, container: &ContainerFacts, terms: &Terms) -> bool {
    container.waiting.as_deref() == Some("CrashLoopBackOff")
        && container.restarts >= CRASHES
        && pod.created >= terms.applied
}

fn is_pull_error(container: &ContainerFacts) -> bool {
    matches!(
        container.waiting.as_deref(),
        Some("ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "RegistryUnavailable")
    )
}

/// Whether a pull error says that there is no such image for us, rather than that it could not be
/// fetched just now. A plain 401 is not among them: token services give it in passing.
fn says_there_is_no_image(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "not found",
        "manifest unknown",
        "name unknown",
        "denied",
        "403 forbidden",
        "no match for platform",
        "no matching manifest",
        "does not match the specified platform",
    ]
    .iter()
    .any(|words| message.contains(words))
}

fn was_pulled(pods: &[PodFacts], container: &ContainerFacts) -> bool {
    new(pods)
        .flat_map(|pod| &pod.containers)
        .any(|other| other.name == container.name && other.pulled)
}

/// A cause that may pass, the one that is most worth telling.
pub(super) fn trouble(facts: &Facts) -> Option<Trouble> {
    if let Some(failure) = &facts.replica_failure {
        let text = failure.message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let kind = if says(&["exceeded quota", "limitrange"]) {
            Some(TroubleKind::Quota)
        } else {
            says(&["denied", "forbidden", "admission"]).then_some(TroubleKind::Admission)
        };
        if let Some(kind) = kind {
            return Some(Trouble { kind, message: limits::clip(&failure.message, MAX_MESSAGE) });
        }
    }
    let pods = facts.pods.as_deref()?;
    new(pods).find_map(|pod| {
        if let Some(message) = &pod.unschedulable {
            let message = format!("pod {}: {}", pod.name, limits::clip(message, MAX_MESSAGE));
            return Some(Trouble { kind: TroubleKind::Unschedulable, message });
        }
        let container = pod.containers.iter().find(|one| is_pull_error(one))?;
        Some(Trouble { kind: TroubleKind::ImagePull, message: describe(pod, container) })
    })
}

/// Whether a pod shows that the image does not work although it once succeeded: one that was there
/// at `succeeded` is unready, for a cause of its own; or a followed container crashes again and
/// again. Pods that came since (replacements, a scale-out) show nothing by not being ready yet.
pub(super) fn evidence_against<'p>(
    pods: &'p [PodFacts],
    succeeded: Timestamp,
    terms: &Terms,
) -> Option<String> {
    let is_unready = |pod: &&'p PodFacts| {
        // Both are whole seconds: a pod of the same second may be a replacement.
        let was_there = pod.created < succeeded;
        let crashes = pod.containers.iter().any(|container| {
            terms.followed.contains(&container.name) && crash_loops(pod, container, terms)
        });
        !pod.ready && !pod.disrupted && pod.unschedulable.is_none() && (was_there || crashes)
    };
    new(pods).find(is_unready).map(|pod| {
        match pod.containers.iter().find(|container| container.waiting.is_some()) {
            Some(container) => describe(pod, container),
            None => format!("pod {} is not ready", pod.name),
        }
    })
}

fn new(pods: &[PodFacts]) -> impl Iterator<Item = &PodFacts> {
    pods.iter().filter(|pod| pod.is_new && !pod.deleting)
}

fn describe(pod: &PodFacts, container: &ContainerFacts) -> String {
    let reason = container.waiting.as_deref().unwrap_or_default();
    let text = format!("pod {} {} {reason}", pod.name, container.name);
    match &container.message {
        Some(message) => format!("{text}: {}", limits::clip(message, MAX_MESSAGE)),
        None => text,
    }
}

/// When a certain cause ends the rollout.
pub(super) fn ends(certain: &Certain, terms: &Terms) -> Timestamp {
    time::after(certain.since, terms.fast)
}

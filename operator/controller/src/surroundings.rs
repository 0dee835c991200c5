//! What other Releases say about a target: rollouts under way, and releases that failed elsewhere
//! (the operator specification, section 3.9).

use belay_api::{
    AnnotationPrefix, NamedValue as _, Release,
    annotations::OwnAnnotation,
    conditions::find,
    gates::Verdict,
    reasons::{BlockedReason, ReleaseReadyReason},
    release::Activation,
};
use belay_engine::{Timestamp, annotations::RepoSlug, block::Block};

/// Whether a Release is being rolled out: active, not judged and not yet complete. One that bakes
/// takes no place from others.
pub(crate) fn is_rolling(release: &Release) -> bool {
    let Some(status) = &release.status else { return false };
    let is_open = status
        .activations
        .last()
        .is_some_and(|last| last.end_time.is_none() && last.verdict.is_none());
    let reason = find(&status.conditions, "Ready").map(|ready| ready.reason.as_str());
    is_open
        && [ReleaseReadyReason::Rolling, ReleaseReadyReason::Pausing]
            .iter()
            .any(|rolling| reason == Some(rolling.as_str()))
}

/// Whether the last activation of a Release was judged healthy.
pub(crate) fn is_healthy(release: &Release) -> bool {
    last(release).and_then(|last| last.verdict.as_ref()?.known()) == Some(Verdict::Healthy)
}

/// A failure of a release on one target of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure<'r> {
    tag: &'r str,
    at: Option<Timestamp>,
}

/// The tags of `repo` that failed for their own fault on these Releases, and succeeded on none of
/// them since.
pub(crate) fn failed<'r>(
    releases: impl IntoIterator<Item = &'r Release>,
    repo: &RepoSlug,
    prefix: &AnnotationPrefix,
) -> Vec<String> {
    let mut failures: Vec<Failure<'r>> = Vec::new();
    let mut others: Vec<(&str, &Release)> = Vec::new();
    for release in releases {
        let Some(tag) = tag_of(release, repo) else { continue };
        if failed_by_itself(release, prefix) {
            let at = last(release).and_then(|last| last.end_time.as_ref()).map(|time| time.0);
            failures.push(Failure { tag, at });
        } else {
            others.push((tag, release));
        }
    }
    if failures.is_empty() {
        return Vec::new();
    }
    for (tag, release) in others {
        let healthy = release.status.iter().flat_map(|status| &status.activations).filter(|one| {
            one.verdict.as_ref().and_then(belay_api::Open::known) == Some(Verdict::Healthy)
        });
        for activation in healthy {
            let started = activation.start_time.0;
            failures.retain(|one| one.tag != tag || one.at.is_some_and(|at| at > started));
        }
    }
    let mut tags: Vec<String> = failures.into_iter().map(|one| one.tag.to_owned()).collect();
    tags.sort();
    tags.dedup();
    tags
}

fn last(release: &Release) -> Option<&Activation> {
    release.status.as_ref()?.activations.last()
}

fn tag_of<'r>(release: &'r Release, repo: &RepoSlug) -> Option<&'r str> {
    let revision = release.config().revisions.first()?;
    let source: RepoSlug = revision.source.as_deref()?.parse().ok()?;
    (source == *repo).then_some(revision.id.as_str())
}

/// A block for a while stands for the cluster's fault, not for the release's.
fn failed_by_itself(release: &Release, prefix: &AnnotationPrefix) -> bool {
    let is_failed = last(release)
        .and_then(|last| last.verdict.as_ref()?.known())
        .is_some_and(|verdict| verdict == Verdict::Failed);
    let block = || {
        let annotations = release.metadata.annotations.as_ref()?;
        let text = annotations.get(&prefix.key(OwnAnnotation::Blocked))?;
        Block::parse(text).ok()
    };
    is_failed && block().is_some_and(|block| block.reason == BlockedReason::RolloutFailed)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn release(target: &str, tag: &str, status: &Value, reason: Option<&str>) -> Release {
        let mut annotations = json!({});
        if let Some(reason) = reason {
            let block = json!({
                "from": {"tag": tag}, "reason": reason, "count": 1, "ordinal": 1,
            });
            annotations = json!({"belay.dev/blocked": block.to_string()});
        }
        serde_json::from_value(json!({
            "apiVersion": "belay.dev/v1alpha1", "kind": "Release",
            "metadata": {"name": format!("{target}-{tag}"), "annotations": annotations},
            "config": {
                "targetName": target,
                "revisions": [{"name": "application", "id": tag, "source": "acme/web"}],
            },
            "status": status,
        }))
        .unwrap()
    }

    fn activation(verdict: Option<&str>, start: u32, end: Option<u32>) -> Value {
        let time = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
        let mut activation = json!({"ordinal": 1, "startTime": time(start)});
        if let Some(verdict) = verdict {
            activation["verdict"] = json!(verdict);
        }
        if let Some(end) = end {
            activation["endTime"] = json!(time(end));
        }
        json!({"activations": [activation]})
    }

    #[rstest]
    #[case::rolling("Rolling", None, None, true)]
    #[case::pausing("Pausing", None, None, true)]
    #[case::baking("Baking", None, None, false)]
    #[case::ended("Rolling", None, Some(5), false)]
    #[case::judged("Rolling", Some("Failed"), None, false)]
    fn a_rollout_under_way_is_active_and_not_complete(
        #[case] reason: &str,
        #[case] verdict: Option<&str>,
        #[case] end: Option<u32>,
        #[case] expected: bool,
    ) {
        let mut status = activation(verdict, 1, end);
        status["conditions"] = json!([{
            "type": "Ready", "status": "Unknown", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        assert_eq!(is_rolling(&release("a", "v1", &status, None)), expected);
    }

    #[rstest]
    #[case::own_fault(Some("Failed"), Some("RolloutFailed"), None, &["v2"])]
    #[case::clusters_fault(Some("Failed"), Some("BlockedTemporarily"), None, &[])]
    #[case::no_block(Some("Failed"), None, None, &[])]
    #[case::superseded(Some("Superseded"), Some("RolloutFailed"), None, &[])]
    #[case::succeeded_since(Some("Failed"), Some("RolloutFailed"), Some(9), &[])]
    #[case::succeeded_before(Some("Failed"), Some("RolloutFailed"), Some(1), &["v2"])]
    fn a_release_that_failed_elsewhere_is_known_by_its_tag(
        #[case] verdict: Option<&str>,
        #[case] reason: Option<&str>,
        #[case] healthy_from: Option<u32>,
        #[case] expected: &[&str],
    ) {
        let mut all = vec![release("a", "v2", &activation(verdict, 3, Some(5)), reason)];
        if let Some(start) = healthy_from {
            all.push(release("b", "v2", &activation(Some("Healthy"), start, None), None));
        }
        let prefix = AnnotationPrefix::default();
        assert_eq!(failed(all.iter(), &"acme/web".parse().unwrap(), &prefix), expected);
        assert!(failed(all.iter(), &"acme/api".parse().unwrap(), &prefix).is_empty());
    }
}

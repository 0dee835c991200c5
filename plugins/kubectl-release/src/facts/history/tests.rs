use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn release(name: &str, status: &Value) -> Release {
    serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Release",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "config": {"targetName": "web", "revisions": [
            {"name": "application", "id": "v1.9.2", "type": "github", "source": "acme/web"},
        ]},
        "status": status,
    }))
    .unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-02T00:00:00Z",
    })
}

fn activation(start: &str, end: Option<&str>, verdict: Option<&str>) -> Value {
    json!({
        "ordinal": 1, "startTime": start, "endTime": end, "initiator": "GitHub v1.9.2",
        "verdict": verdict,
    })
}

const DAY_2: &str = "2026-01-02T00:00:00Z";
const DAY_3: &str = "2026-01-03T00:00:00Z";

#[rstest]
#[case::active(json!([condition("Active", "True", "Applied", ""), condition("Ready", "True", "Healthy", "")]), "active")]
#[case::rolling(json!([condition("Active", "True", "Applied", ""), condition("Ready", "Unknown", "Rolling", "")]), "rolling")]
#[case::past(json!([condition("Ready", "True", "Healthy", "")]), "superseded")]
#[case::blocked(json!([condition("Blocked", "True", "RolledBack", ""), condition("Ready", "False", "Failed", "")]), "blocked")]
#[case::failed(json!([condition("Ready", "False", "Failed", "")]), "failed")]
#[case::newer(json!([condition("Ready", "False", "Levitating", "")]), "levitating")]
#[case::new(json!([]), "new")]
fn what_became_of_it_is_one_word(#[case] conditions: Value, #[case] word: &str) {
    let entry = Entry::of(&release("web-1", &json!({"conditions": conditions})), [].into_iter());
    assert_eq!(entry.word, word);
}

#[test]
fn a_release_tells_image_time_and_who() {
    let release = release(
        "web-1",
        &json!({
            "images": [{"container": "app", "asked": "ghcr.io/acme/web:1.9.2"}],
            "activations": [activation(DAY_2, None, None)],
            "progress": {"succeededTime": "2026-01-02T00:00:48Z"},
        }),
    );
    let entry = Entry::of(&release, [].into_iter());
    assert_eq!((entry.image.as_str(), entry.tag.as_str()), ("web:1.9.2", "1.9.2"));
    assert_eq!(entry.when.unwrap().to_string(), DAY_2);
    assert_eq!(entry.took.unwrap().as_secs(), 48);
    assert_eq!(entry.by.as_deref(), Some("GitHub v1.9.2"));
}

#[test]
fn a_release_without_a_status_tells_what_its_config_says() {
    let entry = Entry::of(&release("web-1", &Value::Null), [].into_iter());
    assert_eq!((entry.image.as_str(), entry.tag.as_str()), ("v1.9.2", "v1.9.2"));
    assert_eq!(entry.when.unwrap().to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(entry.by.as_deref(), Some("GitHub v1.9.2"));
}

#[test]
fn a_failure_says_why() {
    let failed = release(
        "web-1",
        &json!({
            "activations": [activation(DAY_2, Some(DAY_3), Some("Failed"))],
            "conditions": [condition("Healthy", "False", "ImagePullFailed", "manifest unknown")],
        }),
    );
    let entry = Entry::of(&failed, [].into_iter());
    assert_eq!(entry.note.as_deref(), Some("manifest unknown"));
}

#[test]
fn a_rollback_says_from_where() {
    let rollback: Rollback = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Rollback",
        "metadata": {"name": "rb"},
        "spec": {
            "toReleaseRef": {"target": "web", "name": "web-1"},
            "reason": "x",
            "initiatedBy": {"principal": "alice", "type": "user"},
        },
        "status": {
            "startTime": "2026-01-01T23:59:00Z",
            "completionTime": DAY_3,
            "fromReleaseRef": {"target": "web", "name": "web-0"},
            "toReleaseRef": {"target": "web", "name": "web-1"},
        },
    }))
    .unwrap();
    let back = release("web-1", &json!({"activations": [activation(DAY_2, None, None)]}));
    let entry = Entry::of(&back, [&rollback].into_iter());
    assert_eq!(entry.note.as_deref(), Some("rolled back from web-0"));
}

#[test]
fn the_one_before_is_the_one_that_ended_last_before_it_began() {
    let old = release(
        "web-0",
        &json!({"activations": [
        activation("2026-01-01T00:00:00Z", Some("2026-01-01T12:00:00Z"), None)]}),
    );
    let mid = release(
        "web-1",
        &json!({"activations": [
        activation("2026-01-01T12:00:00Z", Some(DAY_2), None)]}),
    );
    let new = release("web-2", &json!({"activations": [activation(DAY_2, None, None)]}));
    let all = [&old, &mid, &new];
    let name = |release: &Release| before(&all, release).and_then(|one| one.metadata.name.clone());
    assert_eq!(name(&new).as_deref(), Some("web-1"));
    assert_eq!(name(&mid).as_deref(), Some("web-0"));
    assert_eq!(name(&old), None);
}

#[test]
fn a_release_that_is_gone_is_missed() {
    let new = release(
        "web-1",
        &json!({"previousRelease": {
        "releaseRef": {"target": "web", "name": "web-0"}, "transitionTime": DAY_2}}),
    );
    let old = release("web-0", &Value::Null);
    assert_eq!(removed(&[&new]).as_deref(), Some("web-0"));
    assert_eq!(removed(&[&new, &old]), None);
}

#[rstest]
#[case::judged("2026-01-02T00:00:48Z", "RolloutHealthy", Some(48))]
#[case::of_an_activation_before("2026-01-01T00:00:48Z", "RolloutHealthy", None)]
#[case::found_running(DAY_2, "RolloutHealthy", None)]
#[case::not_yet("2026-01-02T00:00:48Z", "Undetermined", None)]
fn what_is_judged_still_tells_how_long_it_took(
    #[case] time: &str,
    #[case] reason: &str,
    #[case] expected: Option<i64>,
) {
    let mut required = condition("RollbackRequired", "False", reason, "");
    required["lastTransitionTime"] = json!(time);
    let activations = json!([activation(DAY_2, None, Some("Healthy"))]);
    let release = release("web-1", &json!({"activations": activations, "conditions": [required]}));
    let entry = Entry::of(&release, [].into_iter());
    assert_eq!(entry.took.map(|took| took.as_secs()), expected);
}

#[test]
fn what_failed_before_the_active_one_is_told_with_its_cause() {
    let status = |start: &str, end: Option<&str>, verdict: &str| {
        json!({
            "images": [{"container": "app", "asked": "ghcr.io/acme/web:2.0.0"}],
            "activations": [activation(start, end, Some(verdict))],
            "conditions": [condition("Healthy", "False", "ImagePullFailed", "no such image")],
        })
    };
    let failed = release("web-2", &status(DAY_2, Some(DAY_3), "Failed"));
    let superseded = release("web-2", &status(DAY_2, Some(DAY_3), "Superseded"));
    let active = release("web-1", &status(DAY_3, None, "Healthy"));
    let told = fallen(&[&failed, &active], &active);
    assert_eq!(told.as_deref(), Some("2.0.0 failed: no such image"));
    assert_eq!(fallen(&[&superseded, &active], &active), None);
}

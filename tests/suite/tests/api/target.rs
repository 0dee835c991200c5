//! ReleaseTarget.

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    NamedValue as _,
    conditions::{State as _, TargetState},
    gates::{Gate, WaitReason},
    reasons::{BlockedReason, Note},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{Bed, Write, edited, expect_refusal, long, unique_target};

const KIND: &str = "ReleaseTarget";
const TIME: &str = "2026-11-30T06:00:00Z";

fn target(name: &str) -> Value {
    json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": KIND, "metadata": { "name": name },
    })
}

fn condition(condition_type: &str, reason: &str) -> Value {
    json!({
        "type": condition_type, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": TIME,
    })
}

/// A status with everything in it.
fn status() -> Value {
    json!({ "status": {
        "instance": "belay-system/belay-operator",
        "annotationPrefix": "release.example.com",
        "workload": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1" },
        "containers": ["app", "init:migrate"],
        "current": {
            "image": "r/web:1.9.2", "tag": "1.9.2", "digest": format!("sha256:{}", "0".repeat(64)),
            "release": "web-2b7e1f0",
        },
        "wanted": { "image": "r/web:2.0.0", "tag": "2.0.0", "release": "web-4f1c0a9", "since": TIME },
        "candidates": [
            { "tag": "v2.0.0", "gate": "WaitingForImage", "message": "not there", "since": TIME },
            { "tag": "v1.9.3" },
        ],
        "active": "web-2b7e1f0",
        "hold": "true",
        "blocked": [
            { "from": "v2.0.0", "to": "v1.9.2", "reason": "RolloutFailed", "until": TIME, "count": 1 },
        ],
        "reverts": [{ "manager": "helm", "value": "r/web:1.9.1", "time": TIME }],
        "pause": { "scaledObject": "web", "mode": "scale-in", "release": "web-4f1c0a9", "expires": TIME },
        "waiting": { "reason": "Deadline", "until": TIME },
        "forge": { "budget": "exhausted", "resetTime": TIME },
        "conditions": [condition("Ready", "Progressing"), condition("Progressing", "Rolling")],
    } })
}

async fn created(bed: &Bed) -> Result<String> {
    let created = bed.create(&target(&unique_target()), Write::Kept).await?;
    Ok(created["metadata"]["name"].as_str().context("no name")?.to_owned())
}

fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (1..=count).map(item).collect()
}

fn candidate(n: usize) -> Value {
    json!({ "tag": format!("v{n}") })
}

fn block(_: usize) -> Value {
    json!({ "from": "v2", "reason": "RolledBack" })
}

fn revert(_: usize) -> Value {
    json!({ "manager": "helm", "value": "r/web:1", "time": TIME })
}

fn container(n: usize) -> Value {
    json!(format!("c{n}"))
}

#[tokio::test]
async fn a_target_is_named_within_the_limit() -> Result<()> {
    let bed = Bed::get().await?;
    bed.create(&target(&"a".repeat(245)), Write::Dry).await?;
    let answer = bed.create(&target(&"a".repeat(246)), Write::Dry).await;
    expect_refusal(answer, 422, "<nil>", "at most 245 characters")
}

#[tokio::test]
async fn a_target_has_no_spec() -> Result<()> {
    let bed = Bed::get().await?;
    let strange = edited(target(&unique_target()), &[("/spec", json!({}))]);
    expect_refusal(bed.create(&strange, Write::Dry).await, 400, "", "unknown field \"spec\"")
}

#[rstest]
#[case::as_it_is(&[])]
#[case::as_many_candidates_as_possible(&[("/status/candidates", many(10, candidate))])]
#[case::as_many_blocks_as_possible(&[("/status/blocked", many(10, block))])]
#[case::as_many_reverts_as_possible(&[("/status/reverts", many(3, revert))])]
#[case::as_many_containers_as_possible(&[("/status/containers", many(64, container))])]
#[case::enough_budget(&[("/status/forge", json!({ "budget": "ok" }))])]
#[case::little_budget(&[("/status/forge", json!({ "budget": "low" }))])]
#[case::a_reset_that_is_not_known(&[("/status/forge", json!({ "budget": "exhausted" }))])]
#[case::a_wait_for_a_limit(&[("/status/waiting", json!({ "reason": "ConcurrencyLimit" }))])]
#[case::the_longest_tag(&[("/status/candidates/0/tag", long(512))])]
#[case::the_longest_hold(&[("/status/hold", long(512))])]
#[case::the_longest_gate_message(&[("/status/candidates/0/message", long(1024))])]
#[case::the_longest_image(&[("/status/current/image", long(1024)), ("/status/wanted/image", long(1024))])]
#[case::the_longest_manager(&[("/status/reverts/0/manager", long(128))])]
#[tokio::test]
async fn a_status_may_be_written(#[case] edits: &[(&str, Value)]) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let patch = edited(status(), edits);
    let written = bed.patch_status(KIND, &name, &patch, Write::Dry).await?;
    ensure!(written["status"] == patch["status"], "changed: {}", written["status"]);
    Ok(())
}

#[rstest]
#[case::an_instance_without_namespace("instance", json!("belay-operator"), "status.instance", "should match")]
#[case::a_prefix_with_a_slash("annotationPrefix", json!("belay.dev/"), "status.annotationPrefix", "should match")]
#[case::a_workload_without_uid(
    "workload/uid",
    Value::Null,
    "status.workload.uid",
    "Required value"
)]
#[case::a_container_twice("containers", json!(["app", "app"]), "status.containers[1]", "Duplicate value")]
#[case::a_container_of_another_sort("containers", json!(["job:app"]), "status.containers[0]", "should match")]
#[case::too_many_containers(
    "containers",
    many(65, container),
    "status.containers",
    "must have at most 64 items"
)]
#[case::a_digest_without_algorithm("current/digest", json!("0".repeat(64)), "status.current.digest", "should match")]
#[case::an_image_too_long(
    "current/image",
    long(1025),
    "status.current.image",
    "may not be more than 1024"
)]
#[case::a_release_in_upper_case("wanted/release", json!("Web"), "status.wanted.release", "should match")]
#[case::wanted_since_no_time("wanted/since", json!("now"), "status.wanted.since", "must be of type date-time")]
#[case::too_many_candidates(
    "candidates",
    many(11, candidate),
    "status.candidates",
    "must have at most 10 items"
)]
#[case::a_candidate_twice("candidates/1/tag", json!("v2.0.0"), "status.candidates[1]", "Duplicate value")]
#[case::a_candidate_without_tag(
    "candidates/0/tag",
    Value::Null,
    "status.candidates[0].tag",
    "Required value"
)]
#[case::a_gate_of_ones_own("candidates/0/gate", json!("Moon"), "status.candidates[0].gate", "Unsupported value")]
#[case::a_gate_message_too_long(
    "candidates/0/message",
    long(1025),
    "status.candidates[0].message",
    "may not be more than 1024"
)]
#[case::a_hold_too_long("hold", long(513), "status.hold", "may not be more than 512")]
#[case::an_empty_hold("hold", json!(""), "status.hold", "at least 1 chars long")]
#[case::too_many_blocks("blocked", many(11, block), "status.blocked", "must have at most 10 items")]
#[case::a_block_without_reason(
    "blocked/0/reason",
    Value::Null,
    "status.blocked[0].reason",
    "Required value"
)]
#[case::a_block_of_ones_own("blocked/0/reason", json!("Moon"), "status.blocked[0].reason", "Unsupported value")]
#[case::a_block_counted_zero_times("blocked/0/count", json!(0), "status.blocked[0].count", "should be greater than or equal to 1")]
#[case::too_many_reverts("reverts", many(4, revert), "status.reverts", "must have at most 3 items")]
#[case::a_revert_by_nobody("reverts/0/manager", json!(""), "status.reverts[0].manager", "at least 1 chars long")]
#[case::a_manager_too_long(
    "reverts/0/manager",
    long(129),
    "status.reverts[0].manager",
    "may not be more than 128"
)]
#[case::a_pause_of_ones_own("pause/mode", json!("half"), "status.pause.mode", "Unsupported value")]
#[case::a_pause_without_end("pause/expires", Value::Null, "status.pause.expires", "Required value")]
#[case::a_wait_of_ones_own("waiting/reason", json!("Poll"), "status.waiting.reason", "Unsupported value")]
#[case::a_budget_in_numbers("forge/budget", json!("4999"), "status.forge.budget", "Unsupported value")]
#[case::a_reset_with_budget_left("forge/budget", json!("low"), "status.forge.resetTime", "only while the budget is exhausted")]
#[case::a_condition_twice("conditions/1/type", json!("Ready"), "status.conditions[1]", "Duplicate value")]
#[tokio::test]
async fn a_status_may_not_be_written(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    bed.refuses_in_status(KIND, &name, status(), (pointer, value), (field, says)).await
}

#[tokio::test]
async fn every_gate_wait_block_condition_and_note_may_be_written() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let gates =
        Gate::ALL.iter().map(|gate| json!({ "candidates": [{ "tag": "v1", "gate": gate }] }));
    let waits = WaitReason::ALL.iter().map(|reason| json!({ "waiting": { "reason": reason } }));
    let blocks = BlockedReason::ALL
        .iter()
        .map(|reason| json!({ "blocked": [{ "from": "v1", "reason": reason }] }));
    let states = TargetState::all().into_iter();
    let states = states.map(|state| condition(state.condition_type(), state.reason()));
    let notes = Note::all().into_iter();
    let notes = notes.map(|note| condition(note.condition_type(), note.reason()));
    let conditions = states.chain(notes).map(|condition| json!({ "conditions": [condition] }));
    for status in gates.chain(waits).chain(blocks).chain(conditions) {
        let patch = json!({ "status": status });
        let written = bed.patch_status(KIND, &name, &patch, Write::Dry).await;
        written.with_context(|| status.to_string())?;
    }
    Ok(())
}

/// The status is written whole each time; an unchanged one must not look like a change.
#[tokio::test]
async fn an_unchanged_status_is_no_write() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let mut object = target(&name);
    object["status"] = status()["status"].clone();
    let first = bed.apply_status(&object, "belay-operator-status").await?;
    let second = bed.apply_status(&object, "belay-operator-status").await?;
    ensure!(first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]);
    Ok(())
}

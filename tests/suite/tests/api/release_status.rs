//! Release: its status.

use anyhow::{Context as _, Result, ensure};
use belay_api::{conditions::ReleaseState, conditions::State as _};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    bed::{Bed, Write, edited, expect_refusal, long},
    release::release,
};

const TIME: &str = "2026-11-30T06:00:00Z";

fn condition(condition_type: &str, reason: &str) -> Value {
    json!({
        "type": condition_type, "status": "Unknown", "reason": reason, "message": "",
        "lastTransitionTime": TIME, "observedGeneration": 1,
    })
}

fn digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

/// A status with everything in it.
fn status() -> Value {
    json!({ "status": {
        "signature": "c4c1645e7f",
        "images": [
            { "container": "app", "asked": "r/web:1", "stored": "m/web:1", "digest": digest() },
            { "container": "init:app", "asked": "r/web:1" },
        ],
        "repositoryID": 9_007_199_254_740_993_i64,
        "activations": [
            {
                "ordinal": 1, "startTime": TIME, "endTime": TIME, "initiator": "GitHub v1",
                "verdict": "Healthy", "message": "m",
            },
            { "ordinal": 2, "startTime": TIME },
        ],
        "previousRelease": {
            "releaseRef": { "target": "web", "name": "web-3fe6a64" }, "transitionTime": TIME,
        },
        "progress": {
            "updated": 0, "available": 0, "old": 0, "wanted": 1,
            "lastProgressTime": TIME, "succeededTime": TIME, "bakeSince": TIME,
            "bakeTotal": "0s", "brokenSince": TIME,
        },
        "conditions": [condition("Active", "Applied"), condition("Healthy", "Rolling")],
    } })
}

async fn created(bed: &Bed) -> Result<String> {
    let created = bed.create(&release(), Write::Kept).await?;
    Ok(created["metadata"]["name"].as_str().context("no name")?.to_owned())
}

fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (1..=count).map(item).collect()
}

#[rstest]
#[case::as_it_is(&[])]
#[case::the_longest_image(&[("/status/images/0/asked", long(1024))])]
#[case::the_longest_stored_image(&[("/status/images/0/stored", long(1024))])]
#[case::as_many_images_as_possible(&[("/status/images", many(64, |n| json!({ "container": format!("c{n}"), "asked": "x" })))])]
#[case::a_longer_digest(&[("/status/images/0/digest", json!(format!("sha512:{}", "a".repeat(128))))])]
#[case::as_many_activations_as_possible(&[("/status/activations", many(50, |n| json!({ "ordinal": n, "startTime": TIME })))])]
#[case::the_longest_initiator(&[("/status/activations/1/initiator", long(512))])]
#[case::the_longest_activation_message(&[("/status/activations/1/message", long(1024))])]
#[case::a_condition_of_somebody_else(&[("/status/conditions/-", condition("example.com/Cosy", "By_Hand:1"))])]
#[case::the_longest_condition_message(&[("/status/conditions/0/message", long(32_768))])]
#[tokio::test]
async fn a_status_may_be_written(#[case] edits: &[(&str, Value)]) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let patch = edited(status(), edits);
    let written = bed.patch_status("Release", &name, &patch, Write::Dry).await?;
    ensure!(written["status"] == patch["status"], "changed: {}", written["status"]);
    Ok(())
}

#[rstest]
#[case::a_short_signature("signature", json!("c4c1645e7"), "status.signature", "should match")]
#[case::a_long_signature("signature", json!("c4c1645e7f0"), "status.signature", "may not be more than 10")]
#[case::an_upper_case_signature("signature", json!("C4C1645E7F"), "status.signature", "should match")]
#[case::an_image_twice("images/1/container", json!("app"), "status.images[1]", "Duplicate value")]
#[case::too_many_images("images", many(65, |n| json!({ "container": format!("c{n}"), "asked": "x" })), "status.images", "must have at most 64 items")]
#[case::a_container_of_another_sort("images/1/container", json!("job:app"), "status.images[1].container", "should match")]
#[case::no_image_asked("images/0/asked", Value::Null, "status.images[0].asked", "Required value")]
#[case::an_image_too_long(
    "images/0/asked",
    long(1025),
    "status.images[0].asked",
    "may not be more than 1024"
)]
#[case::an_empty_stored_image("images/0/stored", json!(""), "status.images[0].stored", "at least 1 chars long")]
#[case::a_digest_without_algorithm("images/0/digest", json!("0".repeat(64)), "status.images[0].digest", "should match")]
#[case::repository_zero("repositoryID", json!(0), "status.repositoryID", "should be greater than or equal to 1")]
#[case::a_repository_name("repositoryID", json!("acme/web"), "status.repositoryID", "must be of type integer")]
#[case::an_activation_twice("activations/1/ordinal", json!(1), "status.activations[1]", "Duplicate value")]
#[case::activation_zero("activations/1/ordinal", json!(0), "status.activations[1].ordinal", "should be greater than or equal to 1")]
#[case::an_activation_without_start(
    "activations/1/startTime",
    Value::Null,
    "status.activations[1].startTime",
    "Required value"
)]
#[case::a_start_that_is_no_time("activations/1/startTime", json!("now"), "status.activations[1].startTime", "must be of type date-time")]
#[case::too_many_activations("activations", many(51, |n| json!({ "ordinal": n, "startTime": TIME })), "status.activations", "must have at most 50 items")]
#[case::a_verdict_of_ones_own("activations/1/verdict", json!("Fine"), "status.activations[1].verdict", "Unsupported value")]
#[case::a_previous_release_without_time(
    "previousRelease/transitionTime",
    Value::Null,
    "status.previousRelease.transitionTime",
    "Required value"
)]
#[case::a_previous_release_without_name(
    "previousRelease/releaseRef/name",
    Value::Null,
    "status.previousRelease.releaseRef.name",
    "Required value"
)]
#[case::fewer_than_no_pods("progress/updated", json!(-1), "status.progress.updated", "should be greater than or equal to 0")]
#[case::a_rollout_that_wants_nothing("progress/wanted", json!(0), "status.progress.wanted", "should be greater than or equal to 1")]
#[case::a_bake_that_is_no_duration("progress/bakeTotal", json!("1 minute"), "status.progress.bakeTotal", "should match")]
#[case::a_condition_twice("conditions/1/type", json!("Active"), "status.conditions[1]", "Duplicate value")]
#[case::a_condition_without_reason(
    "conditions/0/reason",
    Value::Null,
    "status.conditions[0].reason",
    "Required value"
)]
#[case::an_empty_reason("conditions/0/reason", json!(""), "status.conditions[0].reason", "at least 1 chars long")]
#[case::a_reason_with_a_hyphen("conditions/0/reason", json!("by-hand"), "status.conditions[0].reason", "should match")]
#[case::a_type_with_a_blank("conditions/0/type", json!("A B"), "status.conditions[0].type", "should match")]
#[case::a_type_too_long(
    "conditions/0/type",
    long(317),
    "status.conditions[0].type",
    "may not be more than 316"
)]
#[case::a_message_too_long(
    "conditions/0/message",
    long(32_769),
    "status.conditions[0].message",
    "may not be more than 32768"
)]
#[case::a_status_of_ones_own("conditions/0/status", json!("Maybe"), "status.conditions[0].status", "Unsupported value")]
#[case::no_transition_time(
    "conditions/0/lastTransitionTime",
    Value::Null,
    "status.conditions[0].lastTransitionTime",
    "Required value"
)]
#[case::a_negative_generation("conditions/0/observedGeneration", json!(-1), "status.conditions[0].observedGeneration", "should be greater than or equal to 0")]
#[tokio::test]
async fn a_status_may_not_be_written(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    bed.refuses_in_status("Release", &name, status(), (pointer, value), (field, says)).await
}

#[tokio::test]
async fn an_unknown_field_of_a_status_is_refused() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let patch = json!({ "status": { "phase": "Running" } });
    let answer = bed.patch_status("Release", &name, &patch, Write::Dry).await;
    expect_refusal(answer, 422, "patch", "unknown field \"status.phase\"")
}

#[tokio::test]
async fn status_and_configuration_are_written_apart() -> Result<()> {
    let bed = Bed::get().await?;
    let mut with_status = release();
    with_status["status"] = status()["status"].clone();
    let created = bed.create(&with_status, Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    ensure!(created.get("status").is_none(), "status taken at create: {created}");

    let both = json!({ "config": { "targetName": "other" }, "status": { "repositoryID": 7 } });
    let written = bed.patch_status("Release", name, &both, Write::Kept).await?;
    ensure!(written["config"] == created["config"], "config changed: {written}");
    ensure!(written["status"]["repositoryID"] == 7, "{written}");

    let both = json!({
        "metadata": { "labels": { "a": "b" } }, "status": { "repositoryID": 8 },
    });
    let written = bed.patch("Release", name, &both, Write::Kept).await?;
    ensure!(written["metadata"]["labels"]["a"] == "b", "{written}");
    ensure!(written["status"]["repositoryID"] == 7, "status changed: {written}");
    Ok(())
}

/// A stored null would be found by `has()` in a rule and count as written.
#[rstest]
#[case("repositoryID", "status.repositoryID")]
#[case("previousRelease", "status.previousRelease")]
#[tokio::test]
async fn a_null_is_refused(#[case] key: &str, #[case] field: &str) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let object = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "metadata": { "name": name },
        "status": { "signature": "c4c1645e7f", key: null },
    });
    let answer = bed.apply_status(&object, "belay-operator-status").await;
    expect_refusal(answer, 422, field, "must be of type")
}

#[rstest]
#[case::changed(json!({ "status": { "previousRelease": { "releaseRef": { "name": "web-0000000" } } } }))]
#[case::at_another_time(json!({ "status": { "previousRelease": { "transitionTime": "2026-11-30T07:00:00Z" } } }))]
#[case::removed(json!({ "status": { "previousRelease": null } }))]
#[case::removed_with_the_whole_status(json!({ "status": null }))]
#[tokio::test]
async fn the_previous_release_is_written_once(#[case] patch: Value) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let none = json!({ "status": { "repositoryID": 7 } });
    bed.patch_status("Release", &name, &none, Write::Kept).await?;
    bed.patch_status("Release", &name, &status(), Write::Kept).await?;
    let again = json!({ "status": { "signature": "0000000000" } });
    bed.patch_status("Release", &name, &again, Write::Kept).await?;
    let answer = bed.patch_status("Release", &name, &patch, Write::Kept).await;
    expect_refusal(answer, 422, "status.previousRelease", "is written once")
}

fn activation(ordinal: i64, verdict: Option<&str>) -> Value {
    match verdict {
        Some(verdict) => json!({ "ordinal": ordinal, "startTime": TIME, "verdict": verdict }),
        None => json!({ "ordinal": ordinal, "startTime": TIME }),
    }
}

#[tokio::test]
async fn an_activation_keeps_its_verdict() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let write = async |activations: Value| {
        let patch = json!({ "status": { "activations": activations } });
        bed.patch_status("Release", &name, &patch, Write::Kept).await
    };
    write(json!([activation(1, None)])).await?;
    write(json!([activation(1, Some("Healthy"))])).await?;
    write(json!([activation(1, Some("Healthy")), activation(2, None)])).await?;
    let changed = write(json!([activation(1, Some("Failed")), activation(2, None)])).await;
    expect_refusal(changed, 422, "status.activations[0].verdict", "is written once")?;
    let removed = write(json!([activation(1, None), activation(2, None)])).await;
    expect_refusal(removed, 422, "status.activations[0].verdict", "is written once")?;
    // The oldest may be dropped, since the list is bounded.
    write(json!([activation(2, Some("Failed"))])).await?;
    Ok(())
}

/// Every reason of this version fits what the server takes.
#[tokio::test]
async fn every_condition_and_reason_may_be_written() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    for state in ReleaseState::all() {
        let condition = condition(state.condition_type(), state.reason());
        let patch = json!({ "status": { "conditions": [condition] } });
        let written = bed.patch_status("Release", &name, &patch, Write::Dry).await;
        written.with_context(|| format!("{}/{}", state.condition_type(), state.reason()))?;
    }
    Ok(())
}

/// Somebody else may own a condition of their own, such as the result of an analysis.
#[tokio::test]
async fn two_managers_own_one_condition_each() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let with = |conditions: Value| {
        json!({
            "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "metadata": { "name": name },
            "status": { "conditions": conditions },
        })
    };
    let types = |object: &Value| -> Vec<String> {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.filter_map(|c| c["type"].as_str().map(str::to_owned)).collect()
    };

    let ours = with(json!([condition("Active", "Applied"), condition("Healthy", "Rolling")]));
    bed.apply_status(&ours, "belay-operator-status").await?;
    let theirs = with(json!([condition("RollbackRequired", "ErrorRate")]));
    let both = bed.apply_status(&theirs, "alerting").await?;
    ensure!(types(&both) == ["Active", "Healthy", "RollbackRequired"], "{:?}", types(&both));

    let fewer = with(json!([condition("Active", "Applied")]));
    let left = bed.apply_status(&fewer, "belay-operator-status").await?;
    ensure!(types(&left) == ["Active", "RollbackRequired"], "{:?}", types(&left));

    let contested = with(json!([condition("RollbackRequired", "RolloutFailed")]));
    let answer = bed.apply_status(&contested, "belay-operator-status").await;
    expect_refusal(answer, 409, ".status.conditions[type=\"RollbackRequired\"].reason", "alerting")
}

//! AutomatedRollbackPolicy.

use anyhow::{Context as _, Result, ensure};
use belay_api::{conditions::PolicyState, conditions::State as _};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{Bed, Write, edited, expect_refusal, long, unique_target};

const KIND: &str = "AutomatedRollbackPolicy";

/// A policy with everything in it.
pub(crate) fn policy() -> Value {
    let target = unique_target();
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": KIND,
        "metadata": { "name": target },
        "spec": {
            "targetName": target,
            "enabled": false,
            "trigger": { "conditionType": "Healthy", "conditionStatus": "False" },
            "rollbackTemplate": {
                "metadata": {
                    "labels": { "team": "shop", "example.com/tier": "" },
                    "annotations": { "example.com/note": "any text: ä, and\nlines" },
                },
                "spec": {
                    "driver": "argocd",
                    "deploymentOptions": { "argocd_app_name": "web", "x": [{ "y": null }] },
                    "timeout": "45m",
                },
            },
        },
    })
}

#[rstest]
#[case::as_it_is(&[])]
#[case::enabled(&[("/spec/enabled", json!(true))])]
#[case::without_template(&[("/spec/rollbackTemplate", Value::Null)])]
#[case::with_an_empty_template(&[("/spec/rollbackTemplate", json!({}))])]
#[case::for_a_condition_of_somebody_else(&[("/spec/trigger/conditionType", json!("example.com/ErrorRate"))])]
#[case::the_longest_target(&[("/spec/targetName", long(245))])]
#[case::the_longest_condition(&[("/spec/trigger/conditionType", long(316))])]
#[case::the_longest_label(&[("/spec/rollbackTemplate/metadata/labels/team", long(63))])]
#[case::the_longest_annotation(&[("/spec/rollbackTemplate/metadata/annotations/a", long(4096))])]
#[case::the_longest_key(&[("/spec/rollbackTemplate/metadata/labels", json!({ (format!("{}/{}", "a".repeat(253), "b".repeat(63))): "x" }))])]
#[tokio::test]
async fn a_policy_may_be_created(#[case] edits: &[(&str, Value)]) -> Result<()> {
    let policy = edited(policy(), edits);
    let created = Bed::get().await?.create(&policy, Write::Dry).await?;
    ensure!(created["spec"] == policy["spec"], "changed: {}", created["spec"]);
    Ok(())
}

const KEY: &str = "a key must be [DOMAIN/]NAME";
const LABELS: &str = "spec.rollbackTemplate.metadata.labels";

#[rstest]
#[case::no_spec("/spec", Value::Null, "spec", "Required value")]
#[case::no_target("/spec/targetName", Value::Null, "spec.targetName", "Required value")]
#[case::an_empty_target("/spec/targetName", json!(""), "spec.targetName", "at least 1 chars long")]
#[case::an_upper_case_target("/spec/targetName", json!("Web"), "spec.targetName", "should match")]
#[case::a_target_too_long(
    "/spec/targetName",
    long(246),
    "spec.targetName",
    "may not be more than 245"
)]
#[case::neither_on_nor_off("/spec/enabled", Value::Null, "spec.enabled", "Required value")]
#[case::on_as_text("/spec/enabled", json!("yes"), "spec.enabled", "must be of type boolean")]
#[case::an_unknown_status("/spec/trigger/conditionStatus", json!("Unknown"), "spec.trigger.conditionStatus", "Unsupported value")]
#[case::an_empty_condition("/spec/trigger/conditionType", json!(""), "spec.trigger.conditionType", "at least 1 chars long")]
#[case::a_condition_with_a_blank("/spec/trigger/conditionType", json!("A B"), "spec.trigger.conditionType", "should match")]
#[case::a_condition_too_long(
    "/spec/trigger/conditionType",
    long(317),
    "spec.trigger.conditionType",
    "may not be more than 316"
)]
#[case::a_driver_of_ones_own("/spec/rollbackTemplate/spec/driver", json!("x"), "spec.rollbackTemplate.spec.driver", "Unsupported value")]
#[case::too_much_time("/spec/rollbackTemplate/spec/timeout", json!("25h"), "spec.rollbackTemplate.spec.timeout", "must be between 1s and 24h")]
#[case::a_timeout_in_words("/spec/rollbackTemplate/spec/timeout", json!("soon"), "spec.rollbackTemplate.spec.timeout", "should match")]
#[case::a_label_value_with_a_blank("/spec/rollbackTemplate/metadata/labels/team", json!("a b"), "spec.rollbackTemplate.metadata.labels.team", "should match")]
#[case::a_label_value_too_long(
    "/spec/rollbackTemplate/metadata/labels/team",
    long(64),
    "spec.rollbackTemplate.metadata.labels.team",
    "may not be more than 63"
)]
#[case::a_label_key_with_a_blank("/spec/rollbackTemplate/metadata/labels", json!({ "a b": "x" }), LABELS, KEY)]
#[case::a_label_key_with_two_slashes("/spec/rollbackTemplate/metadata/labels", json!({ "a/b/c": "x" }), LABELS, KEY)]
#[case::a_label_key_too_long("/spec/rollbackTemplate/metadata/labels", json!({ ("a".repeat(64)): "x" }), LABELS, KEY)]
#[case::an_annotation_key_with_a_blank(
    "/spec/rollbackTemplate/metadata/annotations", json!({ "a b": "x" }), "spec.rollbackTemplate.metadata.annotations", KEY
)]
#[case::an_annotation_too_long(
    "/spec/rollbackTemplate/metadata/annotations/a",
    long(4097),
    "spec.rollbackTemplate.metadata.annotations.a",
    "may not be more than 4096"
)]
#[tokio::test]
async fn a_policy_may_not_be_created(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bad = edited(policy(), &[(pointer, value)]);
    expect_refusal(Bed::get().await?.create(&bad, Write::Dry).await, 422, field, says)
}

#[rstest]
#[case::whole(Value::Null, "RollbackRequired", "True")]
#[case::inside_an_empty_one(json!({}), "RollbackRequired", "True")]
#[case::beside_a_status(json!({ "conditionStatus": "False" }), "RollbackRequired", "False")]
#[case::beside_a_type(json!({ "conditionType": "Healthy" }), "Healthy", "True")]
#[tokio::test]
async fn the_trigger_is_filled_in(
    #[case] trigger: Value,
    #[case] condition: &str,
    #[case] status: &str,
) -> Result<()> {
    let policy = edited(policy(), &[("/spec/trigger", trigger)]);
    let created = Bed::get().await?.create(&policy, Write::Dry).await?;
    let expected = json!({ "conditionType": condition, "conditionStatus": status });
    ensure!(created["spec"]["trigger"] == expected, "{}", created["spec"]["trigger"]);
    Ok(())
}

#[tokio::test]
async fn an_unknown_field_is_refused() -> Result<()> {
    let strange = edited(policy(), &[("/spec/rollbackTemplate/spec/force", json!(true))]);
    let says = "unknown field \"spec.rollbackTemplate.spec.force\"";
    expect_refusal(Bed::get().await?.create(&strange, Write::Dry).await, 400, "", says)
}

#[tokio::test]
async fn the_target_of_a_policy_cannot_change_and_the_rest_can() -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&policy(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let patch = json!({ "spec": { "targetName": "other" } });
    let answer = bed.patch(KIND, name, &patch, Write::Dry).await;
    expect_refusal(answer, 422, "spec.targetName", "is immutable")?;
    let patch = json!({ "spec": { "enabled": true, "trigger": { "conditionStatus": "True" } } });
    bed.patch(KIND, name, &patch, Write::Kept).await?;
    Ok(())
}

#[tokio::test]
async fn a_status_may_be_written_and_ignores_the_spec() -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&policy(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    for state in PolicyState::all() {
        let status = json!({
            "lastAutomatedRollbackTime": "2026-11-30T06:00:00Z",
            "latchedFor": "web-2b7e1f0",
            "conditions": [{
                "type": state.condition_type(), "status": "False", "reason": state.reason(),
                "message": "", "lastTransitionTime": "2026-11-30T06:00:00Z",
            }],
        });
        let both = json!({ "spec": { "enabled": true }, "status": status });
        let written = bed.patch_status(KIND, name, &both, Write::Dry).await?;
        ensure!(written["spec"]["enabled"] == false, "{written}");
        ensure!(written["status"] == status, "{written}");
    }
    let bad = json!({ "status": { "latchedFor": "Not A Name" } });
    let answer = bed.patch_status(KIND, name, &bad, Write::Dry).await;
    expect_refusal(answer, 422, "status.latchedFor", "should match")
}

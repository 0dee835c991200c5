//! Rollback.

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    NamedValue as _, conditions::RollbackState, conditions::State as _, rollback::Driver,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{Bed, Write, edited, expect_refusal, long, unique_target};

const TIME: &str = "2026-11-30T06:00:00Z";

/// A Rollback with everything in it.
pub(crate) fn rollback() -> Value {
    let target = unique_target();
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Rollback",
        "metadata": { "name": format!("{target}-2b7e1f0-to-4f1c0a9") },
        "spec": {
            "toReleaseRef": { "target": target, "name": format!("{target}-4f1c0a9") },
            "reason": "errors at checkout",
            "initiatedBy": { "principal": "alice", "type": "user" },
            "driver": "noop",
            "deploymentOptions": {
                "app_revision_name": "application",
                "deep": { "list": [1, 2.5, "x", { "y": false }], "nothing": null },
            },
            "force": true,
            "timeout": "1h30m",
        },
    })
}

#[rstest]
#[case::as_it_is(&[])]
#[case::to_the_latest_healthy(&[("/spec/toReleaseRef/name", Value::Null)])]
#[case::to_the_latest_healthy_by_an_empty_name(&[("/spec/toReleaseRef/name", json!(""))])]
#[case::by_the_system(&[("/spec/initiatedBy/type", json!("system"))])]
#[case::without_options(&[("/spec/deploymentOptions", Value::Null)])]
#[case::without_force(&[("/spec/force", Value::Null)])]
#[case::the_shortest_reason(&[("/spec/reason", json!("x"))])]
#[case::the_longest_reason(&[("/spec/reason", long(512))])]
#[case::the_longest_reason_counts_letters_not_bytes(&[("/spec/reason", json!("ä".repeat(512)))])]
#[case::the_longest_target(&[("/spec/toReleaseRef/target", long(245))])]
#[case::the_longest_release(&[("/spec/toReleaseRef/name", long(253))])]
#[case::the_longest_principal(&[("/spec/initiatedBy/principal", long(512))])]
#[case::the_shortest_timeout(&[("/spec/timeout", json!("1s"))])]
#[case::the_longest_timeout(&[("/spec/timeout", json!("24h"))])]
#[case::the_longest_timeout_in_minutes(&[("/spec/timeout", json!("1440m"))])]
#[tokio::test]
async fn a_rollback_may_be_created(#[case] edits: &[(&str, Value)]) -> Result<()> {
    let rollback = edited(rollback(), edits);
    let created = Bed::get().await?.create(&rollback, Write::Dry).await?;
    ensure!(created["spec"] == rollback["spec"], "changed: {}", created["spec"]);
    Ok(())
}

#[tokio::test]
async fn every_driver_is_accepted() -> Result<()> {
    let bed = Bed::get().await?;
    for driver in Driver::ALL {
        let edits = [("/spec/driver", json!(driver))];
        bed.create(&edited(rollback(), &edits), Write::Dry).await.context(driver.as_str())?;
    }
    Ok(())
}

#[rstest]
#[case::no_spec("/spec", Value::Null, "spec", "Required value")]
#[case::nowhere_to_go("/spec/toReleaseRef", Value::Null, "spec.toReleaseRef", "Required value")]
#[case::no_target(
    "/spec/toReleaseRef/target",
    Value::Null,
    "spec.toReleaseRef.target",
    "Required value"
)]
#[case::an_empty_target("/spec/toReleaseRef/target", json!(""), "spec.toReleaseRef.target", "at least 1 chars long")]
#[case::a_target_too_long(
    "/spec/toReleaseRef/target",
    long(246),
    "spec.toReleaseRef.target",
    "may not be more than 245"
)]
#[case::an_upper_case_target("/spec/toReleaseRef/target", json!("Web"), "spec.toReleaseRef.target", "should match")]
#[case::a_release_too_long(
    "/spec/toReleaseRef/name",
    long(254),
    "spec.toReleaseRef.name",
    "may not be more than 253"
)]
#[case::an_upper_case_release("/spec/toReleaseRef/name", json!("Web-4f1c0a9"), "spec.toReleaseRef.name", "should match")]
#[case::no_reason("/spec/reason", Value::Null, "spec.reason", "Required value")]
#[case::an_empty_reason("/spec/reason", json!(""), "spec.reason", "at least 1 chars long")]
#[case::a_reason_too_long("/spec/reason", long(513), "spec.reason", "may not be more than 512")]
#[case::by_nobody("/spec/initiatedBy", Value::Null, "spec.initiatedBy", "Required value")]
#[case::by_no_principal(
    "/spec/initiatedBy/principal",
    Value::Null,
    "spec.initiatedBy.principal",
    "Required value"
)]
#[case::by_an_empty_principal("/spec/initiatedBy/principal", json!(""), "spec.initiatedBy.principal", "at least 1 chars long")]
#[case::by_a_principal_too_long(
    "/spec/initiatedBy/principal",
    long(513),
    "spec.initiatedBy.principal",
    "may not be more than 512"
)]
#[case::by_no_type(
    "/spec/initiatedBy/type",
    Value::Null,
    "spec.initiatedBy.type",
    "Required value"
)]
#[case::by_a_robot("/spec/initiatedBy/type", json!("robot"), "spec.initiatedBy.type", "Unsupported value")]
#[case::a_driver_of_ones_own("/spec/driver", json!("kubectl"), "spec.driver", "Unsupported value")]
#[case::options_that_are_no_map("/spec/deploymentOptions", json!([1]), "spec.deploymentOptions", "must be of type object")]
#[case::force_as_text("/spec/force", json!("true"), "spec.force", "must be of type boolean")]
#[case::no_time("/spec/timeout", json!("0s"), "spec.timeout", "must be between 1s and 24h")]
#[case::too_much_time("/spec/timeout", json!("24h1s"), "spec.timeout", "must be between 1s and 24h")]
#[case::an_empty_timeout("/spec/timeout", json!(""), "spec.timeout", "at least 2 chars long")]
#[case::a_timeout_without_unit("/spec/timeout", json!("30"), "spec.timeout", "should match")]
#[case::a_timeout_in_days("/spec/timeout", json!("1d"), "spec.timeout", "should match")]
#[case::a_fraction_of_an_hour("/spec/timeout", json!("1.5h"), "spec.timeout", "should match")]
#[case::a_negative_timeout("/spec/timeout", json!("-30m"), "spec.timeout", "should match")]
#[case::units_out_of_order("/spec/timeout", json!("30m1h"), "spec.timeout", "should match")]
#[case::a_huge_timeout("/spec/timeout", json!("99999999h"), "spec.timeout", "should match")]
#[case::a_timeout_that_is_a_number("/spec/timeout", json!(1800), "spec.timeout", "must be of type string")]
#[tokio::test]
async fn a_rollback_may_not_be_created(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bad = edited(rollback(), &[(pointer, value)]);
    expect_refusal(Bed::get().await?.create(&bad, Write::Dry).await, 422, field, says)
}

#[tokio::test]
async fn the_number_of_options_is_bounded() -> Result<()> {
    let bed = Bed::get().await?;
    let options = |count: usize| -> Value {
        let options: serde_json::Map<_, _> =
            (0..count).map(|n| (n.to_string(), json!(n))).collect();
        edited(rollback(), &[("/spec/deploymentOptions", options.into())])
    };
    bed.create(&options(64), Write::Dry).await?;
    let answer = bed.create(&options(65), Write::Dry).await;
    expect_refusal(answer, 422, "spec.deploymentOptions", "must have at most 64 items")
}

#[tokio::test]
async fn defaults_are_filled_in() -> Result<()> {
    let minimal = edited(
        rollback(),
        &[
            ("/spec/driver", Value::Null),
            ("/spec/timeout", Value::Null),
            ("/spec/force", Value::Null),
            ("/spec/deploymentOptions", Value::Null),
        ],
    );
    let created = Bed::get().await?.create(&minimal, Write::Dry).await?;
    let mut expected = minimal["spec"].clone();
    expected["driver"] = json!("native");
    expected["timeout"] = json!("30m");
    ensure!(created["spec"] == expected, "{}", created["spec"]);
    Ok(())
}

#[tokio::test]
async fn a_null_becomes_the_default() -> Result<()> {
    let mut nulls = rollback();
    nulls["spec"]["driver"] = Value::Null;
    nulls["spec"]["timeout"] = Value::Null;
    let created = Bed::get().await?.create(&nulls, Write::Dry).await?;
    ensure!(created["spec"]["driver"] == "native", "{created}");
    ensure!(created["spec"]["timeout"] == "30m", "{created}");
    Ok(())
}

#[rstest]
#[case("/spec/image", "spec.image")]
#[case("/spec/toReleaseRef/namespace", "spec.toReleaseRef.namespace")]
#[tokio::test]
async fn an_unknown_field_is_refused(#[case] pointer: &str, #[case] field: &str) -> Result<()> {
    let strange = edited(rollback(), &[(pointer, json!("x"))]);
    let says = format!("unknown field \"{field}\"");
    expect_refusal(Bed::get().await?.create(&strange, Write::Dry).await, 400, "", &says)
}

#[rstest]
#[case::the_target(json!({ "target": "other" }))]
#[case::the_release(json!({ "name": "other-4f1c0a9" }))]
#[case::the_release_removed(json!({ "name": null }))]
#[tokio::test]
async fn where_a_rollback_goes_cannot_change(#[case] change: Value) -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&rollback(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let patch = json!({ "spec": { "toReleaseRef": change } });
    let answer = bed.patch("Rollback", name, &patch, Write::Dry).await;
    expect_refusal(answer, 422, "spec.toReleaseRef", "is immutable")
}

#[tokio::test]
async fn a_release_cannot_be_named_later() -> Result<()> {
    let bed = Bed::get().await?;
    let latest = edited(rollback(), &[("/spec/toReleaseRef/name", Value::Null)]);
    let created = bed.create(&latest, Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let patch = json!({ "spec": { "toReleaseRef": { "name": "web-4f1c0a9" } } });
    let answer = bed.patch("Rollback", name, &patch, Write::Dry).await;
    expect_refusal(answer, 422, "spec.toReleaseRef", "is immutable")
}

#[tokio::test]
async fn the_rest_of_a_rollback_can_change() -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&rollback(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let patch = json!({ "spec": { "reason": "better words", "timeout": "1h" } });
    let changed = bed.patch("Rollback", name, &patch, Write::Dry).await?;
    ensure!(changed["spec"]["reason"] == "better words", "{changed}");
    Ok(())
}

// === Status ===

fn condition(condition_type: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": condition_type, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": TIME,
    })
}

/// A status with everything in it, in mid-flight or ended.
fn status(succeeded: &str) -> Value {
    json!({ "status": {
        "fromReleaseRef": { "target": "web", "name": "web-2b7e1f0" },
        "toReleaseRef": { "target": "web", "name": "web-4f1c0a9" },
        "attemptCount": 1,
        "nextAttemptTime": TIME,
        "startTime": TIME,
        "completionTime": TIME,
        "deploymentID": "noop-shop-web",
        "deploymentURL": "https://github.com/acme/web/deployments/17",
        "automatic": true,
        "rejection": "NotHealthy",
        "message": "m",
        "conditions": [
            condition("InProgress", "False", "Completed"),
            condition("Succeeded", succeeded, "DeploymentSucceeded"),
        ],
    } })
}

async fn created(bed: &Bed) -> Result<String> {
    let created = bed.create(&rollback(), Write::Kept).await?;
    Ok(created["metadata"]["name"].as_str().context("no name")?.to_owned())
}

#[rstest]
#[case::no_attempt("attemptCount", json!(0), "status.attemptCount", "should be greater than or equal to 1")]
#[case::an_empty_id("deploymentID", json!(""), "status.deploymentID", "at least 1 chars long")]
#[case::an_id_too_long(
    "deploymentID",
    long(601),
    "status.deploymentID",
    "may not be more than 600"
)]
#[case::a_url_too_long(
    "deploymentURL",
    long(2049),
    "status.deploymentURL",
    "may not be more than 2048"
)]
#[case::a_message_too_long("message", long(32_769), "status.message", "may not be more than 32768")]
#[case::a_rejection_of_ones_own("rejection", json!("Sorry"), "status.rejection", "Unsupported value")]
#[case::a_start_that_is_no_time("startTime", json!("soon"), "status.startTime", "must be of type date-time")]
#[case::from_no_release(
    "fromReleaseRef/name",
    Value::Null,
    "status.fromReleaseRef.name",
    "Required value"
)]
#[case::a_condition_twice("conditions/1/type", json!("InProgress"), "status.conditions[1]", "Duplicate value")]
#[tokio::test]
async fn a_status_may_not_be_written(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    bed.refuses_in_status("Rollback", &name, status("Unknown"), (pointer, value), (field, says))
        .await
}

#[tokio::test]
async fn a_status_write_ignores_the_spec() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let both = json!({ "spec": { "reason": "other" }, "status": { "message": "m" } });
    let written = bed.patch_status("Rollback", &name, &both, Write::Kept).await?;
    ensure!(written["spec"]["reason"] == "errors at checkout", "{written}");
    ensure!(written["status"]["message"] == "m", "{written}");
    Ok(())
}

#[rstest]
#[case::the_outcome(json!({ "status": { "conditions": [condition("Succeeded", "Unknown", "Pending")] } }))]
#[case::the_outcome_reversed(json!({ "status": { "conditions": [
    condition("InProgress", "False", "Completed"), condition("Succeeded", "OPPOSITE", "DeploymentSucceeded"),
] } }))]
#[case::conditions_removed(json!({ "status": { "conditions": null } }))]
#[case::the_message(json!({ "status": { "message": "other" } }))]
#[case::the_release_gone_to(json!({ "status": { "toReleaseRef": { "name": "web-0000000" } } }))]
#[case::the_attempts(json!({ "status": { "attemptCount": 2 } }))]
#[case::the_time(json!({ "status": { "completionTime": "2026-11-30T07:00:00Z" } }))]
#[case::a_field_removed(json!({ "status": { "deploymentURL": null } }))]
#[case::everything_removed(json!({ "status": null }))]
#[tokio::test]
async fn an_ended_rollback_never_changes(
    #[case] patch: Value,
    #[values("True", "False")] succeeded: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    bed.patch_status("Rollback", &name, &status("Unknown"), Write::Kept).await?;
    bed.patch_status("Rollback", &name, &status(succeeded), Write::Kept).await?;
    let opposite = if succeeded == "True" { "False" } else { "True" };
    let patch: Value = serde_json::from_str(&patch.to_string().replace("OPPOSITE", opposite))?;
    let answer = bed.patch_status("Rollback", &name, &patch, Write::Kept).await;
    expect_refusal(answer, 422, "status", "an ended Rollback never changes")
}

#[tokio::test]
async fn an_ended_rollback_may_be_written_again_as_it_is_and_labelled() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    let ended = bed.patch_status("Rollback", &name, &status("True"), Write::Kept).await?;
    let again = bed.patch_status("Rollback", &name, &status("True"), Write::Kept).await?;
    ensure!(ended["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]);
    let label = json!({ "metadata": { "labels": { "reviewed": "yes" } } });
    bed.patch("Rollback", &name, &label, Write::Kept).await?;
    Ok(())
}

#[tokio::test]
async fn a_rollback_in_flight_may_change() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    bed.patch_status("Rollback", &name, &status("Unknown"), Write::Kept).await?;
    let next = json!({ "status": { "attemptCount": 2, "message": "once more" } });
    let changed = bed.patch_status("Rollback", &name, &next, Write::Kept).await?;
    ensure!(changed["status"]["attemptCount"] == 2, "{changed}");
    Ok(())
}

#[tokio::test]
async fn every_condition_and_reason_may_be_written() -> Result<()> {
    let bed = Bed::get().await?;
    let name = created(&bed).await?;
    for state in RollbackState::all() {
        let condition = condition(state.condition_type(), "Unknown", state.reason());
        let patch = json!({ "status": { "conditions": [condition] } });
        let written = bed.patch_status("Rollback", &name, &patch, Write::Dry).await;
        written.with_context(|| format!("{}/{}", state.condition_type(), state.reason()))?;
    }
    Ok(())
}

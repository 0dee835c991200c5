//! What all kinds have in common: names, selectors, columns.

use anyhow::{Context as _, Result, ensure};
use belay_api::{AnnotationPrefix, crd};
use belay_testkit::Cluster;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    bed::{Bed, Write, expect_refusal, unique_target},
    policy::policy,
    release::release,
    rollback::rollback,
};

const TIME: &str = "2026-11-30T06:00:00Z";

#[tokio::test]
async fn each_kind_has_its_short_name_and_category_and_status() -> Result<()> {
    let discovery = Bed::get().await?.discovery().await?;
    let resources = discovery["resources"].as_array().context("no resources")?;
    for (plural, short) in [
        ("releases", "rel"),
        ("rollbacks", "rb"),
        ("automatedrollbackpolicies", "arbp"),
        ("releasetargets", "rt"),
    ] {
        let find = |name: &str| resources.iter().find(|resource| resource["name"] == name);
        let found = find(plural).context(plural)?;
        ensure!(found["shortNames"] == json!([short]), "{found}");
        ensure!(found["categories"] == json!(["belay"]), "{found}");
        ensure!(found["namespaced"] == true, "{found}");
        find(&format!("{plural}/status")).with_context(|| format!("{plural} has no status"))?;
    }
    Ok(())
}

/// The API server says in a condition of the CRD what it had to ignore in a schema.
#[tokio::test]
async fn the_schemas_are_structural_and_versioned() -> Result<()> {
    Bed::get().await?;
    let prefix = AnnotationPrefix::default();
    let api: Api<CustomResourceDefinition> = Api::all(Cluster::shared().await?.admin()?);
    for ours in crd::all(&prefix) {
        let name = ours.name_any();
        let live = api.get(&name).await?;
        ensure!(crd::schema_version(&live, &prefix) == Some(crd::SCHEMA_VERSION), "{name}");
        let status = live.status.context("no status")?;
        let conditions = status.conditions.unwrap_or_default();
        let wrong =
            conditions.iter().find(|c| c.type_ == "NonStructuralSchema" && c.status == "True");
        ensure!(wrong.is_none(), "{name}: {wrong:?}");
    }
    Ok(())
}

#[rstest]
#[case::releases(release(), "config.targetName", "/config/targetName")]
#[case::rollbacks(rollback(), "spec.toReleaseRef.target", "/spec/toReleaseRef/target")]
#[case::policies(policy(), "spec.targetName", "/spec/targetName")]
#[tokio::test]
async fn objects_are_found_by_their_target(
    #[case] object: Value,
    #[case] field: &str,
    #[case] pointer: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&object, Write::Kept).await?;
    let kind = object["kind"].as_str().context("no kind")?;
    let target = object.pointer(pointer).and_then(Value::as_str).context("no target")?;
    let uids = |list: &Value| -> Vec<Value> {
        let items = list["items"].as_array().into_iter().flatten();
        items.map(|item| item["metadata"]["uid"].clone()).collect()
    };
    let uid = created["metadata"]["uid"].clone();

    let same = bed.list(kind, &format!("{field}={target}")).await?;
    ensure!(uids(&same) == [uid.clone()], "{same}");
    let others = bed.list(kind, &format!("{field}!={target}")).await?;
    ensure!(!uids(&others).contains(&uid), "{others}");
    let none = bed.list(kind, &format!("{field}=no-such-target")).await?;
    ensure!(uids(&none).is_empty(), "{none}");
    let answer = bed.list(kind, "status.message=x").await;
    expect_refusal(answer, 400, "", "field label not supported")
}

async fn with_status(bed: &Bed, object: &Value, status: Value) -> Result<(String, String)> {
    let created = bed.create(object, Write::Kept).await?;
    let kind = object["kind"].as_str().context("no kind")?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    bed.patch_status(kind, name, &json!({ "status": status }), Write::Kept).await?;
    Ok((kind.to_owned(), name.to_owned()))
}

fn condition(condition_type: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": condition_type, "status": status, "reason": reason, "message": "in words",
        "lastTransitionTime": TIME,
    })
}

/// Ages change while one looks; everything else is compared.
fn without_ages(row: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let age = |name: &str| matches!(name, "Age" | "Started" | "Fired");
    let mask = |value: Value| match value.as_str() {
        Some("<unknown>" | "<none>") | None => value,
        Some(_) => json!("AGE"),
    };
    row.into_iter()
        .map(|(name, value)| if age(&name) { (name, mask(value)) } else { (name, value) })
        .collect()
}

fn cells(cells: &[(&str, Value)]) -> Vec<(String, Value)> {
    cells.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[tokio::test]
async fn a_release_is_read_at_a_glance() -> Result<()> {
    let bed = Bed::get().await?;
    let object = release();
    let status = json!({
        "images": [{ "container": "app", "asked": "r/web:1.9.2" }],
        "activations": [
            { "ordinal": 1, "startTime": "2020-01-01T00:00:00Z" },
            { "ordinal": 2, "startTime": TIME },
        ],
        "conditions": [
            condition("Active", "True", "Applied"),
            condition("Healthy", "Unknown", "Baking"),
            condition("Ready", "False", "Baking"),
        ],
    });
    let (kind, name) = with_status(&bed, &object, status).await?;
    let row = bed.row(&kind, &name).await?;
    let started = row.iter().find(|(name, _)| name == "Started").map(|(_, value)| value.clone());
    let expected = cells(&[
        ("Name", json!(name)),
        ("Target", object["config"]["targetName"].clone()),
        ("Active", json!("True")),
        ("Healthy", json!("Unknown")),
        ("Ready", json!("Baking")),
        ("Image", json!("r/web:1.9.2")),
        ("Started", json!("AGE")),
        ("Age", json!("AGE")),
    ]);
    ensure!(without_ages(row.clone()) == expected, "{row:#?}");
    // The last activation counts, not the first, which is years ago.
    let started = started.and_then(|value| value.as_str().map(str::to_owned));
    ensure!(started.as_deref().is_some_and(|age| !age.contains('y')), "{started:?}");
    Ok(())
}

#[tokio::test]
async fn a_release_that_was_never_active_has_no_start() -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&release(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let row = bed.row("Release", name).await?;
    let started = row.iter().find(|(name, _)| name == "Started").context("no column")?;
    ensure!(started.1.is_null(), "{row:#?}");
    Ok(())
}

#[tokio::test]
async fn a_rollback_is_read_at_a_glance() -> Result<()> {
    let bed = Bed::get().await?;
    let object = rollback();
    let status = json!({
        "fromReleaseRef": { "target": "web", "name": "web-2b7e1f0" },
        "toReleaseRef": { "target": "web", "name": "web-4f1c0a9" },
        "attemptCount": 2,
        "message": "done",
        "conditions": [
            condition("InProgress", "False", "Completed"),
            condition("Succeeded", "True", "DeploymentSucceeded"),
        ],
    });
    let (kind, name) = with_status(&bed, &object, status).await?;
    let row = bed.row(&kind, &name).await?;
    let expected = cells(&[
        ("Name", json!(name)),
        ("Target", object["spec"]["toReleaseRef"]["target"].clone()),
        ("From", json!("web-2b7e1f0")),
        ("To", json!("web-4f1c0a9")),
        ("State", json!("Completed")),
        ("Outcome", json!("DeploymentSucceeded")),
        ("By", json!("alice")),
        ("Driver", json!("noop")),
        ("Attempts", json!(2)),
        ("Message", json!("done")),
        ("Age", json!("AGE")),
    ]);
    ensure!(without_ages(row.clone()) == expected, "{row:#?}");
    Ok(())
}

#[tokio::test]
async fn a_policy_is_read_at_a_glance() -> Result<()> {
    let bed = Bed::get().await?;
    let object = policy();
    let status = json!({
        "lastAutomatedRollbackTime": TIME,
        "conditions": [
            condition("Automated", "False", "DisabledByController"),
            condition("RollbackBlocked", "True", "NoReleaseToGoTo"),
        ],
    });
    let (kind, name) = with_status(&bed, &object, status).await?;
    let row = bed.row(&kind, &name).await?;
    let expected = cells(&[
        ("Name", json!(name)),
        ("Target", object["spec"]["targetName"].clone()),
        ("Enabled", json!(false)),
        ("Automated", json!("False")),
        ("Reason", json!("DisabledByController")),
        ("Blocked", json!("True")),
        ("Condition", json!("Healthy")),
        ("Status", json!("False")),
        ("Fired", json!("AGE")),
        ("Age", json!("AGE")),
    ]);
    ensure!(without_ages(row.clone()) == expected, "{row:#?}");
    Ok(())
}

#[tokio::test]
async fn a_target_is_read_at_a_glance() -> Result<()> {
    let bed = Bed::get().await?;
    let object = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "ReleaseTarget",
        "metadata": { "name": unique_target() },
    });
    let status = json!({
        "workload": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u" },
        "current": { "tag": "1.9.2" },
        "wanted": { "tag": "2.0.0" },
        "active": "web-2b7e1f0",
        "hold": "1.9.2",
        "conditions": [
            condition("Ready", "False", "Stalled"),
            condition("Stalled", "True", "ManagedByGitOps"),
            condition("Progressing", "False", "Idle"),
        ],
    });
    let (kind, name) = with_status(&bed, &object, status).await?;
    let row = bed.row(&kind, &name).await?;
    let expected = cells(&[
        ("Name", json!(name)),
        ("Status", json!("Stalled")),
        ("Current", json!("1.9.2")),
        ("Wanted", json!("2.0.0")),
        ("Reason", json!("ManagedByGitOps")),
        ("Doing", json!("Idle")),
        ("Hold", json!("1.9.2")),
        ("Release", json!("web-2b7e1f0")),
        ("Workload", json!("Deployment")),
        ("Message", json!("in words")),
        ("Age", json!("AGE")),
    ]);
    ensure!(without_ages(row.clone()) == expected, "{row:#?}");
    Ok(())
}

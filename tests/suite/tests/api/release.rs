//! Release: its configuration.

use anyhow::{Context as _, Result, ensure};
use belay_api::{ReleaseTarget, TargetName, names, release::ReleaseConfig};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{Bed, Write, edited, expect_refusal, long, unique_target};

/// A Release with everything in it, of a target of its own.
pub(crate) fn release() -> Value {
    named(&json!({
        "targetName": unique_target(),
        "revisions": [
            {
                "name": "application", "id": "v1.9.2", "source": "acme/web", "type": "github",
                "metadata": { "author": "alice", "branch": "main", "message": "m", "url": "https://x" },
            },
            { "name": "chart", "id": "2.4.0" },
        ],
        "workloadRef": { "kind": "Deployment", "name": "web", "container": "init:migrate" },
    }))
}

/// A Release of this configuration, under the name that follows from it.
fn named(config: &Value) -> Value {
    let name = serde_json::from_value::<ReleaseConfig>(config.clone()).ok().and_then(|config| {
        let target: TargetName = config.target_name.parse().ok()?;
        Some(names::release_name(&target, &config.signature()))
    });
    json!({
        "apiVersion": "belay.dev/v1alpha1",
        "kind": "Release",
        // A configuration that cannot be read is refused under any name.
        "metadata": { "name": name.unwrap_or_else(|| "web-0000000".to_owned()) },
        "config": config,
    })
}

fn revisions(count: usize) -> Value {
    (0..count).map(|n| json!({ "name": format!("r{n}"), "id": "1" })).collect()
}

#[rstest]
#[case::as_it_is(&[])]
#[case::without_workload(&[("/config/workloadRef", Value::Null)])]
#[case::without_container(&[("/config/workloadRef/container", Value::Null)])]
#[case::one_revision(&[("/config/revisions", revisions(1))])]
#[case::ten_revisions(&[("/config/revisions", revisions(10))])]
#[case::only_name_and_id(&[("/config/revisions/0", json!({ "name": "application", "id": "x" }))])]
#[case::a_type_of_ones_own(&[("/config/revisions/0/type", json!("terraform"))])]
#[case::a_target_of_one_letter(&[("/config/targetName", json!("a"))])]
#[case::a_target_with_dots(&[("/config/targetName", json!("statefulset.db-0.x"))])]
#[case::the_longest_target(&[("/config/targetName", long(245))])]
#[case::the_longest_revision_name(&[("/config/revisions/0/name", long(253))])]
#[case::the_longest_id(&[("/config/revisions/0/id", long(1024))])]
#[case::the_longest_source(&[("/config/revisions/0/source", long(2048))])]
#[case::the_longest_type(&[("/config/revisions/0/type", long(63))])]
#[case::the_longest_author(&[("/config/revisions/0/metadata/author", long(512))])]
#[case::the_longest_branch(&[("/config/revisions/0/metadata/branch", long(512))])]
#[case::the_longest_message(&[("/config/revisions/0/metadata/message", long(8192))])]
#[case::the_longest_url(&[("/config/revisions/0/metadata/url", long(2048))])]
#[case::the_longest_kind(&[("/config/workloadRef/kind", long(63))])]
#[case::the_longest_workload(&[("/config/workloadRef/name", long(253))])]
#[tokio::test]
async fn a_release_may_be_created(#[case] edits: &[(&str, Value)]) -> Result<()> {
    let config = edited(release(), edits)["config"].clone();
    let created = Bed::get().await?.create(&named(&config), Write::Dry).await?;
    ensure!(created["config"] == config, "changed: {}", created["config"]);
    Ok(())
}

#[rstest]
#[case::no_config("/config", Value::Null, "config", "Required value")]
#[case::no_target("/config/targetName", Value::Null, "config.targetName", "Required value")]
#[case::no_revisions("/config/revisions", Value::Null, "config.revisions", "Required value")]
#[case::empty_revisions("/config/revisions", json!([]), "config.revisions", "should have at least 1 items")]
#[case::eleven_revisions(
    "/config/revisions",
    revisions(11),
    "config.revisions",
    "must have at most 10 items"
)]
#[case::one_name_twice("/config/revisions/1/name", json!("application"), "config.revisions[1]", "Duplicate value")]
#[case::no_revision_name(
    "/config/revisions/0/name",
    Value::Null,
    "config.revisions[0].name",
    "Required value"
)]
#[case::no_id("/config/revisions/0/id", Value::Null, "config.revisions[0].id", "Required value")]
#[case::empty_revision_name("/config/revisions/0/name", json!(""), "config.revisions[0].name", "at least 1 chars long")]
#[case::empty_id("/config/revisions/0/id", json!(""), "config.revisions[0].id", "at least 1 chars long")]
#[case::empty_source("/config/revisions/0/source", json!(""), "config.revisions[0].source", "at least 1 chars long")]
#[case::empty_type("/config/revisions/0/type", json!(""), "config.revisions[0].type", "at least 1 chars long")]
#[case::an_id_that_is_a_number("/config/revisions/0/id", json!(7), "config.revisions[0].id", "must be of type string")]
#[case::empty_target("/config/targetName", json!(""), "config.targetName", "at least 1 chars long")]
#[case::an_upper_case_target("/config/targetName", json!("Web"), "config.targetName", "should match")]
#[case::a_target_with_an_underscore("/config/targetName", json!("a_b"), "config.targetName", "should match")]
#[case::a_target_that_ends_in_a_dot("/config/targetName", json!("web."), "config.targetName", "should match")]
#[case::a_target_with_a_part_that_begins_with_a_hyphen("/config/targetName", json!("a.-b"), "config.targetName", "should match")]
#[case::a_target_too_long(
    "/config/targetName",
    long(246),
    "config.targetName",
    "may not be more than 245"
)]
#[case::a_revision_name_too_long(
    "/config/revisions/0/name",
    long(254),
    "config.revisions[0].name",
    "may not be more than 253"
)]
#[case::an_id_too_long(
    "/config/revisions/0/id",
    long(1025),
    "config.revisions[0].id",
    "may not be more than 1024"
)]
#[case::a_source_too_long(
    "/config/revisions/0/source",
    long(2049),
    "config.revisions[0].source",
    "may not be more than 2048"
)]
#[case::a_type_too_long(
    "/config/revisions/0/type",
    long(64),
    "config.revisions[0].type",
    "may not be more than 63"
)]
#[case::an_author_too_long(
    "/config/revisions/0/metadata/author",
    long(513),
    "config.revisions[0].metadata.author",
    "may not be more than 512"
)]
#[case::a_branch_too_long(
    "/config/revisions/0/metadata/branch",
    long(513),
    "config.revisions[0].metadata.branch",
    "may not be more than 512"
)]
#[case::a_message_too_long(
    "/config/revisions/0/metadata/message",
    long(8193),
    "config.revisions[0].metadata.message",
    "may not be more than 8192"
)]
#[case::a_url_too_long(
    "/config/revisions/0/metadata/url",
    long(2049),
    "config.revisions[0].metadata.url",
    "may not be more than 2048"
)]
#[case::no_workload_kind(
    "/config/workloadRef/kind",
    Value::Null,
    "config.workloadRef.kind",
    "Required value"
)]
#[case::no_workload_name(
    "/config/workloadRef/name",
    Value::Null,
    "config.workloadRef.name",
    "Required value"
)]
#[case::a_kind_too_long(
    "/config/workloadRef/kind",
    long(64),
    "config.workloadRef.kind",
    "may not be more than 63"
)]
#[case::a_workload_name_too_long(
    "/config/workloadRef/name",
    long(254),
    "config.workloadRef.name",
    "may not be more than 253"
)]
#[case::a_workload_name_in_upper_case("/config/workloadRef/name", json!("Web"), "config.workloadRef.name", "should match")]
#[case::a_container_in_upper_case("/config/workloadRef/container", json!("App"), "config.workloadRef.container", "should match")]
#[case::a_container_of_another_sort("/config/workloadRef/container", json!("job:app"), "config.workloadRef.container", "should match")]
#[tokio::test]
async fn a_release_may_not_be_created(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bad = edited(release(), &[(pointer, value)]);
    expect_refusal(Bed::get().await?.create(&bad, Write::Dry).await, 422, field, says)
}

#[rstest]
#[case::of_another_target("other-c4c1645")]
#[case::without_hash("TARGET")]
#[case::with_a_short_hash("TARGET-c4c164")]
#[case::with_a_long_hash("TARGET-c4c16450")]
#[case::with_letters_that_are_no_digits("TARGET-c4c164g")]
#[case::with_something_between("TARGET-x-c4c1645")]
#[tokio::test]
async fn a_release_may_not_have_any_name(#[case] name: &str) -> Result<()> {
    let release = release();
    let target = release["config"]["targetName"].as_str().context("no target")?;
    let name = name.replace("TARGET", target);
    let bad = edited(release.clone(), &[("/metadata/name", json!(name))]);
    let says = "the name must be config.targetName, '-' and the first 7 hex digits";
    expect_refusal(Bed::get().await?.create(&bad, Write::Dry).await, 422, "<nil>", says)
}

#[rstest]
#[case::a_spec("/spec", "spec")]
#[case::in_config("/config/image", "config.image")]
#[case::in_a_revision("/config/revisions/1/digest", "config.revisions[1].digest")]
#[case::in_metadata("/config/revisions/0/metadata/date", "config.revisions[0].metadata.date")]
#[tokio::test]
async fn an_unknown_field_is_refused_if_asked_and_else_dropped(
    #[case] pointer: &str,
    #[case] field: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let plain = release();
    let strange = edited(plain.clone(), &[(pointer, json!("x"))]);
    let says = format!("unknown field \"{field}\"");
    expect_refusal(bed.create(&strange, Write::Dry).await, 400, "", &says)?;
    let created = bed.create_with(&strange, Write::Dry, "Ignore").await?;
    ensure!(created["config"] == plain["config"] && created.get("spec").is_none(), "{created}");
    Ok(())
}

/// The merge patch that sets the second revision beside an unchanged first one.
fn second(revision: &Value) -> Value {
    let first = release()["config"]["revisions"][0].clone();
    json!({ "config": { "revisions": [first, revision] } })
}

#[rstest]
#[case::the_metadata_of_a_revision(second(&json!({ "name": "chart", "id": "2.4.0", "metadata": { "author": "bob" } })))]
#[case::metadata_removed(json!({ "config": { "revisions": [
    { "name": "application", "id": "v1.9.2", "source": "acme/web", "type": "github" },
    { "name": "chart", "id": "2.4.0" },
] } }))]
#[case::the_order_of_revisions(json!({ "config": { "revisions": [
    { "name": "chart", "id": "2.4.0" },
    { "name": "application", "id": "v1.9.2", "source": "acme/web", "type": "github" },
] } }))]
#[case::annotations(json!({ "metadata": { "annotations": { "belay.dev/active": "true" } } }))]
#[case::labels(json!({ "metadata": { "labels": { "team": "shop" } } }))]
#[tokio::test]
async fn of_a_release_one_may_change(#[case] patch: Value) -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&release(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    bed.patch("Release", name, &patch, Write::Dry).await?;
    Ok(())
}

const ONLY_METADATA: &str = "only the metadata of a revision can change";
const NEITHER: &str = "revisions can be neither added nor removed";

#[rstest]
#[case::the_target(json!({ "config": { "targetName": "other" } }), "config.targetName", "is immutable")]
#[case::an_id(second(&json!({ "name": "chart", "id": "2.4.1" })), "config.revisions[1]", ONLY_METADATA)]
#[case::a_source_added(second(&json!({ "name": "chart", "id": "2.4.0", "source": "x" })), "config.revisions[1]", ONLY_METADATA)]
#[case::a_type_added(second(&json!({ "name": "chart", "id": "2.4.0", "type": "helm_chart" })), "config.revisions[1]", ONLY_METADATA)]
#[case::source_and_type_removed(
    json!({ "config": { "revisions": [{ "name": "application", "id": "v1.9.2" }, { "name": "chart", "id": "2.4.0" }] } }),
    "config.revisions[0]", ONLY_METADATA
)]
#[case::a_source(
    json!({ "config": { "revisions": [
        { "name": "application", "id": "v1.9.2", "source": "evil/web", "type": "github" }, { "name": "chart", "id": "2.4.0" },
    ] } }),
    "config.revisions[0]", ONLY_METADATA
)]
#[case::a_revision_renamed(second(&json!({ "name": "charts", "id": "2.4.0" })), "config.revisions", NEITHER)]
#[case::a_revision_removed(json!({ "config": { "revisions": [{ "name": "chart", "id": "2.4.0" }] } }), "config.revisions", NEITHER)]
#[case::a_revision_added(
    json!({ "config": { "revisions": [
        { "name": "application", "id": "v1.9.2", "source": "acme/web", "type": "github" },
        { "name": "chart", "id": "2.4.0" }, { "name": "more", "id": "1" },
    ] } }),
    "config.revisions", NEITHER
)]
#[case::the_workload(json!({ "config": { "workloadRef": { "name": "other" } } }), "config.workloadRef", "is immutable")]
#[case::the_workload_removed(json!({ "config": { "workloadRef": null } }), "config.workloadRef", "is immutable")]
#[case::the_container_removed(json!({ "config": { "workloadRef": { "container": null } } }), "config.workloadRef", "is immutable")]
#[case::all_of_it(json!({ "config": null }), "config", "Required value")]
#[tokio::test]
async fn of_a_release_one_may_not_change(
    #[case] patch: Value,
    #[case] field: &str,
    #[case] says: &str,
) -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&release(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    expect_refusal(bed.patch("Release", name, &patch, Write::Dry).await, 422, field, says)
}

#[tokio::test]
async fn a_workload_cannot_be_added_to_a_release_later() -> Result<()> {
    let bed = Bed::get().await?;
    let config = edited(release(), &[("/config/workloadRef", Value::Null)])["config"].clone();
    let created = bed.create(&named(&config), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let patch = json!({ "config": { "workloadRef": { "kind": "Deployment", "name": "web" } } });
    let answer = bed.patch("Release", name, &patch, Write::Dry).await;
    expect_refusal(answer, 422, "config.workloadRef", "is immutable")
}

#[tokio::test]
async fn creating_the_same_release_again_meets_the_first() -> Result<()> {
    let bed = Bed::get().await?;
    let release = release();
    bed.create(&release, Write::Kept).await?;
    expect_refusal(bed.create(&release, Write::Kept).await, 409, "", "already exists")
}

/// The generation is what an observer compares: it must move with the configuration alone.
#[tokio::test]
async fn only_a_change_of_the_configuration_raises_the_generation() -> Result<()> {
    let bed = Bed::get().await?;
    let created = bed.create(&release(), Write::Kept).await?;
    let name = created["metadata"]["name"].as_str().context("no name")?;
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    ensure!(generation(&created) == 1);

    let annotate = json!({ "metadata": { "annotations": { "belay.dev/active": "true" } } });
    let annotated = bed.patch("Release", name, &annotate, Write::Kept).await?;
    ensure!(generation(&annotated) == 1, "{annotated}");
    let report = json!({ "status": { "repositoryID": 7 } });
    let reported = bed.patch_status("Release", name, &report, Write::Kept).await?;
    ensure!(generation(&reported) == 1, "{reported}");
    let patch = second(&json!({ "name": "chart", "id": "2.4.0", "metadata": { "author": "b" } }));
    let changed = bed.patch("Release", name, &patch, Write::Kept).await?;
    ensure!(generation(&changed) == 2, "{changed}");
    Ok(())
}

#[tokio::test]
async fn what_the_types_write_is_what_the_server_takes() -> Result<()> {
    let bed = Bed::get().await?;
    let typed: belay_api::Release = serde_json::from_value(release())?;
    let created = bed.create(&serde_json::to_value(&typed)?, Write::Kept).await?;
    let read: belay_api::Release = serde_json::from_value(created)?;
    ensure!(read.spec == typed.spec);

    let target: ReleaseTarget = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "ReleaseTarget",
        "metadata": { "name": unique_target() },
    }))?;
    bed.create(&serde_json::to_value(&target)?, Write::Dry).await?;
    Ok(())
}

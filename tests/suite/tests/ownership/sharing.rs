//! Letting go, and what stays because somebody else has it.

use anyhow::Result;
use serde_json::json;

use crate::scene::{
    Outcome::Applied, Scene, app, chart, chart_with, conflict, image, image_required, nothing, only,
};

/// The release manager alone has the image.
async fn sole_owner() -> Result<Scene> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/U");
    Ok(web)
}

/// T7 removes the field where nothing requires it. A Deployment requires the image: the API server
/// refuses, and the image cannot be lost by letting go of it.
#[tokio::test]
async fn t07_the_sole_owner_cannot_let_the_image_go() -> Result<()> {
    let web = sole_owner().await?;
    let without = only(json!([{ "name": "app" }]));
    assert_eq!(web.apply("release", without).await?, image_required());
    assert_eq!(web.apply("release", nothing()).await?, image_required());
    assert_eq!(web.value("P.image").await?, "a:2");
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/U");
    Ok(())
}

/// The same for a field that is not required.
#[tokio::test]
async fn t07_a_field_that_its_sole_owner_drops_is_removed() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    let with = only(json!([{ "name": "app", "workingDir": "/a" }]));
    assert_eq!(web.apply("release", with).await?, Applied);
    assert_eq!(web.value("P.workingDir").await?, "/a");
    assert_eq!(web.apply("release", only(json!([{ "name": "app" }]))).await?, Applied);
    assert_eq!(web.value("P.workingDir").await?, json!(null));
    assert_eq!(web.owners("P.workingDir").await?, "unowned; parent helm/U; parent release/A");
    Ok(())
}

#[tokio::test]
async fn t08_what_a_co_owner_drops_stays() -> Result<()> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.apply("release", image("a:1")).await?, Applied);
    assert_eq!(web.apply("helm", chart(json!({ "name": "app" }))).await?, Applied);
    assert_eq!(web.value("P.image").await?, "a:1");
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/A");
    Ok(())
}

#[tokio::test]
async fn d_the_image_is_handed_back_by_owning_it_together_first() -> Result<()> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    assert_eq!(web.apply("helm", chart_with("a:2")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "helm/A + release/A");
    let before = web.live().await?;
    assert_eq!(web.apply("release", nothing()).await?, Applied);
    assert_eq!(web.value("P.image").await?, "a:2");
    assert_eq!(web.owners("P.image").await?, "helm/A");
    assert_eq!(web.live().await?["metadata"]["generation"], before["metadata"]["generation"]);
    Ok(())
}

#[tokio::test]
async fn t09_an_entry_of_client_side_apply_keeps_the_field() -> Result<()> {
    let mut container = app("a:1");
    container["workingDir"] = json!("/a");
    let web = Scene::created_by("kubectl-client-side-apply", chart(container.clone())).await?;
    assert_eq!(web.apply("kubectl", chart(container)).await?, Applied);
    assert_eq!(web.owners("P.workingDir").await?, "kubectl/A + kubectl-client-side-apply/U");
    assert_eq!(web.apply("kubectl", chart_with("a:1")).await?, Applied);
    assert_eq!(web.value("P.workingDir").await?, "/a");
    let owners = web.owners("P.workingDir").await?;
    assert_eq!(owners, "kubectl-client-side-apply/U; parent kubectl/A");
    Ok(())
}

/// T15 removes the image where nothing requires it; see T7.
#[tokio::test]
async fn t15_an_empty_list_of_containers_is_refused_too() -> Result<()> {
    let web = sole_owner().await?;
    assert_eq!(web.apply("release", only(json!([]))).await?, image_required());
    assert_eq!(web.value("P.image").await?, "a:2");
    Ok(())
}

#[tokio::test]
async fn a_an_update_that_changes_nothing_owns_nothing() -> Result<()> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    web.update("x", |_| Ok(())).await?;
    let ownership = web.ownership().await?;
    assert!(ownership.entries().all(|entry| entry.manager() != "x"), "x has an entry");
    assert_eq!(web.owners("P.image").await?, "helm/A");
    Ok(())
}

#[tokio::test]
async fn an_annotation_with_dots_is_a_conflict_under_its_whole_name() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    let annotated = |value: &str| {
        let mut body = image("a:1");
        body["metadata"]["annotations"] = json!({ "belay.dev/release": value });
        body
    };
    assert_eq!(web.apply("release", annotated("one")).await?, Applied);
    let refused = web.apply("other", annotated("two")).await?;
    assert_eq!(refused, conflict(&["release/A .metadata.annotations.belay.dev/release"]));
    let owners = web.owners("metadata.annotations['belay.dev/release']").await?;
    assert_eq!(owners, "release/A; parent kube-controller-manager/U/status");
    Ok(())
}

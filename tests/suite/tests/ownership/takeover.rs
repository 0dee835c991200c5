//! Who takes the image from whom.

use anyhow::Result;
use belay_ownership::{Identity, Operation};
use serde_json::json;

use crate::scene::{Outcome::Applied, Scene, app, app_of, chart, chart_with, conflict, image};

/// T1: a Deployment of Helm 3, and the release manager beside it with the same image.
async fn co_owned() -> Result<Scene> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.apply("release", image("a:1")).await?, Applied);
    Ok(web)
}

/// T2: the release manager has taken the image by force.
async fn taken() -> Result<Scene> {
    let web = co_owned().await?;
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    Ok(web)
}

/// T5: a Deployment of Helm 4, its image taken by force.
async fn taken_from_helm_4() -> Result<Scene> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    Ok(web)
}

#[tokio::test]
async fn t01_the_same_value_is_co_owned_and_changes_nothing() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    let before = web.live().await?;
    assert_eq!(web.apply("release", image("a:1")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "helm/U + release/A");
    assert_eq!(web.live().await?["metadata"]["generation"], before["metadata"]["generation"]);
    let ownership = web.ownership().await?;
    let time = |identity| ownership.entry(&identity).map(belay_ownership::Entry::time);
    let helm = Identity::new("helm", Operation::Update, "", "apps/v1");
    assert!(matches!(time(helm), Some(Some(_))), "helm's time is not known");
    assert_eq!(time(Identity::applier("release")), Some(None), "it has changed nothing");
    Ok(())
}

#[tokio::test]
async fn t02_another_value_conflicts_until_it_is_forced() -> Result<()> {
    let web = co_owned().await?;
    assert_eq!(web.apply("release", image("a:2")).await?, conflict(&["helm/U P.image"]));
    assert_eq!(web.value("P.image").await?, "a:1");
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/U");
    assert_eq!(web.owners("P.name").await?, "helm/U + release/A");
    assert_eq!(web.owners("P.imagePullPolicy").await?, "helm/U; parent release/A");
    Ok(())
}

#[tokio::test]
async fn t03_an_update_takes_the_image_back_without_an_error() -> Result<()> {
    let web = taken().await?;
    web.update("helm", |object| {
        app_of(object)?["image"] = json!("a:1");
        Ok(())
    })
    .await?;
    assert_eq!(web.owners("P.image").await?, "helm/U; parent release/A");
    let left = web.fields("release", Operation::Apply).await?;
    assert_eq!(left.as_deref(), Some(&["P".to_owned(), "P.name".to_owned()][..]));
    Ok(())
}

#[tokio::test]
async fn t04_after_that_the_release_manager_meets_a_conflict() -> Result<()> {
    let web = taken().await?;
    web.update("helm", |object| {
        app_of(object)?["image"] = json!("a:1");
        Ok(())
    })
    .await?;
    assert_eq!(web.apply("release", image("a:2")).await?, conflict(&["helm/U P.image"]));
    Ok(())
}

#[tokio::test]
async fn t05_a_chart_without_the_image_leaves_it_alone() -> Result<()> {
    let web = taken_from_helm_4().await?;
    assert_eq!(web.apply("helm", chart(json!({ "name": "app" }))).await?, Applied);
    assert_eq!(web.value("P.image").await?, "a:2");
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/A");
    Ok(())
}

#[tokio::test]
async fn t06_a_chart_with_the_old_image_fails() -> Result<()> {
    let web = taken_from_helm_4().await?;
    assert_eq!(web.apply("helm", chart(json!({ "name": "app" }))).await?, Applied);
    assert_eq!(web.apply("helm", chart_with("a:1")).await?, conflict(&["release/A P.image"]));
    assert_eq!(web.value("P.image").await?, "a:2");
    Ok(())
}

#[tokio::test]
async fn t10_an_atomic_list_is_one_conflict() -> Result<()> {
    let with_args = |args: &[&str]| {
        let mut container = app("a:1");
        container["args"] = json!(args);
        container
    };
    let web = Scene::applied_by("helm", chart(with_args(&["--a"]))).await?;
    let body = crate::scene::only(json!([{ "name": "app", "args": ["--a", "--b"] }]));
    assert_eq!(web.apply("other", body).await?, conflict(&["helm/A P.args"]));
    assert_eq!(web.owners("P.args[0]").await?, "helm/A via P.args");
    Ok(())
}

#[tokio::test]
async fn t18_a_manager_that_updates_takes_from_itself_that_applies() -> Result<()> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    web.update("helm", |object| {
        app_of(object)?["image"] = json!("a:2");
        Ok(())
    })
    .await?;
    assert_eq!(web.owners("P.image").await?, "helm/U; parent helm/A");
    assert_eq!(web.apply("helm", chart_with("a:1")).await?, conflict(&["helm/U P.image"]));
    Ok(())
}

#[tokio::test]
async fn b_force_takes_from_every_co_owner() -> Result<()> {
    let web = Scene::applied_by("h", chart_with("a:1")).await?;
    assert_eq!(web.apply("r", image("a:1")).await?, Applied);
    assert_eq!(web.apply("s", image("a:1")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "h/A + r/A + s/A");
    assert_eq!(web.force("t", image("a:2")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "t/A; parent h/A; parent r/A; parent s/A");
    Ok(())
}

#[tokio::test]
async fn c_a_co_owner_conflicts_with_the_others_only() -> Result<()> {
    let web = Scene::applied_by("h", chart_with("a:1")).await?;
    assert_eq!(web.apply("r", image("a:1")).await?, Applied);
    assert_eq!(web.apply("r", image("a:2")).await?, conflict(&["h/A P.image"]));
    Ok(())
}

#[tokio::test]
async fn j_an_autoscaler_owns_the_replicas_by_way_of_scale() -> Result<()> {
    let with_replicas = |replicas: u32| {
        let mut body = chart_with("a:1");
        body["spec"]["replicas"] = json!(replicas);
        body
    };
    let web = Scene::applied_by("helm", with_replicas(2)).await?;
    web.scale("autoscaler", 5).await?;
    assert_eq!(web.owners("spec.replicas").await?, "autoscaler/U/scale");
    let refused = web.apply("helm", with_replicas(2)).await?;
    assert_eq!(refused, conflict(&["autoscaler/U/scale .spec.replicas"]));
    assert_eq!(web.apply("helm", with_replicas(5)).await?, Applied);
    assert_eq!(web.owners("spec.replicas").await?, "autoscaler/U/scale + helm/A");
    Ok(())
}

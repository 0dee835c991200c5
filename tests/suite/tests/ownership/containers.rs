//! Containers and variables that come and go.

use anyhow::Result;
use belay_ownership::Operation;
use serde_json::{Value, json};

use crate::scene::{
    Outcome::{self, Applied},
    Scene, app, app_of, chart, chart_with, containers, image, only,
};

fn side() -> Value {
    json!({ "name": "side", "image": "b:1" })
}

/// T12: helm's Deployment with two containers, and a variable that a third party added to `app`.
async fn patched() -> Result<Scene> {
    let mut body = chart(app("a:1"));
    containers(&mut body)?.push(side());
    let web = Scene::created_by("helm", body).await?;
    web.update("envpatcher", |object| {
        app_of(object)?["env"] = json!([{ "name": "X", "value": "1" }]);
        Ok(())
    })
    .await?;
    Ok(web)
}

#[tokio::test]
async fn t12_who_adds_a_variable_owns_it_and_not_the_container() -> Result<()> {
    let web = patched().await?;
    assert_eq!(web.owners("P.env[name=X].value").await?, "envpatcher/U; parent helm/U");
    assert_eq!(web.owners("P").await?, "helm/U; below envpatcher/U");
    let fields = web.fields("envpatcher", Operation::Update).await?.unwrap_or_default();
    let item = "P.env[name=\"X\"]".to_owned();
    assert_eq!(fields, ["P.env".to_owned(), item.clone(), item.clone() + ".name", item + ".value"]);
    Ok(())
}

#[tokio::test]
async fn t13_with_a_container_goes_all_that_anybody_owned_in_it() -> Result<()> {
    let web = patched().await?;
    web.update("kubectl-edit", |object| {
        containers(object)?.retain(|container| container["name"] != "app");
        Ok(())
    })
    .await?;
    assert_eq!(web.container_names().await?, ["side"]);
    assert_eq!(web.owners("P").await?, "unowned");
    assert_eq!(web.owners("P.env[name=X].value").await?, "unowned");
    assert_eq!(web.fields("envpatcher", Operation::Update).await?, None);
    Ok(())
}

#[tokio::test]
async fn t14_a_put_without_the_container_removes_it_and_its_owner_silently() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.apply("release", only(json!([side()]))).await?, Applied);
    assert_eq!(web.container_names().await?, ["app", "side"]);
    web.update("helm", |object| {
        containers(object)?.retain(|container| container["name"] != "side");
        Ok(())
    })
    .await?;
    assert_eq!(web.container_names().await?, ["app"]);
    assert_eq!(web.fields("release", Operation::Apply).await?, None);
    Ok(())
}

#[tokio::test]
async fn h_a_typo_in_the_name_adds_a_container() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    let typo = json!([{ "name": "ap", "image": "a:2" }]);
    assert_eq!(web.apply("release", only(typo)).await?, Applied);
    assert_eq!(web.container_names().await?, ["app", "ap"]);
    assert_eq!(web.value("P.image").await?, "a:1");
    Ok(())
}

#[tokio::test]
async fn i_one_name_in_both_lists_of_containers_is_refused_by_the_server() -> Result<()> {
    let web = Scene::applied_by("helm", chart_with("a:1")).await?;
    let mut body = image("a:1");
    body["spec"]["template"]["spec"]["initContainers"] = json!([{ "name": "app", "image": "i:1" }]);
    let refused = "spec.template.spec.initContainers[0].name: Duplicate value: \"app\"";
    assert_eq!(web.apply("release", body).await?, Outcome::Invalid(refused.to_owned()));
    Ok(())
}

#[tokio::test]
async fn i_force_on_a_container_leaves_the_init_containers_with_their_owner() -> Result<()> {
    let mut body = chart_with("a:1");
    body["spec"]["template"]["spec"]["initContainers"] =
        json!([{ "name": "init", "image": "i:1" }]);
    let web = Scene::applied_by("helm", body).await?;
    assert_eq!(web.force("release", image("a:2")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "release/A; parent helm/A");
    let init = ".spec.template.spec.initContainers[name=init].image";
    assert_eq!(web.owners(init).await?, "helm/A");
    assert_eq!(web.value(init).await?, "i:1");
    Ok(())
}

#[tokio::test]
async fn a_star_names_the_owner_of_each_container() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    assert_eq!(web.apply("release", only(json!([side()]))).await?, Applied);
    let (ownership, live) = (web.ownership().await?, web.live().await?);
    let query = "spec.template.spec.containers[*].image".parse()?;
    let lookup = ownership.lookup(&query, Some(&live));
    let found: Vec<_> = lookup
        .answers
        .iter()
        .map(|answer| {
            let owners: Vec<_> = answer.owners.iter().map(|owner| owner.entry.manager()).collect();
            (answer.value.cloned().unwrap_or_default(), owners)
        })
        .collect();
    assert_eq!(found, [(json!("a:1"), vec!["helm"]), (json!("b:1"), vec!["release"])]);
    Ok(())
}

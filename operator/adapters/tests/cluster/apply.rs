//! The apply of images and the `release` annotation.

use anyhow::{Result, bail, ensure};
use belay_adapters::cluster::{Class, Done};
use belay_engine::{observed::Refusal, plan::Step};
use belay_ownership::{Identity, Ownership};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::bed::{
    Bed, OPERATOR, WEB, client, gone, images, intent, refused, release_of, web, writer,
};

/// The images of the same value that `helm` wrote, so that they are co-owned.
const SAME: [&str; 2] = ["app=r.example/web:1", "init:migrate=r.example/web:1"];
const NEXT: [&str; 2] = ["app=r.example/web:2", "init:migrate=r.example/web:2"];

fn applied(done: Done) -> Result<(Deployment, Option<String>)> {
    match done {
        Done::Applied { workload, surprise } => Ok((*workload, surprise)),
        other => bail!("not applied: {other:?}"),
    }
}

/// The spec without images, and the metadata that is the owner's.
fn rest(deployment: &Deployment) -> Result<Value> {
    let mut deployment = deployment.clone();
    deployment.annotations_mut().remove(crate::bed::RELEASE);
    deployment.annotations_mut().remove("deployment.kubernetes.io/revision");
    let (labels, annotations) = (deployment.labels().clone(), deployment.annotations().clone());
    let mut spec = serde_json::to_value(&deployment.spec)?;
    for list in ["containers", "initContainers"] {
        for container in spec["template"]["spec"][list].as_array_mut().into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    Ok(json!([labels, annotations, spec]))
}

#[tokio::test]
async fn it_moves_all_images_and_the_annotation_in_one_generation_and_touches_nothing_else()
-> Result<()> {
    let bed = Bed::new().await?;
    let before = bed.deploy(&web()).await?;
    let (after, surprise) = applied(bed.apply(&NEXT, true).await?)?;
    assert_eq!(surprise, None);
    let expected = ["init:migrate=r.example/web:2", "app=r.example/web:2", "log=r.example/log:5"];
    assert_eq!(images(&after), expected);
    assert_eq!(release_of(&after), Some("web-1234567"));
    assert_eq!(after.metadata.generation, before.metadata.generation.map(|it| it + 1));
    assert_eq!(rest(&after)?, rest(&before)?);

    let ownership = Ownership::decode(&after.metadata.managed_fields.unwrap_or_default());
    let paths = ownership
        .entry(&Identity::applier(OPERATOR))
        .map(|entry| entry.paths().iter().map(ToString::to_string).collect::<Vec<_>>());
    let app = ".spec.template.spec.containers[name=\"app\"]";
    let init = ".spec.template.spec.initContainers[name=\"migrate\"]";
    let expected = [
        ".metadata.annotations['belay.dev/release']".to_owned(),
        app.to_owned(),
        format!("{app}.image"),
        format!("{app}.name"),
        init.to_owned(),
        format!("{init}.image"),
        format!("{init}.name"),
    ];
    let mut paths = paths.unwrap_or_default();
    paths.sort();
    ensure!(paths == expected, "{paths:#?}");
    Ok(())
}

#[tokio::test]
async fn the_same_again_writes_nothing() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    applied(bed.apply(&NEXT, true).await?)?;
    let before = bed.facts().await?;
    let (after, surprise) = applied(bed.apply(&NEXT, false).await?)?;
    assert_eq!(surprise, None);
    assert_eq!(after.resource_version(), Some(before.resource_version));
    Ok(())
}

#[tokio::test]
async fn unforced_it_names_the_managers_in_the_way_and_changes_nothing() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let migrate = json!({ "spec": { "template": { "spec": { "initContainers": [
        { "name": "migrate", "image": "r.example/web:0" },
    ] } } } });
    let params = PatchParams { field_manager: Some("kubectl-set".into()), ..Default::default() };
    bed.api::<Deployment>().patch(WEB, &params, &Patch::Strategic(migrate)).await?;
    let before = bed.at_rest(WEB).await?;
    let done = bed.apply(&NEXT, false).await?;
    let managers = vec!["helm".to_owned(), "kubectl-set".to_owned()];
    assert_eq!(done, Done::Refused(Refusal::Conflict { managers }));
    let after = bed.at_rest(WEB).await?;
    assert_eq!(after.resource_version(), before.resource_version());
    Ok(())
}

#[tokio::test]
async fn an_image_of_the_same_value_needs_no_force() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let (after, surprise) = applied(bed.apply(&SAME, false).await?)?;
    assert_eq!(surprise, None);
    let facts = crate::bed::facts(&after);
    let app = facts.containers.iter().find(|it| it.live.name.name == "app");
    let holders: Vec<_> = app.into_iter().flat_map(|it| &it.held_by).collect();
    let holders: Vec<_> = holders.iter().map(|it| (it.manager.as_str(), it.applies)).collect();
    assert_eq!(holders, [(OPERATOR, true), ("helm", false)]);
    Ok(())
}

#[tokio::test]
async fn what_has_changed_since_it_was_read_is_left_alone_even_by_force() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let stale = bed.facts().await?;
    let other = json!({ "metadata": { "annotations": { "team": "billing" } } });
    bed.merge::<Deployment>("kubectl-annotate", WEB, &other).await?;
    for force in [false, true] {
        // Of the value that is live: else the conflict of managers would be told instead.
        let step = Step::Apply(intent(&stale, &SAME, force));
        let error = refused(bed.writer.act(bed.place(&stale), &step).await, Class::Conflict)?;
        assert_eq!(error.to_string(), format!("apply images to Deployment {}/web", bed.namespace));
    }
    assert_eq!(release_of(&bed.at_rest(WEB).await?), None);
    Ok(())
}

#[tokio::test]
async fn a_workload_made_anew_is_not_the_one_that_was_decided_about() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let first = bed.facts().await?;
    let api = bed.api::<Deployment>();
    api.delete(WEB, &DeleteParams::default()).await?;
    gone(&api, WEB).await?;
    bed.deploy(&web()).await?;
    let second = bed.facts().await?;
    let uid_of_the_first = {
        let mut intent = intent(&second, &NEXT, true);
        intent.from.uid.clone_from(&first.uid);
        intent
    };
    for intent in [intent(&first, &NEXT, true), uid_of_the_first] {
        let done = bed.writer.act(bed.place(&first), &Step::Apply(intent)).await;
        refused(done, Class::Conflict)?;
    }
    assert_eq!(release_of(&bed.at_rest(WEB).await?), None);
    Ok(())
}

#[tokio::test]
async fn a_workload_that_is_gone_is_not_made_again() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let facts = bed.facts().await?;
    let api = bed.api::<Deployment>();
    api.delete(WEB, &DeleteParams::default()).await?;
    gone(&api, WEB).await?;
    let step = Step::Apply(intent(&facts, &NEXT, true));
    refused(bed.writer.act(bed.place(&facts), &step).await, Class::Conflict)?;
    // The chart gives the operator no right to create.
    let access = bed.with_rights(&[("get,list,watch,patch", "apps/deployments")]).await?;
    let operator = writer(&client(&access)?);
    refused(operator.act(bed.place(&facts), &step).await, Class::Conflict)?;
    ensure!(api.get_opt(WEB).await?.is_none(), "the workload was made again");
    Ok(())
}

#[tokio::test]
async fn the_right_to_patch_is_enough_and_needed() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let facts = bed.facts().await?;
    let step = Step::Apply(intent(&facts, &NEXT, true));
    let reader = bed.with_rights(&[("get,list,watch", "apps/deployments")]).await?;
    let done = writer(&client(&reader)?).act(bed.place(&facts), &step).await?;
    let Done::Refused(Refusal::Denied { message }) = done else { bail!("{done:?}") };
    ensure!(message.contains("cannot patch resource \"deployments\""), "{message}");

    let operator = bed.with_rights(&[("get,list,watch,patch", "apps/deployments")]).await?;
    let done = writer(&client(&operator)?).act(bed.place(&facts), &step).await?;
    let (after, surprise) = applied(done)?;
    assert_eq!((release_of(&after), surprise), (Some("web-1234567"), None));
    Ok(())
}

#[tokio::test]
async fn a_container_that_does_not_exist_any_more_makes_a_broken_template_and_is_refused()
-> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let done = bed.apply(&["app=r.example/web:2", "init:migrate="], true).await?;
    let Done::Refused(Refusal::Denied { message }) = done else { bail!("{done:?}") };
    ensure!(message.contains("initContainers[0].image"), "{message}");
    Ok(())
}

//! Releases and Rollbacks.

use anyhow::{Result, bail, ensure};
use belay_adapters::cluster::{Class, Done};
use belay_api::{
    Release, Rollback,
    annotations::OwnAnnotation,
    release::{PreviousRelease, ReleaseConfig, ReleaseFields, ReleaseRef, ReleaseStatus, Revision},
    rollback::RollbackStatus,
};
use belay_engine::plan::{Precondition, Step};
use belay_testkit::wait;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams},
};
use serde_json::json;

use crate::bed::{Bed, client, precondition, refused, writer};

fn release(tag: &str) -> Release {
    let config = ReleaseConfig {
        target_name: "web".into(),
        revisions: vec![Revision {
            name: "application".into(),
            id: tag.into(),
            source: Some("acme/web".into()),
            type_: Some("github".into()),
            ..Revision::default()
        }],
        workload_ref: None,
    };
    let name = format!("web-{}", config.signature().short());
    Release {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: ReleaseFields { config },
        status: None,
    }
}

fn rollback(name: &str) -> Result<Rollback> {
    let object = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Rollback", "metadata": { "name": name },
        "spec": {
            "toReleaseRef": { "target": "web", "name": "" }, "reason": "it broke",
            "initiatedBy": { "principal": "belay-operator", "type": "system" },
        },
    });
    Ok(serde_json::from_value(object)?)
}

async fn created(bed: &Bed, tag: &str) -> Result<Release> {
    match bed.act(&Step::CreateRelease(Box::new(release(tag)))).await? {
        Done::Release(release) => Ok(*release),
        other => bail!("{other:?}"),
    }
}

fn condition(kind: &str, reason: &str) -> Condition {
    Condition {
        type_: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

fn status_step(release: &Release, status: ReleaseStatus) -> Step {
    Step::ReleaseStatus {
        name: release.name_any(),
        from: precondition(&release.metadata),
        status: Box::new(status),
    }
}

#[tokio::test]
async fn a_release_is_created_once() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    ensure!(made.metadata.uid.is_some(), "{made:?}");
    let again = bed.act(&Step::CreateRelease(Box::new(release("v1")))).await?;
    assert_eq!(again, Done::Exists);
    assert_eq!(bed.api::<Release>().list(&ListParams::default()).await?.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_status_is_written_whole_and_leaves_the_rest_alone() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    let noted = json!({ "metadata": {
        "labels": { "team": "shop" }, "annotations": { "note": "mine" },
    } });
    let made: Release = bed.merge("someone", &made.name_any(), &noted).await?;
    let first = ReleaseStatus {
        repository_id: Some(7),
        conditions: vec![condition("Active", "Applied"), condition("Healthy", "Healthy")],
        ..ReleaseStatus::default()
    };
    let done = bed.act(&status_step(&made, first.clone())).await?;
    let Done::Release(written) = done else { bail!("{done:?}") };
    assert_eq!(written.status, Some(first));
    assert_eq!(written.spec, made.spec);
    assert_eq!(written.metadata.generation, made.metadata.generation);
    assert_eq!((written.labels(), written.annotations()), (made.labels(), made.annotations()));

    // What is left out goes, whoever wrote it.
    let foreign = json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "status": { "conditions": [{
            "type": "Audited", "status": "True", "reason": "Yes", "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        }] },
    });
    let api = bed.api::<Release>();
    let params = PatchParams::apply("auditor");
    let seen = api.patch_status(&made.name_any(), &params, &Patch::Apply(&foreign)).await?;
    let kinds = |release: &Release| -> Vec<String> {
        let conditions = release.status.iter().flat_map(|status| &status.conditions);
        conditions.map(|condition| condition.type_.clone()).collect()
    };
    assert_eq!(kinds(&seen), ["Active", "Healthy", "Audited"]);
    let mut second = seen.status.clone().unwrap_or_default();
    second.repository_id = None;
    second.conditions.retain(|condition| condition.type_ != "Healthy");
    let done = bed.act(&status_step(&seen, second.clone())).await?;
    let Done::Release(written) = done else { bail!("{done:?}") };
    assert_eq!(written.status, Some(second));
    assert_eq!(kinds(&written), ["Active", "Audited"]);
    Ok(())
}

#[tokio::test]
async fn a_write_is_refused_unless_the_object_is_the_one_that_was_seen() -> Result<()> {
    let bed = Bed::new().await?;
    let seen = created(&bed, "v1").await?;
    let name = seen.name_any();
    let label = json!({ "metadata": { "labels": { "touched": "yes" } } });
    let now: Release = bed.merge("someone", &name, &label).await?;
    let stale = precondition(&seen.metadata);
    let other = Precondition { uid: "not-this-one".into(), ..precondition(&now.metadata) };
    let missing = "web-0000000".to_owned();
    for (name, from) in [(&name, &stale), (&name, &other), (&missing, &stale)] {
        let (name, from) = (name.clone(), from.clone());
        let status = Box::new(ReleaseStatus::default());
        let value = "{}".to_owned();
        for step in [
            Step::ReleaseStatus { name: name.clone(), from: from.clone(), status },
            Step::BlockRelease { name: name.clone(), from: from.clone(), value },
        ] {
            let error = refused(bed.act(&step).await, Class::Conflict)?;
            ensure!(error.to_string().ends_with(&format!("{}/{name}", bed.namespace)), "{error}");
        }
    }
    for from in [stale, other] {
        let step = Step::DeleteRelease { name: name.clone(), from };
        refused(bed.act(&step).await, Class::Conflict)?;
    }
    let after = bed.api::<Release>().get(&name).await?;
    assert_eq!(after.resource_version(), now.resource_version());
    Ok(())
}

#[tokio::test]
async fn a_block_is_noted_beside_other_annotations() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    let name = made.name_any();
    let note = json!({ "metadata": { "annotations": { "note": "mine" } } });
    let noted: Release = bed.merge("someone", &name, &note).await?;
    let value = r#"{"from":"v1"}"#.to_owned();
    let from = precondition(&noted.metadata);
    let done = bed.act(&Step::BlockRelease { name, from, value: value.clone() }).await?;
    let Done::Release(blocked) = done else { bail!("{done:?}") };
    let key = belay_api::AnnotationPrefix::default().key(OwnAnnotation::Blocked);
    assert_eq!(blocked.annotations().get(&key), Some(&value));
    assert_eq!(blocked.annotations().get("note").map(String::as_str), Some("mine"));
    Ok(())
}

#[tokio::test]
async fn a_release_is_deleted_and_may_be_gone_already() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    let from = precondition(&made.metadata);
    let step = Step::DeleteRelease { name: made.name_any(), from };
    for _ in 0..2 {
        assert_eq!(bed.act(&step).await?, Done::Deleted);
    }
    ensure!(bed.api::<Release>().get_opt(&made.name_any()).await?.is_none(), "it is still there");
    Ok(())
}

#[tokio::test]
async fn a_rollback_lives_from_create_to_delete() -> Result<()> {
    let bed = Bed::new().await?;
    let create = Step::CreateRollback(Box::new(rollback("back")?));
    let done = bed.act(&create).await?;
    let Done::Rollback(made) = done else { bail!("{done:?}") };
    assert_eq!(bed.act(&create).await?, Done::Exists);
    let status =
        RollbackStatus { attempt_count: Some(1), automatic: true, ..RollbackStatus::default() };
    let step = Step::RollbackStatus {
        name: "back".into(),
        from: precondition(&made.metadata),
        status: Box::new(status.clone()),
    };
    let done = bed.act(&step).await?;
    let Done::Rollback(written) = done else { bail!("{done:?}") };
    assert_eq!(written.status, Some(status));
    refused(bed.act(&step).await, Class::Conflict)?;
    let stale = precondition(&made.metadata);
    let step = Step::DeleteRollback { name: "back".into(), from: stale };
    refused(bed.act(&step).await, Class::Conflict)?;
    let from = precondition(&written.metadata);
    let step = Step::DeleteRollback { name: "back".into(), from };
    assert_eq!(bed.act(&step).await?, Done::Deleted);
    Ok(())
}

#[tokio::test]
async fn a_status_that_breaks_a_rule_is_invalid() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    let previous = |name: &str| ReleaseStatus {
        previous_release: Some(PreviousRelease {
            release_ref: ReleaseRef { target: "web".into(), name: name.into() },
            transition_time: Time(Timestamp::UNIX_EPOCH),
        }),
        ..ReleaseStatus::default()
    };
    let done = bed.act(&status_step(&made, previous("web-1111111"))).await?;
    let Done::Release(written) = done else { bail!("{done:?}") };
    let step = status_step(&written, previous("web-2222222"));
    refused(bed.act(&step).await, Class::Invalid)?;
    Ok(())
}

#[tokio::test]
async fn without_the_right_a_write_is_denied() -> Result<()> {
    let bed = Bed::new().await?;
    let made = created(&bed, "v1").await?;
    let access = bed.with_rights(&[("get,list,watch,create", "belay.dev/releases")]).await?;
    let robot = writer(&client(&access)?);
    let from = || precondition(&made.metadata);
    let name = made.name_any();
    for step in [
        status_step(&made, ReleaseStatus::default()),
        Step::BlockRelease { name: name.clone(), from: from(), value: String::new() },
        Step::DeleteRelease { name, from: from() },
        Step::CreateRollback(Box::new(rollback("back")?)),
    ] {
        refused(robot.act(bed.no_workload(), &step).await, Class::Denied)?;
    }
    Ok(())
}

#[tokio::test]
async fn in_a_namespace_that_is_gone_or_goes_nothing_is_written() -> Result<()> {
    let bed = Bed::new().await?;
    let mut place = bed.no_workload();
    place.namespace = "never-there";
    let step = Step::CreateRelease(Box::new(release("v1")));
    refused(bed.writer.act(place, &step).await, Class::Gone)?;

    // Something that stays keeps the namespace in its last state.
    let stays = json!({ "metadata": { "name": "stays", "finalizers": ["example.com/stay"] } });
    bed.create::<ConfigMap>("someone", &stays).await?;
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    namespaces.delete(&bed.namespace, &DeleteParams::default()).await?;
    wait::until("the namespace to go", wait::SOON, || async {
        let namespace = namespaces.get(&bed.namespace).await.map_err(|error| error.to_string())?;
        let phase = namespace.status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Terminating") { Ok(()) } else { Err(format!("{phase:?}")) }
    })
    .await?;
    refused(bed.act(&step).await, Class::Gone)?;
    let patch = json!({ "metadata": { "finalizers": null } });
    bed.merge::<ConfigMap>("someone", "stays", &patch).await?;
    Ok(())
}

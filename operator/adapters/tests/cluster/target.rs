//! The ReleaseTarget.

use anyhow::Result;
use belay_adapters::cluster::{Class, Done};
use belay_api::{ReleaseTarget, target::TargetStatus};
use belay_engine::plan::Step;
use belay_testkit::objects::Workload;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{ResourceExt as _, api::DeleteParams};
use rstest::rstest;
use serde_json::json;

use crate::bed::{Bed, WEB, facts, gone, refused, web};

fn status(hold: &str) -> TargetStatus {
    TargetStatus {
        hold: Some(hold.to_owned()),
        instance: Some("belay/belay-operator".to_owned()),
        ..TargetStatus::default()
    }
}

#[tokio::test]
async fn it_is_made_for_its_workload_and_goes_with_it() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let workload = bed.facts().await?;
    let place = bed.place(&workload);
    let made = bed.writer.write_target(place, None, &status("v1")).await?;
    assert_eq!(made.status, Some(status("v1")));
    let owner = &made.owner_references()[0];
    assert_eq!((&owner.kind[..], &owner.name[..], &owner.uid), ("Deployment", WEB, &workload.uid));

    let held = TargetStatus { hold: None, ..status("") };
    let written = bed.writer.write_target(place, Some(&made), &held).await?;
    assert_eq!(written.status, Some(held), "what is left out is gone");

    bed.api::<Deployment>().delete(WEB, &DeleteParams::default()).await?;
    gone(&bed.api::<ReleaseTarget>(), WEB).await?;
    Ok(())
}

#[tokio::test]
async fn one_of_another_workload_becomes_this_workloads() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let workload = bed.facts().await?;
    let first = Workload::deployment("first").image("app", "r.example/web:1").replicas(0);
    let first = facts(&bed.deploy(&first).await?);
    let made = bed.writer.write_target(bed.place(&first), None, &status("v1")).await?;
    let moved = bed.writer.write_target(bed.place(&workload), Some(&made), &status("v2")).await?;
    assert_eq!((moved.uid(), &moved.status), (made.uid(), &Some(status("v2"))));
    let owners: Vec<_> = moved.owner_references().iter().map(|owner| &owner.uid).collect();
    assert_eq!(owners, [&workload.uid]);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Nothing,
    AnEarlierVersion,
    AnotherObject,
}

#[rstest]
#[case::nothing(Seen::Nothing)]
#[case::an_earlier_version(Seen::AnEarlierVersion)]
#[case::another_object(Seen::AnotherObject)]
#[tokio::test]
async fn it_is_written_only_as_it_was_seen(#[case] seen: Seen) -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let workload = bed.facts().await?;
    let place = bed.place(&workload);
    let made = bed.writer.write_target(place, None, &status("v1")).await?;
    let now = bed.writer.write_target(place, Some(&made), &status("v2")).await?;
    let existing = match seen {
        Seen::Nothing => None,
        Seen::AnEarlierVersion => Some(made),
        Seen::AnotherObject => {
            let mut other = now.clone();
            other.metadata.uid = Some("not-this-one".to_owned());
            Some(other)
        }
    };
    let written = bed.writer.write_target(place, existing.as_deref(), &status("v3")).await;
    refused(written, Class::Conflict)?;
    let after = bed.api::<ReleaseTarget>().get(WEB).await?;
    assert_eq!(after.resource_version(), now.resource_version());
    Ok(())
}

#[tokio::test]
async fn it_is_deleted_by_its_uid() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let workload = bed.facts().await?;
    let made = bed.writer.write_target(bed.place(&workload), None, &status("v1")).await?;
    let other = Step::DeleteTarget { uid: "not-this-one".to_owned() };
    refused(bed.act(&other).await, Class::Conflict)?;
    let touched = json!({ "metadata": { "labels": { "touched": "yes" } } });
    bed.merge::<ReleaseTarget>("someone", WEB, &touched).await?;
    let this = Step::DeleteTarget { uid: made.uid().unwrap_or_default() };
    for _ in 0..2 {
        assert_eq!(bed.act(&this).await?, Done::Deleted);
    }
    gone(&bed.api::<ReleaseTarget>(), WEB).await?;
    Ok(())
}

//! Workloads that come, go, are renamed and come back (operator specification, sections 3.3 and 11).

use anyhow::{Context as _, Result, ensure};
use belay_api::reasons::{ProgressingReason, StalledReason};
use belay_suite::operator::{Bed, Wiring, condition, reason};
use belay_testkit::fault::{Call, FaultPlan};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::support::{
    following_to, live, polls, release, roll, stalled, told, traced, wait_for_activation,
    wait_for_release, wait_for_target, wired, writes,
};

/// Waits until a ReleaseTarget is gone.
async fn gone(bed: &Bed, name: &str) -> Result<()> {
    bed.wait(&format!("the ReleaseTarget {name} to be gone"), || async {
        ensure!(bed.targets().get_opt(name).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_workload_is_left_alone_until_its_own_rollout_has_ended() -> Result<()> {
    let bed = Bed::new("first").await?;
    bed.release("v1.0.0").await?;
    bed.release("v1.1.0").await?;
    let web = bed.web("1.0.0").pod_annotation("testbed/start", "5s");
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    wait_for_target(&bed, "web", "its own rollout is waited for", |status| {
        let doing = reason(&status.conditions, "Progressing");
        (doing == belay_api::NamedValue::as_str(ProgressingReason::FirstSight)).then_some(())
    })
    .await?;
    assert_eq!(bed.releases().list(&ListParams::default()).await?.items, []);
    // What runs becomes the baseline, and is judged, before anything moves.
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let baseline = release(&bed, "web", "v1.0.0").await?.status.unwrap_or_default();
    let last = baseline.activations.last().context("no baseline")?;
    assert_eq!(last.initiator.as_deref(), Some("helm"));
    let verdict = last.verdict.as_ref().and_then(belay_api::Open::known);
    assert_eq!(verdict, Some(belay_api::gates::Verdict::Healthy), "{last:?}");
    bed.wait_for_healthy("web", "v1.1.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_workload_that_never_comes_up_is_broken_and_a_release_may_mend_it() -> Result<()> {
    let bed = Bed::new("firstbad").await?;
    bed.release("v1.0.0+crash-loop").await?;
    let web = bed.web("1.0.0_crash-loop").annotation("belay.dev/deadline", "3s");
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    stalled(&bed, "web", StalledReason::Broken).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0_crash-loop"), "it is not ours to mend");
    roll(&bed, "v1.0.1").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_workload_that_lost_its_annotation_is_left_as_it_is() -> Result<()> {
    let bed = Bed::new("leaves").await?;
    let plan = FaultPlan::new();
    let wiring = Wiring { client: Some(traced(&bed, &plan)?), ..wired(|_| {}) };
    let operator = following_to(&bed, wiring, &["v1.1.0"]).await?;
    wait_for_target(&bed, "web", "at rest", |status| {
        let is_there = status.current.as_ref()?.tag.as_deref() == Some("1.1.0");
        (is_there && reason(&status.conditions, "Ready") == "Ready").then_some(())
    })
    .await?;
    polls(&bed, 4).await?;
    let before = writes(&plan).calls().len();
    bed.annotate("web", "repo", json!(null)).await?;
    gone(&bed, "web").await?;
    bed.release("v1.2.0").await?;
    // Another workload is followed, and so GitHub is still asked.
    bed.create(&bed.workload("api", "1.1.0"), "helm").await?;
    bed.wait_for_image("api", &bed.image("1.2.0")).await?;
    let is_of_web = |name: String| name == "web" || name.starts_with("web-");
    let of_web = writes(&plan).calls().iter().skip(before).cloned().collect::<Vec<_>>();
    let of_web = of_web.iter().filter(|call| call.object_name().is_some_and(is_of_web));
    let of_web: Vec<String> = of_web.map(ToString::to_string).collect();
    let [deleted] = of_web.as_slice() else { anyhow::bail!("{of_web:?}") };
    assert!(deleted.starts_with("DELETE belay.dev/v1alpha1 releasetargets"), "{deleted}");
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    let annotations = live(&bed, "web").await?["metadata"]["annotations"].take();
    assert!(annotations["belay.dev/release"].is_string(), "{annotations}");
    operator.stop().await
}

#[tokio::test]
async fn a_renamed_target_leaves_no_record_under_its_former_name() -> Result<()> {
    let bed = Bed::new("renamed").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    bed.annotate("web", "target", json!("shop")).await?;
    bed.wait_for_healthy("shop", "v1.1.0").await?;
    gone(&bed, "web").await?;
    bed.release("v1.2.0").await?;
    bed.wait_for_image("web", &bed.image("1.2.0")).await?;
    bed.wait_for_healthy("shop", "v1.2.0").await?;
    operator.stop().await
}

/// `helm uninstall`, `helm install`: the chart's old image comes back, and with it an older version.
#[tokio::test]
async fn a_workload_that_comes_back_with_an_older_version_is_restored() -> Result<()> {
    let bed = Bed::new("restored").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    bed.deployments().delete("web", &DeleteParams::default()).await?;
    gone(&bed, "web").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Active", "True", "Restored")).await?;
    let again = wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    told(&bed, "Restored", &["v1.1.0"]).await?;
    let before = release(&bed, "web", "v1.1.0").await?.status.unwrap_or_default();
    let first = before.activations.first().context("no activation")?;
    assert_eq!(first.message.as_deref(), Some("the workload was made anew"), "{first:?}");
    assert!(again.start_time > first.start_time);
    let old = release(&bed, "web", "v1.0.0").await?.status.unwrap_or_default();
    let old = old.activations.last().context("no activation")?;
    // Whether it was healthy on the new workload by then is left to chance.
    assert!(old.end_time.is_some(), "{old:?}");
    bed.wait_for_healthy("web", "v1.1.0").await?;
    // A block would be there if that had been a step down.
    let blocked = condition(&before.conditions, "Blocked").map(|one| one.status.clone());
    assert_ne!(blocked.as_deref(), Some("True"));
    operator.stop().await
}

#[tokio::test]
async fn a_workload_that_is_deleted_in_mid_rollout_ends_it() -> Result<()> {
    let bed = Bed::new("deleted").await?;
    let plan = FaultPlan::new();
    let wiring = Wiring { client: Some(traced(&bed, &plan)?), ..wired(|_| {}) };
    let operator = bed.following(wiring).await?;
    bed.release("v1.1.0+never-ready").await?;
    wait_for_activation(&bed, "web", "v1.1.0+never-ready", 1).await?;
    bed.deployments().delete("web", &DeleteParams::default()).await?;
    gone(&bed, "web").await?;
    assert!(bed.deployments().get_opt("web").await?.is_none(), "nothing resurrects it");
    // It comes back, with what the chart has, and goes on.
    bed.create(&bed.web("1.0.0"), "helm").await?;
    bed.release("v1.2.0").await?;
    bed.wait_for_image("web", &bed.image("1.2.0")).await?;
    bed.wait_for_healthy("web", "v1.2.0").await?;
    operator.stop().await
}

/// Whatever is refused since a namespace is terminating is given up at once.
#[tokio::test]
async fn a_namespace_that_is_deleted_takes_all_with_it() -> Result<()> {
    let bed = Bed::new("nsgone").await?;
    let plan = FaultPlan::new();
    let client = Some(traced(&bed, &plan)?);
    let mut wiring = Wiring { client, ..wired(|_| {}) };
    // Its own Lease must not go with it.
    wiring.settings.instance = format!("default/{}", bed.namespace);
    let operator = bed.following(wiring).await?;
    bed.release("v1.1.0+never-ready").await?;
    wait_for_activation(&bed, "web", "v1.1.0+never-ready", 1).await?;
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    namespaces.delete(&bed.namespace, &DeleteParams::default()).await?;
    bed.wait("the namespace to be gone", || async {
        ensure!(namespaces.get_opt(&bed.namespace).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let inside = || {
        let is_inside = |call: &Call| {
            let resource = call.id.resource();
            resource.and_then(|it| it.namespace.as_ref()) == Some(&bed.namespace)
        };
        writes(&plan).filter(is_inside).to_string()
    };
    let before = inside();
    // It lives on, and does not write there any more.
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), "default");
    let renewed = async || {
        let lease = leases.get(&bed.namespace).await?;
        anyhow::Ok(lease.spec.and_then(|spec| spec.renew_time))
    };
    let last = renewed().await?;
    bed.wait("its Lease to be renewed", || async {
        ensure!(renewed().await? > last, "{last:?}");
        Ok(())
    })
    .await?;
    assert_eq!(inside(), before);
    operator.stop().await
}

/// Helm 3 and others recreate a Deployment whose selector has changed: same name, other uid.
#[tokio::test]
async fn a_workload_that_was_replaced_is_another_one() -> Result<()> {
    let bed = Bed::new("replaced").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    let before = bed.deployments().get("web").await?.metadata.uid;
    bed.deployments().delete("web", &DeleteParams::default()).await?;
    bed.create(&bed.web("1.1.0"), "helm").await?;
    let uid = wait_for_target(&bed, "web", "about the new one", |status| {
        let uid = Some(status.workload.as_ref()?.uid.clone());
        (uid != before).then_some(uid)
    })
    .await?;
    assert_eq!(bed.deployments().get("web").await?.metadata.uid, uid);
    // The same image on other pods: it is judged again.
    let again = wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    assert_eq!(again.workload.map(|one| one.uid), uid);
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    roll(&bed, "v1.2.0").await?;
    let status = bed.targets().get("web").await?;
    let owners = status.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.into_iter().map(|owner| Some(owner.uid)).collect::<Vec<_>>(), [uid]);
    operator.stop().await
}

/// Nothing is lost that cannot be read off the workload and GitHub.
#[tokio::test]
async fn records_that_a_person_deletes_are_made_anew_and_nothing_moves() -> Result<()> {
    let bed = Bed::new("records").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    let generation = bed.deployments().get("web").await?.metadata.generation;
    bed.targets().delete("web", &DeleteParams::default()).await?;
    let (all, now) = (ListParams::default(), DeleteParams::default());
    for release in bed.releases().list(&all).await?.items {
        bed.releases().delete(&release.name_any(), &now).await?;
    }
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    wait_for_target(&bed, "web", "at rest", |status| {
        (reason(&status.conditions, "Ready") == "Ready").then_some(())
    })
    .await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.deployments().get("web").await?.metadata.generation, generation);
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

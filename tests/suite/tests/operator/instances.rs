//! Two operators: who follows a target, and how it changes hands (operator specification, section
//! 3.1).

use anyhow::{Result, ensure};
use belay_suite::operator::{Bed, Running, Wiring};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::support::{events, polls, roll, target, told, wait_for_target, wired};

const OTHER: &str = "other-operator";

/// Marks the target as one of another operator's, whose Lease has this duration and holder.
async fn hand_over(bed: &Bed, seconds: u32, holder: Option<&str>) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let now = jiff::Timestamp::now();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": OTHER },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string(),
        },
    });
    leases.patch(OTHER, &PatchParams::apply("test").force(), &Patch::Apply(lease)).await?;
    let status = json!({ "status": { "instance": instance(bed) } });
    bed.targets().patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

fn instance(bed: &Bed) -> String {
    format!("{}/{OTHER}", bed.namespace)
}

async fn follows(bed: &Bed, name: &str) -> Result<()> {
    let wanted = format!("{}/{name}", bed.namespace);
    wait_for_target(bed, "web", &format!("followed by {wanted}"), |status| {
        (status.instance.as_ref() == Some(&wanted)).then_some(())
    })
    .await
}

#[tokio::test]
async fn a_target_of_another_operator_that_lives_is_left_to_it() -> Result<()> {
    let bed = Bed::new("held").await?;
    bed.following(Wiring::default()).await?.stop().await?;
    hand_over(&bed, 3600, Some("pod-7")).await?;
    let before = bed.targets().get("web").await?;
    bed.release("v1.1.0").await?;
    let operator = bed.operator()?;
    let way_out = format!("belay.dev/adopt: instance={}", instance(&bed));
    told(&bed, "AnotherOperator", &["Warning", &way_out]).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    assert_eq!(bed.targets().get("web").await?, before, "its record is not ours to write");
    assert_eq!(events(&bed, "AnotherOperator").await?.len(), 1, "said once");
    // A person who knows better.
    bed.annotate("web", "adopt", json!(format!("instance={}", instance(&bed)))).await?;
    follows(&bed, "belay-operator").await?;
    told(&bed, "TakenOver", &[&instance(&bed)]).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_target_of_an_operator_whose_lease_ends_is_taken_over() -> Result<()> {
    let bed = Bed::new("expired").await?;
    bed.following(Wiring::default()).await?.stop().await?;
    // By our own clock, from when we first saw it: the times in it do not count.
    hand_over(&bed, 2, Some("pod-7")).await?;
    bed.release("v1.1.0").await?;
    let operator = bed.operator()?;
    told(&bed, "AnotherOperator", &["Warning"]).await?;
    follows(&bed, "belay-operator").await?;
    told(&bed, "TakenOver", &[&instance(&bed)]).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_target_of_an_operator_that_has_ended_is_taken_over_at_once() -> Result<()> {
    let bed = Bed::new("released").await?;
    bed.following(Wiring::default()).await?.stop().await?;
    hand_over(&bed, 3600, None).await?;
    let operator = bed.operator()?;
    follows(&bed, "belay-operator").await?;
    roll(&bed, "v1.1.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_target_of_an_operator_without_a_lease_is_taken_over() -> Result<()> {
    let bed = Bed::new("noleases").await?;
    bed.following(Wiring::default()).await?.stop().await?;
    hand_over(&bed, 3600, Some("pod-7")).await?;
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.namespace);
    leases.delete(OTHER, &DeleteParams::default()).await?;
    let operator = bed.operator()?;
    follows(&bed, "belay-operator").await?;
    roll(&bed, "v1.1.0").await?;
    operator.stop().await
}

/// Two real ones at the same time: one follows, the other says so, and there is no fight.
#[tokio::test]
async fn of_two_operators_one_follows() -> Result<()> {
    let bed = Bed::new("two").await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let named = |name: &str| {
        let mut wiring = wired(|_| {});
        wiring.settings.instance = format!("{}/{name}", bed.namespace);
        Running::start(&bed, wiring)
    };
    let first = named("first")?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    let second = named("second")?;
    second.ready().await?;
    roll(&bed, "v1.1.0").await?;
    told(&bed, "AnotherOperator", &["first"]).await?;
    polls(&bed, 8).await?;
    follows(&bed, "first").await?;
    let version = bed.targets().get("web").await?.metadata.resource_version;
    polls(&bed, 8).await?;
    assert_eq!(bed.targets().get("web").await?.metadata.resource_version, version);
    // The first one goes in order, and gives its Lease back.
    first.stop().await?;
    follows(&bed, "second").await?;
    roll(&bed, "v1.2.0").await?;
    second.stop().await
}

/// What marks the instance, and is given back.
#[tokio::test]
async fn an_operator_keeps_a_lease_and_gives_it_back() -> Result<()> {
    let bed = Bed::new("lease").await?;
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let operator = bed.following(Wiring::default()).await?;
    let lease = async || anyhow::Ok(leases.get("belay-operator").await?.spec.unwrap_or_default());
    let holder = lease().await?.holder_identity;
    assert_eq!(holder.as_deref(), Some("belay-operator-test"));
    let renewed = lease().await?.renew_time;
    bed.wait("a renewal", || async {
        ensure!(lease().await?.renew_time > renewed, "{renewed:?}");
        Ok(())
    })
    .await?;
    let instance = target(&bed, "web").await?.instance;
    assert_eq!(instance, Some(format!("{}/belay-operator", bed.namespace)));
    operator.stop().await?;
    assert_eq!(lease().await?.holder_identity, None);
    Ok(())
}

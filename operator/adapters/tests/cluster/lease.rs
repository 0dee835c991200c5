//! Leases: this operator's and those of others.

use std::time::Duration;

use anyhow::{Context as _, Result};
use belay_adapters::{
    Clock,
    cluster::{Marker, MarkerTerms, Sighting, Sightings},
};
use belay_testkit::wait;
use k8s_openapi::api::coordination::v1::Lease;

use crate::bed::{Bed, client};

fn terms(bed: &Bed, holder: &str, duration: Duration) -> MarkerTerms {
    MarkerTerms {
        namespace: bed.namespace.clone(),
        name: "op".to_owned(),
        holder: holder.to_owned(),
        duration,
    }
}

fn start(bed: &Bed, holder: &str, duration: Duration) -> Marker {
    Marker::start(bed.client.clone(), Clock::machine(), terms(bed, holder, duration))
}

async fn held_by(bed: &Bed, holder: Option<&str>) -> Result<Lease> {
    let api = bed.api::<Lease>();
    let look = || async {
        let lease = api.get("op").await.map_err(|error| error.to_string())?;
        let found = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        if found.as_deref() == holder { Ok(lease) } else { Err(format!("{found:?}")) }
    };
    Ok(wait::until(&format!("the Lease to be held by {holder:?}"), wait::SOON, look).await?)
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn an_instance_is_seen_from_its_start_to_its_release() -> Result<()> {
    let bed = Bed::new().await?;
    let instance = format!("{}/op", bed.namespace);
    let sightings = Sightings::new(bed.client.clone());
    assert_eq!(sightings.look(&instance).await, Sighting::NotHeld);
    let marker = start(&bed, "pod-1", MINUTE);
    held_by(&bed, Some("pod-1")).await?;
    assert!(matches!(sightings.look(&instance).await, Sighting::Held { .. }));
    marker.release().await?;
    held_by(&bed, None).await?;
    assert_eq!(sightings.look(&instance).await, Sighting::NotHeld);
    Ok(())
}

#[tokio::test]
async fn a_successor_takes_the_lease_over_and_keeps_it() -> Result<()> {
    let bed = Bed::new().await?;
    let first = start(&bed, "pod-1", MINUTE);
    held_by(&bed, Some("pod-1")).await?;
    let second = start(&bed, "pod-2", MINUTE);
    let lease = held_by(&bed, Some("pod-2")).await?;
    let spec = lease.spec.context("no spec")?;
    assert_eq!((spec.lease_transitions, spec.lease_duration_seconds), (Some(1), Some(60)));
    // One that ends late does not let go what is not its own.
    first.release().await?;
    held_by(&bed, Some("pod-2")).await?;
    second.release().await?;
    Ok(())
}

#[tokio::test]
async fn an_instance_that_ends_without_a_word_is_held_until_its_lease_has_not_changed_for_long()
-> Result<()> {
    let bed = Bed::new().await?;
    let instance = format!("{}/op", bed.namespace);
    let marker = start(&bed, "pod-1", Duration::from_secs(1));
    let before = held_by(&bed, Some("pod-1")).await?;
    // It is renewed while it lives.
    let api = bed.api::<Lease>();
    let look = || async {
        let lease = api.get("op").await.map_err(|error| error.to_string())?;
        let renewed = |lease: &Lease| lease.spec.clone().and_then(|spec| spec.renew_time);
        if renewed(&lease) > renewed(&before) { Ok(()) } else { Err(format!("{lease:?}")) }
    };
    wait::until("a renewal", wait::SOON, look).await?;
    drop(marker);
    let sightings = Sightings::new(bed.client.clone());
    assert!(sightings.look(&instance).await.is_held());
    let look = || async {
        match sightings.look(&instance).await {
            Sighting::NotHeld => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    wait::until("the Lease to be held no more", wait::SOON, look).await?;
    held_by(&bed, Some("pod-1")).await?;
    Ok(())
}

#[tokio::test]
async fn a_lease_that_may_not_be_read_counts_as_held() -> Result<()> {
    let bed = Bed::new().await?;
    let access = bed.with_rights(&[]).await?;
    let instance = format!("{}/op", bed.namespace);
    let sighting = Sightings::new(client(&access)?).look(&instance).await;
    let Sighting::Unknown { why } = &sighting else { anyhow::bail!("{sighting:?}") };
    assert!(why.contains("cannot get resource \"leases\""), "{why}");
    assert!(sighting.is_held());
    Ok(())
}

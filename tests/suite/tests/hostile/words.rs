//! What the operator has said, everywhere that users look.

use anyhow::{Result, ensure};
use belay_suite::operator::Bed;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};

/// None of these texts is in any object of Belay's, nor in an event.
pub(crate) async fn say_nothing_of(bed: &Bed, secrets: &[&str]) -> Result<()> {
    let all = ListParams::default();
    let events: Api<Event> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let said = [
        serde_json::to_string(&bed.targets().list(&all).await?.items)?,
        serde_json::to_string(&bed.releases().list(&all).await?.items)?,
        serde_json::to_string(&bed.rollbacks().list(&all).await?.items)?,
        serde_json::to_string(&events.list(&all).await?.items)?,
    ];
    for secret in secrets {
        ensure!(!secret.is_empty(), "no secret");
        let told = said.iter().find(|text| text.contains(secret));
        ensure!(told.is_none(), "{secret:?} is said in {}", told.cloned().unwrap_or_default());
    }
    Ok(())
}

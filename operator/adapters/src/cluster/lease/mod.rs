//! Leases: this operator's own, which marks its instance and decides nothing, and those of others,
//! which tell whether they live.

mod marker;
mod sightings;

pub use self::{
    marker::{Marker, MarkerTerms},
    sightings::{Sighting, Sightings},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Resource as _,
    api::{GetParams, Request},
};

use super::{WriteError, send::Sender};

/// Reads a Lease; `None` if there is none.
pub(super) async fn read(
    sender: &Sender,
    namespace: &str,
    name: &str,
) -> Result<Option<Lease>, WriteError> {
    let attempt = format!("read Lease {namespace}/{name}");
    let request = path(namespace).get(name, &GetParams::default());
    match sender.send(&attempt, request).await {
        Ok(lease) => Ok(Some(lease)),
        Err(error) if error.status().is_some_and(|status| status.code == 404) => Ok(None),
        Err(error) => Err(error),
    }
}

fn path(namespace: &str) -> Request {
    Request::new(Lease::url_path(&(), Some(namespace)))
}

//! Stops another operator: what must run last cannot run beside it.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{
    Client, Resource as _,
    api::{Patch, PatchParams, Request},
};
use serde::de::IgnoredAny;
use serde_json::json;

use super::{WriteError, lease, send::Sender};
use crate::clock::Clock;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Stops an operator that runs as a Deployment with a Lease of the same name.
#[derive(Debug, Clone)]
pub struct Stopper {
    sender: Sender,
}

impl Stopper {
    /// A stopper.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self { sender: Sender::new(client, clock, PATIENCE) }
    }

    /// Scales the operator's own Deployment to none; one that is gone runs no more.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn scale_to_none(&self, namespace: &str, name: &str) -> Result<(), WriteError> {
        let attempt = format!("scale Deployment {namespace}/{name} to none");
        let path = Request::new(Deployment::url_path(&(), Some(namespace)));
        let patch = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
        let request = path.patch_subresource("scale", name, &PatchParams::default(), &patch);
        match self.sender.send::<IgnoredAny>(&attempt, request).await {
            Ok(_) => Ok(()),
            Err(error) if error.status().is_some_and(|status| status.code == 404) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether its Lease names a holder: it gives it back as the last thing that it does.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn is_held(&self, namespace: &str, name: &str) -> Result<bool, WriteError> {
        let lease: Option<Lease> = lease::read(&self.sender, namespace, name).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        Ok(holder.is_some_and(|holder| !holder.is_empty()))
    }
}

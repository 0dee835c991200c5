//! The ReleaseTarget.

use belay_api::{
    ReleaseTarget,
    target::{TargetFields, TargetStatus},
};
use belay_engine::{observed::WorkloadFacts, plan::Precondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use serde_json::json;

use super::{Place, Writer, records::attempt};
use crate::cluster::{
    WriteError,
    error::{Cause, Class},
};

impl Writer {
    /// Writes the status of the target's ReleaseTarget as a whole, and makes what stands in the way
    /// of that right first: creates it, owned by the workload, where there is none, and makes the
    /// workload its owner where that is another one.
    ///
    /// `existing` is what was observed; its resourceVersion is the precondition of the first write.
    /// A crash between two writes leaves an object whose status the next pass writes.
    ///
    /// # Errors
    /// [`WriteError`]. One that exists although none was observed is a
    /// [`Conflict`](super::super::Class::Conflict).
    pub async fn write_target(
        &self,
        place: Place<'_>,
        existing: Option<&ReleaseTarget>,
        status: &TargetStatus,
    ) -> Result<Box<ReleaseTarget>, WriteError> {
        let name = place.target;
        let what = || attempt::<ReleaseTarget>("write", place, name);
        let Some(workload) = place.workload else {
            let cause = Cause::Unsendable("there is no workload that could own it".to_owned());
            return Err(WriteError::new(what(), Class::Bug, cause));
        };
        let from = match existing {
            None => precondition(&self.create_target(place, workload).await?.metadata),
            Some(existing) if is_owned_by(existing, workload) => precondition(&existing.metadata),
            Some(existing) => {
                let from = precondition(&existing.metadata);
                let patch = json!({ "metadata": {
                    "uid": from.uid,
                    "resourceVersion": from.resource_version,
                    "ownerReferences": [owner(workload)],
                } });
                let what = "change the owner of";
                let owned: ReleaseTarget = self.merge(what, place, name, &patch).await?;
                precondition(&owned.metadata)
            }
        };
        self.write_status(place, name, &from, status).await.map(Box::new)
    }

    async fn create_target(
        &self,
        place: Place<'_>,
        workload: &WorkloadFacts,
    ) -> Result<ReleaseTarget, WriteError> {
        let target = ReleaseTarget {
            metadata: ObjectMeta {
                name: Some(place.target.to_owned()),
                namespace: Some(place.namespace.to_owned()),
                owner_references: Some(vec![owner(workload)]),
                ..ObjectMeta::default()
            },
            spec: TargetFields {},
            status: None,
        };
        self.create(place, &target).await?.ok_or_else(|| {
            let attempt = attempt::<ReleaseTarget>("create", place, place.target);
            let cause = Cause::Unsendable("it exists, although none was seen".to_owned());
            WriteError::new(attempt, Class::Conflict, cause)
        })
    }
}

/// Without `blockOwnerDeletion`, which would need rights on the workload's finalizers.
fn owner(workload: &WorkloadFacts) -> OwnerReference {
    OwnerReference {
        api_version: workload.api_version.clone(),
        kind: workload.kind.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        ..OwnerReference::default()
    }
}

fn is_owned_by(target: &ReleaseTarget, workload: &WorkloadFacts) -> bool {
    let owners = target.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().any(|owner| owner.uid == workload.uid)
}

fn precondition(metadata: &ObjectMeta) -> Precondition {
    Precondition {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

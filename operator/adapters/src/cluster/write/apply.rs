//! The one write to a workload: a server-side apply of images and the `release` annotation.

use std::collections::BTreeSet;

use belay_api::{annotations::OwnAnnotation, limits};
use belay_engine::{
    observed::{Refusal, WorkloadFacts},
    plan::{IntendedImage, Intent},
};
use belay_ownership::{
    Difference, FieldPath, Identity, Ownership, Schema,
    claim::fields_of,
    conflict::{FIELD_MANAGER_CONFLICT, ReportedConflict},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Resource as _,
    api::{Patch, PatchParams, Request},
    core::Status,
};
use serde_json::{Map, Value, json};

use super::{Done, Place, Writer};
use crate::cluster::{
    WriteError,
    error::{Cause, Class},
    send::causes,
};

/// The longest text of a refusal that is kept.
const MAX_MESSAGE: usize = 1000;

impl Writer {
    pub(super) async fn apply(
        &self,
        place: Place<'_>,
        intent: &Intent,
    ) -> Result<Done, WriteError> {
        let unsendable = |attempt: String, why: &str| {
            WriteError::new(attempt, Class::Bug, Cause::Unsendable(why.to_owned()))
        };
        let Some(workload) = place.workload else {
            let attempt = format!("apply images in {}", place.namespace);
            return Err(unsendable(attempt, "there is no workload"));
        };
        let attempt =
            format!("apply images to {} {}/{}", workload.kind, place.namespace, workload.name);
        if workload.kind != Deployment::kind(&()) {
            return Err(unsendable(attempt, "workloads of this kind are not supported"));
        }
        let key = self.settings.prefix.key(OwnAnnotation::Release);
        let body = body_of(place.namespace, workload, intent, &key);
        let params = PatchParams::apply(&self.settings.field_manager).validation_strict();
        let params = if intent.force { params.force() } else { params };
        let path = Request::new(Deployment::url_path(&(), Some(place.namespace)));
        let request = path.patch(&workload.name, &params, &Patch::Apply(&body));
        match self.sender.send::<Deployment>(&attempt, request).await {
            Ok(workload) => {
                let surprise = surprise(&workload, &body, &self.settings.field_manager);
                Ok(Done::Applied { workload: Box::new(workload), surprise })
            }
            Err(error) if error.status().is_some_and(would_create) => Err(error.into_conflict()),
            Err(error) => match error.status().and_then(|status| refusal(status, error.class())) {
                Some(refusal) => Ok(Done::Refused(refusal)),
                None => Err(error),
            },
        }
    }
}

/// These fields and no others. The uid keeps it from a later workload of the same name, the
/// resourceVersion from one that has changed since it was decided about.
fn body_of(namespace: &str, workload: &WorkloadFacts, intent: &Intent, key: &str) -> Value {
    let containers = |is_init: bool| -> Vec<Value> {
        let of_list = |image: &&IntendedImage| image.container.is_init == is_init;
        let images = intent.images.iter().filter(of_list);
        images.map(|it| json!({ "name": it.container.name, "image": it.image })).collect()
    };
    let mut pod = Map::new();
    for (list, items) in [("initContainers", containers(true)), ("containers", containers(false))] {
        // An empty list would claim the list itself.
        if !items.is_empty() {
            pod.insert(list.to_owned(), Value::Array(items));
        }
    }
    json!({
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "metadata": {
            "name": workload.name,
            "namespace": namespace,
            "uid": intent.from.uid,
            "resourceVersion": intent.from.resource_version,
            "annotations": { key: intent.release },
        },
        "spec": { "template": { "spec": pod } },
    })
}

/// What the next decision depends on, of all that an apply may be answered with.
pub(super) fn refusal(status: &Status, class: Class) -> Option<Refusal> {
    let managers = conflicting_managers(status);
    if !managers.is_empty() {
        return Some(Refusal::Conflict { managers });
    }
    let is_denied = matches!(class, Class::Denied | Class::Invalid);
    is_denied.then(|| Refusal::Denied { message: limits::clip(&status.message, MAX_MESSAGE) })
}

/// Whether the object is gone: the apply would create it, which the operator has no right to.
pub(super) fn would_create(status: &Status) -> bool {
    status.code == 403 && status.message.contains(" cannot create resource ")
}

/// The managers that an unforced apply conflicts with. A stale resourceVersion names none.
fn conflicting_managers(status: &Status) -> Vec<String> {
    let of_conflict = causes(status).iter().filter(|cause| cause.reason == FIELD_MANAGER_CONFLICT);
    let managers: BTreeSet<String> = of_conflict
        .map(|cause| {
            ReportedConflict::of_cause(&cause.reason, &cause.message, &cause.field)
                // In other words than those that are known: whoever it is, it is not one of ours.
                .map_or_else(|| limits::clip(&cause.message, MAX_MESSAGE), |it| it.manager)
        })
        .collect();
    managers.into_iter().collect()
}

/// How the entry of our manager differs from the fields of the body. Whatever it holds beyond them
/// would be removed by an apply that names them no more, and whatever it lacks is not ours.
fn surprise(workload: &Deployment, body: &Value, manager: &str) -> Option<String> {
    let entries = workload.metadata.managed_fields.as_deref().unwrap_or_default();
    let ownership = Ownership::decode(entries);
    let wanted = match fields_of(body, Schema::Deployment) {
        Ok(wanted) => wanted,
        Err(error) => return Some(error.to_string()),
    };
    let Some(entry) = ownership.entry(&Identity::applier(manager)) else {
        let undecodable = ownership.undecodable().iter().find(|it| it.manager == manager);
        return Some(match undecodable {
            Some(it) => format!("the entry of {manager} cannot be read: {}", it.problem),
            None => format!("there is no entry of {manager} in managedFields"),
        });
    };
    let Difference { missing, extra } = entry.compare(wanted.iter().map(|field| &field.path));
    let mut words = Vec::new();
    for (verb, paths) in [("also holds", extra), ("does not hold", missing)] {
        if !paths.is_empty() {
            words.push(format!("{verb} {}", list(&paths)));
        }
    }
    let words = words.join(" and ");
    (!words.is_empty()).then(|| limits::clip(&format!("{manager} {words}"), MAX_MESSAGE))
}

fn list(paths: &[FieldPath]) -> String {
    paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

//! Writes to Belay's own kinds.

use belay_api::{Release, annotations::OwnAnnotation};
use belay_engine::plan::Precondition;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, Request},
};
use serde::{Serialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::json;

use super::{Done, Place, Writer};
use crate::cluster::{
    WriteError,
    error::{Cause, Class},
    send::strict,
};

/// A kind of Belay's own.
pub(super) trait Record:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned
{
}

impl<K> Record for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned
{
}

/// `write the status of Release shop/web-1234567`.
pub(super) fn attempt<K: Record>(what: &str, place: Place<'_>, name: &str) -> String {
    format!("{what} {} {}/{name}", K::kind(&()), place.namespace)
}

pub(super) fn path<K: Record>(place: Place<'_>) -> Request {
    Request::new(K::url_path(&(), Some(place.namespace)))
}

impl Writer {
    fn post_params(&self) -> PostParams {
        PostParams { field_manager: Some(self.settings.status_manager.clone()), dry_run: false }
    }

    fn patch_params(&self) -> PatchParams {
        let field_manager = Some(self.settings.status_manager.clone());
        PatchParams { field_manager, ..PatchParams::default() }.validation_strict()
    }

    /// Creates an object; `None` if there is one of that name.
    pub(super) async fn create<K: Record>(
        &self,
        place: Place<'_>,
        object: &K,
    ) -> Result<Option<K>, WriteError> {
        let name = object.meta().name.as_deref().unwrap_or_default();
        let attempt = attempt::<K>("create", place, name);
        let body = body(&attempt, object)?;
        let request = path::<K>(place).create(&self.post_params(), body);
        match self.sender.send(&attempt, strict(request)).await {
            Ok(created) => Ok(Some(created)),
            Err(error) if error.status().is_some_and(|it| it.reason == "AlreadyExists") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status as a whole.
    ///
    /// By PUT and not by server-side apply: an apply removes of what is there only the fields that
    /// the same manager applied before, and a status that keeps what somebody else once wrote into it
    /// is not the one that was decided. Nothing that was not seen is lost, for the PUT is refused
    /// unless the object is the one that was decided from. On the way to `/status` the API server
    /// ignores all but the status, so that the rest needs not be sent.
    pub(super) async fn write_status<K: Record, S: Serialize + Sync>(
        &self,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
        status: &S,
    ) -> Result<K, WriteError> {
        let attempt = attempt::<K>("write the status of", place, name);
        let object = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {
                "name": name,
                "namespace": place.namespace,
                "uid": from.uid,
                "resourceVersion": from.resource_version,
            },
            "status": serde_json::to_value(status).map_err(|it| unsendable(&attempt, &it))?,
        });
        let body = body(&attempt, &object)?;
        let params = self.post_params();
        let request = path::<K>(place).replace_subresource("status", name, &params, body);
        self.sender.send(&attempt, strict(request)).await
    }

    pub(super) async fn block_release(
        &self,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
        value: &str,
    ) -> Result<Release, WriteError> {
        let key = self.settings.prefix.key(OwnAnnotation::Blocked);
        let patch = json!({ "metadata": {
            "uid": from.uid,
            "resourceVersion": from.resource_version,
            "annotations": { key: value },
        } });
        self.merge("note the block on", place, name, &patch).await
    }

    /// Sends a merge patch, which names uid and resourceVersion itself.
    pub(super) async fn merge<K: Record>(
        &self,
        what: &str,
        place: Place<'_>,
        name: &str,
        patch: &serde_json::Value,
    ) -> Result<K, WriteError> {
        let attempt = attempt::<K>(what, place, name);
        let request = path::<K>(place).patch(name, &self.patch_params(), &Patch::Merge(patch));
        self.sender.send(&attempt, request).await
    }

    /// Deletes an object, if it still is the one with this uid.
    pub(super) async fn delete<K: Record>(
        &self,
        place: Place<'_>,
        name: &str,
        uid: &str,
        resource_version: Option<&str>,
    ) -> Result<Done, WriteError> {
        let attempt = attempt::<K>("delete", place, name);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: resource_version.map(str::to_owned),
        });
        let request = path::<K>(place).delete(name, &params);
        match self.sender.send::<IgnoredAny>(&attempt, request).await {
            Ok(_) => Ok(Done::Deleted),
            Err(error) if error.status().is_some_and(|it| it.code == 404) => Ok(Done::Deleted),
            Err(error) => Err(error),
        }
    }
}

fn body(attempt: &str, object: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    serde_json::to_vec(object).map_err(|error| unsendable(attempt, &error))
}

fn unsendable(attempt: &str, error: &serde_json::Error) -> WriteError {
    WriteError::new(attempt, Class::Bug, Cause::Unsendable(error.to_string()))
}

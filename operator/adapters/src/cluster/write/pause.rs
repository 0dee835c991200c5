//! Writes to ScaledObjects: the claim of a pause and its end, and no field beside.

use belay_engine::{
    observed::PauseKind,
    plan::{PauseIntent, Precondition},
};
use kube::{
    Resource as _,
    api::{Patch, PatchParams, Request},
};
use serde_json::{Map, Value, json};

use super::{
    Done, Place, Writer,
    apply::{refusal, would_create},
};
use crate::cluster::{
    ScaledObject, WriteError,
    error::{Cause, Class},
    scaler::{KINDS, holds_scale_in},
};

impl Writer {
    /// One apply by the manager of pauses. It names all that this manager then owns, so that the same
    /// write claims, renews, and changes the mode.
    pub(super) async fn claim_pause(
        &self,
        place: Place<'_>,
        intent: &PauseIntent,
    ) -> Result<Done, WriteError> {
        let attempt = attempt("claim the pause of", place, &intent.scaled_object);
        let Some(key) = PauseKind::of(intent.mode).map(PauseKind::key) else {
            let why = "the mode none pauses nothing".to_owned();
            return Err(WriteError::new(attempt, Class::Bug, Cause::Unsendable(why)));
        };
        let keys = &self.settings.pause;
        let annotations = json!({
            key: "true",
            keys.owner.as_str(): intent.claim.to_annotation(),
            keys.expires.as_str(): intent.expires.to_string(),
        });
        let answer = self
            .apply_pause(&attempt, place, &intent.scaled_object, &intent.from, Some(annotations))
            .await;
        match answer {
            Ok(object) => Ok(Done::Paused(Box::new(object))),
            Err(error) => match error.status().and_then(|status| refusal(status, error.class())) {
                Some(refusal) => Ok(Done::Refused(refusal)),
                None => Err(error),
            },
        }
    }

    /// The same apply without anything: the API server removes what nobody else owns, and leaves a
    /// pause that a person applied as well.
    pub(super) async fn drop_pause(
        &self,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
    ) -> Result<Done, WriteError> {
        let attempt = attempt("drop the pause of", place, name);
        let object = self.apply_pause(&attempt, place, name, from, None).await?;
        Ok(Done::Paused(Box::new(object)))
    }

    async fn apply_pause(
        &self,
        attempt: &str,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
        annotations: Option<Value>,
    ) -> Result<ScaledObject, WriteError> {
        let mut metadata = json!({
            "name": name,
            "namespace": place.namespace,
            "uid": from.uid,
            "resourceVersion": from.resource_version,
        });
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let body = json!({
            "apiVersion": ScaledObject::api_version(&()),
            "kind": ScaledObject::kind(&()),
            "metadata": metadata,
        });
        let params = PatchParams::apply(&self.settings.pause.manager).validation_strict();
        let request = path(place).patch(name, &params, &Patch::Apply(&body));
        match self.sender.send(attempt, request).await {
            Err(error) if error.status().is_some_and(would_create) => Err(error.into_conflict()),
            answer => answer,
        }
    }

    /// Removes the pause that an earlier operator left, with its marks. KEDA's annotation for scaling
    /// out alone stays: nobody holds a rollout still by it.
    pub(super) async fn remove_pause(
        &self,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
        marks: &[String],
    ) -> Result<Done, WriteError> {
        let pauses = KINDS.into_iter().filter(|kind| holds_scale_in(*kind));
        let mut keys: Vec<String> = pauses.map(|kind| kind.key().to_owned()).collect();
        keys.extend(marks.iter().cloned());
        let object = self.remove_annotations(place, name, from, &keys).await?;
        Ok(Done::Paused(Box::new(object)))
    }

    /// Removes annotations of a ScaledObject, whoever owns them.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn remove_annotations(
        &self,
        place: Place<'_>,
        name: &str,
        from: &Precondition,
        keys: &[String],
    ) -> Result<ScaledObject, WriteError> {
        let attempt = attempt("remove annotations of", place, name);
        let gone: Map<String, Value> = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let patch = json!({ "metadata": {
            "uid": from.uid,
            "resourceVersion": from.resource_version,
            "annotations": gone,
        } });
        let field_manager = Some(self.settings.pause.manager.clone());
        let params = PatchParams { field_manager, ..PatchParams::default() };
        let request = path(place).patch(name, &params, &Patch::Merge(&patch));
        self.sender.send(&attempt, request).await
    }
}

fn attempt(what: &str, place: Place<'_>, name: &str) -> String {
    format!("{what} ScaledObject {}/{name}", place.namespace)
}

fn path(place: Place<'_>) -> Request {
    Request::new(ScaledObject::url_path(&(), Some(place.namespace)))
}

//! A fresh read of a ScaledObject, and then of its HPA.

use std::time::Duration;

use belay_engine::observed::{HpaFacts, Scaler, ScalerFacts};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::{
    Client, Resource as _,
    api::{GetParams, ObjectMeta, Request},
};
use serde::Deserialize;
use serde_json::Value;

use super::{PauseKeys, ScaledObject};
use crate::{
    clock::Clock,
    cluster::{WriteError, send::Sender},
};

/// How long one read may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest name or policy that is repeated; no valid one is longer.
const MAX_WORD: usize = 253;

/// Reads ScaledObjects and their HPAs.
#[derive(Debug, Clone)]
pub struct Scalers {
    pub(super) sender: Sender,
    pub(super) keys: PauseKeys,
}

/// An object whose spec and status may have any form: KEDA's versions differ, and what is not where it
/// is expected is not there.
#[derive(Debug, Default, Deserialize)]
struct Loose {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl Scalers {
    /// A reader.
    pub fn new(client: Client, clock: Clock, keys: PauseKeys) -> Self {
        Self { sender: Sender::new(client, clock, PATIENCE), keys }
    }

    /// Reads a ScaledObject, and then the HPA that its status names: what the HPA shows is then at
    /// least as new as what the ScaledObject asks for.
    ///
    /// # Errors
    /// [`WriteError`]: it could not be read, or its HPA could not. That is never told as absent.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<Scaler, WriteError> {
        let path = ScaledObject::url_path(&(), Some(namespace));
        let request = Request::new(path).get(name, &GetParams::default());
        let attempt = format!("read ScaledObject {namespace}/{name}");
        let object: Loose = match self.sender.send(&attempt, request).await {
            Ok(object) => object,
            Err(error) => {
                return match error.status() {
                    Some(status) if status.code == 404 => {
                        // Where nothing is served under the path, no object is meant.
                        let details = status.details.as_ref();
                        let is_served = details.is_some_and(|details| !details.name.is_empty());
                        Ok(if is_served { Scaler::Missing } else { Scaler::NoKeda })
                    }
                    _ => Err(error),
                };
            }
        };
        let hpa = match word(&object.status, "/hpaName") {
            Some(name) => self.read_hpa(namespace, &name).await?,
            None => None,
        };
        Ok(Scaler::Found(Box::new(self.facts(&object, hpa))))
    }

    async fn read_hpa(&self, namespace: &str, name: &str) -> Result<Option<HpaFacts>, WriteError> {
        let path = HorizontalPodAutoscaler::url_path(&(), Some(namespace));
        let request = Request::new(path).get(name, &GetParams::default());
        let attempt = format!("read HorizontalPodAutoscaler {namespace}/{name}");
        match self.sender.send::<Loose>(&attempt, request).await {
            Ok(hpa) => Ok(Some(HpaFacts {
                scale_down: word(&hpa.spec, "/behavior/scaleDown/selectPolicy"),
                generation: hpa.metadata.generation,
                observed_generation: hpa.status.get("observedGeneration").and_then(Value::as_i64),
            })),
            Err(error) if error.status().is_some_and(|status| status.code == 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn facts(&self, object: &Loose, hpa: Option<HpaFacts>) -> ScalerFacts {
        let Loose { metadata, spec, status } = object;
        let conditions = status.get("conditions").and_then(Value::as_array);
        let is_paused = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Paused" && condition["status"] == "True");
        ScalerFacts {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            scales_kind: scales_kind(spec),
            scales_name: word(spec, "/scaleTargetRef/name").unwrap_or_default(),
            pauses: self.keys.pauses(metadata),
            claim: self.keys.claim(metadata),
            is_paused,
            scale_down: word(
                spec,
                "/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown/selectPolicy",
            ),
            hpa,
        }
    }
}

/// A Deployment where it does not say. Another group's kind of the same name is another kind.
fn scales_kind(spec: &Value) -> String {
    let kind = word(spec, "/scaleTargetRef/kind").unwrap_or_else(|| "Deployment".to_owned());
    match word(spec, "/scaleTargetRef/apiVersion") {
        Some(version) if kind == "Deployment" && !version.starts_with("apps/") => {
            format!("{version} {kind}")
        }
        _ => kind,
    }
}

/// A text that is there and not empty.
fn word(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| belay_api::limits::clip(text, MAX_WORD))
}

//! What Deployments and pods say, as far as a scenario waits for it.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::ResourceExt as _;

/// A resourceVersion, of which the order counts.
///
/// # Errors
/// When it is no number.
pub fn version(text: Option<&str>) -> Result<u64> {
    let text = text.unwrap_or_default();
    text.parse().with_context(|| format!("the resourceVersion {text:?} is no number"))
}

/// The image of the Deployment's container.
pub fn image_of(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.clone()
}

/// Whether the controller has seen the present generation.
pub fn is_observed(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    status.and_then(|status| status.observed_generation) >= deployment.metadata.generation
}

/// The reason of a condition.
pub fn reason_of(deployment: &Deployment, kind: &str) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)?.reason.clone()
}

/// Whether a pod runs an image.
pub fn has_image(pod: &Pod, image: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.into_iter().any(|container| container.image.as_deref() == Some(image))
}

/// Whether a pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Whether a pod has neither ended nor is being deleted.
pub fn is_alive(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}

/// A pod in words.
pub fn describe(pod: &Pod) -> String {
    let words = [(is_ready(pod), "ready"), (is_alive(pod), "alive")];
    let words: Vec<_> = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    format!("{} {}", pod.name_any(), words.join(" "))
}

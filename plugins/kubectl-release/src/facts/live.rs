//! A workload as it is: images and their owners, replicas, annotations.

use std::collections::BTreeMap;

use belay_api::{
    AnnotationPrefix,
    annotations::{OwnAnnotation, TargetAnnotation},
};
use belay_engine::{annotations::ContainerName, image::ImageRef};
use belay_ownership::{FieldPath, Identity, Operation, Ownership};
use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::Value;

use crate::print::object;

/// The field manager of an operator that was not told another one.
pub const OPERATOR: &str = "belay-operator";

/// A workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Live {
    /// `deployment.apps/web`.
    pub resource: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The containers of its pod template, init containers first.
    pub containers: Vec<LiveContainer>,
    /// Whether it says who wrote its fields.
    pub has_owners: bool,
    /// The operator's field manager: who applied the `release` annotation, else [`OPERATOR`].
    pub operator: String,
    /// Its replicas.
    pub replicas: Replicas,
    /// The revision that its controller gave to the template.
    pub revision: Option<String>,
    /// `progressDeadlineSeconds`.
    pub progress_deadline: Option<i64>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveContainer {
    /// Which one.
    pub name: ContainerName,
    /// Its image.
    pub image: String,
    /// Who owns the image.
    pub owners: Vec<Identity>,
}

/// How many replicas there are. Absent numbers are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replicas {
    /// How many should be.
    pub wanted: i64,
    /// How many are, old ones included.
    pub all: i64,
    /// How many are of the current template.
    pub updated: i64,
    /// How many are available.
    pub available: i64,
    /// How many are ready.
    pub ready: i64,
    /// Whether the controller has seen the current template: otherwise the numbers are about another.
    pub is_observed: bool,
}

impl Live {
    /// What an object with a pod template says.
    pub fn of(object: &DynamicObject, prefix: &AnnotationPrefix) -> Self {
        let (api_version, kind) = match &object.types {
            Some(types) => (types.api_version.as_str(), types.kind.as_str()),
            None => ("", ""),
        };
        let name = object.name_any();
        let ownership = Ownership::decode(object.managed_fields());
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        let containers = ["initContainers", "containers"]
            .into_iter()
            .flat_map(|list| containers(spec, list, &ownership))
            .collect();
        Self {
            resource: object::name(api_version, kind, &name),
            kind: kind.to_owned(),
            annotations: object.annotations().clone(),
            containers,
            has_owners: ownership.has_entries(),
            operator: operator(&ownership, prefix),
            replicas: replicas(object),
            revision: object.annotations().get("deployment.kubernetes.io/revision").cloned(),
            progress_deadline: spec.get("progressDeadlineSeconds").and_then(Value::as_i64),
            name,
        }
    }

    /// The value of one of Belay's annotations.
    pub fn annotation(
        &self,
        prefix: &AnnotationPrefix,
        annotation: TargetAnnotation,
    ) -> Option<&str> {
        self.annotations.get(&prefix.key(annotation)).map(String::as_str)
    }

    /// The followed containers, by the names of the ReleaseTarget; where that says nothing, by the
    /// annotation, or the only one.
    pub fn followed(&self, names: &[String], prefix: &AnnotationPrefix) -> Vec<&LiveContainer> {
        let annotated = self.annotation(prefix, TargetAnnotation::Container).unwrap_or_default();
        let annotated: Vec<String> = annotated
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        let names = if names.is_empty() { annotated.as_slice() } else { names };
        let ordinary = || self.containers.iter().filter(|one| !one.name.is_init);
        if names.is_empty() {
            return if ordinary().count() == 1 { ordinary().collect() } else { Vec::new() };
        }
        let is_named = |one: &&LiveContainer| names.contains(&one.name.to_string());
        self.containers.iter().filter(is_named).collect()
    }
}

impl LiveContainer {
    /// The tag of the image, or the image where it has none.
    pub fn tag(&self) -> String {
        tag(&self.image)
    }

    /// Whether the operator is among the owners.
    pub fn is_owned_by(&self, manager: &str) -> bool {
        self.owners
            .iter()
            .any(|owner| owner.manager() == manager && owner.operation() == Operation::Apply)
    }
}

/// The tag of an image, or the image where it has none.
pub fn tag(image: &str) -> String {
    let parsed = image.parse::<ImageRef>().ok();
    parsed
        .and_then(|parsed| parsed.tag().map(ToOwned::to_owned))
        .unwrap_or_else(|| image.to_owned())
}

/// The last part of an image's name, with its tag: `web:1.9.2`.
pub fn short(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    image.rsplit_once('/').map_or(image, |(_, last)| last)
}

/// A digest, shortened: `sha256:4f1c…a9`.
pub fn short_digest(digest: &str) -> String {
    match digest.split_once(':') {
        Some((algorithm, hex)) if hex.is_ascii() && hex.len() > 8 => {
            format!("{algorithm}:{}…{}", &hex[..4], &hex[hex.len() - 2..])
        }
        _ => digest.to_owned(),
    }
}

/// An owner as people write it: `helm (Update)`.
pub fn owner(identity: &Identity) -> String {
    let subresource = match identity.subresource() {
        "" => String::new(),
        subresource => format!(", {subresource}"),
    };
    format!("{} ({}{subresource})", identity.manager(), identity.operation())
}

fn containers(spec: &Value, list: &str, ownership: &Ownership) -> Vec<LiveContainer> {
    let all =
        spec.pointer("/template/spec").and_then(|pod| pod.get(list)).and_then(Value::as_array);
    let text = |container: &Value, key: &str| {
        container.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    all.map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|container| {
            let name = text(container, "name");
            let answer = ownership.at(&FieldPath::image(list, &name));
            LiveContainer {
                owners: answer.owners.iter().map(|owner| owner.entry.identity().clone()).collect(),
                image: text(container, "image"),
                name: ContainerName { is_init: list == "initContainers", name },
            }
        })
        .collect()
}

/// Who applied the `release` annotation: nobody else does.
fn operator(ownership: &Ownership, prefix: &AnnotationPrefix) -> String {
    let key = prefix.key(OwnAnnotation::Release);
    let answer = ownership.at(&FieldPath::of_fields(["metadata", "annotations", key.as_str()]));
    answer
        .owners
        .iter()
        .map(|owner| owner.entry.identity())
        .find(|owner| owner.operation() == Operation::Apply)
        .map_or_else(|| OPERATOR.to_owned(), |owner| owner.manager().to_owned())
}

fn replicas(object: &DynamicObject) -> Replicas {
    let number = |at: &str| object.data.pointer(at).and_then(Value::as_i64);
    let status = |name: &str| number(&format!("/status/{name}")).unwrap_or_default();
    let is_observed = number("/status/observedGeneration")
        .zip(object.metadata.generation)
        .is_none_or(|(observed, generation)| observed >= generation);
    let is_daemon_set = object.types.as_ref().is_some_and(|types| types.kind == "DaemonSet");
    if is_daemon_set {
        return Replicas {
            wanted: status("desiredNumberScheduled"),
            all: status("currentNumberScheduled"),
            updated: status("updatedNumberScheduled"),
            available: status("numberAvailable"),
            ready: status("numberReady"),
            is_observed,
        };
    }
    Replicas {
        // The API server's default.
        wanted: number("/spec/replicas").unwrap_or(1),
        all: status("replicas"),
        updated: status("updatedReplicas"),
        available: status("availableReplicas"),
        ready: status("readyReplicas"),
        is_observed,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn live(object: Value) -> Live {
        Live::of(&serde_json::from_value(object).unwrap(), &AnnotationPrefix::default())
    }

    fn deployment() -> Value {
        let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"app\"}": {"f:image": {}},
        }}}}});
        let release = json!({"f:metadata": {"f:annotations": {"f:belay.dev/release": {}}}});
        let entry = |manager: &str, operation: &str, fields: &Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "generation": 3,
                "annotations": {
                    "belay.dev/container": "app, init:setup",
                    "deployment.kubernetes.io/revision": "14",
                },
                "managedFields": [
                    entry("roller", "Apply", &release),
                    entry("helm", "Update", &fields),
                ],
            },
            "spec": {
                "replicas": 4,
                "template": {"spec": {
                    "initContainers": [{"name": "setup", "image": "acme/setup:1"}],
                    "containers": [
                        {"name": "app", "image": "ghcr.io/acme/web:1.9.2@sha256:00"},
                        {"name": "side"},
                    ],
                }},
            },
            "status": {"observedGeneration": 2, "replicas": 5, "updatedReplicas": 2},
        })
    }

    #[test]
    fn a_workload_says_images_owners_and_replicas() {
        let live = live(deployment());
        assert_eq!(live.resource, "deployment.apps/web");
        assert_eq!((live.operator.as_str(), live.revision.as_deref()), ("roller", Some("14")));
        assert_eq!(
            live.replicas,
            Replicas { wanted: 4, all: 5, updated: 2, ..Replicas::default() }
        );
        let followed = live.followed(&[], &AnnotationPrefix::default());
        let names: Vec<_> = followed.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(names, ["init:setup", "app"]);
        assert_eq!(followed[1].owners.iter().map(owner).collect::<Vec<_>>(), ["helm (Update)"]);
        assert!(!followed[1].is_owned_by("helm"));
    }

    #[test]
    fn without_names_only_an_only_container_is_followed() {
        let mut object = deployment();
        object["metadata"]["annotations"] = json!({});
        assert!(live(object.clone()).followed(&[], &AnnotationPrefix::default()).is_empty());
        object["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().pop();
        assert_eq!(live(object).followed(&[], &AnnotationPrefix::default()).len(), 1);
    }

    #[rstest]
    #[case("ghcr.io/acme/web:1.9.2", "1.9.2", "web:1.9.2")]
    #[case(
        "ghcr.io/acme/web:1.9.2@sha256:4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c4f1c",
        "1.9.2",
        "web:1.9.2"
    )]
    #[case("localhost:5000/web", "localhost:5000/web", "web")]
    #[case("", "", "")]
    fn an_image_is_shortened(#[case] image: &str, #[case] tagged: &str, #[case] name: &str) {
        assert_eq!((tag(image).as_str(), short(image)), (tagged, name));
    }

    #[rstest]
    #[case("sha256:4f1c000000a9", "sha256:4f1c…a9")]
    #[case("sha256:4f1", "sha256:4f1")]
    #[case("sha256:ééééééééé", "sha256:ééééééééé")]
    #[case("odd", "odd")]
    fn a_digest_is_shortened(#[case] digest: &str, #[case] expected: &str) {
        assert_eq!(short_digest(digest), expected);
    }

    #[rstest]
    #[case(json!({}))]
    #[case(json!({"spec": 1, "status": []}))]
    #[case(json!({"spec": {"template": {"spec": {"containers": [1, null]}}}}))]
    fn nonsense_is_no_panic(#[case] data: Value) {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}});
        object.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
        let _ = live(object);
    }
}

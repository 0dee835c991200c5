//! Live objects: what is asked, and what of the answer counts.

use std::collections::BTreeMap;

use belay_api::{
    AnnotationPrefix,
    annotations::{OwnAnnotation, TargetAnnotation},
};
use belay_ownership::{FieldPath, Ownership};
use futures::{StreamExt as _, stream};
use http::StatusCode;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;

use crate::{
    cluster::{Cluster, ReadError, words::one_line},
    decide::{Followed, Live, LiveContainer, LiveObject, Operation, Owner},
    scan::{ContainerList, WorkloadKind},
};

/// Requests that are under way at once.
const IN_FLIGHT: usize = 16;

/// What must not stand bare in a path.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b'<').add(b'>').add(b'?');

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The plural of its kind, in `apps/v1`.
    resource: &'static str,
    kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// An object of that kind.
    pub fn new(kind: WorkloadKind, namespace: &str, name: &str) -> Self {
        let resource = match kind {
            WorkloadKind::Deployment => "deployments",
            WorkloadKind::StatefulSet => "statefulsets",
            WorkloadKind::DaemonSet => "daemonsets",
        };
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { resource, kind: kind.as_str(), namespace, name }
    }
}

/// What the read of one object gave.
pub type Fetched = Result<Option<Found>, ReadError>;

/// A live object.
#[derive(Debug)]
pub struct Found {
    annotations: BTreeMap<String, String>,
    ownership: Ownership,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    prefix: AnnotationPrefix,
}

/// Reads objects.
#[derive(Debug)]
pub struct LiveReader<'c> {
    cluster: &'c Cluster,
    prefix: AnnotationPrefix,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    managed_fields: Ownership,
}

#[derive(Debug, Deserialize)]
struct Spec {
    template: Template,
}

#[derive(Debug, Deserialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Option<Vec<Container>>,
}

#[derive(Debug, Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    image: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    kind: String,
    pub(super) message: String,
    reason: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    name: String,
}

impl Status {
    /// The API server's own words about a refusal; those of something else are cut short.
    pub(super) fn of(body: &[u8]) -> Self {
        let status: Self = serde_json::from_slice(body).unwrap_or_default();
        if status.kind == "Status" && !status.message.is_empty() {
            return Self { message: one_line(&status.message), ..status };
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
        Self { message: one_line(text.trim()), ..Self::default() }
    }
}

impl<'c> LiveReader<'c> {
    /// Reads from that cluster; `prefix` is that of Belay's annotations.
    pub fn new(cluster: &'c Cluster, prefix: AnnotationPrefix) -> Self {
        Self { cluster, prefix }
    }

    /// Reads all of `keys`, one GET each, in their order.
    pub async fn read(&self, keys: &[ObjectKey]) -> Vec<Fetched> {
        let Some((first, others)) = keys.split_first() else { return Vec::new() };
        // Alone, so that the others find a connection to share.
        let mut fetched = vec![self.read_one(first).await];
        let others = stream::iter(others).map(|key| self.read_one(key)).buffered(IN_FLIGHT);
        fetched.extend(others.collect::<Vec<_>>().await);
        fetched
    }

    async fn read_one(&self, key: &ObjectKey) -> Fetched {
        let ObjectKey { resource, namespace, name, .. } = key;
        let path = format!(
            "/apis/apps/v1/namespaces/{}/{resource}/{}",
            segment(namespace)?,
            segment(name)?
        );
        let (status, body) = self.cluster.get(&path, "application/json").await?;
        let server = || self.cluster.server.clone();
        let answer = match status {
            StatusCode::OK => parse(key, &body, &self.prefix).map(Some),
            StatusCode::NOT_FOUND => absent(key, &body).map(|()| None),
            other => {
                let rule = || {
                    format!(
                        "apiGroups: [\"apps\"], resources: [\"{resource}\"], verbs: [\"get\"] in a \
                         Role of the namespace {namespace}"
                    )
                };
                return Err(refused(other, &body, server(), rule));
            }
        };
        let wanted = key.to_string();
        answer.map_err(|why| ReadError::Garbage { server: server(), wanted, why })
    }
}

/// Whether a 404 says that the object does not exist. Only the API server's own word counts: the
/// 404 page of a proxy would look like a first install.
fn absent(key: &ObjectKey, body: &[u8]) -> Result<(), String> {
    let said = Status::of(body);
    let of_it = said.details.as_ref().is_some_and(|details| details.name == key.name);
    if said.kind == "Status" && said.reason == "NotFound" && of_it {
        return Ok(());
    }
    Err(format!("a 404 that is not the API server's: {}", said.message))
}

fn parse(key: &ObjectKey, body: &[u8], prefix: &AnnotationPrefix) -> Result<Found, String> {
    let object: Object = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let Metadata { name, namespace, annotations, managed_fields } = object.metadata;
    if (object.api_version.as_str(), object.kind.as_str()) != ("apps/v1", key.kind)
        || (&name, &namespace) != (&key.name, &key.namespace)
    {
        return Err("it is another object".to_owned());
    }
    let ownership = managed_fields;
    if let Some(undecodable) = ownership.undecodable().first() {
        // An owner that cannot be seen may be the one that counts.
        let (manager, problem) = (&undecodable.manager, &undecodable.problem);
        return Err(format!("its managedFields: the entry of {manager:?}: {problem}"));
    }
    let PodSpec { containers, init_containers } = object.spec.template.spec;
    Ok(Found {
        annotations: annotations.unwrap_or_default(),
        ownership,
        containers,
        init_containers: init_containers.unwrap_or_default(),
        prefix: prefix.clone(),
    })
}

/// What a status other than 200 and 404 means; `rule` is the RBAC rule to add.
pub(super) fn refused(
    status: StatusCode,
    body: &[u8],
    server: String,
    rule: impl FnOnce() -> String,
) -> ReadError {
    let message = Status::of(body).message;
    match status {
        StatusCode::UNAUTHORIZED => ReadError::Unauthorized { server },
        StatusCode::FORBIDDEN => ReadError::Forbidden { message, rule: rule() },
        status if status.is_redirection() => {
            ReadError::Redirect { server, status: status.as_u16() }
        }
        status => ReadError::Status { server, status: status.as_u16(), message },
    }
}

/// A name as a path segment.
pub(super) fn segment(text: &str) -> Result<String, ReadError> {
    // The rule of client-go.
    if text.is_empty() || text == "." || text == ".." || text.contains(['/', '%']) {
        return Err(ReadError::Name(text.to_owned()));
    }
    Ok(utf8_percent_encode(text, SEGMENT).to_string())
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl Found {
    /// `meta.helm.sh/release-name`.
    pub fn release_name(&self) -> Option<&str> {
        self.annotations.get("meta.helm.sh/release-name").map(String::as_str)
    }

    /// The object in the words of the decision, with the container of that list and name.
    pub fn about(&self, list: ContainerList, container: &str) -> Live {
        let own = |key: String| self.annotations.get(&key).cloned();
        let followed = Followed::of(
            own(self.prefix.key(OwnAnnotation::Release)).is_some(),
            own(self.prefix.key(TargetAnnotation::Repo)).is_some(),
        );
        let containers = match list {
            ContainerList::Containers => &self.containers,
            ContainerList::InitContainers => &self.init_containers,
        };
        let live = containers.iter().find(|live| live.name == container);
        Live::Found(LiveObject {
            followed: match followed {
                Followed::Yes if !self.names(list, container) => Followed::No,
                followed => followed,
            },
            release_name: self.release_name().map(str::to_owned),
            release_namespace: own("meta.helm.sh/release-namespace".to_owned()),
            image_annotation: own(self.prefix.key(TargetAnnotation::Image)),
            container: live.map(|live| LiveContainer {
                image: live.image.clone().unwrap_or_default(),
                owners: self.owners(list, container),
            }),
        })
    }

    /// Whether Belay moves the image of this container: its annotation `container` names it, or is
    /// absent. Another container of the same workload is the chart's alone.
    fn names(&self, list: ContainerList, container: &str) -> bool {
        match self.annotations.get(&self.prefix.key(TargetAnnotation::Container)) {
            // Belay takes the only container then; where there are several it should not follow the
            // workload at all, and keeping an image is the smaller evil.
            None => list == ContainerList::Containers,
            Some(names) => {
                names.split(',').map(str::trim).any(|name| match name.strip_prefix("init:") {
                    Some(init) => list == ContainerList::InitContainers && init == container,
                    None => list == ContainerList::Containers && name == container,
                })
            }
        }
    }

    fn owners(&self, list: ContainerList, container: &str) -> Vec<Owner> {
        let answer = self.ownership.at(&FieldPath::image(list.as_str(), container));
        answer
            .owners
            .iter()
            .map(|owner| Owner {
                manager: owner.entry.manager().to_owned(),
                operation: match owner.entry.operation() {
                    belay_ownership::Operation::Apply => Operation::Apply,
                    belay_ownership::Operation::Update => Operation::Update,
                },
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;

//! Release: one thing that was, or is being, deployed (operator specification, section 1.1).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    duration::Duration,
    gates::Verdict,
    limits,
    names::Signature,
    schema::{self, immutable, rule, rule_at},
    values::Open,
};

/// What stands beside `metadata` and `status` in a Release: it has no spec.
#[expect(clippy::duplicated_attributes, reason = "each printer column has a type of its own")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "belay.dev",
    version = "v1alpha1",
    kind = "Release",
    plural = "releases",
    shortname = "rel",
    category = "belay",
    namespaced,
    no_spec,
    schema = "manual",
    status = "ReleaseStatus",
    derive = "PartialEq",
    doc = "One thing that was, or is being, deployed.",
    selectable = ".config.targetName",
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".config.targetName",
        description = "What it is deployed to"
    ),
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Active")].status"#,
        description = "Whether the workload's template names it"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Healthy")].status"#,
        description = "How it was judged"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "The summary in one word"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.images[0].asked",
        description = "The image of its first container",
        priority = 1
    ),
    printcolumn(
        name = "Started",
        type_ = "date",
        json_path = ".status.activations[-1:].startTime",
        description = "Since its last activation"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ReleaseFields {
    /// What is deployed, and to what.
    pub config: ReleaseConfig,
}

impl Release {
    /// What is deployed, and to what.
    pub fn config(&self) -> &ReleaseConfig {
        &self.spec.config
    }
}

impl JsonSchema for Release {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Release".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::root(
            "One thing that was, or is being, deployed.",
            vec![
                ("config", generator.subschema_for::<ReleaseConfig>()),
                ("status", generator.subschema_for::<ReleaseStatus>()),
            ],
            &["config"],
            &[
                rule(
                    "self.metadata.name.startsWith(self.config.targetName + '-') && \
                     self.metadata.name.size() == self.config.targetName.size() + 8 && \
                     self.metadata.name.matches('-[0-9a-f]{7}$')",
                    "the name must be config.targetName, '-' and the first 7 hex digits of the \
                     signature",
                ),
                // On the root, because a rule on the status would not see it removed whole.
                rule_at(
                    ".status.previousRelease",
                    "!has(oldSelf.status) || !has(oldSelf.status.previousRelease) || \
                     (has(self.status) && has(self.status.previousRelease) && \
                     self.status.previousRelease == oldSelf.status.previousRelease)",
                    "is written once",
                ),
            ],
        )
    }
}

/// What is deployed. Immutable, but for the metadata of revisions.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = config_rules()))]
pub struct ReleaseConfig {
    /// What it is deployed to: a DNS-1123 subdomain of at most 245 characters.
    #[schemars(
        length(min = 1, max = limits::TARGET_NAME),
        pattern(schema::SUBDOMAIN),
        extend("x-kubernetes-validations" = immutable())
    )]
    pub target_name: String,

    /// What is deployed, one to ten things.
    #[schemars(
        length(min = 1, max = limits::REVISIONS),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name"],
            "x-kubernetes-validations" = revision_list_rules()
        )
    )]
    pub revisions: Vec<Revision>,

    /// The workload it is for. Informational: Belay's own driver acts only on a workload that
    /// carries its annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<WorkloadRef>,
}

impl ReleaseConfig {
    /// The signature that follows from target and revisions.
    pub fn signature(&self) -> Signature {
        let revisions = self.revisions.iter();
        let revisions = revisions.map(|revision| (revision.name.as_str(), revision.id.as_str()));
        Signature::of(&self.target_name, revisions)
    }
}

fn config_rules() -> Value {
    json!([rule_at(
        ".workloadRef",
        "has(self.workloadRef) == has(oldSelf.workloadRef) && \
         (!has(self.workloadRef) || self.workloadRef == oldSelf.workloadRef)",
        "is immutable",
    )])
}

fn revision_list_rules() -> Value {
    json!([rule(
        "self.size() == oldSelf.size() && \
         self.all(revision, oldSelf.exists(old, old.name == revision.name))",
        "revisions can be neither added nor removed",
    )])
}

/// One thing of a Release: an image, a commit, a chart.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = revision_rules()))]
pub struct Revision {
    /// What it is called within the Release; `application` in those that the operator makes.
    #[schemars(length(min = 1, max = limits::REVISION_NAME))]
    pub name: String,

    /// Which one it is: a release tag as published, a commit, a digest, a chart version.
    #[schemars(length(min = 1, max = limits::REVISION_ID))]
    pub id: String,

    /// Where it comes from: `owner/name` of a GitHub repository, an image repository, a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::URL))]
    pub source: Option<String>,

    /// What kind of thing it is: `github`, `git`, `container_image`, `helm_chart`, or any word.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub type_: Option<String>,

    /// About it, for people. May change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RevisionMetadata>,
}

fn revision_rules() -> Value {
    json!([rule(
        "self.id == oldSelf.id && \
         has(self.source) == has(oldSelf.source) && \
         (!has(self.source) || self.source == oldSelf.source) && \
         has(self.type) == has(oldSelf.type) && (!has(self.type) || self.type == oldSelf.type)",
        "only the metadata of a revision can change",
    )])
}

/// About a revision, for people.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct RevisionMetadata {
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::PRINCIPAL))]
    pub author: Option<String>,

    /// The branch it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TAG))]
    pub branch: Option<String>,

    /// Its commit message or title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub message: Option<String>,

    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::URL))]
    pub url: Option<String>,
}

/// The workload a Release is for.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// Its kind, such as `Deployment`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its name.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub name: String,

    /// Its container, `NAME` or `init:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 68), pattern(schema::CONTAINER))]
    pub container: Option<String>,
}

/// What the operator knows of a Release.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseStatus {
    /// Ten hex digits of SHA-256 over target and revisions; the first seven end the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), pattern(schema::SIGNATURE))]
    pub signature: Option<String>,

    /// The images it stands for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::CONTAINERS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["container"])
    )]
    pub images: Vec<ContainerImage>,

    /// GitHub's numeric id of the repository, which survives a rename.
    #[serde(default, rename = "repositoryID", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub repository_id: Option<i64>,

    /// Each time it became active, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::ACTIVATIONS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["ordinal"])
    )]
    pub activations: Vec<Activation>,

    /// The Release that was active when this one became active first. Written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_release: Option<PreviousRelease>,

    /// How far its current activation has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,

    /// What is known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The image of one container.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ContainerImage {
    /// `NAME` or `init:NAME`.
    #[schemars(length(min = 1, max = 68), pattern(schema::CONTAINER))]
    pub container: String,

    /// The image string that Belay asked for.
    #[schemars(length(min = 1, max = limits::IMAGE))]
    pub asked: String,

    /// The image string in the API server's answer, which admission may have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::IMAGE))]
    pub stored: Option<String>,

    /// The digest that the registry gave for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), pattern(schema::DIGEST))]
    pub digest: Option<String>,
}

/// One time that a Release was active.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = activation_rules()))]
pub struct Activation {
    /// Counts the activations of this Release from 1.
    #[schemars(range(min = 1))]
    pub ordinal: i64,

    /// When it became active.
    pub start_time: Time,

    /// When it ceased to be active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,

    /// Who made it active: a GitHub release, a user, a field manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::PRINCIPAL))]
    pub initiator: Option<String>,

    /// How it was judged. Written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Open<Verdict>>,

    /// Why, in words for people; `ChangedBy:MANAGER` where another manager changed the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ITEM_MESSAGE))]
    pub message: Option<String>,

    /// Which workload it was active on. Another one of the same target, or one that was made anew,
    /// begins an activation of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<ActivationWorkload>,
}

/// The workload that a Release was active on.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActivationWorkload {
    /// Its uid.
    #[schemars(length(min = 1, max = limits::UID))]
    pub uid: String,
}

const CHANGED_BY: &str = "ChangedBy:";

impl Activation {
    /// The message of an activation that ended as `Superseded` because `manager` changed the image.
    pub fn changed_by_message(manager: &str) -> String {
        limits::clip(&format!("{CHANGED_BY}{manager}"), limits::ITEM_MESSAGE)
    }

    /// The manager that changed the image, where that ended the activation.
    pub fn changed_by(&self) -> Option<&str> {
        self.message.as_deref()?.strip_prefix(CHANGED_BY)
    }
}

fn activation_rules() -> Value {
    json!([rule_at(
        ".verdict",
        "!has(oldSelf.verdict) || (has(self.verdict) && self.verdict == oldSelf.verdict)",
        "is written once",
    )])
}

/// The Release that was active before, for a walk back.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PreviousRelease {
    /// Which one.
    pub release_ref: ReleaseRef,

    /// When the change came.
    pub transition_time: Time,
}

/// A Release, and the target it is of.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRef {
    /// Its targetName.
    #[schemars(length(min = 1, max = limits::TARGET_NAME), pattern(schema::SUBDOMAIN))]
    pub target: String,

    /// Its name.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub name: String,
}

/// The marks by which progress is told from standstill, kept so that flapping cannot extend a
/// deadline and a restarted operator goes on where it was (operator specification, section 4.2).
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The most new pods seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub updated: Option<i32>,

    /// The most available new pods seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub available: Option<i32>,

    /// The fewest old pods seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub old: Option<i32>,

    /// How many replicas were wanted when the rollout began, or when a workload without replicas
    /// got its first ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub wanted: Option<i32>,

    /// When one of the marks moved last; the deadline counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_progress_time: Option<Time>,

    /// When the rollout first succeeded; an unstable bake ends at a fixed time after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded_time: Option<Time>,

    /// Since when the present stretch of success holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake_since: Option<Time>,

    /// The success of earlier stretches, in sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake_total: Option<Duration>,

    /// Since when success has been broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_since: Option<Time>,
}

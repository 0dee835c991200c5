//! ReleaseTarget: the status of one workload that Belay follows (operator specification, section
//! 1.4). It is owned by the workload and written by the operator alone.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    annotations::PauseMode,
    gates::{ForgeBudget, Gate, WaitReason},
    limits,
    reasons::BlockedReason,
    schema::{self, rule, rule_at},
    values::Open,
};

/// Nothing stands beside `metadata` and `status` in a ReleaseTarget.
#[expect(clippy::duplicated_attributes, reason = "each printer column has a type of its own")]
#[derive(
    CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default,
)]
#[kube(
    group = "belay.dev",
    version = "v1alpha1",
    kind = "ReleaseTarget",
    plural = "releasetargets",
    shortname = "rt",
    category = "belay",
    namespaced,
    no_spec,
    schema = "manual",
    status = "TargetStatus",
    derive = "PartialEq",
    doc = "The status of one workload that Belay follows.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "The summary in one word"
    ),
    printcolumn(
        name = "Current",
        type_ = "string",
        json_path = ".status.current.tag",
        description = "The tag that runs"
    ),
    printcolumn(
        name = "Wanted",
        type_ = "string",
        json_path = ".status.wanted.tag",
        description = "The tag that should run"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Stalled")].reason"#,
        description = "Why nothing moves"
    ),
    printcolumn(
        name = "Doing",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Progressing")].reason"#,
        description = "What Belay does"
    ),
    printcolumn(
        name = "Hold",
        type_ = "string",
        json_path = ".status.hold",
        description = "What a person holds it at"
    ),
    printcolumn(
        name = "Release",
        type_ = "string",
        json_path = ".status.active",
        description = "The active Release",
        priority = 1
    ),
    printcolumn(
        name = "Workload",
        type_ = "string",
        json_path = ".status.workload.kind",
        description = "The kind of the workload",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "Why, in words",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct TargetFields {}

impl JsonSchema for ReleaseTarget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReleaseTarget".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::root(
            "The status of one workload that Belay follows, under the name of its target.",
            vec![("status", generator.subschema_for::<TargetStatus>())],
            &[],
            &[rule(
                "self.metadata.name.size() <= 245",
                "the name is a target name of at most 245 characters",
            )],
        )
    }
}

/// What the operator knows of a target.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// The operator that follows it: namespace and name of its Lease, `NAMESPACE/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317), pattern(schema::NAMESPACED_NAME))]
    pub instance: Option<String>,

    /// The prefix of the annotations that are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub annotation_prefix: Option<String>,

    /// The workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,

    /// Its followed containers, each `NAME` or `init:NAME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::CONTAINERS),
        inner(length(min = 1, max = 68), pattern(schema::CONTAINER)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub containers: Vec<String>,

    /// What runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,

    /// What should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,

    /// GitHub releases that might become the next Release, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::CANDIDATES),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["tag"])
    )]
    pub candidates: Vec<CandidateStatus>,

    /// The name of the active Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub active: Option<String>,

    /// What a person holds it at: `true` or a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::TAG))]
    pub hold: Option<String>,

    /// Which versions are refused, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::BLOCKS),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub blocked: Vec<BlockStatus>,

    /// How others put their own image back lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::REVERTS),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub reverts: Vec<Revert>,

    /// The pause that Belay claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseStatus>,

    /// The deadline, back-off or limit that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,

    /// How GitHub can be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forge: Option<ForgeStatus>,

    /// What is known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A workload.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Such as `apps/v1`.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME))]
    pub api_version: String,

    /// Such as `Deployment`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its name.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub name: String,

    /// Its uid, which tells it from a later one of the same name.
    #[schemars(length(min = 1, max = 63))]
    pub uid: String,
}

/// What runs.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    /// The image string of the first followed container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::IMAGE))]
    pub image: Option<String>,

    /// The tag in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::TAG))]
    pub tag: Option<String>,

    /// Its digest, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), pattern(schema::DIGEST))]
    pub digest: Option<String>,

    /// The name of the Release it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub release: Option<String>,
}

/// What should run.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// The image string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::IMAGE))]
    pub image: Option<String>,

    /// The tag in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::TAG))]
    pub tag: Option<String>,

    /// The name of the Release, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub release: Option<String>,

    /// Since when it should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A GitHub release, and what keeps it from becoming the next Release.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CandidateStatus {
    /// Its tag as published.
    #[schemars(length(min = 1, max = limits::TAG))]
    pub tag: String,

    /// What keeps it back; absent if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Open<Gate>>,

    /// Why, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ITEM_MESSAGE))]
    pub message: Option<String>,

    /// Since when the gate is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// Versions that are refused: every candidate above `to`, up to `from`.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BlockStatus {
    /// The tag that was left: the highest that is refused.
    #[schemars(length(min = 1, max = limits::TAG))]
    pub from: String,

    /// The tag that was gone to, which is not refused itself; absent if `from` alone is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::TAG))]
    pub to: Option<String>,

    /// Why.
    pub reason: Open<BlockedReason>,

    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,

    /// How often `from` was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<i32>,
}

/// Another manager put its image back.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Revert {
    /// Its field manager.
    #[schemars(length(min = 1, max = limits::FIELD_MANAGER))]
    pub manager: String,

    /// The image string it wrote.
    #[schemars(length(min = 1, max = limits::IMAGE))]
    pub value: String,

    /// When that was seen.
    pub time: Time,
}

/// Belay's claim on a ScaledObject.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PauseStatus {
    /// The name of the ScaledObject.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub scaled_object: String,

    /// How it is paused.
    pub mode: Open<PauseMode>,

    /// The name of the Release it is paused for.
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub release: String,

    /// When the claim ends by itself.
    pub expires: Time,
}

/// What is waited for.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// A deadline, a back-off or a limit; never the ordinary poll.
    pub reason: Open<WaitReason>,

    /// When it ends, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// How GitHub can be asked. Exact numbers are metrics.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = forge_rules()))]
pub struct ForgeStatus {
    /// What is left of the rate limit.
    pub budget: Open<ForgeBudget>,

    /// When there is a new one; only if it is exhausted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_time: Option<Time>,
}

fn forge_rules() -> Value {
    json!([rule_at(
        ".resetTime",
        "!has(self.resetTime) || self.budget == 'exhausted'",
        "is there only while the budget is exhausted",
    )])
}

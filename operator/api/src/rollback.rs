//! Rollback: a move of a target to an earlier Release (operator specification, section 1.2).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    conditions::{ConditionStatus, RollbackCondition, status},
    duration::Duration,
    limits,
    reasons::Rejection,
    release::ReleaseRef,
    schema::{self, immutable, rule, rule_at},
    values::{NamedValue, Open, named_values},
};

/// How long a Rollback may take unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

named_values! {
    "driver";
    /// What carries out a move to a Release.
    pub enum Driver [default Native] {
        /// Belay itself changes the image.
        Native = "native",
        /// A GitHub deployment.
        Github = "github",
        /// An Argo CD application.
        Argocd = "argocd",
        /// Nothing: the move is recorded only.
        Noop = "noop",
    }
}

named_values! {
    "type of initiator";
    /// Who began a Rollback.
    pub enum InitiatorType {
        /// A person. Such a Rollback goes before any other move.
        User = "user",
        /// Belay.
        System = "system",
    }
}

/// What a Rollback asks for.
#[expect(clippy::duplicated_attributes, reason = "each printer column has a type of its own")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "belay.dev",
    version = "v1alpha1",
    kind = "Rollback",
    plural = "rollbacks",
    shortname = "rb",
    category = "belay",
    namespaced,
    schema = "manual",
    status = "RollbackStatus",
    derive = "PartialEq",
    doc = "A move of a target to an earlier Release.",
    selectable = ".spec.toReleaseRef.target",
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.toReleaseRef.target",
        description = "What is moved"
    ),
    printcolumn(
        name = "From",
        type_ = "string",
        json_path = ".status.fromReleaseRef.name",
        description = "The Release that was active when it started"
    ),
    printcolumn(
        name = "To",
        type_ = "string",
        json_path = ".status.toReleaseRef.name",
        description = "The Release it goes to"
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="InProgress")].reason"#,
        description = "What it does"
    ),
    printcolumn(
        name = "Outcome",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Succeeded")].reason"#,
        description = "How it ended"
    ),
    printcolumn(
        name = "By",
        type_ = "string",
        json_path = ".spec.initiatedBy.principal",
        description = "Who asked for it"
    ),
    printcolumn(
        name = "Driver",
        type_ = "string",
        json_path = ".spec.driver",
        description = "What carries it out",
        priority = 1
    ),
    printcolumn(
        name = "Attempts",
        type_ = "integer",
        json_path = ".status.attemptCount",
        description = "How often it was tried",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        description = "Why, in words",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RollbackSpec {
    /// Where to go. Immutable.
    #[schemars(extend("x-kubernetes-validations" = immutable()))]
    pub to_release_ref: ToReleaseRef,

    /// Why, in words for people.
    #[schemars(length(min = 1, max = limits::ROLLBACK_REASON))]
    pub reason: String,

    /// Who asks for it.
    pub initiated_by: Initiator,

    /// What carries it out.
    #[serde(default)]
    pub driver: Driver,

    /// Options of the driver. Options named `…_revision_name` select a revision of the Release.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::any_map")]
    pub deployment_options: BTreeMap<String, Value>,

    /// Go there even if the Release is unhealthy or blocked; never to another repository, and never
    /// past the operator's allow-lists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,

    /// How long it may take, from `1s` to `24h`, as in `30m` or `1h30m`.
    #[serde(default = "default_timeout")]
    #[schemars(extend("x-kubernetes-validations" = timeout_rules()))]
    pub timeout: Duration,
}

fn default_timeout() -> Duration {
    DEFAULT_TIMEOUT
}

/// Bounds of a timeout, for policies too.
pub(crate) fn timeout_rules() -> Value {
    json!([rule(
        "duration(self) >= duration('1s') && duration(self) <= duration('24h')",
        "must be between 1s and 24h",
    )])
}

impl JsonSchema for Rollback {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rollback".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::root(
            "A move of a target to an earlier Release.",
            vec![
                ("spec", generator.subschema_for::<RollbackSpec>()),
                ("status", generator.subschema_for::<RollbackStatus>()),
            ],
            &["spec"],
            // On the root, because a rule on the status would not see it removed whole.
            &[rule_at(
                ".status",
                "!has(oldSelf.status) || !has(oldSelf.status.conditions) || \
                 !oldSelf.status.conditions.exists(c, \
                 c.type == 'Succeeded' && c.status != 'Unknown') || \
                 (has(self.status) && self.status == oldSelf.status)",
                "an ended Rollback never changes",
            )],
        )
    }
}

/// Where a Rollback goes.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ToReleaseRef {
    /// The targetName of what is moved.
    #[schemars(length(min = 1, max = limits::TARGET_NAME), pattern(schema::SUBDOMAIN))]
    pub target: String,

    /// The name of the Release; absent or empty for the latest that was healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN_OR_EMPTY))]
    pub name: String,
}

/// Who began a Rollback.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Initiator {
    /// The user, ServiceAccount or policy.
    #[schemars(length(min = 1, max = limits::PRINCIPAL))]
    pub principal: String,

    /// `user` or `system`.
    #[serde(rename = "type")]
    pub type_: InitiatorType,
}

/// What the operator knows of a Rollback. Once `Succeeded` is True or False, none of it changes.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct RollbackStatus {
    /// The Release that was active when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_release_ref: Option<ReleaseRef>,

    /// The Release it goes to, found or as named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_release_ref: Option<ReleaseRef>,

    /// How often the driver was called; counted before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub attempt_count: Option<i32>,

    /// When the driver is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Time>,

    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// What the driver calls the deployment.
    #[serde(default, rename = "deploymentID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 600))]
    pub deployment_id: Option<String>,

    /// Where the deployment can be seen.
    #[serde(default, rename = "deploymentURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::URL))]
    pub deployment_url: Option<String>,

    /// Whether a policy or `on-failure` began it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,

    /// Why it was rejected, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Open<Rejection>>,

    /// What happens or happened, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::CONDITION_MESSAGE))]
    pub message: Option<String>,

    /// What is known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl RollbackStatus {
    /// Whether it has ended: from then on the API server refuses every change of the status.
    pub fn is_terminal(&self) -> bool {
        status(&self.conditions, RollbackCondition::Succeeded.as_str()) != ConditionStatus::Unknown
    }
}

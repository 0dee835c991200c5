//! AutomatedRollbackPolicy: when a target goes back by itself (operator specification, section
//! 1.3).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conditions::ReleaseCondition,
    duration::Duration,
    limits,
    rollback::{Driver, timeout_rules},
    schema::{self, immutable},
    values::{NamedValue, named_values},
};

named_values! {
    "trigger status";
    /// The status of a condition that makes a policy fire.
    pub enum TriggerStatus [default True] {
        /// It fires when the condition holds.
        True = "True",
        /// It fires when the condition does not hold.
        False = "False",
    }
}

/// What a policy says.
#[expect(clippy::duplicated_attributes, reason = "each printer column has a type of its own")]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[kube(
    group = "belay.dev",
    version = "v1alpha1",
    kind = "AutomatedRollbackPolicy",
    plural = "automatedrollbackpolicies",
    shortname = "arbp",
    category = "belay",
    namespaced,
    schema = "manual",
    status = "PolicyStatus",
    derive = "PartialEq",
    doc = "When a target goes back by itself.",
    selectable = ".spec.targetName",
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.targetName",
        description = "What it watches"
    ),
    printcolumn(
        name = "Enabled",
        type_ = "boolean",
        json_path = ".spec.enabled",
        description = "Whether it was switched on"
    ),
    printcolumn(
        name = "Automated",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Automated")].status"#,
        description = "Whether it acts"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Automated")].reason"#,
        description = "Why it acts or not"
    ),
    printcolumn(
        name = "Blocked",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="RollbackBlocked")].status"#,
        description = "Whether it should fire and cannot"
    ),
    printcolumn(
        name = "Condition",
        type_ = "string",
        json_path = ".spec.trigger.conditionType",
        description = "The condition it watches",
        priority = 1
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".spec.trigger.conditionStatus",
        description = "The status that makes it fire",
        priority = 1
    ),
    printcolumn(
        name = "Fired",
        type_ = "date",
        json_path = ".status.lastAutomatedRollbackTime",
        description = "Since it fired last"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// What it watches. Immutable.
    #[schemars(
        length(min = 1, max = limits::TARGET_NAME),
        pattern(schema::SUBDOMAIN),
        extend("x-kubernetes-validations" = immutable())
    )]
    pub target_name: String,

    /// Whether it acts.
    pub enabled: bool,

    /// What makes it fire.
    #[serde(default)]
    pub trigger: Trigger,

    /// What its Rollbacks look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_template: Option<RollbackTemplate>,
}

impl JsonSchema for AutomatedRollbackPolicy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AutomatedRollbackPolicy".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::root(
            "When a target goes back by itself.",
            vec![
                ("spec", generator.subschema_for::<PolicySpec>()),
                ("status", generator.subschema_for::<PolicyStatus>()),
            ],
            &["spec"],
            &[],
        )
    }
}

/// A condition of the active Release, and the status that makes the policy fire.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Any condition of a Release, also one that somebody else writes.
    #[serde(default = "default_condition_type")]
    #[schemars(
        length(min = 1, max = schema::CONDITION_TYPE_LENGTH),
        pattern(schema::CONDITION_TYPE)
    )]
    pub condition_type: String,

    /// `True` or `False`.
    #[serde(default)]
    pub condition_status: TriggerStatus,
}

fn default_condition_type() -> String {
    ReleaseCondition::RollbackRequired.as_str().to_owned()
}

impl Default for Trigger {
    fn default() -> Self {
        Self {
            condition_type: default_condition_type(),
            condition_status: TriggerStatus::default(),
        }
    }
}

/// What the Rollbacks of a policy look like.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct RollbackTemplate {
    /// Their labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// What they ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TemplateSpec>,
}

/// Labels and annotations of Rollbacks.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Their labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,

    /// Their annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::annotations")]
    pub annotations: BTreeMap<String, String>,
}

/// What the Rollbacks of a policy ask for.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// What carries them out; `native` unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,

    /// Options of the driver.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::any_map")]
    pub deployment_options: BTreeMap<String, Value>,

    /// How long each may take, from `1s` to `24h`; `30m` unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = timeout_rules()))]
    pub timeout: Option<Duration>,
}

/// What the operator knows of a policy.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// When it fired last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_automated_rollback_time: Option<Time>,

    /// The Release it has fired for: it does not fire again until the forward flow has activated a
    /// newer one that reaches the opposite status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::OBJECT_NAME), pattern(schema::SUBDOMAIN))]
    pub latched_for: Option<String>,

    /// What is known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

//! Pieces of the CRDs' schemas that the derive macros do not make.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::limits;

/// A DNS-1123 subdomain, as Kubernetes names its objects.
pub(crate) const SUBDOMAIN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The same, or nothing.
pub(crate) const SUBDOMAIN_OR_EMPTY: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";
/// A container's name, with `init:` before it for an init container.
pub(crate) const CONTAINER: &str = r"^(init:)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A namespace and a name.
pub(crate) const NAMESPACED_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// Ten hex digits.
pub(crate) const SIGNATURE: &str = "^[0-9a-f]{10}$";
/// A digest as registries write it.
pub(crate) const DIGEST: &str = "^[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-fA-F]{32,128}$";
/// The type of a condition (as in `metav1.Condition`).
pub(crate) const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The longest type of a condition (as in `metav1.Condition`).
pub(crate) const CONDITION_TYPE_LENGTH: usize = 316;
const CONDITION_REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// A CEL rule with the message of its refusal.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A CEL rule whose refusal names a field below the one it stands on.
pub(crate) fn rule_at(field_path: &str, rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message, "fieldPath": field_path })
}

/// `self == oldSelf`, for a required field.
pub(crate) fn immutable() -> Value {
    json!([rule("self == oldSelf", "is immutable")])
}

/// A list of conditions: `metav1.Condition` with its own limits, a list-map by `type`.
///
/// Reasons are not listed: anybody may write `RollbackRequired`, with a reason of their own.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "What is known about the object, one condition of a type.",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "description": "The condition's name.",
                    "type": "string",
                    "maxLength": CONDITION_TYPE_LENGTH,
                    "pattern": CONDITION_TYPE,
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why, in one word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": CONDITION_REASON,
                },
                "message": {
                    "description": "Why, in words for people.",
                    "type": "string",
                    "maxLength": limits::CONDITION_MESSAGE,
                },
                "lastTransitionTime": {
                    "description": "When the status changed last.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the object that was looked at.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

/// A map of any JSON, whose insides the API server neither checks nor prunes.
pub(crate) fn any_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Labels for objects made from a template: bad ones would fail each create, later and elsewhere.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    key_values(&json!({
        "type": "string",
        "maxLength": 63,
        "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    }))
}

/// Annotations for objects made from a template.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    key_values(&json!({ "type": "string", "maxLength": 4096 }))
}

fn key_values(value: &Value) -> Schema {
    let name = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
    let domain = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    let key = format!("self.all(key, key.size() <= 317 && key.matches('^({domain}/)?{name}$'))");
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": value,
        "x-kubernetes-validations": [rule(&key, "a key must be [DOMAIN/]NAME")],
    })
}

/// The schema of a whole object, of which `properties` are what stands beside `metadata`.
pub(crate) fn root(
    description: &str,
    properties: Vec<(&str, Schema)>,
    required: &[&str],
    rules: &[Value],
) -> Schema {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema.to_value())).collect();
    let mut schema = json!({
        "type": "object",
        "description": description,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !rules.is_empty() {
        schema["x-kubernetes-validations"] = json!(rules);
    }
    tidy(&mut schema);
    let Value::Object(schema) = schema else { return Schema::default() };
    schema.into()
}

/// Makes what schemars says of Rust types what Kubernetes means by an optional field: absent, never
/// null. The API server then refuses a null, or puts the default in its place, instead of storing
/// what `has()` in a rule would find. Formats that it does not know go too.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.remove("title");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(mut options)) = object.remove("anyOf") {
        options.retain(|option| option != &json!({ "type": "null" }));
        if let [Value::Object(only)] = options.as_slice() {
            for (key, value) in only {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
        } else {
            object.insert("anyOf".to_owned(), Value::Array(options));
        }
    }
    if object.get("format").is_some_and(|format| !known_format(format)) {
        object.remove("format");
    }
    // Doc comments are wrapped for the source, not for readers of the CRD.
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            tidy(inner);
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
}

fn known_format(format: &Value) -> bool {
    matches!(format.as_str(), Some("date-time" | "int32" | "int64"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::tidy;

    #[test]
    fn optional_types_become_plain_ones() {
        let mut schema = json!({
            "title": "T",
            "type": "object",
            "description": "one\ntwo",
            "properties": {
                "a": { "type": ["string", "null"], "maxLength": 3 },
                "b": { "anyOf": [{ "type": "string", "enum": ["x"] }, { "type": "null" }], "description": "d" },
                "c": { "type": ["string", "null"], "enum": ["x", null] },
                "d": { "type": "array", "items": { "type": ["integer", "null"], "format": "uint32" } },
                "e": { "type": "object", "additionalProperties": { "type": "integer", "format": "int64" } },
            },
        });
        tidy(&mut schema);
        let expected = json!({
            "type": "object",
            "description": "one two",
            "properties": {
                "a": { "type": "string", "maxLength": 3 },
                "b": { "type": "string", "enum": ["x"], "description": "d" },
                "c": { "type": "string", "enum": ["x"] },
                "d": { "type": "array", "items": { "type": "integer" } },
                "e": { "type": "object", "additionalProperties": { "type": "integer", "format": "int64" } },
            },
        });
        assert_eq!(schema, expected);
    }
}

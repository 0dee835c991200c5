//! The four CRDs as objects.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{
    annotations::{AnnotationPrefix, OwnAnnotation},
    policy::AutomatedRollbackPolicy,
    release::Release,
    rollback::Rollback,
    target::ReleaseTarget,
};

/// The version of the CRDs' schemas, written as annotation `<prefix>/schema` on each of them. The
/// operator does not write while a CRD in the cluster has none or a lower one (operator
/// specification, section 11); a number rather than a hash, because it must tell older from newer.
///
/// It rises with every release that changes what a CRD accepts, stores or prints.
pub const SCHEMA_VERSION: u32 = 1;

/// All CRDs, in the order in which the documentation names them.
pub fn all(prefix: &AnnotationPrefix) -> Vec<CustomResourceDefinition> {
    let mut crds =
        vec![Release::crd(), Rollback::crd(), AutomatedRollbackPolicy::crd(), ReleaseTarget::crd()];
    for crd in &mut crds {
        let schema = (prefix.key(OwnAnnotation::Schema), SCHEMA_VERSION.to_string());
        crd.metadata.annotations.get_or_insert_default().extend(BTreeMap::from([schema]));
    }
    crds
}

/// The version of the schema of a CRD read from the API server; `None` if it has none that can be
/// read, which counts as older.
pub fn schema_version(crd: &CustomResourceDefinition, prefix: &AnnotationPrefix) -> Option<u32> {
    let annotations = crd.metadata.annotations.as_ref()?;
    annotations.get(&prefix.key(OwnAnnotation::Schema))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use rstest::rstest;
    use serde_json::{Value, json};
    use sha2::{Digest, Sha256};

    use super::*;

    fn crds() -> Vec<Value> {
        let crds = all(&AnnotationPrefix::default());
        crds.iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
    }

    /// Calls `visit` with the path and the schema of every field.
    fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
        visit(path, schema);
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(key) {
                walk(inner, &format!("{path}[]"), visit);
            }
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            walk(inner, &format!("{path}.{name}"), visit);
        }
    }

    fn each_field(mut visit: impl FnMut(&str, &Value)) {
        for crd in crds() {
            let version = &crd["spec"]["versions"][0];
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
            walk(&version["schema"]["openAPIV3Schema"], kind, &mut visit);
        }
    }

    #[rstest]
    #[case("releases.belay.dev", "rel", &["config", "status"], json!(["config"]))]
    #[case("rollbacks.belay.dev", "rb", &["spec", "status"], json!(["spec"]))]
    #[case("automatedrollbackpolicies.belay.dev", "arbp", &["spec", "status"], json!(["spec"]))]
    #[case("releasetargets.belay.dev", "rt", &["status"], Value::Null)]
    fn each_crd_has_its_root_fields_and_names(
        #[case] name: &str,
        #[case] short: &str,
        #[case] roots: &[&str],
        #[case] required: Value,
    ) {
        let crd = crds().into_iter().find(|crd| crd["metadata"]["name"] == name).unwrap();
        let version = &crd["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let found: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(found, roots);
        assert_eq!(schema["required"], required);
        assert_eq!(crd["spec"]["names"]["shortNames"], json!([short]));
        assert_eq!(crd["spec"]["names"]["categories"], json!(["belay"]));
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        assert_eq!(version["subresources"], json!({ "status": {} }));
    }

    #[test]
    fn every_field_says_what_it_is_for() {
        each_field(|path, schema| {
            let described = schema["description"].is_string() || path.ends_with("[]");
            assert!(described, "{path} has no description");
        });
    }

    #[test]
    fn no_field_can_be_null() {
        each_field(|path, schema| {
            assert!(schema.get("nullable").is_none(), "{path}");
            assert!(schema.get("anyOf").is_none() && schema.get("oneOf").is_none(), "{path}");
            assert!(schema["type"].is_string(), "{path}: {}", schema["type"]);
        });
    }

    /// The API server refuses CEL rules over what has no bound, and etcd objects without one.
    #[test]
    fn every_string_and_list_has_a_bound() {
        each_field(|path, schema| {
            let bounded = match schema["type"].as_str() {
                Some("string") => {
                    schema.get("maxLength").is_some()
                        || schema.get("enum").is_some()
                        || schema["format"] == "date-time"
                }
                Some("array") => {
                    schema.get("maxItems").is_some()
                        && schema.get("x-kubernetes-list-type").is_some()
                }
                _ => true,
            };
            assert!(bounded, "{path}: {schema}");
        });
    }

    #[test]
    fn conditions_are_a_list_map_by_type_everywhere() {
        let mut seen = 0;
        each_field(|path, schema| {
            if path.ends_with(".status.conditions") {
                seen += 1;
                assert_eq!(schema["x-kubernetes-list-map-keys"], json!(["type"]), "{path}");
            }
        });
        assert_eq!(seen, 4);
    }

    #[test]
    fn the_trigger_of_a_policy_defaults_whole_and_inside() {
        let mut seen = Vec::new();
        each_field(|path, schema| {
            if path.starts_with("AutomatedRollbackPolicy.spec.trigger") {
                seen.push(schema["default"].clone());
            }
        });
        let whole = json!({ "conditionType": "RollbackRequired", "conditionStatus": "True" });
        assert_eq!(seen, [whole, json!("True"), json!("RollbackRequired")]);
    }

    #[rstest]
    #[case(Some("1"), Some(1))]
    #[case(Some("12"), Some(12))]
    #[case(Some("x"), None)]
    #[case(Some(""), None)]
    #[case(Some("-1"), None)]
    #[case(None, None)]
    fn the_schema_version_is_read_from_the_annotation(
        #[case] text: Option<&str>,
        #[case] expected: Option<u32>,
    ) {
        let prefix: AnnotationPrefix = "example.com".parse().unwrap();
        let mut crd = all(&prefix).remove(0);
        assert_eq!(schema_version(&crd, &prefix), Some(SCHEMA_VERSION));
        match text {
            Some(text) => {
                crd.annotations_mut().insert("example.com/schema".to_owned(), text.to_owned());
            }
            None => crd.annotations_mut().clear(),
        }
        assert_eq!(schema_version(&crd, &prefix), expected);
        assert_eq!(schema_version(&crd, &AnnotationPrefix::default()), None);
    }

    fn without_descriptions(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, value| key != "description" || !value.is_string());
                object.values_mut().for_each(without_descriptions);
                object.sort_keys();
            }
            Value::Array(items) => items.iter_mut().for_each(without_descriptions),
            _ => {}
        }
    }

    /// Fails whenever a CRD changes in more than its words. If a release with the present
    /// [`SCHEMA_VERSION`] is out, raise it; then write the new start of the digest here.
    #[test]
    fn a_changed_schema_needs_a_look_at_its_version() {
        let mut specs: Value = crds().into_iter().map(|crd| crd["spec"].clone()).collect();
        without_descriptions(&mut specs);
        let digest = Sha256::digest(specs.to_string());
        assert_eq!((SCHEMA_VERSION, &digest[..4]), (1, &[0, 238, 181, 106][..]));
    }
}

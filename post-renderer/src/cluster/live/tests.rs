use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn key() -> ObjectKey {
    ObjectKey::new(WorkloadKind::Deployment, "shop", "web")
}

fn deployment(annotations: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "annotations": annotations,
            "managedFields": [{
                "manager": "belay-operator", "operation": "Apply", "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}},
                }}}}},
            }],
        },
        "spec": {"template": {"spec": {
            "containers": [
                {"name": "proxy", "image": "proxy:1"},
                {"name": "app", "image": "web:2"},
            ],
            "initContainers": [{"name": "app", "image": "init:1"}, {"name": "empty"}],
        }}},
    })
}

fn found(annotations: &Value) -> Found {
    let body = deployment(annotations).to_string();
    parse(&key(), body.as_bytes(), &AnnotationPrefix::default()).unwrap()
}

fn about(found: &Found, list: ContainerList, container: &str) -> LiveObject {
    match found.about(list, container) {
        Live::Found(object) => object,
        other => panic!("{other:?}"),
    }
}

const FOLLOWED: [(&str, &str); 2] = [("belay.dev/release", "web-1"), ("belay.dev/repo", "a/web")];

fn annotations(more: &[(&str, &str)]) -> Value {
    FOLLOWED.iter().chain(more).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

#[test]
fn a_container_is_found_by_list_and_name_with_its_owners() {
    let found = found(&annotations(&[("meta.helm.sh/release-name", "web")]));
    let app = about(&found, ContainerList::Containers, "app").container.unwrap();
    assert_eq!(app.image, "web:2");
    assert_eq!(app.owners.len(), 1);
    assert_eq!(app.owners[0].to_string(), "belay-operator, Apply");
    let init = about(&found, ContainerList::InitContainers, "app").container.unwrap();
    assert_eq!((init.image.as_str(), init.owners.len()), ("init:1", 0));
    let empty = about(&found, ContainerList::InitContainers, "empty").container.unwrap();
    assert_eq!(empty.image, "");
    assert_eq!(about(&found, ContainerList::Containers, "other").container, None);
    assert_eq!(found.release_name(), Some("web"));
}

#[rstest]
#[case::the_only_annotation(None, ContainerList::Containers, "app", true)]
#[case::init_is_not_meant(None, ContainerList::InitContainers, "app", false)]
#[case::named(Some("app"), ContainerList::Containers, "app", true)]
#[case::not_named(Some("app"), ContainerList::Containers, "proxy", false)]
#[case::same_name_in_the_other_list(Some("app"), ContainerList::InitContainers, "app", false)]
#[case::init(Some("proxy, init:app"), ContainerList::InitContainers, "app", true)]
#[case::several(Some("proxy , app"), ContainerList::Containers, "app", true)]
fn belay_follows_the_containers_that_its_annotation_names(
    #[case] names: Option<&str>,
    #[case] list: ContainerList,
    #[case] container: &str,
    #[case] expected: bool,
) {
    let more: Vec<_> = names.iter().map(|names| ("belay.dev/container", *names)).collect();
    let followed = about(&found(&annotations(&more)), list, container).followed;
    assert_eq!(followed == Followed::Yes, expected, "{followed:?}");
}

#[rstest]
#[case::another_kind(json!({"kind": "StatefulSet"}), "another object")]
#[case::another_group(json!({"apiVersion": "apps.example/v1"}), "another object")]
#[case::another_name(json!({"metadata": {"name": "api"}}), "another object")]
#[case::another_namespace(json!({"metadata": {"namespace": "other"}}), "another object")]
#[case::no_containers(json!({"spec": {"template": {"spec": {"containers": null}}}}), "invalid type")]
#[case::managed_fields_that_are_no_list(json!({"metadata": {"managedFields": {}}}), "invalid type")]
#[case::an_entry_that_cannot_be_decoded(
    json!({"metadata": {"managedFields": [{"manager": "x", "operation": "Apply", "fieldsType": "FieldsV2", "fieldsV1": {}}]}}),
    "managedFields"
)]
fn an_answer_that_is_not_the_object_is_no_object(#[case] patch: Value, #[case] words: &str) {
    let mut body = deployment(&json!({}));
    merge(&mut body, &patch);
    let error = parse(&key(), body.to_string().as_bytes(), &AnnotationPrefix::default());
    let error = error.unwrap_err();
    assert!(error.contains(words), "{error}");
}

fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Object(value), Value::Object(patch)) if !patch.is_empty() => {
            for (key, patch) in patch {
                merge(value.entry(key).or_insert(Value::Null), patch);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

#[rstest]
#[case::no_json("<html>")]
#[case::empty("")]
#[case::an_empty_object("{}")]
#[case::a_list(r#"{"apiVersion":"apps/v1","kind":"DeploymentList","items":[]}"#)]
fn what_is_no_deployment_is_no_object(#[case] body: &str) {
    parse(&key(), body.as_bytes(), &AnnotationPrefix::default()).unwrap_err();
}

#[rstest]
#[case::the_servers_own(
    r#"{"kind":"Status","reason":"NotFound","message":"deployments.apps \"web\" not found","details":{"name":"web"}}"#,
    true
)]
#[case::of_another_object(
    r#"{"kind":"Status","reason":"NotFound","message":"no","details":{"name":"api"}}"#,
    false
)]
#[case::no_such_path(r#"{"kind":"Status","reason":"NotFound","message":"the server could not find the requested resource","details":{}}"#, false)]
#[case::a_page("404 page not found\n", false)]
#[case::nothing("", false)]
fn only_the_api_servers_own_404_means_that_there_is_no_object(
    #[case] body: &str,
    #[case] expected: bool,
) {
    assert_eq!(absent(&key(), body.as_bytes()).is_ok(), expected);
}

#[rstest]
#[case("web", Some("web"))]
#[case("a/../b", None)]
#[case("a%2Fb", None)]
#[case("a?b#c", Some("a%3Fb%23c"))]
#[case("..", None)]
#[case(".", None)]
#[case("", None)]
fn a_name_is_one_segment_of_a_path(#[case] name: &str, #[case] expected: Option<&str>) {
    assert_eq!(segment(name).ok().as_deref(), expected);
}

#[test]
fn the_words_of_a_server_are_one_bounded_line() {
    let long = format!("{{\"kind\":\"Status\",\"message\":\"a\\nb{}\"}}", "c".repeat(10_000));
    let message = Status::of(long.as_bytes()).message;
    assert!(message.starts_with("a b") && message.len() == 500, "{message}");
    let page = format!("<html>\n{}", "d".repeat(10_000));
    assert_eq!(Status::of(page.as_bytes()).message.len(), 200);
}

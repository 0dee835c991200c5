//! What is read of a manifest, and what is refused.

use std::error::Error;

use rstest::rstest;

use super::*;

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    belay.dev/image: ghcr.io/acme/web
    belay.dev/repo: acme/web
    belay.devil/image: no
    postrenderer.helm.sh/postrender-filename: web/templates/web.yaml
spec:
  template:
    metadata:
      name: not-this
    spec:
      containers:
      - name: app
        image: 'ghcr.io/acme/web:1.0.0'
      initContainers:
      - image: |-
          init:1
        name: init
";

fn targets(input: &str) -> Vec<Target> {
    read(input.as_bytes(), "belay.dev").unwrap().targets
}

fn error(input: &[u8]) -> String {
    let error = read(input, "belay.dev").unwrap_err();
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// A Deployment, in flow style on one line, with this text between the braces of its first
/// container.
fn with_container(text: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, spec: {{template: {{spec: {{containers: \
         [{{{text}}}]}}}}}}}}"
    )
}

#[test]
fn a_target_is_read_with_its_metadata() {
    let found = &targets(WEB)[0];
    assert_eq!(found.kind, WorkloadKind::Deployment);
    assert_eq!(found.name.as_deref(), Some("web"));
    assert_eq!(found.namespace.as_deref(), Some("shop"));
    assert_eq!(found.filename.as_deref(), Some("web/templates/web.yaml"));
    assert!(!found.hook);
    let annotations: Vec<_> =
        found.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(annotations, [("image", "ghcr.io/acme/web"), ("repo", "acme/web")]);
    let containers: Vec<_> = found
        .containers
        .iter()
        .map(|c| (c.list, c.name.as_deref(), c.image.as_deref(), c.form()))
        .collect();
    assert_eq!(
        containers,
        [
            (
                ContainerList::Containers,
                Some("app"),
                Some("ghcr.io/acme/web:1.0.0"),
                Some(Form::SingleQuoted)
            ),
            (ContainerList::InitContainers, Some("init"), Some("init:1"), Some(Form::Block)),
        ]
    );
}

#[rstest]
#[case::another_prefix("release.example.com", &[])]
#[case::the_longer_one("belay.devil", &["image"])]
fn only_annotations_of_the_prefix_are_read(#[case] prefix: &str, #[case] expected: &[&str]) {
    let manifest = read(WEB.as_bytes(), prefix).unwrap();
    let names: Vec<_> = manifest.targets[0].annotations.keys().map(String::as_str).collect();
    assert_eq!(names, expected);
}

#[rstest]
#[case::its_own("annotations: {helm.sh/hook: pre-upgrade}", true)]
#[case::quoted("\"annotations\": {\"helm.sh/hook\": test}", true)]
#[case::another("annotations: {helm.sh/hook-weight: '1'}", false)]
fn a_hook_is_what_its_own_metadata_says(#[case] metadata: &str, #[case] expected: bool) {
    let input = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, {metadata}}}\nspec:\n  \
         template:\n    metadata:\n      annotations: {{helm.sh/hook: no}}\n    spec: {{containers: \
         []}}\n"
    );
    assert_eq!(targets(&input)[0].hook, expected);
}

#[rstest]
#[case("name: a, image: x", Some("a"), Some("x"), true)]
#[case("name: a", Some("a"), None, false)]
#[case("image: x", None, Some("x"), true)]
#[case("name: '', image: ''", None, None, true)]
#[case("name: ~, image: null", None, None, true)]
#[case("name: a, image: 'null'", Some("a"), Some("null"), true)]
#[case("name: a, image: x, name: b, image: y", Some("b"), Some("y"), true)]
#[case("image: &i x, name: *i", Some("x"), Some("x"), true)]
#[case("<<: {name: m, image: n}, image: x", Some("m"), Some("x"), true)]
#[case("<<: [{image: n}, {name: m, image: o}]", Some("m"), Some("n"), true)]
#[case("'<<': {image: n}, name: a", Some("a"), None, false)]
#[case("name: a, image: [x]", Some("a"), None, true)]
fn containers_are_read_as_go_reads_them(
    #[case] text: &str,
    #[case] name: Option<&str>,
    #[case] image: Option<&str>,
    #[case] has_image: bool,
) {
    let target = &targets(&with_container(text))[0];
    let container = &target.containers[0];
    assert_eq!(container.name.as_deref(), name);
    assert_eq!(container.image.as_deref(), image);
    assert_eq!(container.has_image, has_image);
}

#[rstest]
#[case::through_a_list(
    "x: {spec: &s {containers: [{name: a, image: b}]}}\nspec: {template: {spec: *s}}"
)]
#[case::through_a_merge(
    "x: &s {containers: [{name: a, image: b}]}\nspec: {template: {spec: {<<: *s}}}"
)]
#[case::of_a_list(
    "spec: {template: {spec: {containers: &c [{name: a, image: b}], initContainers: *c}}}"
)]
fn containers_behind_aliases_are_seen_but_not_edited(#[case] spec: &str) {
    let target = &targets(&format!("apiVersion: apps/v1\nkind: Deployment\n{spec}\n"))[0];
    for container in &target.containers {
        assert_eq!(container.image.as_deref(), Some("b"));
        assert!(container.hindrance().is_some());
    }
    assert!(!target.containers.is_empty());
}

#[rstest]
#[case::unclosed(
    "# c\napiVersion: apps/v1\nkind: Deployment\nspec: {containers: [\n",
    "line 4, column 20"
)]
#[case::a_tab("apiVersion: apps/v1\nkind: DaemonSet\n\tcontainers: 1\n", "line 2, column 7")]
#[case::in_the_second_document("a: 1\n---\nkind: StatefulSet\ncontainers: 'x\n", "document 2")]
#[case::an_unknown_alias(
    "apiVersion: apps/v1\nkind: Deployment\ncontainers: *x\n",
    "line 3, column 13"
)]
#[case::before_its_kind("containers: [\nkind: Deployment\n", "document 1")]
#[case::a_list_with_a_target(
    "kind: List\nitems:\n- kind: Deployment\n  containers: [\n",
    "document 1"
)]
fn a_target_that_cannot_be_read_fails_with_its_place(#[case] input: &str, #[case] place: &str) {
    let error = error(input.as_bytes());
    assert!(error.contains(place), "{error}");
}

#[rstest]
#[case::another_kind("kind: ConfigMap\nDeployment: [containers\n")]
#[case::another_group("apiVersion: extensions/v1beta1\nkind: Deployment\ncontainers: [\n")]
#[case::no_kind("Deployment: containers: [\n")]
#[case::nothing_yaml("@Deployment `containers\n")]
fn what_is_no_target_never_fails(#[case] input: &str) {
    assert_eq!(targets(input).len(), 0);
}

#[test]
fn a_target_that_is_not_utf_8_fails() {
    let error = error(b"apiVersion: apps/v1\nkind: Deployment\n# containers \xff\n");
    assert!(error.contains("line 3, column 14: not UTF-8"), "{error}");
}

#[test]
fn columns_count_characters() {
    let input = "a: \u{e9}\u{65e5}x\n";
    assert_eq!(Position::of(input.as_bytes(), 8), Position { line: 1, column: 6 });
    assert_eq!(Position::of(input.as_bytes(), 99), Position { line: 2, column: 1 });
}

#[rstest]
#[case(500, true)]
#[case(520, false)]
fn nesting_is_limited(#[case] depth: usize, #[case] fits: bool) {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    let input = format!(
        "apiVersion: apps/v1\nkind: Deployment\nx: {open}{close}\nspec: {{template: {{spec: \
         {{containers: []}}}}}}\n"
    );
    let result = read(input.as_bytes(), "belay.dev");
    assert_eq!(result.is_ok(), fits, "{result:?}");
}

#[test]
fn aliases_are_never_expanded() {
    // Each level merges the one before ten times: 10 to the 11th visits, if all were made.
    let mut input = "m0: &m0 {a: 1}\n".to_owned();
    for level in 1..12 {
        let ten = vec![format!("*m{}", level - 1); 10].join(", ");
        input.push_str(&["m", &level.to_string(), ": &m", &level.to_string()].concat());
        input.push_str(&[" {<<: [", &ten, "]}\n"].concat());
    }
    input.push_str("apiVersion: apps/v1\nkind: Deployment\nspec: {<<: *m11}\n# containers\n");
    let error = error(input.as_bytes());
    assert!(error.contains("aliases make it far larger than it is"), "{error}");
}

#[test]
fn a_list_that_holds_itself_ends() {
    let error = error(b"&l\nkind: List\napiVersion: v1\nitems: [*l, Deployment, containers]\n");
    assert!(error.contains("Lists are nested too deeply"), "{error}");
}

#[test]
fn a_document_without_words_of_ours_is_not_parsed() {
    assert_eq!(targets("{{ not YAML at all: [\n---\n").len(), 0);
}

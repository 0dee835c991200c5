//! The look-up cases of the specification of `kubectl release`, section E.5, with their numbers.

use belay_ownership::{Expectation, ExpectedOwner, Hint, Problem, State};
use rstest::rstest;
use serde_json::{Value, json};

use crate::notation::{self, APP, IMG, ask, c, entry, leaves, owned, under, with};

const TEMPLATE_ANNOTATIONS: &str = "spec template metadata annotations";
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

fn restarted() -> Value {
    let fields = leaves(&format!(". {RESTARTED}"));
    json!([entry("kubectl-rollout/U", under(TEMPLATE_ANNOTATIONS, fields))])
}

fn helm() -> Value {
    json!([entry("helm/U", c(leaves(". name image imagePullPolicy")))])
}

fn port(number: u16, protocol: &str, fields: &str) -> Value {
    let key = format!(r#"k:{{"containerPort":{number},"protocol":"{protocol}"}}"#);
    c(json!({ "f:ports": { key: leaves(fields) } }))
}

#[rstest]
#[case::c01_one_owner(helm(), IMG, "P.image owned: exact helm/U")]
#[case::c02_two_owners(
    json!([entry("release/A", c(leaves(". name image"))), entry("helm/U", c(leaves(". name image")))]),
    IMG,
    "P.image owned: exact helm/U + exact release/A"
)]
#[case::c03_a_parent_beside_the_owner(
    json!([
        entry("release/A", c(leaves(". name image"))),
        entry("helm/U", c(leaves(". name imagePullPolicy"))),
    ]),
    IMG,
    "P.image owned: exact release/A; parent helm/U"
)]
#[case::c04_only_a_parent(
    json!([entry("x/U", c(leaves(". name")))]),
    IMG,
    "P.image unowned; parent x/U"
)]
#[case::c05_the_field_without_the_item(
    json!([entry("helm/U", c(leaves("image")))]),
    IMG,
    "P.image owned: exact helm/U"
)]
#[case::c06_another_container(
    helm(),
    "spec.template.spec.containers[name=sidecar].image",
    ".spec.template.spec.containers[name=\"sidecar\"].image unowned"
)]
#[case::c07_another_list(
    json!([entry("helm/U", under(r#"spec template spec initContainers k:{"name":"app"}"#, leaves(". image")))]),
    IMG,
    "P.image unowned"
)]
#[case::c08_two_identities_of_one_name(
    json!([entry("helm/A", c(leaves(". name"))), entry("helm/U", c(leaves("image")))]),
    IMG,
    "P.image owned: exact helm/U; parent helm/A"
)]
#[case::c09_part_of_an_atomic_list(
    json!([entry("helm/A", c(leaves(". args")))]),
    "spec.template.spec.containers[name=app].args[0]",
    "P.args[0] owned: via P.args helm/A"
)]
#[case::c10_part_of_an_atomic_map(
    json!([entry("helm/U", under("spec template spec nodeSelector", json!({})))]),
    "spec.template.spec.nodeSelector['kubernetes.io/os']",
    ".spec.template.spec.nodeSelector['kubernetes.io/os'] owned: via .spec.template.spec.nodeSelector helm/U"
)]
#[case::c11_part_of_an_atomic_struct(
    json!([entry("kubectl-create/U", under("spec selector", json!({})))]),
    "spec.selector.matchLabels.app",
    ".spec.selector.matchLabels.app owned: via .spec.selector kubectl-create/U"
)]
#[case::c12_a_map_that_was_empty(
    json!([
        entry("m/U", under("metadata annotations", json!({}))),
        entry("n/U", under("metadata annotations a/b.c", json!({}))),
    ]),
    "metadata.annotations['a/b.c']",
    ".metadata.annotations['a/b.c'] owned: exact n/U; parent m/U"
)]
#[case::c13_a_quoted_key(
    restarted(),
    "spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt']",
    ".spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt'] owned: exact kubectl-rollout/U"
)]
#[case::c14_another_key(
    json!([entry("kubectl-rollout/U", under(TEMPLATE_ANNOTATIONS, leaves(". x")))]),
    "spec.template.metadata.annotations['y']",
    ".spec.template.metadata.annotations.y unowned; parent kubectl-rollout/U"
)]
#[case::c15_key_order_is_irrelevant(
    json!([entry("helm/U", c(json!({ "f:ports": {
        r#"k:{"protocol":"TCP","containerPort":80}"#: leaves(". containerPort") } })))]),
    "spec.template.spec.containers[name=app].ports[containerPort=80,protocol=TCP].containerPort",
    "P.ports[containerPort=80,protocol=\"TCP\"].containerPort owned: exact helm/U"
)]
#[case::c17_a_text_is_no_number(
    json!([entry("helm/U", port(80, "TCP", "name"))]),
    "spec.template.spec.containers[name=app].ports[containerPort=\"80\",protocol=TCP].name",
    "P.ports[containerPort=\"80\",protocol=\"TCP\"].name unowned"
)]
#[case::c18_a_member_of_a_set(
    json!([entry("c/U", under("metadata finalizers", json!({ ".": {}, "v:\"example.com/foo\"": {} })))]),
    "metadata.finalizers[=\"example.com/foo\"]",
    ".metadata.finalizers[=\"example.com/foo\"] owned: exact c/U"
)]
#[case::c19_a_subresource(
    json!([
        entry("helm/A", under("spec strategy", json!({}))),
        entry("kube-controller-manager/U/scale", under("spec replicas", json!({}))),
    ]),
    "spec.replicas",
    ".spec.replicas owned: exact kube-controller-manager/U/scale"
)]
#[case::c20_a_condition(
    json!([entry("kube-controller-manager/U/status",
        under(r#"status conditions k:{"type":"Available"}"#, leaves(". status type")))]),
    "status.conditions[type=Available].status",
    ".status.conditions[type=\"Available\"].status owned: exact kube-controller-manager/U/status"
)]
#[case::c21_an_untracked_field(helm(), "metadata.name", ".metadata.name untracked")]
#[case::c22_a_default(
    json!([entry("release/A", c(leaves(". name image")))]),
    "spec.template.spec.containers[name=app].imagePullPolicy",
    "P.imagePullPolicy unowned; parent release/A"
)]
#[case::c23_something_below(
    json!([entry("release/A", c(leaves(". name image"))), entry("kubectl-set/U", c(leaves("image")))]),
    APP,
    "P owned: exact release/A; below kubectl-set/U"
)]
#[case::c24_nothing_tracked(json!([]), IMG, "P.image no-managed-fields")]
#[case::c26_before_the_first_apply(
    json!([entry("before-first-apply/U", c(leaves(". name image")))]),
    IMG,
    "P.image owned: exact before-first-apply/U (owner before server-side apply began)"
)]
#[case::c27_merged_writers(
    json!([entry("ancient-changes/U", c(leaves("image")))]),
    IMG,
    "P.image owned: exact ancient-changes/U (older writers merged)"
)]
#[case::c28_left_over_from_client_side_apply(
    json!([
        entry("kubectl/A", c(leaves(". name image"))),
        entry("kubectl-client-side-apply/U", c(leaves(". name image"))),
    ]),
    IMG,
    "P.image owned: exact kubectl/A + exact kubectl-client-side-apply/U \
     (left over from client-side apply: the field stays even when the applier drops it)"
)]
#[case::c29_a_later_kind_of_element(
    json!([entry("future/A", json!({ "f:spec": { "r:future": { "x": 3 }, "f:replicas": {} } }))]),
    "spec.replicas",
    ".spec.replicas owned: exact future/A"
)]
#[case::c30_nothing_but_later_kinds(
    json!([entry("future/A", json!({ "f:spec": { "f:replicas": { "r:x": {} } } }))]),
    "spec.replicas",
    ".spec.replicas owned: exact future/A"
)]
#[case::c32_null_is_a_leaf(
    json!([entry("old/U", json!({ "f:spec": { "f:replicas": null } }))]),
    "spec.replicas",
    ".spec.replicas owned: exact old/U"
)]
#[case::c33_a_dot_alone_is_a_leaf(
    json!([entry("a/U", json!({ "f:spec": { "f:replicas": { ".": {} } } }))]),
    "spec.replicas",
    ".spec.replicas owned: exact a/U"
)]
#[case::c37_no_name(
    json!([entry("/U", c(leaves("image")))]),
    IMG,
    "P.image owned: exact unknown/U"
)]
#[case::c39_part_of_an_atomic_reference(
    json!([entry("helm/U", c(json!({ "f:env": { "k:{\"name\":\"P\"}": {
        "f:valueFrom": { ".": {}, "f:fieldRef": {} } } } })))]),
    "spec.template.spec.containers[name=app].env[name=P].valueFrom.fieldRef.fieldPath",
    "P.env[name=\"P\"].valueFrom.fieldRef.fieldPath owned: via P.env[name=\"P\"].valueFrom.fieldRef helm/U"
)]
#[case::c40_the_spelling_of_the_api_server(
    helm(),
    ".spec.template.spec.containers[name=\"app\"].image",
    "P.image owned: exact helm/U"
)]
#[case::c41_a_variable_of_a_third_party(
    json!([
        entry("helm/U", c(leaves(". name imagePullPolicy"))),
        entry("envpatcher/U", c(json!({ "f:env": { ".": {}, "k:{\"name\":\"X\"}": leaves(". name value") } }))),
    ]),
    "spec.template.spec.containers[name=app].env[name=X].value",
    "P.env[name=\"X\"].value owned: exact envpatcher/U; parent helm/U"
)]
#[case::c42_a_key_with_dots_that_is_not_quoted(
    restarted(),
    "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt",
    ".spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt'] owned: exact kubectl-rollout/U; \
     hint: a name with dots needs quotes: ['kubectl.kubernetes.io/restartedAt']"
)]
#[case::c43_an_item_that_is_an_atomic_reference(
    json!([entry("kubelet-like/U", under("spec template spec imagePullSecrets",
        json!({ ".": {}, "k:{\"name\":\"s\"}": {} })))]),
    "spec.template.spec.imagePullSecrets[name=s].name",
    ".spec.template.spec.imagePullSecrets[name=\"s\"].name owned: \
     via .spec.template.spec.imagePullSecrets[name=\"s\"] kubelet-like/U"
)]
fn one_path(#[case] entries: Value, #[case] query: &str, #[case] expected: &str) {
    assert_eq!(ask(&entries, query, None), [expected]);
}

#[test]
fn c16_a_partial_key_stands_for_every_item_that_has_it() {
    let entries = json!([
        entry("helm/U", port(53, "TCP", "protocol")),
        entry("dns/A", port(53, "UDP", "protocol"))
    ]);
    let answers = ask(&entries, &format!("{APP}.ports[containerPort=53].protocol"), None);
    assert_eq!(
        answers,
        [
            "P.ports[containerPort=53,protocol=\"TCP\"].protocol owned: exact helm/U",
            "P.ports[containerPort=53,protocol=\"UDP\"].protocol owned: exact dns/A",
        ]
    );
}

#[test]
fn c25_an_unknown_time_is_no_obstacle() {
    let mut release = entry("release/A", c(leaves(". name image")));
    release.as_object_mut().unwrap().remove("time");
    let ownership = owned(&json!([release, entry("helm/U", c(leaves("image")))]));
    let answer = ownership.at(&belay_ownership::FieldPath::image("containers", "app"));
    let times: Vec<_> = answer.owners.iter().map(|owner| owner.entry.time().is_some()).collect();
    assert_eq!(times, [true, false]);
}

#[test]
fn c31_a_broken_entry_leaves_the_others_alone() {
    let entries =
        json!([entry("broken/U", json!({ "spec": {} })), entry("helm/U", c(leaves("image")))]);
    assert_eq!(ask(&entries, IMG, None), ["P.image owned: exact helm/U"]);
    let ownership = owned(&entries);
    let [bad] = ownership.undecodable() else { panic!("{:?}", ownership.undecodable()) };
    assert_eq!(bad.to_string(), "broken: missing colon in the key \"spec\"");
    assert_eq!(
        (bad.operation.as_str(), &bad.problem),
        ("Update", &Problem::MissingColon { key: "spec".into() })
    );
}

fn live() -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "side", "image": "b:1" }, { "name": "app", "image": "a:1" },
    ] } } } })
}

#[test]
fn c34_a_position_is_resolved_in_the_live_object() {
    let entries = json!([
        entry("release/A", c(leaves(". name image"))),
        entry("helm/U", c(leaves(". name imagePullPolicy"))),
    ]);
    let query = "spec.template.spec.containers[1].image";
    let answers = ask(&entries, query, Some(&live()));
    assert_eq!(answers, ["P.image owned: exact release/A; parent helm/U"]);
    let ownership = owned(&entries);
    let live = live();
    let lookup = ownership.lookup(&query.parse().unwrap(), Some(&live));
    assert_eq!(lookup.answers[0].value, Some(&json!("a:1")));
}

#[rstest]
#[case::the_entries_alone(None)]
#[case::the_live_object_too(Some(live()))]
fn c35_a_star_stands_for_every_item(#[case] live: Option<Value>) {
    let side = under(r#"spec template spec containers k:{"name":"side"}"#, leaves(". image"));
    let entries = json!([entry("helm/U", c(leaves(". image"))), entry("sidecar-injector/U", side)]);
    let mut answers = ask(&entries, "spec.template.spec.containers[*].image", live.as_ref());
    answers.sort();
    assert_eq!(
        answers,
        [
            ".spec.template.spec.containers[name=\"side\"].image owned: exact sidecar-injector/U",
            "P.image owned: exact helm/U",
        ]
    );
}

#[test]
fn c36_an_old_version_is_shown() {
    let mut old = entry("helm/U", c(leaves("image")));
    old["apiVersion"] = json!("extensions/v1beta1");
    let ownership = owned(&json!([old]));
    let versions: Vec<_> = ownership.entries().map(belay_ownership::Entry::api_version).collect();
    assert_eq!(versions, ["extensions/v1beta1"]);
    assert_eq!(
        notation::lines(&ownership.lookup(&IMG.parse().unwrap(), None)),
        ["P.image owned: exact helm/U"]
    );
}

#[test]
fn c38_an_updater_is_another_in_another_version() {
    let mut old = entry("helm/U", c(leaves("image")));
    old["apiVersion"] = json!("apps/v1beta2");
    let entries = json!([entry("helm/U", c(leaves("image"))), old]);
    assert_eq!(ask(&entries, IMG, None), ["P.image owned: exact helm/U + exact helm/U"]);
}

#[rstest]
#[case::without_the_object(None, Hint::PositionNeedsObject { index: 7 })]
#[case::beyond_the_list(Some(live()), Hint::NoSuchPosition { index: 7 })]
fn a_position_that_cannot_be_resolved_is_said(#[case] live: Option<Value>, #[case] hint: Hint) {
    let ownership = owned(&helm());
    let query = "spec.template.spec.containers[7].image".parse().unwrap();
    let lookup = ownership.lookup(&query, live.as_ref());
    assert_eq!(lookup.answers[0].hints, [hint]);
    assert_eq!(lookup.answers[0].state, State::Unowned);
}

#[test]
fn a_star_that_stands_for_nothing_is_answered_for_what_holds_it() {
    assert_eq!(
        ask(&json!([]), "spec.template.spec.containers[*].image", None),
        [".spec.template.spec.containers no-managed-fields; hint: [*] stands for nothing here"]
    );
}

#[test]
fn an_item_without_owner_is_seen_in_the_live_object() {
    let side = ".spec.template.spec.containers[name=\"side\"].image unowned";
    let answers = ask(&helm(), "spec.template.spec.containers[*].image", Some(&live()));
    assert_eq!(answers, [side, "P.image owned: exact helm/U"]);
}

#[test]
fn a_label_with_dots_is_found_beside_the_label_it_begins_with() {
    // Helm charts set both `app` and `app.kubernetes.io/name`.
    let labels = leaves(". app app.kubernetes.io/name");
    let entries = json!([entry("helm/U", under("metadata labels", labels))]);
    let answers = ask(&entries, "metadata.labels.app.kubernetes.io/name", None);
    assert_eq!(
        answers,
        [".metadata.labels['app.kubernetes.io/name'] owned: exact helm/U; \
          hint: a name with dots needs quotes: ['app.kubernetes.io/name']"]
    );
    assert_eq!(
        ask(&entries, "metadata.labels.app", None),
        [".metadata.labels.app owned: exact helm/U"]
    );
}

#[test]
fn a_key_with_dots_is_found_in_the_live_object_alone() {
    let live = json!({ "metadata": { "annotations": { "belay.dev/release": "web-1" } } });
    let ownership = owned(&helm());
    let query = "metadata.annotations.belay.dev/release".parse().unwrap();
    let lookup = ownership.lookup(&query, Some(&live));
    assert_eq!(lookup.answers[0].value, Some(&json!("web-1")));
    assert_eq!(lookup.answers[0].path.to_string(), ".metadata.annotations['belay.dev/release']");
}

#[test]
fn a_default_of_a_key_field_need_not_stand_in_the_file() {
    let entries = json!([entry("helm/A", port(80, "TCP", ". containerPort"))]);
    let live = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "app", "ports": [{ "containerPort": 80 }] }] } } } });
    let ownership = owned(&entries);
    let query = format!("{APP}.ports[0].containerPort").parse().unwrap();
    let lookup = ownership.lookup(&query, Some(&live));
    assert_eq!(
        notation::lines(&lookup),
        ["P.ports[containerPort=80,protocol=\"TCP\"].containerPort owned: exact helm/A"]
    );
    assert_eq!(lookup.answers[0].value, Some(&json!(80)));
}

#[test]
fn a_container_that_nobody_holds_in_part_is_still_no_whole() {
    // Others took its fields; the API server leaves the item alone.
    let entries = json!([entry("helm/U", c(json!({ ".": {} })))]);
    assert_eq!(ask(&entries, IMG, None), ["P.image unowned; parent helm/U"]);
}

#[test]
fn an_unknown_list_is_atomic_until_somebody_owns_an_item() {
    let path = "spec.rules[0].host";
    let whole = entry("a/U", under("spec rules", json!({})));
    assert_eq!(
        ask(&json!([whole]), path, None),
        [".spec.rules[0].host owned: via .spec.rules a/U"]
    );
    let item = entry("b/U", under("spec rules", json!({ "i:1": {} })));
    assert_eq!(ask(&json!([whole, item]), path, None), [".spec.rules[0].host unowned; parent a/U"]);
}

#[rstest]
#[case::the_only_owner("release", false, Expectation::Met)]
#[case::in_either_operation("release/Apply", false, Expectation::Met)]
#[case::in_the_other_operation("release/Update", false, differs(&["release (Apply)"], true))]
#[case::somebody_else("helm", false, differs(&["release (Apply)"], true))]
#[case::perhaps_in_the_broken_entry("release", true, Expectation::Undecided { undecodable: 1 })]
#[case::somebody_else_for_certain("helm", true, differs(&["release (Apply)"], true))]
fn the_expected_owner(
    #[case] expected: ExpectedOwner,
    #[case] with_broken: bool,
    #[case] expectation: Expectation,
) {
    let mut entries = vec![entry("release/A", c(leaves(". name image")))];
    if with_broken {
        entries.push(entry("broken/U", json!(3)));
    }
    let ownership = owned(&json!(entries));
    let answer = ownership.at(&belay_ownership::FieldPath::image("containers", "app"));
    assert_eq!(answer.expect(&ownership, &expected), expectation);
}

fn differs(unexpected: &[&str], missing: bool) -> Expectation {
    let identity = |text: &&str| {
        let name = text.split(' ').next().unwrap();
        belay_ownership::Identity::applier(name)
    };
    Expectation::Differs { unexpected: unexpected.iter().map(identity).collect(), missing }
}

#[test]
fn a_co_owner_is_not_expected() {
    let entries =
        json!([entry("release/A", c(leaves("image"))), entry("helm/A", c(leaves("image")))]);
    let ownership = owned(&entries);
    let answer = ownership.at(&belay_ownership::FieldPath::image("containers", "app"));
    let expected = "release".parse().unwrap();
    assert_eq!(answer.expect(&ownership, &expected), differs(&["helm (Apply)"], false));
}

#[test]
fn an_owner_is_missing_from_an_unowned_field() {
    let ownership = owned(&json!([entry("x/U", c(leaves(". name")))]));
    let answer = ownership.at(&belay_ownership::FieldPath::image("containers", "app"));
    assert_eq!(answer.expect(&ownership, &"release".parse().unwrap()), differs(&[], true));
}

#[test]
fn the_fields_of_an_entry_are_compared_with_those_wanted() {
    let entries = json!([entry(
        "release/A",
        c(with(
            leaves(". name image"),
            "f:env",
            json!({
        "k:{\"name\":\"X\"}": leaves(". name") })
        ))
    )]);
    let ownership = owned(&entries);
    let entry = ownership.entry(&belay_ownership::Identity::applier("release")).unwrap();
    let container = belay_ownership::FieldPath::container("containers", "app");
    let field = |name: &str| container.clone().join(belay_ownership::Element::field(name));
    let wanted = [container.clone(), field("name"), field("image"), field("workingDir")];
    let difference = entry.compare(&wanted);
    let texts = |paths: &[belay_ownership::FieldPath]| {
        paths
            .iter()
            .map(|path| path.to_string().rsplit_once(']').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&difference.missing), [".workingDir"]);
    assert_eq!(texts(&difference.extra), ["", ".name"]);
    assert_eq!(entry.len(), 5);
}

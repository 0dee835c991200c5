//! managedFields of every broken kind: what is broken is named, and the rest is read.

use belay_ownership::{
    FieldPath, MAX_DEPTH, MAX_ENTRIES, MAX_JSON_BYTES, MAX_KEY_BYTES, Ownership, ReadError, State,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use rstest::rstest;
use serde_json::{Value, json};

use crate::notation::{c, entry, leaves, owned, under};

fn good() -> Value {
    entry("helm/U", c(leaves(". name image")))
}

/// Reads broken entries beside a good one, in all ways there are, and returns what is said.
#[track_caller]
fn said(broken: &Value) -> String {
    let entries = json!([broken, good()]);
    let ownership = owned(&entries);
    let from_json = Ownership::from_json(entries.to_string().as_bytes()).unwrap();
    assert_eq!(ownership.undecodable(), from_json.undecodable());
    if let Ok(typed) = serde_json::from_value::<Vec<ManagedFieldsEntry>>(entries) {
        assert_eq!(ownership.undecodable(), Ownership::decode(&typed).undecodable());
    }
    let answer = ownership.at(&FieldPath::image("containers", "app"));
    assert_eq!(answer.owners.len(), 1, "the good entry is lost");
    let [bad] = ownership.undecodable() else { panic!("{:?}", ownership.undecodable()) };
    bad.to_string()
}

#[rstest]
#[case::missing_colon(json!({ "spec": {} }), "missing colon in the key \"spec\"")]
#[case::a_short_key(json!({ "f:spec": { "f": {} } }), "the key \"f\" is too short")]
#[case::an_empty_key(json!({ "": {} }), "the key \"\" is too short")]
#[case::bad_json_in_a_key(json!({ "k:{\"name\":app}": {} }), "invalid JSON in the key \"k:{\\\"name\\\":app}\"")]
#[case::bytes_after_the_json(json!({ "k:{\"a\":1}}": {} }), "invalid JSON in the key \"k:{\\\"a\\\":1}}\"")]
#[case::a_key_without_json(json!({ "k:": {} }), "invalid JSON in the key \"k:\"")]
#[case::bad_json_in_a_value(json!({ "v:{": {} }), "invalid JSON in the key \"v:{\"")]
#[case::no_index(json!({ "i:one": {} }), "no number in the key \"i:one\"")]
#[case::fields_that_are_no_object(json!("f:spec"), "fieldsV1 is not an object")]
#[case::fields_that_are_a_list(json!([{}]), "fieldsV1 is not an object")]
#[case::a_value_that_is_no_object(json!({ "f:spec": true }), "a value in fieldsV1 is not an object")]
#[case::a_value_that_is_a_number(json!({ "f:spec": { "f:replicas": 3 } }), "a value in fieldsV1 is not an object")]
#[case::a_value_that_is_a_list(json!({ "f:spec": [] }), "a value in fieldsV1 is not an object")]
fn these_fields_are_undecodable(#[case] fields: Value, #[case] expected: &str) {
    assert_eq!(said(&entry("broken/U", fields)), format!("broken: {expected}"));
}

fn changed(field: &str, value: Value) -> Value {
    let mut entry = entry("broken/U", json!({ "f:spec": {} }));
    entry[field] = value;
    entry
}

#[rstest]
#[case::another_format(changed("fieldsType", json!("FieldsV2")), "broken: the fieldsType \"FieldsV2\" is not FieldsV1")]
#[case::no_format(changed("fieldsType", json!(null)), "broken: fieldsType is missing")]
#[case::another_operation(changed("operation", json!("Patch")), "broken: the operation \"Patch\" is neither Apply nor Update")]
#[case::no_operation(changed("operation", json!(null)), "broken: the operation \"\" is neither Apply nor Update")]
#[case::a_manager_that_is_no_text(changed("manager", json!(["broken"])), "(no manager): manager is not a text")]
#[case::a_subresource_that_is_no_text(changed("subresource", json!({})), "broken: subresource is not a text")]
#[case::an_entry_that_is_null(json!(null), "(no manager): the entry is not an object")]
#[case::an_entry_that_is_a_text(json!("helm"), "(no manager): the entry is not an object")]
#[case::an_entry_that_is_a_list(json!([[]]), "(no manager): the entry is not an object")]
#[case::an_empty_entry(json!({}), "(no manager): fieldsType is missing")]
fn these_entries_are_undecodable(#[case] entry: Value, #[case] expected: &str) {
    assert_eq!(said(&entry), expected);
}

#[rstest]
#[case::fields_that_are_null(changed("fieldsV1", json!(null)))]
#[case::fields_that_are_empty(changed("fieldsV1", json!({})))]
#[case::a_time_that_is_none(changed("time", json!("yesterday")))]
#[case::a_time_that_is_no_text(changed("time", json!(3)))]
#[case::a_field_that_is_not_known(changed("colour", json!({ "f:": [1] })))]
fn these_entries_are_read(#[case] entry: Value) {
    let ownership = owned(&json!([entry, good()]));
    assert_eq!(ownership.undecodable(), []);
    assert_eq!(ownership.entries().len(), 2);
}

#[test]
fn a_problem_deep_down_takes_the_whole_entry() {
    let mut fields = c(leaves(". name image"));
    fields["f:spec"]["f:strategy"] = json!({ "bad": {} });
    assert_eq!(said(&entry("broken/A", fields)), "broken: missing colon in the key \"bad\"");
}

#[rstest]
#[case::null(json!(null), 0)]
#[case::no_entries(json!([]), 0)]
#[case::the_marker_that_clears_them(json!([{}]), 1)]
fn no_managed_fields(#[case] entries: Value, #[case] undecodable: usize) {
    let ownership = owned(&entries);
    assert_eq!(ownership.undecodable().len(), undecodable);
    assert_eq!(ownership.has_entries(), undecodable > 0);
}

#[rstest]
#[case::a_text(json!("[]"))]
#[case::an_object(json!({ "managedFields": [] }))]
#[case::a_number(json!(3))]
fn what_is_no_list_is_refused(#[case] entries: Value) {
    assert!(matches!(Ownership::from_value(&entries), Err(ReadError::NotAList)));
    let json = entries.to_string();
    assert!(matches!(Ownership::from_json(json.as_bytes()), Err(ReadError::NotAList)));
}

#[rstest]
#[case::nothing(b"")]
#[case::cut_off(br#"[{"manager":"helm""#)]
#[case::bytes_after_it(b"[] []")]
#[case::bytes_that_are_no_text(b"[{\"manager\":\"\xff\xfe\"}]")]
#[case::a_key_that_is_no_text(b"[{\"fieldsV1\":{\"f:\xc3\x28\":{}}}]")]
#[case::half_a_surrogate(br#"[{"manager":"\ud800"}]"#)]
#[case::a_nul(b"[\0]")]
fn what_is_no_json_is_refused(#[case] json: &[u8]) {
    assert!(matches!(Ownership::from_json(json), Err(ReadError::Json(_))));
}

/// `{"f:a":{"f:a":…}}` as text: a reader that recurses would not survive it.
fn nested(levels: usize) -> String {
    format!("{}{{}}{}", r#"{"f:a":"#.repeat(levels), "}".repeat(levels))
}

fn entry_of_text(fields: &str) -> String {
    format!(
        r#"{{"manager":"deep","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
    )
}

#[rstest]
#[case::one_level_too_many(MAX_DEPTH + 1)]
#[case::ten_thousand(10_000)]
#[case::as_much_as_may_be_read(500_000)]
fn an_entry_nested_too_deep_leaves_the_others_alone(#[case] levels: usize) {
    let json = format!("[{},{}]", entry_of_text(&nested(levels)), good());
    let ownership = Ownership::from_json(json.as_bytes()).unwrap();
    let [bad] = ownership.undecodable() else { panic!("{:?}", ownership.undecodable()) };
    assert_eq!(bad.to_string(), format!("deep: nested deeper than {MAX_DEPTH} levels"));
    assert_eq!(ownership.at(&FieldPath::image("containers", "app")).state, State::Owned);
}

#[test]
fn an_entry_as_deep_as_may_be_is_read() {
    let json = format!("[{}]", entry_of_text(&nested(MAX_DEPTH)));
    let ownership = Ownership::from_json(json.as_bytes()).unwrap();
    assert_eq!(ownership.undecodable(), []);
    let entry = ownership.entries().next().unwrap();
    assert_eq!(entry.paths()[0].elements().len(), MAX_DEPTH);
}

#[rstest]
#[case::in_a_list("[".repeat(10_000) + &"]".repeat(10_000))]
#[case::in_an_unknown_element(format!(r#"{{"x:":{}}}"#, nested(10_000)))]
#[case::in_a_dot(format!(r#"{{".":{}}}"#, nested(10_000)))]
fn what_is_skipped_may_be_nested_as_it_likes(#[case] fields: String) {
    let json = format!("[{},{}]", entry_of_text(&fields), good());
    let ownership = Ownership::from_json(json.as_bytes()).unwrap();
    assert_eq!(ownership.at(&FieldPath::image("containers", "app")).state, State::Owned);
}

#[test]
fn a_value_nested_ten_thousand_levels_is_undecodable() {
    let mut fields = json!({});
    for _ in 0..10_000 {
        let mut outer = serde_json::Map::new();
        outer.insert("f:a".to_owned(), fields);
        fields = Value::Object(outer);
    }
    let mut entries = json!([entry("deep/U", json!({})), good()]);
    entries[0]["fieldsV1"] = fields;
    let ownership = owned(&entries);
    assert_eq!(ownership.undecodable().len(), 1);
    assert_eq!(ownership.at(&FieldPath::image("containers", "app")).owners.len(), 1);
    // Dropping such a value recurses, so it is taken apart.
    let mut left = entries[0]["fieldsV1"].take();
    while let Some(inner) = left.get_mut("f:a").map(Value::take) {
        left = inner;
    }
}

#[test]
fn a_key_nested_ten_thousand_levels_is_undecodable() {
    let key = format!("k:{}", nested(10_000));
    let bad = said(&entry("deep/U", json!({ key: {} })));
    assert_eq!(bad, "deep: a key of 80004 bytes, over the limit of 65536");
    let key = format!("v:{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let bad = said(&entry("deep/U", json!({ key: {} })));
    assert!(bad.starts_with("deep: invalid JSON in the key \"v:[[["), "{bad}");
    assert!(bad.len() < 200, "the whole key is repeated");
}

#[test]
fn ten_megabytes_of_text_are_refused() {
    let json = format!("[{}]", " ".repeat(10_000_000));
    let Err(error) = Ownership::from_json(json.as_bytes()) else { panic!("it was read") };
    let expected = format!("read managedFields of 10000002 bytes: the limit is {MAX_JSON_BYTES}");
    assert_eq!(error.to_string(), expected);
}

/// Ten megabytes in one entry, as a list of typed entries or a value, where nobody counts bytes.
#[rstest]
#[case::of_fields((0..1_200_000).map(|index| format!("f:{index}")), "the object has more than 200000 path elements")]
#[case::in_one_key([format!("f:{}", "x".repeat(10_000_000))], "a key of 10000002 bytes, over the limit of 65536")]
fn ten_megabytes_are_undecodable(
    #[case] keys: impl IntoIterator<Item = String>,
    #[case] expected: &str,
) {
    let fields: serde_json::Map<_, _> = keys.into_iter().map(|key| (key, json!({}))).collect();
    let ownership = owned(&json!([entry("huge/U", fields.into()), good()]));
    let [bad] = ownership.undecodable() else { panic!("{:?}", ownership.undecodable()) };
    assert_eq!(bad.to_string(), format!("huge: {expected}"));
    assert_eq!(ownership.at(&FieldPath::image("containers", "app")).state, State::Owned);
}

#[test]
fn many_entries_share_one_limit() {
    let fields: serde_json::Map<_, _> =
        (0..90_000).map(|index| (format!("f:{index}"), json!({}))).collect();
    let huge = |name: &str| entry(name, Value::Object(fields.clone()));
    let ownership = owned(&json!([huge("c/U"), huge("a/U"), huge("b/U")]));
    let left: Vec<_> = ownership.undecodable().iter().map(|bad| bad.manager.as_str()).collect();
    assert_eq!(left, ["c"]);
}

#[test]
fn entries_without_end_are_counted() {
    let entries = vec![entry("a/U", json!({})); MAX_ENTRIES + 5];
    let ownership = owned(&json!(entries));
    let [bad] = ownership.undecodable() else { panic!("{:?}", ownership.undecodable()) };
    assert_eq!(bad.to_string(), "(no manager): 5 entries over the limit of 1000");
    let typed = vec![ManagedFieldsEntry::default(); MAX_ENTRIES + 5];
    assert_eq!(Ownership::decode(&typed).undecodable().len(), MAX_ENTRIES + 1);
}

#[test]
fn the_longest_key_is_read() {
    let name = "x".repeat(MAX_KEY_BYTES - 2);
    let ownership = owned(&json!([entry("a/U", under(&name, json!({})))]));
    assert!(ownership.entries().next().unwrap().has(&FieldPath::of_fields([name.as_str()])));
}

#[test]
fn two_entries_of_one_identity_are_one_owner_of_both() {
    let mut later = entry("helm/U", c(leaves("imagePullPolicy")));
    later["time"] = json!("2026-11-28T00:00:00Z");
    for entries in [json!([good(), later]), json!([later, good()])] {
        let ownership = owned(&entries);
        let [entry] = ownership.entries().collect::<Vec<_>>()[..] else { panic!("not one") };
        assert_eq!(entry.len(), 4);
        assert_eq!(entry.time().unwrap().to_string(), "2026-11-28T00:00:00Z");
    }
}

#[test]
fn a_key_that_stands_twice_counts_once() {
    let json = format!("[{}]", entry_of_text(r#"{"f:a":{},"f:a":{"f:b":{}}}"#));
    let ownership = Ownership::from_json(json.as_bytes()).unwrap();
    let paths: Vec<_> =
        ownership.entries().next().unwrap().paths().iter().map(ToString::to_string).collect();
    assert_eq!(paths, [".a", ".a.b"]);
}

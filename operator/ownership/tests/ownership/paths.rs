//! Reading and printing of paths.

use belay_ownership::{Element, FieldPath, Key, Literal, PathProblem, Query, Segment};
use rstest::rstest;
use serde_json::json;

#[rstest]
#[case::fields("spec.replicas", ".spec.replicas")]
#[case::a_leading_dot(".spec.replicas", ".spec.replicas")]
#[case::braces("{.spec.replicas}", ".spec.replicas")]
#[case::braces_and_spaces(" { spec.replicas } ", ".spec.replicas")]
#[case::a_quoted_key(
    "metadata.labels['app.kubernetes.io/name']",
    ".metadata.labels['app.kubernetes.io/name']"
)]
#[case::double_quotes(r#"metadata.labels["a.b"]"#, ".metadata.labels['a.b']")]
#[case::escaped_dots(
    r"metadata.labels.app\.kubernetes\.io/name",
    ".metadata.labels['app.kubernetes.io/name']"
)]
#[case::a_quoted_plain_key("metadata.labels['app']", ".metadata.labels.app")]
#[case::an_item("containers[name=app]", r#".containers[name="app"]"#)]
#[case::an_item_as_the_api_server_prints_it(
    r#".containers[name="app"]"#,
    r#".containers[name="app"]"#
)]
#[case::an_item_in_single_quotes("containers[name='app']", r#".containers[name="app"]"#)]
#[case::keys_are_sorted(
    "ports[protocol=TCP, containerPort=80]",
    r#".ports[containerPort=80,protocol="TCP"]"#
)]
#[case::a_number_as_text(r#"ports[a=1,b="2"]"#, r#".ports[a=1,b="2"]"#)]
#[case::a_whole_float("ports[a=80.0]", ".ports[a=80]")]
#[case::leading_zeros_are_text("items[name=007]", r#".items[name="007"]"#)]
#[case::true_and_null("items[a=true,b=null,c='null']", r#".items[a=true,b=null,c="null"]"#)]
#[case::a_member_of_a_set(
    r#"finalizers[="example.com/foo"]"#,
    r#".finalizers[="example.com/foo"]"#
)]
#[case::a_bare_member_of_a_set(
    "finalizers[=example.com/foo]",
    r#".finalizers[="example.com/foo"]"#
)]
#[case::an_object_in_a_set(r#"set[={"b":1,"a":[2.0]}]"#, r#".set[={"a":[2],"b":1}]"#)]
#[case::a_position("args[0].x", ".args[0].x")]
#[case::a_position_after_a_dot(".args.[0]", ".args[0]")]
#[case::a_negative_position("args[-1]", ".args[-1]")]
#[case::a_star("containers[*].image", ".containers[*].image")]
#[case::a_star_as_a_name("containers.*.image", ".containers[*].image")]
#[case::a_quoted_star("data['*']", ".data['*']")]
#[case::all_keys("containers[]", ".containers[]")]
#[case::an_empty_name("data['']", ".data['']")]
#[case::quotes_and_backslashes(r"data['it\'s \\ so']", r"data['it\'s \\ so']")]
#[case::a_quoted_key_field(r#"list['a.b'="x"]"#, r#".list['a.b'="x"]"#)]
#[case::brackets_in_a_text(r#"list[name="a]b,c"]"#, r#".list[name="a]b,c"]"#)]
#[case::slashes_need_no_quotes("data.a/b", ".data.a/b")]
#[case::other_alphabets("data.größe", ".data.größe")]
#[case::a_name_first("['a.b'].c", "['a.b'].c")]
fn a_path_is_read(#[case] text: &str, #[case] printed: &str) {
    let query: Query = text.parse().unwrap();
    let expected =
        if printed.starts_with(['.', '[']) { printed.to_owned() } else { format!(".{printed}") };
    assert_eq!(query.to_string(), expected);
    assert_eq!(expected.parse::<Query>().unwrap(), query);
}

#[rstest]
#[case::nothing("", PathProblem::Empty, 0)]
#[case::spaces("  ", PathProblem::Empty, 2)]
#[case::empty_braces("{}", PathProblem::Empty, 2)]
#[case::a_dot(".", PathProblem::NoName, 1)]
#[case::a_dot_at_the_end("spec.", PathProblem::NoName, 5)]
#[case::recursive_descent("spec..image", PathProblem::RecursiveDescent, 5)]
#[case::a_filter("containers[?(@.name==\"app\")].image", PathProblem::Filter, 11)]
#[case::an_open_brace("{spec", PathProblem::Braces, 5)]
#[case::a_closing_brace("spec}", PathProblem::Braces, 4)]
#[case::an_open_bracket("a[name=app", PathProblem::Unclosed, 7)]
#[case::an_open_bracket_after_a_name("a[name", PathProblem::Unclosed, 6)]
#[case::a_bracket_alone("a[", PathProblem::Unclosed, 2)]
#[case::an_open_quote("a['b", PathProblem::Unclosed, 2)]
#[case::an_open_text("a[name=\"app]", PathProblem::Unclosed, 7)]
#[case::a_bare_word("containers[app].image", PathProblem::NoItem, 11)]
#[case::a_range("args[0:2]", PathProblem::NoItem, 5)]
#[case::a_key_and_a_word("a[b=1,c]", PathProblem::NoItem, 6)]
#[case::a_comma_at_the_end("a[b=1,]", PathProblem::NoItem, 6)]
#[case::no_key("a[,]", PathProblem::NoItem, 2)]
#[case::no_value("a[b=]", PathProblem::NoValue, 4)]
#[case::no_member("a[=]", PathProblem::NoValue, 3)]
#[case::bad_json("a[={b}]", PathProblem::BadValue, 3)]
#[case::a_bad_escape(r#"a["\q"]"#, PathProblem::BadValue, 2)]
#[case::a_key_twice("a[b=1,b=2]", PathProblem::DuplicateKey, 6)]
#[case::a_name_after_a_bracket("a[0]b", PathProblem::Unexpected, 4)]
#[case::a_space_inside("a b", PathProblem::Unexpected, 2)]
#[case::a_backslash_at_the_end("a\\", PathProblem::NoName, 2)]
fn what_is_no_path_is_told_where_and_why(
    #[case] text: &str,
    #[case] problem: PathProblem,
    #[case] at: usize,
) {
    let error = text.parse::<Query>().unwrap_err();
    assert_eq!((error.problem, error.at), (problem, at));
    assert_eq!(error.to_string(), format!("read the field path {text:?} at byte {at}"));
}

#[rstest]
#[case::bytes("a".repeat(100_000), PathProblem::TooLong)]
#[case::segments(".a".repeat(10_000), PathProblem::TooManySegments)]
#[case::brackets("[".repeat(10_000), PathProblem::NoItem)]
#[case::a_nested_value(format!("a[={}]", "[".repeat(10_000)), PathProblem::BadValue)]
fn a_path_is_bounded(#[case] text: String, #[case] problem: PathProblem) {
    let error = text.parse::<Query>().unwrap_err();
    assert_eq!((error.problem, error.path.chars().count() <= 81), (problem, true));
}

#[test]
fn a_path_is_printed_for_people_and_as_the_api_server_does() {
    let path = FieldPath::of_fields(["metadata", "annotations", "belay.dev/release"]);
    assert_eq!(path.to_string(), ".metadata.annotations['belay.dev/release']");
    assert_eq!(path.api_spelling(), ".metadata.annotations.belay.dev/release");
    let image = FieldPath::image("initContainers", "app");
    assert_eq!(image.to_string(), ".spec.template.spec.initContainers[name=\"app\"].image");
    assert_eq!(image.api_spelling(), image.to_string());
}

#[test]
fn the_api_server_spells_texts_as_go_does() {
    let key = Key::new([("a".into(), Literal::from("x\"\\\n\u{1}ü")), ("b".into(), 3.into())]);
    let path =
        FieldPath::new(vec![Element::Key(key), Element::Value("v".into()), Element::Index(0)]);
    assert_eq!(path.api_spelling(), r#"[a="x\"\\\n\x01ü",b=3][="v"][0]"#);
}

#[test]
fn a_star_is_no_field() {
    let query: Query = "a[*]['*'].*".parse().unwrap();
    let star = Segment::One(Element::field("*"));
    assert_eq!(query.segments()[1..], [Segment::All, star, Segment::All]);
}

#[rstest]
#[case::a_field("spec.replicas", Some(json!(3)))]
#[case::an_item("list[name=b].v", Some(json!(2)))]
#[case::a_member("set[=y]", Some(json!("y")))]
#[case::a_position("list[0].v", Some(json!(1)))]
#[case::no_such_item("list[name=c].v", None)]
#[case::no_such_position("list[2]", None)]
#[case::a_negative_position("list[-1]", None)]
#[case::into_a_scalar("spec.replicas.x", None)]
fn a_value_is_found(#[case] path: &str, #[case] value: Option<serde_json::Value>) {
    let object = json!({
        "spec": { "replicas": 3 }, "set": ["x", "y"],
        "list": [{ "name": "a", "v": 1 }, { "name": "b", "v": 2 }],
    });
    let query: Query = path.parse().unwrap();
    let elements = query.segments().iter().map(|segment| match segment {
        Segment::One(element) => element.clone(),
        Segment::All => panic!("a star"),
    });
    assert_eq!(FieldPath::new(elements.collect()).value_in(&object), value.as_ref());
}

//! What holds for any input.

use belay_ownership::{Element, FieldPath, Key, Literal, Ownership, Query, fuzzing};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::notation;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Keys as they stand in fieldsV1, good and bad.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(".".to_owned()),
        "f:[a-c./ ]{0,3}",
        any::<i8>().prop_map(|index| format!("i:{index}")),
        any_scalar().prop_map(|value| format!("v:{value}")),
        (any_scalar(), any_scalar()).prop_map(|(a, b)| format!("k:{{\"a\":{a},\"b\":{b}}}")),
        any::<String>(),
        prop::sample::select(vec!["manager", "operation", "fieldsV1", "fieldsType", "spec"])
            .prop_map(str::to_owned),
    ]
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\]',=]{0,4}".prop_map(Value::from),
    ]
}

/// Trees of fieldsV1 that can be decoded.
fn fields() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!({})), Just(json!({ ".": {} })), Just(Value::Null)];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let key = prop_oneof![
            Just(".".to_owned()),
            "f:[ab]",
            (0..3_u8, 0..3_u8).prop_map(|(a, b)| format!("k:{{\"a\":{a},\"b\":\"{b}\"}}")),
            "v:[12]",
            "i:[01]",
        ];
        prop::collection::vec((key, inner), 0..5)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    })
}

fn entries() -> impl Strategy<Value = Vec<Value>> {
    let who = prop::sample::select(vec!["a/U", "a/A", "b/U", "b/U/status", "c/A"]);
    let entry = (who, prop_oneof![4 => fields(), 1 => any_json()])
        .prop_map(|(who, fields)| notation::entry(who, fields));
    prop::collection::vec(entry, 0..6)
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any_scalar(),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<f64>(), 0..3).prop_map(Value::from),
    ]
    .prop_map(|value| {
        // By way of a path, the one public door to compound literals.
        let query: Query = format!("a[={value}]").parse().unwrap();
        match &query.segments()[1] {
            belay_ownership::Segment::One(Element::Value(literal)) => literal.clone(),
            other => panic!("{other:?}"),
        }
    })
}

fn element() -> impl Strategy<Value = Element> {
    let name = prop_oneof!["[a-z]{1,5}", "[a-z.'\\\\/ *\\[\\]{}\"=,?]{0,6}", any::<String>()];
    let field = (name.clone(), literal()).prop_map(|(name, value)| (name.into(), value));
    prop_oneof![
        name.prop_map(|name| Element::field(&name)),
        prop::collection::vec(field, 0..3).prop_map(|fields| Element::Key(Key::new(fields))),
        literal().prop_map(Element::Value),
        any::<i64>().prop_map(Element::Index),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        ".a",
        ".b",
        ".c",
        "[a=1]",
        "[b=\"2\"]",
        "[a=0,b=\"0\"]",
        "[=1]",
        "[0]",
        "[*]",
        "['a.b']",
        "[]",
    ]);
    prop::collection::vec(segment, 1..5).prop_map(|segments| segments.concat())
}

/// Every answer to every query, as text.
fn answers(entries: &[Value], queries: &[String], live: Option<&Value>) -> Vec<String> {
    let ownership = Ownership::from_value(&json!(entries)).unwrap();
    let mut all: Vec<String> = ownership.undecodable().iter().map(ToString::to_string).collect();
    for query in queries {
        all.extend(notation::lines(&ownership.lookup(&query.parse().unwrap(), live)));
    }
    all
}

/// The same JSON with all objects in reverse order, inside `k:` keys too.
fn reversed(value: &Value) -> Value {
    let key = |key: &str| match key.strip_prefix("k:").map(serde_json::from_str::<Value>) {
        Some(Ok(fields)) => format!("k:{}", reversed(&fields)),
        _ => key.to_owned(),
    };
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().rev().map(|(name, value)| (key(name), reversed(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn a_path_that_is_printed_is_read_back(
        elements in prop::collection::vec(element(), 1..8),
    ) {
        let path = FieldPath::new(elements);
        let printed = path.to_string();
        let read: Query = printed.parse().map_err(|error| TestCaseError::fail(format!("{printed}: {error:?}")))?;
        prop_assert_eq!(read, Query::from(&path), "{}", printed);
    }

    #[test]
    fn any_text_is_a_path_or_an_error(text in any::<String>()) {
        if let Ok(query) = text.parse::<Query>() {
            prop_assert_eq!(query.to_string().parse::<Query>(), Ok(query));
        }
    }

    #[test]
    fn any_json_is_decoded_or_refused(json in any_json(), query in query()) {
        if let Ok(ownership) = Ownership::from_value(&json) {
            ownership.lookup(&query.parse().unwrap(), Some(&json));
        }
        let entry = notation::entry("a/U", json.clone());
        let ownership = Ownership::from_value(&json!([entry])).unwrap();
        prop_assert_eq!(ownership.entries().len() + ownership.undecodable().len(), 1);
        ownership.lookup(&query.parse().unwrap(), Some(&json));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::fuzz(&bytes);
    }

    #[test]
    fn bytes_and_values_are_read_alike(entries in entries(), query in query()) {
        let value = json!(entries);
        let one = Ownership::from_value(&value).unwrap();
        let other = Ownership::from_json(value.to_string().as_bytes()).unwrap();
        prop_assert_eq!(one.undecodable(), other.undecodable());
        let query = query.parse().unwrap();
        let (one, other) = (one.lookup(&query, None), other.lookup(&query, None));
        prop_assert_eq!(notation::lines(&one), notation::lines(&other));
    }

    #[test]
    fn the_order_of_entries_changes_nothing(
        (entries, shuffled) in entries().prop_flat_map(|entries| {
            (Just(entries.clone()), Just(entries).prop_shuffle())
        }),
        queries in prop::collection::vec(query(), 1..5),
        live in any_json(),
    ) {
        prop_assert_eq!(
            answers(&entries, &queries, Some(&live)),
            answers(&shuffled, &queries, Some(&live))
        );
    }

    #[test]
    fn the_order_of_keys_changes_nothing(
        fields in prop::collection::vec(fields(), 1..4),
        queries in prop::collection::vec(query(), 1..5),
    ) {
        let who = ["a/U", "b/A", "c/U"];
        let entries: Vec<_> =
            who.iter().zip(fields).map(|(who, fields)| notation::entry(who, fields)).collect();
        let turned: Vec<_> = entries.iter().map(reversed).collect();
        prop_assert_eq!(answers(&entries, &queries, None), answers(&turned, &queries, None));
    }

    #[test]
    fn every_field_of_an_entry_is_found_as_its_own(entries in entries()) {
        let ownership = Ownership::from_value(&json!(entries)).unwrap();
        for entry in ownership.entries() {
            let paths = entry.paths();
            prop_assert_eq!(paths.len(), entry.len());
            for path in &paths {
                let answer = ownership.at(path);
                prop_assert!(answer.owners.iter().any(|owner| owner.entry == entry), "{}", path);
            }
        }
    }
}

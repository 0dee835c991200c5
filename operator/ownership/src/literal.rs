//! Values inside a path: those of the key fields of a list item, and of a set's members.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

/// A JSON value that can be compared, ordered and printed.
///
/// Numbers are compared by value (`3` equals `3.0`), a text never equals a number (`"80"` is not
/// `80`), and an object does not depend on the order of its keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(Float),
    /// A string.
    Text(Box<str>),
    /// A list or an object, as JSON without spaces and with sorted keys. Sets of atomic objects
    /// exist in custom resources.
    Json(Box<str>),
}

/// A finite number that is no [`Literal::Integer`].
#[derive(Debug, Clone, Copy)]
pub struct Float(f64);

impl Float {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Float {}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl std::hash::Hash for Float {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Literal {
    /// The literal of a scalar; `None` for a list or an object.
    pub fn scalar(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => Self::number(number),
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// Reads JSON text; trailing bytes are an error.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(|value| Self::of_parsed(&value))
    }

    /// The literal of a value that a JSON parser returned, which bounds its depth.
    pub(crate) fn of_parsed(value: &Value) -> Self {
        Self::scalar(value).unwrap_or_else(|| {
            let mut text = String::new();
            write_sorted(value, &mut text);
            Self::Json(text.into())
        })
    }

    fn number(number: &serde_json::Number) -> Self {
        // Two to the 63rd: the first whole number that an i64 cannot hold.
        const END: f64 = 9_223_372_036_854_775_808.0;
        if let Some(integer) = number.as_i64() {
            return Self::Integer(integer);
        }
        let float = number.as_f64().unwrap_or_default();
        if float.fract() == 0.0 && (-END..END).contains(&float) {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within the range")]
            return Self::Integer(float as i64);
        }
        Self::Float(Float(float))
    }
}

impl From<&str> for Literal {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Literal {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

/// Prints JSON.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) => write!(f, "{}", Value::from(float.0)),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Json(json) => f.write_str(json),
        }
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(name));
                out.push(':');
                write_sorted(value, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&Literal::of_parsed(scalar).to_string()),
    }
}

/// Whether two values are the same, numbers by value, whatever their depth.
pub(crate) fn same_value(one: &Value, other: &Value) -> bool {
    let mut left = vec![(one, other)];
    while let Some((one, other)) = left.pop() {
        match (one, other) {
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                left.extend(a.iter().zip(b));
            }
            (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
                for (name, value) in a {
                    match b.get(name) {
                        Some(other) => left.push((value, other)),
                        None => return false,
                    }
                }
            }
            _ => match (Literal::scalar(one), Literal::scalar(other)) {
                (Some(one), Some(other)) if one == other => {}
                _ => return false,
            },
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::a_whole_float("3.0", "3")]
    #[case::spaces(" 3", "3 ")]
    #[case::minus_zero("-0.0", "0")]
    #[case::a_large_whole_float("1e18", "1000000000000000000")]
    #[case::key_order(r#"{"a":1,"b":[1.0]}"#, r#"{ "b":[1], "a":1.0 }"#)]
    #[case::escapes(r#""\u0041""#, r#""A""#)]
    fn these_are_equal(#[case] one: &str, #[case] other: &str) {
        assert_eq!(Literal::from_json(one).unwrap(), Literal::from_json(other).unwrap());
    }

    #[rstest]
    #[case::text_and_number("\"80\"", "80")]
    #[case::near_floats("0.1", "0.10000000000000002")]
    #[case::null_and_text("null", "\"null\"")]
    #[case::beyond_an_integer("9223372036854775807", "9223372036854775808")]
    fn these_differ(#[case] one: &str, #[case] other: &str) {
        assert_ne!(Literal::from_json(one).unwrap(), Literal::from_json(other).unwrap());
    }

    #[rstest]
    #[case::nothing("")]
    #[case::trailing_bytes("3 4")]
    #[case::not_json("app")]
    #[case::beyond_any_number("1e999")]
    fn these_are_no_literals(#[case] text: &str) {
        assert_eq!(Literal::from_json(text), None);
    }

    #[test]
    fn values_are_compared_whatever_their_key_order() {
        let one = json!({ "a": [1, { "b": 2 }], "c": 3.0 });
        assert!(same_value(&one, &json!({ "c": 3, "a": [1.0, { "b": 2 }] })));
        assert!(!same_value(&one, &json!({ "c": 3, "a": [{ "b": 2 }, 1] })));
        assert!(!same_value(&one, &json!({ "c": 3, "d": [1, { "b": 2 }] })));
        assert!(!same_value(&json!([1]), &json!({ "0": 1 })));
    }
}

//! One step of a path, as it stands as a key in `fieldsV1`.

use serde_json::Value;

use crate::{Literal, Problem};

/// The longest key in `fieldsV1` that is read, in bytes. A label or annotation key has at most 317.
pub const MAX_KEY_BYTES: usize = 64 * 1024;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// `f:NAME`: a field or the key of a map. Any text, also with dots, slashes or empty.
    Field(Box<str>),
    /// `k:{…}`: the item of an associative list.
    Key(Key),
    /// `v:…`: a member of a set.
    Value(Literal),
    /// `i:N`: a position in a list.
    Index(i64),
}

impl Element {
    /// A field or map key.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The item of an associative list that has one key field.
    pub fn item(name: &str, value: impl Into<Literal>) -> Self {
        Self::Key(Key::new([(name.into(), value.into())]))
    }
}

/// The key fields of a list item, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<[(Box<str>, Literal)]>);

impl Key {
    /// Sorts the fields. Of two with one name the first stays.
    pub fn new(fields: impl IntoIterator<Item = (Box<str>, Literal)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        fields.dedup_by(|(later, _), (first, _)| later == first);
        Self(fields.into())
    }

    /// The fields, sorted by name.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &Literal)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// The value of one field.
    pub fn get(&self, name: &str) -> Option<&Literal> {
        self.fields().find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Whether `other` has all of these fields with the same values.
    pub fn is_part_of(&self, other: &Self) -> bool {
        self.fields().all(|(name, value)| other.get(name) == Some(value))
    }
}

/// What a key in `fieldsV1` says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.`: the node that holds it is itself a member.
    Member,
    /// A child.
    Child(Element),
    /// A prefix that is not known: a later version of the format may know it. Skipped whole.
    Unknown,
}

impl Step {
    pub(crate) fn read(key: &str) -> Result<Self, Problem> {
        if key == "." {
            return Ok(Self::Member);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(Problem::LongKey { bytes: key.len() });
        }
        let bytes = key.as_bytes();
        if bytes.len() < 2 {
            return Err(Problem::ShortKey { key: key.to_owned() });
        }
        let Some((kind, rest)) = (bytes[1] == b':').then(|| (bytes[0], &key[2..])) else {
            return Err(Problem::missing_colon(key));
        };
        Ok(match kind {
            b'f' => Self::Child(Element::field(rest)),
            b'k' => Self::Child(Element::Key(key_fields(rest).ok_or(Problem::bad_json(key))?)),
            b'v' => {
                Self::Child(Element::Value(Literal::from_json(rest).ok_or(Problem::bad_json(key))?))
            }
            b'i' => {
                let index = rest.parse().map_err(|_| Problem::bad_index(key))?;
                Self::Child(Element::Index(index))
            }
            _ => Self::Unknown,
        })
    }
}

fn key_fields(json: &str) -> Option<Key> {
    match serde_json::from_str(json).ok()? {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.as_str().into(), Literal::of_parsed(value)));
            Some(Key::new(fields))
        }
        // The API server's own decoder takes this for a key without fields.
        Value::Null => Some(Key::new([])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_field("f:image", Element::field("image"))]
    #[case::an_empty_name("f:", Element::field(""))]
    #[case::dots_and_slashes("f:a.b/c:d e", Element::field("a.b/c:d e"))]
    #[case::an_item(r#"k:{"name":"app"}"#, Element::item("name", "app"))]
    #[case::a_number_as_key(r#"k:{"port": 80.0}"#, Element::item("port", 80))]
    #[case::a_member_of_a_set("v: \"x\"", Element::Value("x".into()))]
    #[case::a_position("i:7", Element::Index(7))]
    fn it_is_read(#[case] key: &str, #[case] element: Element) {
        assert_eq!(Step::read(key), Ok(Step::Child(element)));
    }

    #[rstest]
    #[case::dot(".", Ok(Step::Member))]
    #[case::later_version("r:future", Ok(Step::Unknown))]
    #[case::empty("", Err(Problem::ShortKey { key: String::new() }))]
    #[case::one_byte("f", Err(Problem::ShortKey { key: "f".into() }))]
    #[case::no_colon("spec", Err(Problem::missing_colon("spec")))]
    #[case::no_colon_after_two_bytes("é:", Err(Problem::missing_colon("é:")))]
    #[case::trailing_bytes(r#"k:{"a":1}x"#, Err(Problem::bad_json(r#"k:{"a":1}x"#)))]
    #[case::key_not_an_object("k:3", Err(Problem::bad_json("k:3")))]
    #[case::bad_value("v:x", Err(Problem::bad_json("v:x")))]
    #[case::no_number("i:x", Err(Problem::bad_index("i:x")))]
    fn it_is_told_apart(#[case] key: &str, #[case] step: Result<Step, Problem>) {
        assert_eq!(Step::read(key), step);
    }

    #[test]
    fn a_key_is_part_of_one_with_more_fields() {
        let tcp = Key::new([("protocol".into(), "TCP".into()), ("port".into(), 53.into())]);
        let port = Key::new([("port".into(), 53.into())]);
        assert!(port.is_part_of(&tcp));
        assert!(!tcp.is_part_of(&port));
        assert!(!Key::new([("port".into(), "53".into())]).is_part_of(&tcp));
    }
}

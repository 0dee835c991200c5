//! Paths: of one field, and queries that may stand for several.

mod parse;
mod print;

use std::{fmt, str::FromStr};

use serde_json::Value;

pub use self::parse::{MAX_PATH_BYTES, MAX_SEGMENTS, PathError, PathProblem};
pub(crate) use self::print::is_plain;
use crate::{Element, Literal, element::Key};

/// The path of one field.
///
/// Printed as the API server prints it in a conflict, except that a name which would not be read
/// back is quoted: `.metadata.annotations['example.com/x']`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Element>);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of elements.
    pub fn new(elements: Vec<Element>) -> Self {
        Self(elements)
    }

    /// A path of fields.
    pub fn of_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(Element::field).collect())
    }

    /// The image of a container in a pod template. `list` is `containers`, `initContainers` or
    /// `ephemeralContainers`.
    pub fn image(list: &str, container: &str) -> Self {
        Self::container(list, container).join(Element::field("image"))
    }

    /// A container in a pod template.
    pub fn container(list: &str, container: &str) -> Self {
        Self::of_fields(["spec", "template", "spec", list]).join(Element::item("name", container))
    }

    /// The path of a child.
    #[must_use]
    pub fn join(mut self, element: Element) -> Self {
        self.0.push(element);
        self
    }

    /// The elements from the object down.
    pub fn elements(&self) -> &[Element] {
        &self.0
    }

    /// The spelling of the API server in a conflict, names unquoted: for comparison only, since
    /// `.a.b` may be one field with a dot in its name, or two.
    pub fn api_spelling(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.0.iter().try_for_each(|element| print::api_element(&mut out, element));
        out
    }

    /// The value at this path in a live object.
    pub fn value_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, element| step(value, element))
    }
}

/// The value one step below.
pub(crate) fn step<'v>(value: &'v Value, element: &Element) -> Option<&'v Value> {
    match element {
        Element::Field(name) => value.as_object()?.get(name.as_ref()),
        Element::Key(key) => value.as_array()?.iter().find(|item| has_key(item, key)),
        Element::Value(literal) => {
            value.as_array()?.iter().find(|item| Literal::scalar(item).as_ref() == Some(literal))
        }
        Element::Index(index) => value.as_array()?.get(usize::try_from(*index).ok()?),
    }
}

/// Whether a list item has these key fields. A key field that the item lacks may be a default that
/// a file does not spell out (`protocol: TCP`).
pub(crate) fn has_key(item: &Value, key: &Key) -> bool {
    let Some(item) = item.as_object() else { return false };
    let mut named = false;
    key.fields().all(|(name, wanted)| match item.get(name) {
        Some(value) => {
            named = true;
            Literal::scalar(value).as_ref() == Some(wanted)
        }
        None => {
            crate::schema::default_of_key(name).is_some_and(|default| *wanted == default.into())
        }
    }) && (named || key.fields().len() == 0)
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| print::element(f, element))
    }
}

/// One step of a [`Query`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// One element. A key may name some of the key fields only.
    One(Element),
    /// `[*]`: all children.
    All,
}

/// What is asked for: a path that may stand for several, as a person types it.
///
/// `a.b`, `.a.b`, `{.a.b}`, `a['k/x.y']`, `a.k/x\.y`, `list[name=app]`, `list[a=1,b="2"]`,
/// `set[="v"]`, `list[0]`, `list[*]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query(Vec<Segment>);

impl Query {
    /// The segments from the object down; never empty.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl From<&FieldPath> for Query {
    fn from(path: &FieldPath) -> Self {
        Self(path.0.iter().cloned().map(Segment::One).collect())
    }
}

impl FromStr for Query {
    type Err = PathError;

    /// # Errors
    /// Where and why the text is no path.
    fn from_str(text: &str) -> Result<Self, PathError> {
        parse::query(text).map(Self)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| match segment {
            Segment::One(element) => print::element(f, element),
            Segment::All => f.write_str("[*]"),
        })
    }
}

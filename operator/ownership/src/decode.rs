//! Reading of `managedFields`, entry by entry, with bounds on everything.
//!
//! One reader serves typed entries, JSON values and JSON bytes: it visits a deserializer and never
//! returns an error of its own, so a bad entry cannot end the reading of the others. What is too
//! deep is skipped by serde_json's loop for ignored values, which does not recurse.

use std::{borrow::Cow, fmt};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry, jiff::Timestamp};
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{Element, Identity, Operation, Problem, ReadError, Undecodable, element::Step};

/// The longest JSON text that is read, in bytes. The API server refuses a request over 3 MiB, and
/// etcd by default one over 1.5 MiB.
pub const MAX_JSON_BYTES: usize = 4 * 1024 * 1024;

/// The deepest nesting of `fieldsV1` that is read. Below the limit of serde_json (128, with the
/// list and the entry around it), and several times the depth of a pod template.
pub const MAX_DEPTH: usize = 100;

/// The most path elements that are read from one object.
pub const MAX_ELEMENTS: usize = 200_000;

/// The most entries that are read from one object. The API server keeps ten for updates, and one
/// for each manager that applies.
pub const MAX_ENTRIES: usize = 1_000;

/// One node of an entry's tree, in the order of the text: a parent stands before its children.
#[derive(Debug)]
pub(crate) struct Flat {
    pub(crate) element: Element,
    /// Index of the parent; `None` below the object itself.
    pub(crate) parent: Option<usize>,
    pub(crate) member: bool,
}

/// An entry that could be read.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) identity: Identity,
    pub(crate) api_version: String,
    pub(crate) time: Option<Timestamp>,
    pub(crate) nodes: Vec<Flat>,
}

/// What reading gave: never an error, since every entry is one or the other.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) decoded: Vec<Decoded>,
    pub(crate) undecodable: Vec<Undecodable>,
    pub(crate) seen: usize,
}

impl Entries {
    pub(crate) fn of_typed(entries: &[ManagedFieldsEntry]) -> Self {
        let mut all = Self::default();
        for entry in entries.iter().take(MAX_ENTRIES) {
            let mut raw = RawEntry {
                manager: text(entry.manager.as_ref()),
                operation: text(entry.operation.as_ref()),
                subresource: text(entry.subresource.as_ref()),
                api_version: text(entry.api_version.as_ref()),
                fields_type: text(entry.fields_type.as_ref()),
                time: entry.time.as_ref().map(|time| time.0),
                ..RawEntry::default()
            };
            if let Some(fields) = &entry.fields_v1 {
                raw.read_fields(&fields.0);
            }
            all.add(raw);
        }
        all.seen = entries.len();
        all.close();
        all
    }

    pub(crate) fn of_value(entries: &Value) -> Result<Self, ReadError> {
        Self::read(entries)
    }

    pub(crate) fn of_json(json: &[u8]) -> Result<Self, ReadError> {
        if json.len() > MAX_JSON_BYTES {
            return Err(ReadError::TooLarge { bytes: json.len(), limit: MAX_JSON_BYTES });
        }
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let entries = Self::read(&mut deserializer)?;
        deserializer.end().map_err(ReadError::Json)?;
        Ok(entries)
    }

    /// The entries as a part of something larger that is being read.
    pub(crate) fn within<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        deserializer.deserialize_any(ListVisitor(&mut all))?;
        all.close();
        Ok(all)
    }

    fn read<'de, D: Deserializer<'de, Error = serde_json::Error>>(
        deserializer: D,
    ) -> Result<Self, ReadError> {
        Self::within(deserializer).map_err(|error| {
            if error.is_data() { ReadError::NotAList } else { ReadError::Json(error) }
        })
    }

    fn add(&mut self, raw: RawEntry) {
        match raw.finish() {
            Ok(entry) => self.decoded.push(entry),
            Err(bad) => self.undecodable.push(bad),
        }
    }

    fn close(&mut self) {
        if let Some(ignored) = self.seen.checked_sub(MAX_ENTRIES).filter(|ignored| *ignored > 0) {
            self.undecodable.push(Undecodable::new(Problem::TooManyEntries { ignored }));
        }
    }
}

fn text(text: Option<&String>) -> Text {
    text.map_or(Text::Missing, |text| Text::Is(text.clone()))
}

#[derive(Debug, Default)]
enum Text {
    #[default]
    Missing,
    Is(String),
    Other,
}

impl Text {
    fn into_string(self) -> String {
        match self {
            Self::Is(text) => text,
            Self::Missing | Self::Other => String::new(),
        }
    }
}

#[derive(Debug, Default)]
struct RawEntry {
    manager: Text,
    operation: Text,
    subresource: Text,
    api_version: Text,
    fields_type: Text,
    time: Option<Timestamp>,
    fields: Tree,
    not_an_object: bool,
}

impl RawEntry {
    fn read_fields(&mut self, fields: &Value) {
        // A second `fieldsV1` replaces the first, as in every other JSON reader.
        self.fields = Tree::default();
        // A value cannot be malformed, and the visitor has no errors of its own.
        let _: Result<bool, _> =
            NodeSeed { tree: &mut self.fields, parent: None, depth: 0 }.deserialize(fields);
    }

    fn finish(self) -> Result<Decoded, Undecodable> {
        let problem = self.problem();
        let operation_text = self.operation.into_string();
        let manager = self.manager.into_string();
        let subresource = self.subresource.into_string();
        let api_version = self.api_version.into_string();
        match (problem, operation_text.parse::<Operation>()) {
            (None, Ok(operation)) => Ok(Decoded {
                identity: Identity::new(&manager, operation, &subresource, &api_version),
                api_version,
                time: self.time,
                nodes: self.fields.nodes,
            }),
            (problem, _) => Err(Undecodable {
                manager,
                subresource,
                problem: problem.unwrap_or_else(|| Problem::operation(&operation_text)),
                operation: operation_text,
            }),
        }
    }

    fn problem(&self) -> Option<Problem> {
        if self.not_an_object {
            return Some(Problem::NotAnObject { what: "the entry" });
        }
        let texts = [
            ("manager", &self.manager),
            ("operation", &self.operation),
            ("subresource", &self.subresource),
            ("apiVersion", &self.api_version),
            ("fieldsType", &self.fields_type),
        ];
        if let Some((field, _)) = texts.iter().find(|(_, text)| matches!(text, Text::Other)) {
            return Some(Problem::NotText { field });
        }
        if let Text::Is(operation) = &self.operation
            && operation.parse::<Operation>().is_err()
        {
            return Some(Problem::operation(operation));
        }
        match &self.fields_type {
            Text::Is(fields_type) if fields_type == "FieldsV1" => {}
            Text::Is(other) => return Some(Problem::fields_type(other)),
            Text::Missing | Text::Other => return Some(Problem::NoFieldsType),
        }
        self.fields.problem.clone()
    }
}

/// The tree of one entry, flat.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Flat>,
    problem: Option<Problem>,
}

impl Tree {
    /// Keeps the first problem and forgets what was read: a tree in part would tell lies.
    fn fail(&mut self, problem: Problem) {
        self.nodes = Vec::new();
        self.problem.get_or_insert(problem);
    }
}

/// What a visitor makes of any scalar but a text.
macro_rules! scalars {
    ($self:ident => $answer:expr) => {
        fn visit_bool<E>($self, _: bool) -> Result<Self::Value, E> {
            Ok($answer)
        }

        fn visit_i64<E>($self, _: i64) -> Result<Self::Value, E> {
            Ok($answer)
        }

        fn visit_u64<E>($self, _: u64) -> Result<Self::Value, E> {
            Ok($answer)
        }

        fn visit_f64<E>($self, _: f64) -> Result<Self::Value, E> {
            Ok($answer)
        }
    };
}

struct ListVisitor<'a>(&'a mut Entries);

impl<'de> Visitor<'de> for ListVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of managedFields entries")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while self.0.seen < MAX_ENTRIES {
            let Some(entry) = list.next_element_seed(EntrySeed)? else { return Ok(()) };
            self.0.seen += 1;
            self.0.add(entry);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            self.0.seen += 1;
        }
        Ok(())
    }
}

/// Reads any value: what is no object becomes an entry that says so.
struct EntrySeed;

impl<'de> DeserializeSeed<'de> for EntrySeed {
    type Value = RawEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawEntry, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl EntrySeed {
    fn not_an_object() -> RawEntry {
        RawEntry { not_an_object: true, ..RawEntry::default() }
    }
}

impl<'de> Visitor<'de> for EntrySeed {
    type Value = RawEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a managedFields entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntry, A::Error> {
        let mut entry = RawEntry::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match name.as_ref() {
                "manager" => entry.manager = map.next_value_seed(TextSeed)?,
                "operation" => entry.operation = map.next_value_seed(TextSeed)?,
                "subresource" => entry.subresource = map.next_value_seed(TextSeed)?,
                "apiVersion" => entry.api_version = map.next_value_seed(TextSeed)?,
                "fieldsType" => entry.fields_type = map.next_value_seed(TextSeed)?,
                // A time that cannot be read is unknown, no reason to lose the fields.
                "time" => {
                    let time = map.next_value_seed(TextSeed)?.into_string();
                    entry.time = time.parse().ok();
                }
                "fieldsV1" => {
                    entry.fields = Tree::default();
                    let seed = NodeSeed { tree: &mut entry.fields, parent: None, depth: 0 };
                    map.next_value_seed(seed)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(entry)
    }

    fn visit_unit<E>(self) -> Result<RawEntry, E> {
        Ok(Self::not_an_object())
    }

    scalars!(self => Self::not_an_object());

    fn visit_str<E>(self, _: &str) -> Result<RawEntry, E> {
        Ok(Self::not_an_object())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RawEntry, A::Error> {
        skip_list(list)?;
        Ok(Self::not_an_object())
    }
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads a text; anything else is remembered as such.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Text;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text::Is(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::Missing)
    }

    scalars!(self => Text::Other);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Text, A::Error> {
        skip_list(list)?;
        Ok(Text::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
        skip_map(map)?;
        Ok(Text::Other)
    }
}

/// Reads one node and what is below it; the value says whether the node is a member.
struct NodeSeed<'a> {
    tree: &'a mut Tree,
    parent: Option<usize>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        if self.tree.problem.is_none() && self.depth > MAX_DEPTH {
            self.tree.fail(Problem::TooDeep);
        }
        if self.tree.problem.is_some() {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| false);
        }
        deserializer.deserialize_any(self)
    }
}

impl NodeSeed<'_> {
    fn not_an_object(self) -> bool {
        let what = if self.depth == 0 { "fieldsV1" } else { "a value in fieldsV1" };
        self.tree.fail(Problem::NotAnObject { what });
        false
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fieldsV1")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let (mut member, mut has_children) = (false, false);
        while let Some(step) = map.next_key_seed(StepSeed)? {
            match step {
                _ if self.tree.problem.is_some() => {
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(Step::Child(_)) if self.tree.nodes.len() >= MAX_ELEMENTS => {
                    self.tree.fail(Problem::TooManyElements);
                    map.next_value::<IgnoredAny>()?;
                }
                Ok(Step::Child(element)) => {
                    has_children = true;
                    let index = self.tree.nodes.len();
                    self.tree.nodes.push(Flat { element, parent: self.parent, member: false });
                    let seed = NodeSeed {
                        tree: &mut *self.tree,
                        parent: Some(index),
                        depth: self.depth + 1,
                    };
                    let child = map.next_value_seed(seed)?;
                    // Gone if a problem was met below.
                    if let Some(node) = self.tree.nodes.get_mut(index) {
                        node.member = child;
                    }
                }
                Ok(kind @ (Step::Member | Step::Unknown)) => {
                    member |= kind == Step::Member;
                    map.next_value::<IgnoredAny>()?;
                }
                Err(problem) => {
                    self.tree.fail(problem);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(member || !has_children)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    scalars!(self => self.not_an_object());

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(self.not_an_object())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<bool, A::Error> {
        skip_list(list)?;
        Ok(self.not_an_object())
    }
}

struct StepSeed;

impl<'de> DeserializeSeed<'de> for StepSeed {
    type Value = Result<Step, Problem>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for StepSeed {
    type Value = Result<Step, Problem>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path element")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Step::read(key))
    }
}

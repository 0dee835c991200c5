//! From what was asked to the paths it stands for: positions, partial keys, stars, and names with
//! dots that were not quoted.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use crate::{
    Answer, Element, FieldPath, Literal, Ownership, Query, Segment, Structure,
    element::Key,
    path::{has_key, is_plain, step},
    schema::{self, Type},
    tree::NodeId,
};

/// The most answers to one query.
pub const MAX_ANSWERS: usize = 5_000;

/// The answers to a query: one for each path it stands for.
#[derive(Debug, Clone)]
pub struct Lookup<'a> {
    /// At least one. After a star in the order of the live object, otherwise sorted.
    pub answers: Vec<Answer<'a>>,
    /// There were more than [`MAX_ANSWERS`].
    pub truncated: bool,
}

/// What to tell the person who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// The name has dots and was found although it was not quoted.
    QuoteName {
        /// The whole name.
        name: String,
    },
    /// A position in a list whose items are known by key: without the live object nobody can say
    /// which item it is.
    PositionNeedsObject {
        /// The position.
        index: i64,
    },
    /// The live list is shorter.
    NoSuchPosition {
        /// The position.
        index: i64,
    },
    /// `[*]` stands for nothing here; the answer is for what holds it.
    NothingBelow,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuoteName { name } => {
                write!(
                    f,
                    "a name with dots needs quotes: {}",
                    FieldPath::of_fields([name.as_str()])
                )
            }
            Self::PositionNeedsObject { index } => write!(
                f,
                "which item [{index}] is can only be seen in the object: name it by key, such as \
                 [name=app]"
            ),
            Self::NoSuchPosition { index } => write!(f, "the list has no item [{index}]"),
            Self::NothingBelow => f.write_str("[*] stands for nothing here"),
        }
    }
}

/// One path under construction.
struct Cursor<'a> {
    elements: Vec<Element>,
    /// The next segment.
    at: usize,
    node: Option<NodeId>,
    live: Option<&'a Value>,
    known: Option<&'static Type>,
    hints: Vec<Hint>,
}

impl Ownership {
    /// Who owns what a query stands for.
    ///
    /// With the live object (whole, or no more than the fields asked for) positions can be
    /// resolved, items without owner are seen, and answers carry values.
    pub fn lookup<'a>(&'a self, query: &Query, live: Option<&'a Value>) -> Lookup<'a> {
        let segments = query.segments();
        let mut answers = Vec::new();
        let mut truncated = false;
        let mut open = vec![Cursor {
            elements: Vec::with_capacity(segments.len()),
            at: 0,
            node: Some(0),
            live,
            known: Some(self.schema.root()),
            hints: Vec::new(),
        }];
        while let Some(cursor) = open.pop() {
            if answers.len() == MAX_ANSWERS {
                truncated = true;
                break;
            }
            let Some(segment) = segments.get(cursor.at) else {
                let path = FieldPath::new(cursor.elements);
                answers.push(self.answer(path, cursor.live, cursor.hints));
                continue;
            };
            let start = open.len();
            match segment {
                Segment::One(Element::Field(name)) => {
                    open.push(self.descend_field(cursor, name, segments));
                }
                Segment::One(Element::Key(key)) => self.descend_items(&cursor, key, &mut open),
                Segment::One(element @ Element::Value(_)) => {
                    open.push(self.descend(cursor, element.clone(), 1));
                }
                Segment::One(Element::Index(index)) => {
                    open.push(self.descend_index(cursor, *index));
                }
                Segment::All => self.descend_all(cursor, segments.len(), &mut open),
            }
            // Their own limit, so that no list of cursors grows past the answers it may give.
            if open.len() - start > MAX_ANSWERS {
                open.truncate(start + MAX_ANSWERS);
                truncated = true;
            }
            // The last is taken first.
            open[start..].reverse();
        }
        Lookup { answers, truncated }
    }

    /// One step down, for `segments` segments of the query.
    fn descend<'a>(&self, mut cursor: Cursor<'a>, element: Element, segments: usize) -> Cursor<'a> {
        cursor.node = cursor.node.and_then(|node| self.tree.child(node, &element));
        cursor.live = cursor.live.and_then(|live| step(live, &element));
        cursor.known = cursor.known.and_then(|known| known.step(&element));
        cursor.elements.push(element);
        cursor.at += segments;
        cursor
    }

    /// A field; or, when it is not there, a name with dots of which it is the first part.
    ///
    /// `labels.app.kubernetes.io/name` must work beside a label `app`, which Helm charts have
    /// both: so the next part is looked for too before the first is taken for the whole name.
    fn descend_field<'a>(
        &self,
        cursor: Cursor<'a>,
        name: &str,
        segments: &[Segment],
    ) -> Cursor<'a> {
        let element = Element::field(name);
        let mut parts = vec![name];
        parts.extend(segments[cursor.at + 1..].iter().map_while(|segment| match segment {
            Segment::One(Element::Field(next)) if is_plain(next) => Some(next.as_ref()),
            _ => None,
        }));
        if parts.len() > 1 && is_plain(name) && !self.leads_on(&cursor, &element, parts[1]) {
            let longest = (2..=parts.len().min(MAX_JOINED)).rev();
            let mut joined = longest.map(|count| (count, parts[..count].join(".")));
            let found = joined.find(|(_, name)| self.has_field(&cursor, &Element::field(name)));
            if let Some((count, name)) = found {
                let mut cursor = self.descend(cursor, Element::field(&name), count);
                cursor.hints.push(Hint::QuoteName { name });
                return cursor;
            }
        }
        self.descend(cursor, element, 1)
    }

    fn has_field(&self, cursor: &Cursor<'_>, element: &Element) -> bool {
        cursor.node.is_some_and(|node| self.tree.child(node, element).is_some())
            || cursor.live.is_some_and(|live| step(live, element).is_some())
    }

    fn leads_on(&self, cursor: &Cursor<'_>, element: &Element, next: &str) -> bool {
        let next = Element::field(next);
        let node = cursor.node.and_then(|node| self.tree.child(node, element));
        node.is_some_and(|node| self.tree.child(node, &next).is_some())
            || cursor
                .live
                .and_then(|live| step(live, element))
                .is_some_and(|live| step(live, &next).is_some())
    }

    /// The items with these key fields: one if all are named.
    fn descend_items<'a>(&self, cursor: &Cursor<'a>, key: &Key, open: &mut Vec<Cursor<'a>>) {
        let names = self.key_names(cursor);
        let is_whole = match cursor.known.map(|known| known.structure) {
            Some(Structure::Associative(names)) => names.iter().all(|name| key.get(name).is_some()),
            _ => false,
        };
        let mut items: BTreeSet<Key> = BTreeSet::new();
        if !is_whole {
            for element in self.children(cursor) {
                if let Element::Key(child) = element
                    && key.is_part_of(child)
                {
                    items.insert(child.clone());
                }
            }
            for item in live_items(cursor).filter(|item| has_key(item, key)) {
                let own = key_of(item, names.iter().map(AsRef::as_ref));
                items.insert(own.filter(|own| key.is_part_of(own)).unwrap_or_else(|| key.clone()));
            }
        }
        if items.is_empty() {
            items.insert(key.clone());
        }
        let found: Vec<_> = items.into_iter().map(|key| (Element::Key(key), None)).collect();
        self.descend_each(cursor, found, open);
    }

    fn descend_index<'a>(&self, mut cursor: Cursor<'a>, index: i64) -> Cursor<'a> {
        let kind = self.list_kind(&cursor);
        let mut element = Element::Index(index);
        if kind != ListKind::Positions {
            let item = cursor.live.and_then(|live| step(live, &element));
            match item.and_then(|item| self.name_item(&cursor, kind, item)) {
                Some(named) => element = named,
                None if cursor.live.is_some_and(Value::is_array) => {
                    cursor.hints.push(Hint::NoSuchPosition { index });
                }
                None => cursor.hints.push(Hint::PositionNeedsObject { index }),
            }
        }
        self.descend(cursor, element, 1)
    }

    fn descend_all<'a>(&self, mut cursor: Cursor<'a>, end: usize, open: &mut Vec<Cursor<'a>>) {
        let mut seen: BTreeSet<Element> = BTreeSet::new();
        let mut found: Vec<(Element, Option<&Value>)> = Vec::new();
        let kind = self.list_kind(&cursor);
        let mut add = |element: Element, live| {
            if seen.insert(element.clone()) {
                found.push((element, live));
            }
        };
        if let Some(fields) = cursor.live.and_then(Value::as_object) {
            fields.iter().for_each(|(name, value)| add(Element::field(name), Some(value)));
        }
        for (index, item) in (0_i64..).zip(live_items(&cursor)) {
            let named = self.name_item(&cursor, kind, item);
            add(named.unwrap_or(Element::Index(index)), Some(item));
        }
        self.children(&cursor).for_each(|element| add(element.clone(), None));
        if found.is_empty() {
            cursor.at = end;
            cursor.hints.push(Hint::NothingBelow);
            open.push(cursor);
        } else {
            self.descend_each(&cursor, found, open);
        }
    }

    /// One cursor for each element; a live value that is known already need not be looked for.
    fn descend_each<'a>(
        &self,
        cursor: &Cursor<'a>,
        found: Vec<(Element, Option<&'a Value>)>,
        open: &mut Vec<Cursor<'a>>,
    ) {
        // One more than may be answered, so that the caller sees that it is too much.
        for (element, live) in found.into_iter().take(MAX_ANSWERS + 1) {
            let mut elements = Vec::with_capacity(cursor.elements.capacity());
            elements.extend_from_slice(&cursor.elements);
            let known = cursor.known.and_then(|known| known.step(&element));
            let node = cursor.node.and_then(|node| self.tree.child(node, &element));
            let live = live.or_else(|| cursor.live.and_then(|live| step(live, &element)));
            elements.push(element);
            let (at, hints) = (cursor.at + 1, cursor.hints.clone());
            open.push(Cursor { elements, at, node, live, known, hints });
        }
    }

    fn children(&self, cursor: &Cursor<'_>) -> impl Iterator<Item = &Element> {
        cursor.node.into_iter().flat_map(|node| self.tree.node(node).children.keys())
    }

    /// How the items of a list are named: as the schema says, or as they are in some entry.
    fn list_kind(&self, cursor: &Cursor<'_>) -> ListKind {
        match cursor.known.map(|known| known.structure) {
            Some(Structure::Associative(_)) => return ListKind::Keys,
            Some(Structure::Set) => return ListKind::Values,
            Some(Structure::Atomic | Structure::Granular) | None => {}
        }
        let named = self.children(cursor).find_map(|element| match element {
            Element::Key(_) => Some(ListKind::Keys),
            Element::Value(_) => Some(ListKind::Values),
            Element::Field(_) | Element::Index(_) => None,
        });
        named.unwrap_or(ListKind::Positions)
    }

    fn key_names(&self, cursor: &Cursor<'_>) -> Vec<Box<str>> {
        if let Some(Structure::Associative(names)) = cursor.known.map(|known| known.structure) {
            return names.iter().map(|name| (*name).into()).collect();
        }
        let keys = self.children(cursor).find_map(|element| match element {
            Element::Key(key) => Some(key.fields().map(|(name, _)| name.into()).collect()),
            Element::Field(_) | Element::Value(_) | Element::Index(_) => None,
        });
        keys.unwrap_or_default()
    }

    fn name_item(&self, cursor: &Cursor<'_>, kind: ListKind, item: &Value) -> Option<Element> {
        match kind {
            ListKind::Keys => {
                let names = self.key_names(cursor);
                key_of(item, names.iter().map(AsRef::as_ref)).map(Element::Key)
            }
            ListKind::Values => Literal::scalar(item).map(Element::Value),
            ListKind::Positions => None,
        }
    }
}

/// How many parts of a name with dots are tried together.
const MAX_JOINED: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListKind {
    Keys,
    Values,
    Positions,
}

fn live_items<'a>(cursor: &Cursor<'a>) -> impl Iterator<Item = &'a Value> + use<'a> {
    cursor.live.and_then(Value::as_array).into_iter().flatten()
}

/// The key of a live item; a field that it lacks is left out unless it has a default.
pub(crate) fn key_of<'n>(item: &Value, names: impl Iterator<Item = &'n str>) -> Option<Key> {
    let item = item.as_object()?;
    let fields = names.filter_map(|name| {
        let value = match item.get(name) {
            Some(value) => Literal::scalar(value)?,
            None => schema::default_of_key(name)?.into(),
        };
        Some((name.into(), value))
    });
    let key = Key::new(fields);
    let is_named = key.fields().len() > 0;
    is_named.then_some(key)
}

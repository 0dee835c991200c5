//! How a container is written: the spans that an edit needs, and what makes it hard.

use std::ops::Range;

use granit_parser::ScalarStyle;

use crate::scan::tree::{AnchorId, Kind, Node, NodeId, Tree};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// `nginx`
    Plain,
    /// `'nginx'`
    SingleQuoted,
    /// `"nginx"`
    DoubleQuoted,
    /// `|` or `>`
    Block,
    /// `*nginx`
    Alias,
    /// Nothing after the colon.
    Empty,
    /// A mapping or sequence, or a scalar with a tag that makes it no string.
    Unusable,
}

/// Why the image of a container cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    /// Where, as an offset into the input.
    pub at: usize,
    /// What, as part of a sentence.
    pub what: &'static str,
}

/// An entry of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Range<usize>,
    /// Exact for scalars, aliases and flow collections, but for block scalars: there the end may
    /// be in the indentation of the next line.
    pub(crate) value: Range<usize>,
    pub(crate) form: Form,
    /// 0: none. That of the alias, where the value is one.
    pub(crate) anchor: AnchorId,
    pub(crate) is_alias: bool,
    /// How many aliases in the document read that anchor.
    pub(crate) uses: usize,
    /// As decoded; `None` for null and for what is no scalar. Aliases are followed.
    pub(crate) text: Option<String>,
}

/// Where a merge key brings an image from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merge {
    /// Which entry, the last if there are several.
    pub(crate) entry: usize,
    pub(crate) image: Option<String>,
}

/// A container as it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) flow: bool,
    pub(crate) entries: Vec<Entry>,
    /// Which entries have the key `image`, in order.
    pub(crate) images: Vec<usize>,
    pub(crate) merge: Option<Merge>,
    pub(crate) hindrance: Option<Hindrance>,
}

impl Layout {
    /// The entry whose image counts: the last.
    pub(crate) fn image(&self) -> Option<&Entry> {
        self.images.last().and_then(|&index| self.entries.get(index))
    }
}

const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// The text of a scalar; `None` for null and for collections.
pub(crate) fn text_of<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.kind {
        Kind::Scalar { text, style: ScalarStyle::Plain, tag }
            if NULLS.contains(&text.as_ref())
                && tag.as_ref().is_none_or(|tag| tag.core_suffix() == Some("null")) =>
        {
            None
        }
        Kind::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

pub(crate) fn form_of(node: &Node<'_>) -> Form {
    match &node.kind {
        Kind::Alias(_) => Form::Alias,
        Kind::Scalar { tag: Some(tag), .. }
            if tag.core_suffix() != Some("str") && tag.original() != "!" =>
        {
            Form::Unusable
        }
        Kind::Scalar { style, tag, .. } => match style {
            ScalarStyle::Plain if node.span.is_empty() && (tag.is_some() || node.anchor != 0) => {
                Form::Unusable
            }
            ScalarStyle::Plain if node.span.is_empty() => Form::Empty,
            ScalarStyle::Plain => Form::Plain,
            ScalarStyle::SingleQuoted => Form::SingleQuoted,
            ScalarStyle::DoubleQuoted => Form::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Form::Block,
        },
        Kind::Mapping { .. } | Kind::Sequence { .. } | Kind::Dropped => Form::Unusable,
    }
}

/// The entries of a mapping, in order.
pub(crate) fn entries_of(tree: &Tree<'_>, pairs: &[(NodeId, NodeId)]) -> Vec<Entry> {
    let entry = |&(key, value): &(NodeId, NodeId)| {
        let node = &tree.nodes[value];
        let (anchor, is_alias) = match node.kind {
            Kind::Alias(anchor) => (anchor, true),
            _ => (node.anchor, false),
        };
        let read = match node.kind {
            Kind::Alias(anchor) => tree.anchors.get(&anchor).map(|&id| &tree.nodes[id]),
            _ => Some(node),
        };
        Entry {
            key: tree.nodes[key].span.clone(),
            value: node.span.clone(),
            form: form_of(node),
            anchor,
            is_alias,
            uses: tree.uses.get(&anchor).map_or(0, |uses| uses.count),
            text: read.and_then(text_of).map(str::to_owned),
        }
    };
    pairs.iter().map(entry).collect()
}

//! A tree of the few nodes of a document that can matter, with their byte spans.
//!
//! Built from parser events in one pass. Aliases stay aliases: nothing is ever expanded. What no
//! rule looks at is dropped while reading, so that memory follows the containers and annotations
//! of a document rather than its size; only a subtree with an anchor is kept whole, because an
//! alias may make it part of a workload.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag};

use crate::{MAX_NESTING, scan::said::Said};

pub(crate) type NodeId = usize;
pub(crate) type AnchorId = usize;

/// For so many nodes there is room from the start.
const MOST_NODES: usize = 256;

/// What a place in an object is, as far as a rule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Items,
    Metadata,
    Annotations,
    Spec,
    Template,
    PodSpec,
    Containers,
    Container,
    /// A scalar that is read.
    Value,
    /// Anything else.
    Elsewhere,
}

impl Place {
    fn child(self, key: &str) -> Self {
        match (self, key) {
            // A merge key brings more entries of the same mapping.
            (Self::Items | Self::Containers | Self::Value | Self::Elsewhere, _) => Self::Elsewhere,
            (_, "<<") => self,
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Object, "spec") => Self::Spec,
            (Self::Object, "items") => Self::Items,
            (Self::Object, "kind" | "apiVersion")
            | (Self::Metadata, "name" | "namespace")
            | (Self::Annotations, _)
            | (Self::Container, "name" | "image") => Self::Value,
            (Self::Metadata, "annotations") => Self::Annotations,
            (Self::Spec, "template") => Self::Template,
            (Self::Template, "spec") => Self::PodSpec,
            (Self::PodSpec, "containers" | "initContainers") => Self::Containers,
            _ => Self::Elsewhere,
        }
    }

    fn item(self) -> Self {
        match self {
            Self::Items => Self::Object,
            Self::Containers => Self::Container,
            // `<<: [*a, {…}]`
            Self::Elsewhere | Self::Value => Self::Elsewhere,
            place => place,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Scalar {
        text: Cow<'a, str>,
        style: ScalarStyle,
        tag: Option<Cow<'a, Tag>>,
    },
    Mapping {
        entries: Vec<(NodeId, NodeId)>,
        flow: bool,
    },
    Sequence {
        items: Vec<NodeId>,
    },
    Alias(AnchorId),
    /// A collection whose content no rule looks at.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) kind: Kind<'a>,
    /// Offsets into the input. Of a block collection only the start is exact.
    pub(crate) span: Range<usize>,
    /// 0: none.
    pub(crate) anchor: AnchorId,
}

/// How often, and where first, an anchor is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uses {
    pub(crate) count: usize,
    pub(crate) first: usize,
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) struct Broken {
    /// Offset into the input.
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// The first document of a text.
#[derive(Debug, Default)]
pub(crate) struct Tree<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) root: Option<NodeId>,
    pub(crate) anchors: HashMap<AnchorId, NodeId>,
    pub(crate) uses: HashMap<AnchorId, Uses>,
}

/// A collection that is being read.
struct Frame {
    /// `None`: dropped.
    node: Option<NodeId>,
    place: Place,
    /// Below an anchor: everything is kept.
    whole: bool,
    mapping: bool,
    /// In a mapping, after a key: the key, where it is kept, and what its value is.
    key: Option<(Option<NodeId>, Place)>,
}

struct Builder<'a> {
    tree: Tree<'a>,
    frames: Vec<Frame>,
    base: usize,
}

/// Is told what the parser says of each node, in the order of the text.
pub(crate) type Observer<'o, 'a> = &'o mut dyn FnMut(Said<'a>);

/// Reads the first document of `text`, which starts at `base` in the input. The tree holds what
/// was read before an error.
pub(crate) fn build<'a>(
    text: &'a str,
    base: usize,
    observer: Observer<'_, 'a>,
) -> (Tree<'a>, Result<(), Broken>) {
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    options.set_emit_comments(false);
    // Of a workload as many nodes are kept; grown step by step, they would take twice the room.
    let nodes = Vec::with_capacity((text.len() / 32).min(MOST_NODES));
    let tree = Tree { nodes, ..Tree::default() };
    let mut builder = Builder { tree, frames: Vec::with_capacity(16), base };
    for event in Parser::new_from_str_with_options(text, options) {
        let done = match event {
            Ok((Event::DocumentEnd | Event::StreamEnd, _)) => return (builder.tree, Ok(())),
            Ok((event, span)) => {
                if let Some(said) = Said::of(&event, span) {
                    observer(said);
                }
                builder.take(event, span)
            }
            Err(error) => Err(Broken {
                at: base + error.marker().byte_offset().unwrap_or(0).min(text.len()),
                what: error.info(),
            }),
        };
        if let Err(broken) = done {
            return (builder.tree, Err(broken));
        }
    }
    (builder.tree, Ok(()))
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), Broken> {
        let bytes = span.byte_range().unwrap_or_default();
        let span = self.base + bytes.start..self.base + bytes.end;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let key = self.expects_key().then(|| text.clone());
                let kind = Kind::Scalar { text, style, tag };
                let node = self.place(kind, span, anchor);
                self.attach(node, key.as_deref());
            }
            Event::Alias(anchor) => {
                let uses = self.tree.uses.entry(anchor);
                uses.or_insert(Uses { count: 0, first: span.start }).count += 1;
                let node = self.place(Kind::Alias(anchor), span, 0);
                self.attach(node, None);
            }
            Event::MappingStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                self.open(Kind::Mapping { entries: Vec::new(), flow }, span, anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Kind::Sequence { items: Vec::new() }, span, anchor)?;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(node) = self.frames.pop().and_then(|frame| frame.node) {
                    self.tree.nodes[node].span.end = span.end;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.mapping && frame.key.is_none())
    }

    /// What the next node is, and whether it is kept whole.
    fn next_place(&self) -> (Place, bool) {
        let Some(frame) = self.frames.last() else { return (Place::Object, false) };
        let place = match (&frame.key, frame.mapping) {
            (Some((_, place)), _) => *place,
            (None, true) => Place::Elsewhere,
            (None, false) => frame.place.item(),
        };
        (place, frame.whole)
    }

    /// Whether the next node is a key of a mapping that is kept, or anything in a container, whose
    /// entries are all needed for their spans.
    fn keeps_entries(&self) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let kept = frame.node.is_some_and(|node| {
            matches!(self.tree.nodes[node].kind, Kind::Mapping { .. } | Kind::Sequence { .. })
        });
        kept && (frame.place == Place::Container || self.expects_key())
    }

    /// Stores a node unless nothing can look at it.
    fn place(&mut self, kind: Kind<'a>, span: Range<usize>, anchor: AnchorId) -> Option<NodeId> {
        let (place, whole) = self.next_place();
        let needed = place != Place::Elsewhere || whole || anchor != 0;
        if !needed && !self.keeps_entries() {
            return None;
        }
        let node = self.tree.nodes.len();
        self.tree.nodes.push(Node { kind, span, anchor });
        if anchor != 0 {
            self.tree.anchors.insert(anchor, node);
        }
        Some(node)
    }

    /// Puts a finished scalar or alias, or a collection that starts, where it belongs.
    fn attach(&mut self, node: Option<NodeId>, key: Option<&str>) {
        let Some(frame) = self.frames.last_mut() else {
            self.tree.root = self.tree.root.or(node);
            return;
        };
        if !frame.mapping {
            if let (Some(parent), Some(item)) = (frame.node, node)
                && let Kind::Sequence { items } = &mut self.tree.nodes[parent].kind
            {
                items.push(item);
            }
            return;
        }
        match frame.key.take() {
            None => {
                let place = key.map_or(Place::Elsewhere, |key| frame.place.child(key));
                frame.key = Some((node, place));
            }
            Some((Some(key), _)) => {
                if let (Some(parent), Some(value)) = (frame.node, node)
                    && let Kind::Mapping { entries, .. } = &mut self.tree.nodes[parent].kind
                {
                    entries.push((key, value));
                }
            }
            Some((None, _)) => {}
        }
    }

    fn open(&mut self, kind: Kind<'a>, span: Range<usize>, anchor: usize) -> Result<(), Broken> {
        if self.frames.len() >= MAX_NESTING {
            let what = format!("nested deeper than {MAX_NESTING} levels");
            return Err(Broken { at: span.start, what });
        }
        let mapping = matches!(kind, Kind::Mapping { .. });
        let (place, whole) = self.next_place();
        let whole = whole || anchor != 0;
        let dropped = matches!(place, Place::Elsewhere | Place::Value) && !whole;
        let node = self.place(if dropped { Kind::Dropped } else { kind }, span, anchor);
        self.attach(node, None);
        self.frames.push(Frame { node, place, whole, mapping, key: None });
        Ok(())
    }
}

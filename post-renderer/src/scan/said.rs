//! What the parser says of a node, as far as [`crate::verify`] compares it: a third of the room of the
//! parser's own events with their spans.

use std::{borrow::Cow, ops::Range};

use granit_parser::{Event, ScalarStyle, Span, Tag};

/// The start of a node, or the end of a collection.
#[derive(Debug, Clone)]
pub(crate) enum Said<'a> {
    Scalar(Scalar<'a>),
    /// Where it stands, as offsets into the text that is read.
    Alias(Range<usize>),
    Mapping(OwnTag),
    Sequence(OwnTag),
    End,
}

/// Boxed: few nodes have one.
pub(crate) type OwnTag = Option<Box<Tag>>;

#[derive(Debug, Clone)]
pub(crate) struct Scalar<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Without quotes, and no block.
    pub(crate) plain: bool,
    /// Nothing is written at all.
    pub(crate) absent: bool,
    pub(crate) tag: OwnTag,
}

impl<'a> Said<'a> {
    pub(crate) fn of(event: &Event<'a>, span: Span) -> Option<Self> {
        let own = |tag: &Option<Cow<'a, Tag>>| tag.as_deref().cloned().map(Box::new);
        Some(match event {
            Event::Scalar(text, style, _, tag) => Self::Scalar(Scalar {
                text: text.clone(),
                plain: *style == ScalarStyle::Plain,
                absent: span.is_empty(),
                tag: own(tag),
            }),
            Event::Alias(_) => Self::Alias(span.byte_range().unwrap_or_default()),
            Event::MappingStart(_, _, tag) => Self::Mapping(own(tag)),
            Event::SequenceStart(_, _, tag) => Self::Sequence(own(tag)),
            Event::MappingEnd | Event::SequenceEnd => Self::End,
            _ => return None,
        })
    }
}

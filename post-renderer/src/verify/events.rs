//! The first reader: the events of granit-parser, aliases unexpanded.

use granit_parser::{Event, Parser, ScalarStyle, Span};

use crate::{
    MAX_NESTING,
    verify::fingerprint::{Fingerprint, Paths, Place, Seen, Token},
};

struct Frame {
    place: Place,
    edit: Option<usize>,
    /// In a mapping.
    mapping: bool,
    /// In a mapping, after a key.
    value_place: Option<Place>,
    /// The key was `image`, in a container that is edited.
    is_image: bool,
    next_item: usize,
}

/// Takes the events of one document.
pub(super) struct Recorder<'r> {
    text: &'r str,
    paths: &'r Paths,
    frames: Vec<Frame>,
    print: Fingerprint,
}

impl<'r> Recorder<'r> {
    pub(super) fn new(text: &'r str, paths: &'r Paths) -> Self {
        Self { text, paths, frames: Vec::new(), print: Fingerprint::default() }
    }

    pub(super) fn finish(self) -> Fingerprint {
        self.print
    }

    pub(super) fn take(&mut self, event: &Event<'_>, span: Span) {
        let Self { text, paths, frames, print } = self;
        match event {
            Event::Scalar(..) | Event::Alias(_) => leaf(event, span, text, paths, frames, print),
            Event::MappingStart(_, _, tag) | Event::SequenceStart(_, _, tag) => {
                if let Some(tag) = tag {
                    print.token(Token::Tag(&tag.original()));
                }
                let mapping = matches!(event, Event::MappingStart(..));
                print.token(if mapping { Token::Mapping } else { Token::Sequence });
                let (place, is_image) = enter(paths, frames, None);
                if let (true, Some(edit)) = (is_image, frames.last().and_then(|frame| frame.edit)) {
                    print.image(edit, Seen::Other("a collection".to_owned()));
                }
                let edit = paths.edit(place).filter(|_| mapping);
                if let Some(edit) = edit {
                    print.meet(edit);
                }
                frames.push(Frame {
                    place,
                    edit,
                    mapping,
                    value_place: None,
                    is_image: false,
                    next_item: 0,
                });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                frames.pop();
                print.token(Token::End);
            }
            _ => {}
        }
    }
}

/// Reads the first document of `text`.
pub(super) fn read(text: &str, paths: &Paths) -> Result<Fingerprint, String> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    options.set_emit_comments(false);
    let mut recorder = Recorder::new(text, paths);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
            break;
        }
        recorder.take(&event, span);
    }
    Ok(recorder.finish())
}

/// Steps to the next node: its place, and whether it is an image that may change.
fn enter(paths: &Paths, frames: &mut [Frame], key: Option<&str>) -> (Place, bool) {
    let Some(frame) = frames.last_mut() else { return (Paths::ROOT, false) };
    if !frame.mapping {
        let place = paths.item(frame.place, frame.next_item);
        frame.next_item += 1;
        return (place, false);
    }
    if let Some(place) = frame.value_place.take() {
        return (place, std::mem::take(&mut frame.is_image));
    }
    frame.value_place = Some(key.and_then(|key| paths.key(frame.place, key)));
    frame.is_image = frame.edit.is_some() && key == Some("image");
    (None, false)
}

fn leaf(
    event: &Event<'_>,
    span: Span,
    source: &str,
    paths: &Paths,
    frames: &mut [Frame],
    print: &mut Fingerprint,
) {
    let is_key = frames.last().is_some_and(|frame| frame.mapping && frame.value_place.is_none());
    let key = event.scalar().filter(|_| is_key).map(|(text, _)| text);
    let (_, is_image) = enter(paths, frames, key);
    let edit = frames.last().and_then(|frame| frame.edit);
    if is_key && edit.is_some() && key == Some("image") {
        return;
    }
    let alias = span.slice(source).unwrap_or_default();
    if let (true, Some(edit)) = (is_image, edit) {
        let tagged = event.tag().filter(|tag| tag.core_suffix() != Some("str"));
        let seen = match event.scalar() {
            Some((text, _)) if tagged.is_some_and(|tag| tag.original() != "!") => {
                Seen::Other(text.to_owned())
            }
            Some((text, ScalarStyle::Plain)) if span.is_empty() => Seen::Other(text.to_owned()),
            Some((text, _)) => Seen::Text(text.to_owned()),
            None => Seen::Other(alias.to_owned()),
        };
        return print.image(edit, seen);
    }
    if let Some(tag) = event.tag() {
        print.token(Token::Tag(&tag.original()));
    }
    match event.scalar() {
        // Quotes decide what a reader makes of it.
        Some((text, ScalarStyle::Plain)) => print.token(Token::Number(text)),
        Some((text, _)) => print.token(Token::Text(text)),
        None => print.token(Token::Alias(alias)),
    }
}

//! The first reader: the events of granit-parser, aliases unexpanded.

use std::str;

use granit_parser::{Event, Parser};

use crate::{
    MAX_NESTING,
    scan::{OwnTag, Said, Scalar},
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
    text: &'r [u8],
    paths: &'r Paths,
    frames: Vec<Frame>,
    print: Fingerprint,
}

impl<'r> Recorder<'r> {
    pub(super) fn new(text: &'r [u8], paths: &'r Paths) -> Self {
        Self { text, paths, frames: Vec::new(), print: Fingerprint::default() }
    }

    pub(super) fn finish(self) -> Fingerprint {
        self.print
    }

    pub(super) fn take(&mut self, said: &Said<'_>) {
        match said {
            Said::Scalar(scalar) => self.scalar(scalar),
            Said::Alias(place) => {
                // What is no text is an error of the reader before it tells of an alias.
                let name = self.text.get(place.clone()).unwrap_or_default();
                let name = str::from_utf8(name).unwrap_or_default();
                let (_, is_image) = enter(self.paths, &mut self.frames, None);
                match self.edit().filter(|_| is_image) {
                    Some(edit) => self.print.image(edit, Seen::Other(name.to_owned())),
                    None => self.print.token(Token::Alias(name)),
                }
            }
            Said::Mapping(tag) => self.open(true, tag),
            Said::Sequence(tag) => self.open(false, tag),
            Said::End => {
                self.frames.pop();
                self.print.token(Token::End);
            }
        }
    }

    /// The edit of the mapping that is being read.
    fn edit(&self) -> Option<usize> {
        self.frames.last().and_then(|frame| frame.edit)
    }

    fn open(&mut self, mapping: bool, tag: &OwnTag) {
        if let Some(tag) = tag {
            self.print.token(Token::Tag(&tag.original()));
        }
        self.print.token(if mapping { Token::Mapping } else { Token::Sequence });
        let (place, is_image) = enter(self.paths, &mut self.frames, None);
        if let (true, Some(edit)) = (is_image, self.edit()) {
            self.print.image(edit, Seen::Other("a collection".to_owned()));
        }
        let edit = self.paths.edit(place).filter(|_| mapping);
        if let Some(edit) = edit {
            self.print.meet(edit);
        }
        self.frames.push(Frame {
            place,
            edit,
            mapping,
            value_place: None,
            is_image: false,
            next_item: 0,
        });
    }

    fn scalar(&mut self, scalar: &Scalar<'_>) {
        let Scalar { text, plain, absent, tag } = scalar;
        let key = self.frames.last().filter(|frame| frame.mapping && frame.value_place.is_none());
        let is_key = key.is_some();
        let (_, is_image) = enter(self.paths, &mut self.frames, is_key.then_some(text));
        let edit = self.edit();
        if is_key && edit.is_some() && text == "image" {
            return;
        }
        if let (true, Some(edit)) = (is_image, edit) {
            let tagged = tag.as_ref().filter(|tag| tag.core_suffix() != Some("str"));
            let other = tagged.is_some_and(|tag| tag.original() != "!") || *plain && *absent;
            let seen = if other { Seen::Other } else { Seen::Text };
            return self.print.image(edit, seen(text.clone().into_owned()));
        }
        if let Some(tag) = tag {
            self.print.token(Token::Tag(&tag.original()));
        }
        // Quotes decide what a reader makes of it.
        self.print.token(if *plain { Token::Number(text) } else { Token::Text(text) });
    }
}

/// Reads the first document of `text`.
pub(super) fn read(text: &str, paths: &Paths) -> Result<Fingerprint, String> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    options.set_emit_comments(false);
    let mut recorder = Recorder::new(text.as_bytes(), paths);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        if matches!(event, Event::DocumentEnd | Event::StreamEnd) {
            break;
        }
        if let Some(said) = Said::of(&event, span) {
            recorder.take(&said);
        }
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

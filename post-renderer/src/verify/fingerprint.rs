//! What a reading of a document amounts to: everything but the images that were meant to change, in
//! one piece that can be compared, and these images.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher as _},
};

use crate::scan::{Container, Target};

/// The containers whose images may change, as a tree of the paths to them.
#[derive(Debug, Default)]
pub(super) struct Paths {
    places: Vec<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    keys: BTreeMap<String, usize>,
    items: BTreeMap<usize, usize>,
    /// Which edit is of the mapping at this place.
    edit: Option<usize>,
}

/// A place in [`Paths`]; `None`: no edit is below.
pub(super) type Place = Option<usize>;

impl Paths {
    pub(super) const ROOT: Place = Some(0);

    pub(super) fn new() -> Self {
        Self { places: vec![Steps::default()] }
    }

    pub(super) fn add(&mut self, target: &Target, container: &Container, edit: usize) {
        let mut place = 0;
        for &item in &target.items {
            place = self.add_key(place, "items");
            place = self.add_item(place, item);
        }
        for key in ["spec", "template", "spec", container.list.as_str()] {
            place = self.add_key(place, key);
        }
        place = self.add_item(place, container.index);
        self.places[place].edit = Some(edit);
    }

    fn add_key(&mut self, place: usize, key: &str) -> usize {
        let next = self.places.len();
        let found = *self.places[place].keys.entry(key.to_owned()).or_insert(next);
        self.grow(found);
        found
    }

    fn add_item(&mut self, place: usize, item: usize) -> usize {
        let next = self.places.len();
        let found = *self.places[place].items.entry(item).or_insert(next);
        self.grow(found);
        found
    }

    fn grow(&mut self, place: usize) {
        if place == self.places.len() {
            self.places.push(Steps::default());
        }
    }

    pub(super) fn key(&self, place: Place, key: &str) -> Place {
        self.places.get(place?)?.keys.get(key).copied()
    }

    pub(super) fn item(&self, place: Place, item: usize) -> Place {
        self.places.get(place?)?.items.get(&item).copied()
    }

    pub(super) fn edit(&self, place: Place) -> Option<usize> {
        self.places.get(place?)?.edit
    }
}

/// The value of an `image` key as one reader saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// A string.
    Text(String),
    /// Anything else, in some unambiguous form.
    Other(String),
}

/// So much of a document is compared byte by byte, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// A part of a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'a> {
    Mapping,
    Sequence,
    End,
    Null,
    Text(&'a str),
    Tag(&'a str),
    Alias(&'a str),
    Number(&'a str),
    Bool(bool),
}

/// A reading of one document.
#[derive(Debug, Default)]
pub(super) struct Fingerprint {
    /// The last tokens, one after the other: all of most documents.
    content: Vec<u8>,
    /// Those before; a text that aliases make long takes no room.
    before: DefaultHasher,
    /// Whether there are any.
    is_long: bool,
    /// For each edit, for each time its container is met (a repeated key brings it twice), the
    /// values of its `image` keys, in order.
    images: BTreeMap<usize, Vec<Vec<Seen>>>,
}

impl Fingerprint {
    pub(super) fn token(&mut self, token: Token<'_>) {
        let (kind, text) = match token {
            Token::Mapping => (0, ""),
            Token::Sequence => (1, ""),
            Token::End => (2, ""),
            Token::Null => (3, ""),
            Token::Bool(value) => (4 + u8::from(value), ""),
            Token::Text(text) => (6, text),
            Token::Tag(text) => (7, text),
            Token::Alias(text) => (8, text),
            Token::Number(text) => (9, text),
        };
        self.content.push(kind);
        // Only these have a text, which may be empty.
        if kind >= 6 {
            self.content.extend_from_slice(&text.len().to_le_bytes());
            self.content.extend_from_slice(text.as_bytes());
        }
        if self.content.len() >= MOST_BYTES {
            self.before.write(&self.content);
            self.content.clear();
            self.is_long = true;
        }
    }

    /// A container whose image may change starts.
    pub(super) fn meet(&mut self, edit: usize) {
        self.images.entry(edit).or_default().push(Vec::new());
    }

    /// An image of that container.
    pub(super) fn image(&mut self, edit: usize, seen: Seen) {
        if let Some(images) = self.images.entry(edit).or_default().last_mut() {
            images.push(seen);
        }
    }

    /// Whether everything but the images is the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.content == other.content && self.before.finish() == other.before.finish()
    }

    /// A hash of everything but the images.
    pub(super) fn hash(&self) -> u64 {
        let mut hasher = self.before.clone();
        hasher.write(&self.content);
        hasher.finish()
    }

    /// Its tokens again; `None` where there are too many to keep them.
    pub(super) fn tokens(&self) -> Option<Tokens<'_>> {
        (!self.is_long).then_some(Tokens(&self.content))
    }

    pub(super) fn images(&self, edit: usize) -> &[Vec<Seen>] {
        self.images.get(&edit).map_or(&[], Vec::as_slice)
    }
}

/// The tokens of a [`Fingerprint`].
pub(super) struct Tokens<'f>(&'f [u8]);

impl<'f> Iterator for Tokens<'f> {
    type Item = Token<'f>;

    fn next(&mut self) -> Option<Token<'f>> {
        let (kind, rest) = self.0.split_first()?;
        self.0 = rest;
        let mut text = || {
            let (length, rest) = self.0.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(usize::from_le_bytes(*length))?;
            self.0 = rest;
            str::from_utf8(text).ok()
        };
        Some(match kind {
            0 => Token::Mapping,
            1 => Token::Sequence,
            2 => Token::End,
            3 => Token::Null,
            4 => Token::Bool(false),
            5 => Token::Bool(true),
            6 => Token::Text(text()?),
            7 => Token::Tag(text()?),
            8 => Token::Alias(text()?),
            _ => Token::Number(text()?),
        })
    }
}

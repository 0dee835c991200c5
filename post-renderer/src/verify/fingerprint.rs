//! What a reading of a document amounts to: one hash of everything but the images that were meant
//! to change, and these images.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hasher},
};

use crate::scan::{Container, Target};

/// The containers whose images may change, as a tree of the paths to them.
#[derive(Debug, Default)]
pub(super) struct Paths {
    places: Vec<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    keys: HashMap<String, usize>,
    items: HashMap<usize, usize>,
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

/// A part of a document, for the hash.
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
    hasher: DefaultHasher,
    /// For each edit, for each time its container is met (a repeated key brings it twice), the
    /// values of its `image` keys, in order.
    images: HashMap<usize, Vec<Vec<Seen>>>,
}

impl Fingerprint {
    pub(super) fn token(&mut self, token: Token<'_>) {
        let (kind, text) = match token {
            Token::Mapping => (0, ""),
            Token::Sequence => (1, ""),
            Token::End => (2, ""),
            Token::Null => (3, ""),
            Token::Text(text) => (4, text),
            Token::Tag(text) => (5, text),
            Token::Alias(text) => (6, text),
            Token::Number(text) => (7, text),
            Token::Bool(value) => (8 + u8::from(value), ""),
        };
        self.hasher.write_u8(kind);
        self.hasher.write_usize(text.len());
        self.hasher.write(text.as_bytes());
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

    pub(super) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    pub(super) fn images(&self, edit: usize) -> &[Vec<Seen>] {
        self.images.get(&edit).map_or(&[], Vec::as_slice)
    }
}

//! The second reader, of the libyaml family as Helm's own: aliases expanded, scalars typed.
//!
//! A visitor of our own, because a repeated key is an error for `serde_yaml::Value` but none for
//! Helm, and because only what can be compared is wanted.

use std::{borrow::Cow, fmt};

use serde::de::{
    Deserialize, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use crate::verify::fingerprint::{Fingerprint, Paths, Place, Seen, Token};

/// Reads the first document of `text`.
pub(super) fn read(text: &str, paths: &Paths) -> Result<Fingerprint, serde_yaml::Error> {
    let mut print = Fingerprint::default();
    if let Some(document) = serde_yaml::Deserializer::from_str(text).next() {
        Node { print: &mut print, paths, place: Paths::ROOT, image: None }.deserialize(document)?;
    }
    Ok(print)
}

struct Node<'r> {
    print: &'r mut Fingerprint,
    paths: &'r Paths,
    place: Place,
    /// This is an image of that edit.
    image: Option<usize>,
}

impl Node<'_> {
    fn scalar(self, token: Token<'_>) {
        let Some(edit) = self.image else { return self.print.token(token) };
        let seen = match token {
            Token::Text(text) => Seen::Text(text.to_owned()),
            other => Seen::Other(format!("{other:?}")),
        };
        self.print.image(edit, seen);
    }

    fn inner(&mut self, place: Place, image: Option<usize>) -> Node<'_> {
        Node { print: self.print, paths: self.paths, place, image }
    }

    fn collection(&mut self, token: Token<'_>) {
        if let Some(edit) = self.image.take() {
            self.print.image(edit, Seen::Other("a collection".to_owned()));
        }
        self.print.token(token);
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(Token::Bool(value));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.visit_i128(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.visit_u128(value.into())
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.scalar(Token::Number(&value.to_string()));
        Ok(())
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.scalar(Token::Number(&value.to_string()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(Token::Number(&format!("float {:x}", value.to_bits())));
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(Token::Text(value));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(Token::Null);
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.collection(Token::Sequence);
        let mut index = 0;
        loop {
            let place = self.paths.item(self.place, index);
            if items.next_element_seed(self.inner(place, None))?.is_none() {
                break;
            }
            index += 1;
        }
        self.print.token(Token::End);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.collection(Token::Mapping);
        let edit = self.paths.edit(self.place);
        if let Some(edit) = edit {
            self.print.meet(edit);
        }
        while let Some(key) = entries.next_key::<Key<'de>>()? {
            let text = key.text();
            let place = text.and_then(|key| self.paths.key(self.place, key));
            let image = edit.filter(|_| text == Some("image"));
            match &key {
                _ if image.is_some() => {}
                Key::Text(text) => self.print.token(Token::Text(text)),
                Key::Other(other) => self.print.token(Token::Number(other)),
            }
            entries.next_value_seed(self.inner(place, image))?;
        }
        self.print.token(Token::End);
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (tag, value) = tagged.variant::<String>()?;
        self.print.token(Token::Tag(&tag));
        value.newtype_variant_seed(self)
    }
}

/// A key, which may be anything.
enum Key<'de> {
    /// A string, as nearly all are.
    Text(Cow<'de, str>),
    /// Anything else: different for different keys.
    Other(String),
}

impl Key<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }

    /// A key that is a collection or tagged, by what a reader makes of it.
    fn of<E>(read: impl FnOnce(Node<'_>) -> Result<(), E>) -> Result<Self, E> {
        let mut print = Fingerprint::default();
        let paths = Paths::new();
        read(Node { print: &mut print, paths: &paths, place: None, image: None })?;
        Ok(Self::Other(format!("key {}", print.hash())))
    }

    fn scalar(token: Token<'_>) -> Self {
        Self::Other(format!("{token:?}"))
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML key")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Key<'de>, E> {
        Ok(Key::scalar(Token::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Key<'de>, E> {
        Key::of(|node| node.visit_i64(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Key<'de>, E> {
        Key::of(|node| node.visit_u64(value))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Key<'de>, E> {
        Key::of(|node| node.visit_i128(value))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Key<'de>, E> {
        Key::of(|node| node.visit_u128(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Key<'de>, E> {
        Key::of(|node| node.visit_f64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Key<'de>, E> {
        Ok(Key::Text(value.to_owned().into()))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Key<'de>, E> {
        Ok(Key::Text(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Key<'de>, E> {
        Ok(Key::scalar(Token::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Key<'de>, E> {
        self.visit_unit()
    }

    fn visit_some<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Key<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Key<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Key<'de>, A::Error> {
        Key::of(|node| node.visit_seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Key<'de>, A::Error> {
        Key::of(|node| node.visit_map(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Key<'de>, A::Error> {
        Key::of(|node| node.visit_enum(tagged))
    }
}

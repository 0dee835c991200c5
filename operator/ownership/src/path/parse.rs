//! Reading of queries.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Segment, print::ends_name};
use crate::{Element, Literal, element::Key};

/// The longest query that is read, in bytes.
pub const MAX_PATH_BYTES: usize = 64 * 1024;

/// The most segments a query may have; no object that the API server accepts is nested as deep.
pub const MAX_SEGMENTS: usize = 128;

/// Where and why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the field path {path:?} at byte {at}")]
pub struct PathError {
    /// The text, cut off when it is long.
    pub path: String,
    /// The place, in bytes from the start.
    pub at: usize,
    /// What is wrong there.
    #[source]
    pub problem: PathProblem,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// Nothing is named.
    #[error("the path is empty")]
    Empty,
    /// More than [`MAX_PATH_BYTES`].
    #[error("the path is longer than {MAX_PATH_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_SEGMENTS`].
    #[error("the path has more than {MAX_SEGMENTS} segments")]
    TooManySegments,
    /// `{` without `}` or the other way round.
    #[error("the braces around the path do not match")]
    Braces,
    /// A dot without a name after it.
    #[error("a name is missing")]
    NoName,
    /// `..`.
    #[error("recursive descent (..) is not supported: name each field, or use [*]")]
    RecursiveDescent,
    /// `[?(…)]`.
    #[error("filters are not supported: write [name=app] for the item whose name is app")]
    Filter,
    /// A bracket or quote that does not end.
    #[error("a bracket or quote is not closed")]
    Unclosed,
    /// `[app]`.
    #[error(
        "this is no item: write ['key'] for a field, [name=app] or [0] for an item, [=\"v\"] for a \
         member of a set, [*] for all"
    )]
    NoItem,
    /// `[name=]`.
    #[error("a value is missing")]
    NoValue,
    /// A value in quotes, brackets or braces that is no JSON.
    #[error("the value is not valid JSON")]
    BadValue,
    /// `[a=1,a=2]`.
    #[error("a key field is named twice")]
    DuplicateKey,
    /// Anything else.
    #[error("a dot or a bracket is expected here")]
    Unexpected,
}

/// Reads a query; the result has at least one segment.
pub(super) fn query(text: &str) -> Result<Vec<Segment>, PathError> {
    let error = |at, problem| PathError { path: crate::shortened(text), at, problem };
    if text.len() > MAX_PATH_BYTES {
        return Err(error(MAX_PATH_BYTES, PathProblem::TooLong));
    }
    let mut parser = Parser { text, at: 0 };
    parser.path().map_err(|problem| error(parser.at, problem))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, char: char) -> bool {
        let found = self.rest().starts_with(char);
        if found {
            self.at += char.len_utf8();
        }
        found
    }

    fn expect(&mut self, char: char, problem: PathProblem) -> Result<(), PathProblem> {
        if self.eat(char) { Ok(()) } else { Err(problem) }
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn path(&mut self) -> Result<Vec<Segment>, PathProblem> {
        self.skip_spaces();
        let braces = self.eat('{');
        self.skip_spaces();
        let mut segments = Vec::new();
        let mut first = true;
        loop {
            let start = std::mem::take(&mut first);
            match self.peek() {
                Some('.') => {
                    self.eat('.');
                    match self.peek() {
                        Some('.') => return Err(PathProblem::RecursiveDescent),
                        Some('[') => segments.push(self.bracket()?),
                        _ => segments.push(self.name()?),
                    }
                }
                Some('[') => segments.push(self.bracket()?),
                Some(char) if start && !ends_name(char) => segments.push(self.name()?),
                Some('\\') if start => segments.push(self.name()?),
                _ => break,
            }
            if segments.len() > MAX_SEGMENTS {
                return Err(PathProblem::TooManySegments);
            }
        }
        self.skip_spaces();
        if braces {
            self.expect('}', PathProblem::Braces)?;
            self.skip_spaces();
        }
        match self.peek() {
            None if segments.is_empty() => Err(PathProblem::Empty),
            None => Ok(segments),
            Some('}') => Err(PathProblem::Braces),
            Some(_) => Err(PathProblem::Unexpected),
        }
    }

    /// A name without quotes. A backslash takes the next character as it is, as kubectl's
    /// JSONPath does: `annotations.example\.com/x`.
    fn name(&mut self) -> Result<Segment, PathProblem> {
        let start = self.at;
        let mut name = String::new();
        while let Some(char) = self.peek() {
            if char == '\\' {
                self.at += 1;
                let Some(escaped) = self.peek() else { return Err(PathProblem::NoName) };
                name.push(escaped);
                self.at += escaped.len_utf8();
            } else if ends_name(char) {
                break;
            } else {
                name.push(char);
                self.at += char.len_utf8();
            }
        }
        match (name.as_str(), &self.text[start..self.at]) {
            ("", _) => Err(PathProblem::NoName),
            (_, "*") => Ok(Segment::All),
            (name, _) => Ok(Segment::One(Element::field(name))),
        }
    }

    fn bracket(&mut self) -> Result<Segment, PathProblem> {
        self.expect('[', PathProblem::Unexpected)?;
        self.skip_spaces();
        if self.eat(']') {
            return Ok(Segment::One(Element::Key(Key::new([]))));
        }
        if self.eat('=') {
            let value = self.value()?;
            self.expect(']', PathProblem::Unclosed)?;
            return Ok(Segment::One(Element::Value(value)));
        }
        let mut fields: Vec<(Box<str>, Literal)> = Vec::new();
        loop {
            self.skip_spaces();
            let start = self.at;
            let is_quoted = matches!(self.peek(), Some('\'' | '"'));
            let name = if is_quoted { self.quoted()? } else { self.key_name()? };
            self.skip_spaces();
            if self.eat('=') {
                if fields.iter().any(|(own, _)| **own == *name) {
                    self.at = start;
                    return Err(PathProblem::DuplicateKey);
                }
                fields.push((name.into(), self.value()?));
                if self.eat(',') {
                    continue;
                }
                self.expect(']', PathProblem::Unclosed)?;
                return Ok(Segment::One(Element::Key(Key::new(fields))));
            }
            if self.peek().is_none() {
                return Err(PathProblem::Unclosed);
            }
            let alone = fields.is_empty() && self.eat(']');
            return match (alone, is_quoted, name.as_str()) {
                (true, true, name) => Ok(Segment::One(Element::field(name))),
                (true, false, "*") => Ok(Segment::All),
                (true, false, number) if number.parse::<i64>().is_ok() => {
                    Ok(Segment::One(Element::Index(number.parse().unwrap_or_default())))
                }
                _ => {
                    self.at = start;
                    Err(PathProblem::NoItem)
                }
            };
        }
    }

    /// What stands before `=` without quotes: also a number or a star that turns out to be alone.
    fn key_name(&mut self) -> Result<String, PathProblem> {
        if self.peek() == Some('?') {
            return Err(PathProblem::Filter);
        }
        let rest = self.rest();
        let end = rest.find(['=', ',', ']', '[', '\'', '"']).unwrap_or(rest.len());
        let name = rest[..end].trim_end();
        self.at += name.len();
        if name.is_empty() {
            return Err(if self.peek().is_none() {
                PathProblem::Unclosed
            } else {
                PathProblem::NoItem
            });
        }
        Ok(name.to_owned())
    }

    /// What stands after `=`: JSON, a text in single quotes, or a bare word, which is a number,
    /// true, false or null if it looks like one and a text otherwise.
    fn value(&mut self) -> Result<Literal, PathProblem> {
        self.skip_spaces();
        let value = match self.peek() {
            None => return Err(PathProblem::Unclosed),
            Some('\'') => Literal::Text(self.quoted()?.into()),
            Some('"' | '{' | '[') => Literal::of_parsed(&self.json::<Value>()?),
            Some(_) => {
                let rest = self.rest();
                let end = rest.find([',', ']']).ok_or(PathProblem::Unclosed)?;
                let word = rest[..end].trim_end();
                if word.is_empty() {
                    return Err(PathProblem::NoValue);
                }
                self.at += word.len();
                Literal::from_json(word).unwrap_or_else(|| word.into())
            }
        };
        self.skip_spaces();
        Ok(value)
    }

    fn quoted(&mut self) -> Result<String, PathProblem> {
        if self.peek() == Some('"') {
            return self.json();
        }
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((index, char)) = chars.next() {
            match char {
                '\'' => {
                    self.at += index + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                _ => text.push(char),
            }
        }
        Err(PathProblem::Unclosed)
    }

    /// One JSON value from here on.
    fn json<T: DeserializeOwned>(&mut self) -> Result<T, PathProblem> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) if error.is_eof() => Err(PathProblem::Unclosed),
            _ => Err(PathProblem::BadValue),
        }
    }
}

//! pflag's rules for telling flags, their values and other arguments apart.
//!
//! As in version 1.0.10, which both majors of Helm have, with its oddities: `-n=` is the value
//! `=`, a group such as `-fnope.yaml` whose first letter is not known is read on letter by letter,
//! and `-test.…` is passed over.

use super::{
    flags::{self, Arity, Flag, Scope},
    invocation::Doubt,
};

/// A value that its flag does not take.
pub(super) struct BadValue;

/// What is done with each flag, and with the value where one is written.
pub(super) type Take<'t, 'a> =
    dyn FnMut(&'static Flag, Option<&'a str>) -> Result<(), BadValue> + 't;

/// What is left beside the flags.
#[derive(Default)]
pub(super) struct Reading<'a> {
    /// The arguments that are neither flags nor values.
    pub(super) names: Vec<&'a str>,
    /// The first doubt.
    pub(super) doubt: Option<Doubt>,
    /// The first flag that is not known, though it shows where its value is.
    pub(super) unknown: Option<Doubt>,
}

/// Reads arguments, all but the one at `skip`, as a command of this scope does.
///
/// In [`Scope::Root`] it reads as Helm does before it looks for the command: flags that are not
/// known are passed over, together with a value as far as one can be guessed, and the first error
/// ends it without a word.
pub(super) fn read<'a>(
    args: &'a [String],
    skip: Option<usize>,
    scope: Scope,
    take: &mut Take<'_, 'a>,
) -> Reading<'a> {
    let mut reader =
        Reader { args, skip, next: 0, at: 0, scope, take, reading: Reading::default() };
    while let Some(word) = reader.word() {
        reader.at = reader.next;
        let step = match word.strip_prefix('-') {
            None | Some("") => {
                reader.reading.names.push(word);
                Ok(())
            }
            Some("-") => {
                while let Some(word) = reader.word() {
                    reader.reading.names.push(word);
                }
                Ok(())
            }
            Some(rest) => match rest.strip_prefix('-') {
                Some(flag) => reader.long(flag),
                None => reader.group(rest),
            },
        };
        match step {
            Ok(()) => {}
            Err(_) if scope == Scope::Root => break,
            Err(doubt) => {
                reader.reading.doubt.get_or_insert(doubt);
            }
        }
    }
    reader.reading
}

struct Reader<'r, 'a> {
    args: &'a [String],
    skip: Option<usize>,
    /// The index of the next argument.
    next: usize,
    /// The place, from 1, of the argument that is being read.
    at: usize,
    scope: Scope,
    take: &'r mut Take<'r, 'a>,
    reading: Reading<'a>,
}

impl<'a> Reader<'_, 'a> {
    fn peek(&mut self) -> Option<&'a str> {
        if self.skip == Some(self.next) {
            self.next += 1;
        }
        self.args.get(self.next).map(String::as_str)
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    fn give(&mut self, flag: &'static Flag, value: Option<&'a str>) -> Result<(), Doubt> {
        (self.take)(flag, value).map_err(|BadValue| Doubt::Value { flag: flag.name })
    }

    /// Gives the flag the next word.
    fn give_next(&mut self, flag: &'static Flag) -> Result<(), Doubt> {
        let value = self.word().ok_or(Doubt::MissingValue { flag: flag.name })?;
        self.give(flag, Some(value))
    }

    /// An unknown flag that may have the next word for its value.
    fn unknown(&mut self) -> Result<(), Doubt> {
        if self.scope != Scope::Root {
            return Err(Doubt::UnknownFlag { argument: self.at });
        }
        if self.peek().is_some_and(|word| !word.starts_with('-')) {
            self.next += 1;
        }
        Ok(())
    }

    /// An unknown flag whose value, if it is one, is written with `=`.
    fn unknown_with_value(&mut self) {
        self.reading.unknown.get_or_insert(Doubt::UnknownFlag { argument: self.at });
    }

    /// `--flag…`, without the dashes.
    fn long(&mut self, text: &'a str) -> Result<(), Doubt> {
        if text.starts_with(['-', '=']) {
            return Err(Doubt::Syntax { argument: self.at });
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some(flag) = flags::long(name, self.scope) else {
            return match value {
                _ if self.scope == Scope::Root && name == "help" => {
                    Err(Doubt::UnknownFlag { argument: self.at })
                }
                Some(_) => {
                    self.unknown_with_value();
                    Ok(())
                }
                None => self.unknown(),
            };
        };
        match value {
            None if flag.arity == Arity::Value => self.give_next(flag),
            value => self.give(flag, value),
        }
    }

    /// `-abc…`, without the dash.
    fn group(&mut self, text: &'a str) -> Result<(), Doubt> {
        let after = self.next;
        for (at, letter) in text.bytes().enumerate() {
            // Each letter begins at the same next word, whatever the one before took.
            self.next = after;
            let rest = &text.as_bytes()[at..];
            if rest.starts_with(b"test.") {
                return Ok(());
            }
            let with_value = rest.len() > 2 && rest[1] == b'=';
            let Some(flag) = flags::short(letter, self.scope) else {
                if self.scope == Scope::Root && letter == b'h' {
                    return Err(Doubt::UnknownFlag { argument: self.at });
                }
                if with_value {
                    self.unknown_with_value();
                    return Ok(());
                }
                self.unknown()?;
                continue;
            };
            // A known letter is ASCII, so that the text can be cut after it.
            let written = |from: usize| text.get(at + from..).unwrap_or_default();
            if with_value {
                return self.give(flag, Some(written(2)));
            }
            if flag.arity != Arity::Value {
                self.give(flag, None)?;
            } else if rest.len() > 1 {
                return self.give(flag, Some(written(1)));
            } else {
                return self.give_next(flag);
            }
        }
        Ok(())
    }
}

//! Printing of paths: ours, which can be read back, and the API server's.

use std::fmt::{self, Write};

use crate::{Element, Literal};

/// Prints what [`super::parse`] reads back as the same element.
pub(super) fn element(f: &mut impl Write, element: &Element) -> fmt::Result {
    match element {
        Element::Field(name) if is_plain(name) => write!(f, ".{name}"),
        Element::Field(name) => {
            f.write_char('[')?;
            quoted_name(f, name)?;
            f.write_char(']')
        }
        Element::Key(key) => {
            f.write_char('[')?;
            for (index, (name, value)) in key.fields().enumerate() {
                if index > 0 {
                    f.write_char(',')?;
                }
                if is_plain_key(name) {
                    f.write_str(name)?;
                } else {
                    quoted_name(f, name)?;
                }
                write!(f, "={value}")?;
            }
            f.write_char(']')
        }
        Element::Value(value) => write!(f, "[={value}]"),
        Element::Index(index) => write!(f, "[{index}]"),
    }
}

/// Whether a character ends a name that is not quoted.
pub(super) fn ends_name(char: char) -> bool {
    matches!(char, '.' | '[' | ']' | '{' | '}' | '\'' | '"' | '\\')
        || char.is_whitespace()
        || char.is_control()
}

/// Whether a name stands for itself without quotes.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "*" && !name.chars().any(ends_name)
}

fn is_plain_key(name: &str) -> bool {
    is_plain(name) && !name.contains(['=', ',', '?'])
}

fn quoted_name(f: &mut impl Write, name: &str) -> fmt::Result {
    f.write_char('\'')?;
    for char in name.chars() {
        if matches!(char, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(char)?;
    }
    f.write_char('\'')
}

/// Prints the element as `details.causes[].field` of a conflict has it.
pub(super) fn api_element(f: &mut impl Write, element: &Element) -> fmt::Result {
    match element {
        Element::Field(name) => write!(f, ".{name}"),
        Element::Key(key) => {
            f.write_char('[')?;
            for (index, (name, value)) in key.fields().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                write!(f, "{comma}{name}=")?;
                api_literal(f, value)?;
            }
            f.write_char(']')
        }
        Element::Value(value) => {
            f.write_str("[=")?;
            api_literal(f, value)?;
            f.write_char(']')
        }
        Element::Index(index) => write!(f, "[{index}]"),
    }
}

/// Texts as Go's `%q` prints them: like JSON, with other words for control characters.
fn api_literal(f: &mut impl Write, literal: &Literal) -> fmt::Result {
    let Literal::Text(text) = literal else { return write!(f, "{literal}") };
    f.write_char('"')?;
    for char in text.chars() {
        match char {
            '"' | '\\' => write!(f, "\\{char}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{7}' => f.write_str("\\a")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{b}' => f.write_str("\\v")?,
            '\u{c}' => f.write_str("\\f")?,
            char if char.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(char))?,
            char => f.write_char(char)?,
        }
    }
    f.write_char('"')
}

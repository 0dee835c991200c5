//! Lines of text whose pieces have a meaning. Every piece is cleaned when it is printed, so nothing
//! of the cluster reaches a terminal unseen.

use unicode_width::UnicodeWidthStr as _;

use super::{
    clean,
    style::{Icon, Paint, Style},
};

/// How many columns a terminal takes for the text.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    paint: Paint,
    text: String,
}

/// A line, or a cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(Vec<Span>);

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// With a piece of that meaning at the end.
    #[must_use]
    pub fn with(mut self, paint: Paint, text: impl Into<String>) -> Self {
        self.0.push(Span { paint, text: text.into() });
        self
    }

    /// With plain text at the end.
    #[must_use]
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(Paint::Plain, text)
    }

    /// With secondary text at the end.
    #[must_use]
    pub fn dim(self, text: impl Into<String>) -> Self {
        self.with(Paint::Dim, text)
    }

    /// With a sign and a word in its colour at the end.
    #[must_use]
    pub fn icon(self, icon: Icon, word: &str) -> Self {
        self.with(icon.paint(), format!("{} {word}", icon.as_str()).trim_end().to_owned())
    }

    /// With all pieces of another line at the end.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether there is no text in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|span| span.text.is_empty())
    }

    /// As it is printed.
    pub fn render(&self, style: Style) -> String {
        self.0.iter().map(|span| style.paint(span.paint, &span.shown(style))).collect()
    }

    /// As it is printed without colour, for measuring.
    pub fn bare(&self, style: Style) -> String {
        self.0.iter().map(|span| span.shown(style)).collect()
    }

    /// Its first `columns` columns, as printed.
    pub fn clipped(&self, style: Style, columns: usize) -> String {
        let mut left = columns;
        let mut shown = String::new();
        for span in &self.0 {
            let text = span.shown(style);
            if width(&text) <= left {
                left -= width(&text);
                shown.push_str(&style.paint(span.paint, &text));
                continue;
            }
            let mut part = String::new();
            for char in text.chars() {
                let size = width(char.encode_utf8(&mut [0; 4]));
                if size > left {
                    break;
                }
                left -= size;
                part.push(char);
            }
            shown.push_str(&style.paint(span.paint, &part));
            break;
        }
        shown
    }

    /// The same with everything from the first line end on cut off.
    #[must_use]
    pub fn cell(mut self) -> Self {
        for span in &mut self.0 {
            if span.text.contains('\n') {
                span.text = clean::cell(&span.text).into_owned();
            }
        }
        self
    }
}

impl Span {
    fn shown(&self, style: Style) -> String {
        style.characters(&clean::line(&self.text)).into_owned()
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

impl From<(Paint, &str)> for Line {
    fn from((paint, text): (Paint, &str)) -> Self {
        Self::new().with(paint, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cleaned_and_coloured_piece_by_piece() {
        let line = Line::new().plain("a\u{1b}[2J ").icon(Icon::Bad, "Stalled");
        let style = Style { colour: true, ascii: false };
        assert_eq!(line.render(style), "a^[[2J \u{1b}[31m✖ Stalled\u{1b}[0m");
        assert_eq!(line.render(Style { colour: false, ascii: true }), "a^[[2J x Stalled");
    }

    #[test]
    fn a_line_is_clipped_by_columns_not_by_bytes() {
        let line = Line::new().plain("日本").dim("語x");
        assert_eq!(line.clipped(Style::default(), 5), "日本");
        assert_eq!(line.clipped(Style::default(), 6), "日本語");
        assert_eq!(line.clipped(Style::default(), 99), "日本語x");
    }
}

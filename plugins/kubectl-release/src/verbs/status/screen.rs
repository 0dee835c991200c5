//! What a watch shows: a frame that is drawn anew in place on a terminal, lines elsewhere.

use std::{fmt::Write as _, io};

use crate::{
    out::Out,
    print::{Line, Style},
};

/// A frame on a terminal.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// How many rows the frame takes that is there now.
    drawn: usize,
}

impl Screen {
    /// Draws a frame over the one before: clipped to the terminal's width, so that each line is one
    /// row, and to its height from the bottom, so that the first lines always stay.
    pub(super) fn draw(&mut self, lines: &[Line], out: &mut Out) -> io::Result<()> {
        let (width, height) = out.size();
        let (text, drawn) = frame(lines, out.style, self.drawn, width, Some(height));
        self.drawn = drawn;
        out.raw(&text)?;
        out.flush()
    }

    /// Draws the last frame, which stays, in full height.
    pub(super) fn finish(&mut self, lines: &[Line], out: &mut Out) -> io::Result<()> {
        let (width, _) = out.size();
        let (text, _) = frame(lines, out.style, self.drawn, width, None);
        self.drawn = 0;
        out.raw(&text)?;
        out.flush()
    }
}

/// The bytes of a frame, and how many rows it takes.
fn frame(
    lines: &[Line],
    style: Style,
    drawn: usize,
    width: usize,
    height: Option<usize>,
) -> (String, usize) {
    let mut text = String::new();
    if drawn > 0 {
        let _ = write!(text, "\r\u{1b}[{drawn}A");
    }
    // The cursor stands in the row below the frame.
    let room = height.map_or(lines.len(), |height| height.saturating_sub(1).max(1));
    let shown = lines.len().min(room);
    let is_cut = shown < lines.len();
    for (index, line) in lines.iter().take(shown).enumerate() {
        let more = format!("… {} more lines", lines.len() - shown + 1);
        let is_last = is_cut && index + 1 == shown && shown > 1;
        let line = if is_last { Line::new().dim(more) } else { line.clone() };
        text.push_str(&line.clipped(style, width));
        text.push_str("\u{1b}[K\n");
    }
    // What is left of a longer frame.
    text.push_str("\u{1b}[J");
    (text, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        (1..=count).map(|number| Line::from(format!("line {number}"))).collect()
    }

    #[test]
    fn a_frame_begins_where_the_one_before_began() {
        let (text, drawn) = frame(&lines(2), Style::default(), 3, 80, Some(24));
        assert_eq!(text, "\r\u{1b}[3Aline 1\u{1b}[K\nline 2\u{1b}[K\n\u{1b}[J");
        assert_eq!(drawn, 2);
    }

    #[test]
    fn a_frame_is_clipped_from_the_bottom_and_at_the_right() {
        let (text, drawn) = frame(&lines(9), Style::default(), 0, 4, Some(4));
        assert_eq!(text, "line\u{1b}[K\nline\u{1b}[K\n… 7 \u{1b}[K\n\u{1b}[J");
        assert_eq!(drawn, 3);
    }

    #[test]
    fn the_last_frame_is_whole() {
        let (text, _) = frame(&lines(9), Style::default(), 3, 80, None);
        assert!(text.contains("line 9"));
    }

    #[test]
    fn a_terminal_of_one_row_shows_the_header() {
        let (text, drawn) = frame(&lines(3), Style::default(), 0, 80, Some(1));
        assert_eq!((text.as_str(), drawn), ("line 1\u{1b}[K\n\u{1b}[J", 1));
    }
}

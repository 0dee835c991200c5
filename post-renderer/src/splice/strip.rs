//! Takes the image's entry out of its mapping (rule 5.4).

use std::ops::Range;

use crate::{
    scan::{Entry, Form, Layout},
    splice::{Change, Obstacle, preserve::block_end, text},
};

/// What a Strip does to the bytes. An obstacle here still leaves Preserve.
pub(super) fn strip(
    input: &[u8],
    layout: &Layout,
    container_start: usize,
    survivors: impl Fn(&Entry) -> usize,
) -> Result<Vec<Change>, Obstacle> {
    if let Some(hindrance) = &layout.hindrance {
        return Err(Obstacle { at: hindrance.at, what: hindrance.what });
    }
    if let Some(merge) = &layout.merge {
        let at = layout.entries[merge.entry].key.start;
        return Err(Obstacle { at, what: "a merge key brings the image back" });
    }
    let images = || layout.images.iter().map(|&index| &layout.entries[index]);
    if let Some(entry) = images().find(|entry| entry.form == Form::Unusable) {
        return Err(Obstacle { at: entry.key.start, what: "an image is no plain string" });
    }
    if let Some(entry) = images().find(|entry| !entry.is_alias && survivors(entry) > 0) {
        let what = "an alias elsewhere reads the image's anchor";
        return Err(Obstacle { at: entry.value.start, what });
    }
    if layout.flow { flow(input, layout, container_start) } else { block(input, layout) }
}

fn is_image(layout: &Layout, index: usize) -> bool {
    layout.images.binary_search(&index).is_ok()
}

/// Where an entry's value ends.
fn entry_end(input: &[u8], entry: &Entry) -> Option<usize> {
    match entry.form {
        Form::Block => block_end(input, entry),
        _ if entry.value.is_empty() => {
            let colon = text::colon_after(input, entry.key.end).map(|colon| colon + 1);
            Some(colon.unwrap_or(entry.key.end).max(entry.value.end))
        }
        _ => Some(entry.value.end),
    }
}

/// What stands before a key on its line in block style.
struct Lead {
    line_start: usize,
    /// The indentation and the dashes, as long as the column of the mapping.
    column: usize,
    dashed: bool,
}

fn lead(input: &[u8], entry: &Entry) -> Option<Lead> {
    let line_start = text::line_start(input, entry.key.start);
    let line_start = match input[line_start..entry.key.start] {
        [0xef, 0xbb, 0xbf, ..] => return None,
        _ => line_start,
    };
    let before = &input[line_start..entry.key.start];
    let column = before.iter().take_while(|byte| matches!(byte, b' ' | b'-')).count();
    // `? image`, the explicit form of a key, is part of the entry; anything else is a surprise.
    let explicit =
        matches!(before[column..], [b'?', ..] if before[column + 1..].iter().all(|b| *b == b' '));
    (column == before.len() || explicit).then(|| Lead {
        line_start,
        column,
        dashed: before[..column].contains(&b'-'),
    })
}

fn block(input: &[u8], layout: &Layout) -> Result<Vec<Change>, Obstacle> {
    let mut changes = Vec::new();
    let mut dash: Option<Range<usize>> = None;
    for &index in &layout.images {
        let entry = &layout.entries[index];
        let odd = Obstacle { at: entry.key.start, what: "the image shares its line" };
        let Some(lead) = lead(input, entry) else { return Err(odd) };
        let Some(line_end) =
            entry_end(input, entry).and_then(|end| text::rest_is_trivia(input, end))
        else {
            return Err(odd);
        };
        if lead.dashed {
            dash = Some(lead.line_start..lead.line_start + lead.column);
        }
        let end = text::after_break(input, line_end);
        // The last line of a file without a line break at its end: the break before goes instead,
        // so that there is none at the end again; but it may be part of a block scalar's text.
        let after_block = index > 0 && layout.entries[index - 1].form == Form::Block;
        let start = if end == line_end && !lead.dashed && !after_block {
            text::before_break(input, lead.line_start)
        } else {
            lead.line_start
        };
        changes.push(Change::new(start..end, String::new()));
    }
    if let Some(dash) = dash {
        changes.push(move_dash(input, layout, &dash)?);
    }
    Ok(changes)
}

/// Puts the dash that stood before the image before the first entry that stays.
fn move_dash(input: &[u8], layout: &Layout, dash: &Range<usize>) -> Result<Change, Obstacle> {
    let obstacle = |at| Obstacle { at, what: "there is no key to move the dash to" };
    let next = (0..layout.entries.len())
        .find(|&index| !is_image(layout, index))
        .map(|index| &layout.entries[index])
        .ok_or_else(|| obstacle(dash.start))?;
    let next_start = text::line_start(input, next.key.start);
    let indent = next_start..next_start + dash.len();
    let is_indent = input.get(indent.clone()).is_some_and(|bytes| bytes.iter().all(|b| *b == b' '));
    let prefix = String::from_utf8_lossy(&input[dash.clone()]).into_owned();
    if is_indent { Ok(Change::new(indent, prefix)) } else { Err(obstacle(next.key.start)) }
}

fn flow(input: &[u8], layout: &Layout, container_start: usize) -> Result<Vec<Change>, Obstacle> {
    let mut changes = Vec::new();
    // After the opening brace, or after the comma before the entry.
    let mut start = text::skip_trivia(input, container_start + 1);
    // The comma after the last entry that stays.
    let mut kept_comma = None;
    let last = layout.entries.len().saturating_sub(1);
    for (index, entry) in layout.entries.iter().enumerate() {
        let odd = Obstacle { at: entry.key.start, what: "the flow mapping is written oddly" };
        let Some(end) = entry_end(input, entry) else { return Err(odd) };
        let after = text::skip_trivia(input, end);
        let comma = (input.get(after) == Some(&b',')).then_some(after);
        if comma.is_none() && index != last || start > entry.key.start {
            return Err(odd);
        }
        if is_image(layout, index) {
            match (comma, kept_comma) {
                (Some(comma), _) => changes.push(remove(input, start, comma + 1, true)),
                (None, Some(kept)) => {
                    changes.append(&mut remove_last(input, kept, start, end));
                }
                (None, None) => changes.push(Change::new(start..end, String::new())),
            }
        } else {
            kept_comma = comma;
        }
        start = text::skip_trivia(input, comma.map_or(after, |comma| comma + 1));
    }
    Ok(changes)
}

/// Removes an entry with its comma; a line of its own goes whole.
fn remove(input: &[u8], start: usize, end: usize, comma: bool) -> Change {
    let before = text::skip_blanks_back(input, start);
    let starts_line = before > 0 && matches!(input[before - 1], b'\n' | b'\r');
    let range = match text::rest_is_trivia(input, end) {
        Some(line_end) if starts_line => before..text::after_break(input, line_end),
        // Others stand on the line before it: the comment and the blanks before go too.
        Some(line_end) => before..line_end,
        None if comma => start..text::skip_blanks(input, end),
        None => start..end,
    };
    Change::new(range, String::new())
}

/// Removes the last entry, which has no comma after it, and the comma before it.
fn remove_last(input: &[u8], comma: usize, start: usize, end: usize) -> Vec<Change> {
    if input[comma + 1..start].iter().all(|byte| matches!(byte, b' ' | b'\t')) {
        let line_end = text::rest_is_trivia(input, end).filter(|&line_end| line_end > end);
        return vec![Change::new(comma..line_end.unwrap_or(end), String::new())];
    }
    let after = text::skip_blanks(input, comma + 1);
    let comma_end = match input.get(after) {
        Some(b'#' | b'\n' | b'\r') | None => comma + 1,
        Some(_) => after,
    };
    let mut changes = vec![Change::new(comma..comma_end, String::new())];
    let entry = remove(input, start, end, false);
    // Where others stood between the comma and the entry, that is another image, which is removed
    // on its own.
    changes.push(Change::new(entry.range.start.max(comma_end)..entry.range.end, entry.text));
    changes
}

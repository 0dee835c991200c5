//! Puts a value where the image stands (rules 5.5 and 5.6).

use crate::{
    scan::{Entry, Form, Layout},
    splice::{
        Change, Obstacle,
        scalar::{Style, is_plain, write},
        text,
    },
};

/// What a Preserve does to the bytes; `None`: the value is there already.
pub(super) fn preserve(
    input: &[u8],
    layout: &Layout,
    value: &str,
    survivors: impl Fn(&Entry) -> usize,
) -> Result<Option<Vec<Change>>, Obstacle> {
    if let Some(hindrance) = &layout.hindrance {
        return Err(Obstacle { at: hindrance.at, what: hindrance.what });
    }
    let Some(entry) = layout.image() else {
        return merged(input, layout, value);
    };
    let quoted = matches!(entry.form, Form::SingleQuoted | Form::DoubleQuoted | Form::Block);
    if entry.text.as_deref() == Some(value) && (quoted || is_plain(value)) {
        return Ok(None);
    }
    if !entry.is_alias && survivors(entry) > 0 {
        let what = "an alias elsewhere reads the image's anchor";
        return Err(Obstacle { at: entry.value.start, what });
    }
    let is_null = entry.text.is_none();
    let style = match entry.form {
        Form::SingleQuoted => Style::Single,
        Form::DoubleQuoted => Style::Double,
        // A flow mapping may be JSON.
        _ if layout.flow && is_null => Style::Double,
        _ => Style::Plain,
    };
    let value = write(value, style);
    let changes = match entry.form {
        Form::Block => block(input, entry, value)?,
        Form::Empty => vec![empty(input, layout, entry, &value)?],
        _ => vec![Change::new(entry.value.clone(), value)],
    };
    Ok(Some(changes))
}

/// Where a block scalar ends, without the line breaks that follow its last line.
pub(super) fn block_end(input: &[u8], entry: &Entry) -> Option<usize> {
    let indicator = text::block_indicator(input, entry.key.end)?;
    let content = input.get(entry.value.clone())?.trim_ascii_end().len();
    let end = entry.value.start + content;
    Some(if content == 0 { text::line_end(input, indicator.end) } else { end })
}

fn block(input: &[u8], entry: &Entry, value: String) -> Result<Vec<Change>, Obstacle> {
    let obstacle =
        || Obstacle { at: entry.key.start, what: "the block scalar's start cannot be found" };
    let indicator = text::block_indicator(input, entry.key.end).ok_or_else(obstacle)?;
    let first_line_end = text::line_end(input, indicator.end);
    let end = block_end(input, entry).ok_or_else(obstacle)?.max(first_line_end);
    Ok(vec![Change::new(indicator, value), Change::new(first_line_end..end, String::new())])
}

fn empty(input: &[u8], layout: &Layout, entry: &Entry, value: &str) -> Result<Change, Obstacle> {
    match text::colon_after(input, entry.key.end) {
        Some(colon) => Ok(Change::new(colon + 1..colon + 1, format!(" {value}"))),
        None if layout.flow => Ok(Change::new(entry.key.end..entry.key.end, format!(": {value}"))),
        None => Err(Obstacle { at: entry.key.start, what: "the image has no colon" }),
    }
}

/// Writes an image of its own after the merge key that brings one.
fn merged(input: &[u8], layout: &Layout, value: &str) -> Result<Option<Vec<Change>>, Obstacle> {
    let Some(merge) = &layout.merge else { return Ok(None) };
    if merge.image.as_deref() == Some(value) && is_plain(value) {
        return Ok(None);
    }
    let entry = &layout.entries[merge.entry];
    let end = entry.value.end;
    let ends_exactly = entry.is_alias || matches!(input[..end].last(), Some(b'}' | b']'));
    let value = write(value, Style::Plain);
    if layout.flow && ends_exactly {
        return Ok(Some(vec![Change::new(end..end, format!(", image: {value}"))]));
    }
    let obstacle = Obstacle {
        at: entry.key.start,
        what: "the image comes from a merge key whose end cannot be told",
    };
    let Some(line_end) = text::rest_is_trivia(input, end).filter(|_| ends_exactly) else {
        return Err(obstacle);
    };
    let prefix = &input[text::line_start(input, entry.key.start)..entry.key.start];
    let indent = prefix.iter().take_while(|byte| matches!(byte, b' ' | b'-')).count();
    let line_break = text::line_break(input, end);
    let line = format!("{line_break}{:indent$}image: {value}", "");
    Ok(Some(vec![Change::new(line_end..line_end, line)]))
}

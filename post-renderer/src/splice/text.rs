//! Finds the characters around a node that belong to no node: colons, commas, comments, line ends.
//!
//! All offsets are into the whole input, and all functions stop at its end.

use std::ops::Range;

/// Where the line of `at` starts.
pub(super) fn line_start(input: &[u8], at: usize) -> usize {
    memchr::memrchr2(b'\n', b'\r', &input[..at]).map_or(0, |end| end + 1)
}

/// Where the line of `at` ends, before its line break.
pub(super) fn line_end(input: &[u8], at: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &input[at..]).map_or(input.len(), |end| at + end)
}

/// The first byte after the line break at `at`, if one is there.
pub(super) fn after_break(input: &[u8], at: usize) -> usize {
    match input.get(at..) {
        Some([b'\r', b'\n', ..]) => at + 2,
        Some([b'\r' | b'\n', ..]) => at + 1,
        _ => at,
    }
}

/// Where the line break before `at` starts, if `at` starts a line.
pub(super) fn before_break(input: &[u8], at: usize) -> usize {
    match &input[..at] {
        [.., b'\r', b'\n'] => at - 2,
        [.., b'\r' | b'\n'] => at - 1,
        _ => at,
    }
}

/// The line break that the document uses at the line of `at`.
pub(super) fn line_break(input: &[u8], at: usize) -> &'static str {
    let end = line_end(input, at);
    match (&input[end..after_break(input, end)], &input[..line_start(input, at)]) {
        (b"\r\n", _) | (b"", [.., b'\r', b'\n']) => "\r\n",
        _ => "\n",
    }
}

/// Skips blanks on the line.
pub(super) fn skip_blanks(input: &[u8], mut at: usize) -> usize {
    while matches!(input.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Skips blanks, line breaks and comments.
pub(super) fn skip_trivia(input: &[u8], mut at: usize) -> usize {
    loop {
        match input.get(at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
            Some(b'#') if at == 0 || input[at - 1].is_ascii_whitespace() => {
                at = line_end(input, at);
            }
            _ => return at,
        }
    }
}

/// Where `at` is followed by nothing but blanks and a comment on its line: the end of that line.
/// Looks no further than it must: a document may be one long line.
pub(super) fn rest_is_trivia(input: &[u8], at: usize) -> Option<usize> {
    let end = skip_blanks(input, at);
    match input.get(end) {
        None | Some(b'\n' | b'\r') => Some(end),
        Some(b'#') if end > at => Some(line_end(input, end)),
        Some(_) => None,
    }
}

/// Where the blanks before `at` start on its line.
pub(super) fn skip_blanks_back(input: &[u8], mut at: usize) -> usize {
    while at > 0 && matches!(input[at - 1], b' ' | b'\t') {
        at -= 1;
    }
    at
}

/// The colon after a key that ends at `key_end`.
pub(super) fn colon_after(input: &[u8], key_end: usize) -> Option<usize> {
    let at = skip_trivia(input, key_end);
    (input.get(at) == Some(&b':')).then_some(at)
}

/// The indicator of a block scalar, such as `|-`, whose key ends at `key_end`; anchors and tags
/// before it are skipped.
pub(super) fn block_indicator(input: &[u8], key_end: usize) -> Option<Range<usize>> {
    let mut at = skip_trivia(input, colon_after(input, key_end)? + 1);
    while matches!(input.get(at), Some(b'&' | b'!')) {
        at = skip_trivia(input, word_end(input, at));
    }
    matches!(input.get(at), Some(b'|' | b'>')).then(|| at..word_end(input, at))
}

fn word_end(input: &[u8], at: usize) -> usize {
    let length = input[at..].iter().position(u8::is_ascii_whitespace);
    length.map_or(input.len(), |length| at + length)
}

//! Rust source as the checks see it: code without comments and literals, functions that are tests.
//!
//! A scanner of this size needs no parser crate, which `xtask` would have to compile before everything else; what
//! it cannot know is noted at each function.

use std::ops::Range;

/// The text with every comment and every string or character literal replaced by blanks.
///
/// Offsets and line numbers stay what they were.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = blank_end(bytes, at) else {
            at += identifier_length(&bytes[at..]).max(1);
            continue;
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Whole literals and comments became blanks, so no character was cut.
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the comment or literal that starts at `at` ends.
fn blank_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(find(bytes, at, b"\n").unwrap_or(bytes.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(block_comment_end(bytes, at));
    }
    let prefix = identifier_length(rest);
    match &rest[..prefix] {
        b"" | b"b" | b"c" => match rest.get(prefix)? {
            b'"' => Some(quoted_end(bytes, at + prefix)),
            b'\'' => character_end(bytes, at + prefix),
            _ => None,
        },
        b"r" | b"br" | b"cr" => raw_end(bytes, at + prefix),
        _ => None,
    }
}

fn identifier_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_word(**byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    bytes[from..].windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `None` for a lifetime or a label.
fn character_end(bytes: &[u8], open: usize) -> Option<usize> {
    let first = *bytes.get(open + 1)?;
    if first == b'\\' {
        // The escaped character itself may be a quote.
        return Some(find(bytes, open + 3, b"'").map_or(bytes.len(), |at| at + 1));
    }
    let length = match first {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (bytes.get(open + 1 + length) == Some(&b'\'')).then_some(open + length + 2)
}

/// `None` for a raw identifier, such as `r#fn`.
fn raw_end(bytes: &[u8], after_prefix: usize) -> Option<usize> {
    let hashes = bytes[after_prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = after_prefix + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    Some(find(bytes, open + 1, &close).map_or(bytes.len(), |at| at + close.len()))
}

/// The line of an offset, counted from 1.
pub(super) fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Where the bracket that opens at `open` is closed; the end of the code if it is not.
pub(super) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Where `word` stands as a word of its own.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let bytes = code.as_bytes();
        let before = at.checked_sub(1).is_some_and(|before| is_word(bytes[before]));
        let after = bytes.get(at + word.len()).is_some_and(|byte| is_word(*byte));
        !before && !after
    })
}

/// The next byte from `at` on that is not white space, and where it stands.
pub(super) fn next_byte(code: &str, at: usize) -> Option<(usize, u8)> {
    code.bytes().enumerate().skip(at).find(|(_, byte)| !byte.is_ascii_whitespace())
}

/// The attributes `#[…]` and `#![…]`, each with its place and what stands between the brackets.
pub(super) fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('#').filter_map(|(at, _)| {
        let rest = &code[at + 1..];
        let open = at + 1 + usize::from(rest.starts_with('!'));
        let end = code[open..].starts_with('[').then(|| closing(code, open))?;
        Some((at, code[open + 1..end].trim()))
    })
}

/// The path of an attribute, without its arguments: `tokio::test` of `tokio::test(flavor = "…")`.
pub(super) fn attribute_path(attribute: &str) -> &str {
    attribute.split(['(', '=', '{', '[']).next().unwrap_or(attribute).trim()
}

/// A function that a test runner calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test<'a> {
    pub(super) name: &'a str,
    /// From its opening brace to its closing one.
    pub(super) body: Range<usize>,
}

/// Every test, whether a plain one, of an async runtime, a table of rstest, or inside `proptest!`.
///
/// Tests that a macro of our own would generate are not seen.
pub(super) fn tests(code: &str) -> Vec<Test<'_>> {
    let mut tests: Vec<Test<'_>> = Vec::new();
    for (at, attribute) in attributes(code) {
        let path = attribute_path(attribute);
        if !matches!(path.rsplit("::").next().map(str::trim), Some("test" | "rstest")) {
            continue;
        }
        let Some(test) = function_after(code, at) else { continue };
        if tests.last().is_none_or(|last| last.body != test.body) {
            tests.push(test);
        }
    }
    tests
}

/// The function that the attribute at `at` belongs to.
fn function_after(code: &str, at: usize) -> Option<Test<'_>> {
    let mut next = at;
    while code[next..].starts_with('#') {
        let open = next + code[next..].find('[')?;
        next = next_byte(code, closing(code, open) + 1)?.0;
    }
    let keyword = words(&code[next..], "fn").next()? + next;
    let start = next_byte(code, keyword + 2)?.0;
    let name = &code[start..start + identifier_length(&code.as_bytes()[start..])];
    let arguments = start + code[start..].find('(')?;
    let open = closing(code, arguments);
    let open = open + code.get(open..)?.find('{')?;
    Some(Test { name, body: open..closing(code, open) + 1 })
}

/// The code with everything that only tests compile replaced by blanks.
pub(super) fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (at, attribute) in attributes(code) {
        if attribute_path(attribute) != "cfg" || words(attribute, "test").next().is_none() {
            continue;
        }
        let from = at + attribute.len();
        let open = code[from..].find(['{', ';']).map_or(code.len(), |next| from + next);
        let end = if code[open..].starts_with('{') { closing(code, open) } else { open };
        for byte in bytes.iter_mut().take(end + 1).skip(at).filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many lines hold code.
pub(super) fn lines_of_code(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::line_comment("a // sleep(\nb", "a          \nb")]
    #[case::block_comment("a /* x /* y */ z */ b", "a                   b")]
    #[case::open_block_comment("a /* x", "a     ")]
    #[case::string(r#"f("a // b")"#, "f(        )")]
    #[case::escaped_quote(r#"f("a\"b")"#, "f(      )")]
    #[case::raw_string("f(r#\"a\"b\"#)", "f(        )")]
    #[case::raw_byte_string("f(br\"a\\\")", "f(      )")]
    #[case::byte_string("f(b\"a\")", "f(    )")]
    #[case::identifier_before_a_quote("bar \"a\"", "bar    ")]
    #[case::character("f('{')", "f(   )")]
    #[case::quote_character(r"f('\'', x)", "f(    , x)")]
    #[case::escaped_backslash(r"f('\\', '}')", "f(    ,    )")]
    #[case::unicode_escape(r"f('\u{7d}')", "f(        )")]
    #[case::wide_character("f('…')x", "f(     )x")]
    #[case::lifetime("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)")]
    #[case::label("'outer: loop {}", "'outer: loop {}")]
    #[case::raw_identifier("r#fn(x)", "r#fn(x)")]
    #[case::a_string_keeps_its_lines("\"a\nb\"c", "  \n  c")]
    #[case::open_string("f(\"a", "f(  ")]
    fn comments_and_literals_become_blanks(#[case] text: &str, #[case] code: &str) {
        assert_eq!(code_only(text), code);
        assert_eq!(text.len(), code.len());
    }

    #[test]
    fn every_kind_of_test_is_found_once() {
        let code = "
            #[test] fn plain() { a }
            #[tokio::test(flavor = multi)] async fn of_a_runtime() {}
            #[rstest] #[case::one([1; 2], {3})] #[tokio::test]
            async fn of_a_table(#[case] a: [u8; 2]) -> Result<()> { if a { b } }
            #[cfg(test)] mod tests { fn helper() {} }
            proptest! { #[test] fn of_a_property(x in 0..3) { c } }
            #[testing] fn none() {}
            #[derive(Debug)] struct S;";
        let found = tests(code);
        let names: Vec<_> = found.iter().map(|test| test.name).collect();
        assert_eq!(names, ["plain", "of_a_runtime", "of_a_table", "of_a_property"]);
        assert_eq!(&code[found[2].body.clone()], "{ if a { b } }");
    }

    #[test]
    fn what_only_tests_compile_is_left_out() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {} }\n#[cfg(all(test, x))]\nuse c;\nfn d() {}";
        let left = without_tests(code);
        let words: Vec<_> = left.split_whitespace().collect();
        assert_eq!(words, ["fn", "a()", "{}", "fn", "d()", "{}"]);
        assert_eq!(lines_of_code(&left), 2);
    }

    #[test]
    fn words_are_not_parts_of_words() {
        let found: Vec<_> = words("sleep asleep sleep_ms(sleep)", "sleep").collect();
        assert_eq!(found, [0, 22]);
    }
}

//! Whether the two readers see the same in one text.
//!
//! The first keeps the characters of a scalar and whether it is quoted, the second what they stand
//! for. Only what nobody can take for something else agrees; aliases, tags and numbers in an unusual
//! spelling do not.

use crate::verify::fingerprint::{Fingerprint, Token};

/// Whether both tell the same; `false` also where that cannot be said.
pub(super) fn agree(first: &Fingerprint, second: &Fingerprint) -> bool {
    let (Some(mut first), Some(mut second)) = (first.tokens(), second.tokens()) else {
        return false;
    };
    first.all(|one| second.next().is_some_and(|other| same(one, other))) && second.next().is_none()
}

fn same(first: Token<'_>, second: Token<'_>) -> bool {
    match (first, second) {
        (Token::Mapping, Token::Mapping)
        | (Token::Sequence, Token::Sequence)
        | (Token::End, Token::End) => true,
        (Token::Text(one), Token::Text(other)) => one == other,
        // To the first reader every plain scalar may be a number. The second would not tell a number
        // as a text, unless it saw quotes.
        (Token::Number(plain), Token::Text(text)) => plain == text && is_word(plain),
        (Token::Number(plain), Token::Number(number)) => plain == number && is_integer(number),
        (Token::Number(plain), Token::Null) => matches!(plain, "" | "~" | "null"),
        (Token::Number(plain), Token::Bool(true)) => plain == "true",
        (Token::Number(plain), Token::Bool(false)) => plain == "false",
        _ => false,
    }
}

/// Whether no reader takes a plain scalar for anything but a text.
fn is_word(plain: &str) -> bool {
    let of_numbers = |byte: u8| {
        byte.is_ascii_hexdigit()
            || matches!(byte, b'x' | b'X' | b'o' | b'O' | b'_' | b'.' | b'+' | b'-')
    };
    match plain.bytes().next() {
        None | Some(b'.' | b'~') => false,
        Some(b'0'..=b'9' | b'+' | b'-') => !plain.bytes().all(of_numbers),
        Some(_) => !["null", "true", "false"].iter().any(|known| plain.eq_ignore_ascii_case(known)),
    }
}

/// The second reader has other words for other numbers, and for keys that are no strings.
fn is_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::verify::{events, fingerprint::Paths, values};

    fn read(text: &str) -> (Fingerprint, Fingerprint) {
        let paths = Paths::new();
        (events::read(text, &paths).unwrap(), values::read(text, &paths).unwrap())
    }

    #[rstest]
    #[case::a_manifest("a: b\nc:\n- d: 1\n  e: [-2, 0]\n- 'f'\n")]
    #[case::quoted_or_not("{a: x, 'b': 'y', \"c\": \"z\"}")]
    #[case::quoted_numbers("{a: '1', b: \"true\", c: ''}")]
    #[case::blocks("a: |\n  b\n  c\nd: >-\n  e\n  f\n")]
    #[case::words("{a: true, b: false, c: null, d: ~, e: }")]
    #[case::escapes("a: \"\\u00e9\\n\"\nb: é # comment\n")]
    #[case::words_of_older_readers("{a: yes, b: on, c: 100m, d: 8080-tcp, e: --wait}")]
    #[case::a_merge("a: {<<: {b: c}}")]
    #[case::a_key_twice("a: 1\na: 2\n")]
    fn both_readers_agree_on_what_charts_hold(#[case] text: &str) {
        let (first, second) = read(text);
        assert!(agree(&first, &second));
        let (other, _) = read(&format!("[{{x: y}}, {}]", text.len()));
        assert!(!agree(&other, &second));
    }

    #[rstest]
    #[case::an_alias("{a: &x b, c: *x}")]
    #[case::a_tag("a: !!str 1")]
    #[case::hexadecimal("a: 0x10")]
    #[case::a_sign("a: +1")]
    #[case::a_float("a: 1.50")]
    #[case::infinite("a: .inf")]
    #[case::a_version("a: 1.2.3")]
    #[case::a_capital("a: True")]
    #[case::a_number_for_a_key("1: a")]
    #[case::a_collection_for_a_key("{[a]: b}")]
    fn what_can_be_taken_for_something_else_is_left_open(#[case] text: &str) {
        let (first, second) = read(text);
        assert!(!agree(&first, &second));
    }

    #[rstest]
    #[case::a_text("a: b", "a: c")]
    #[case::a_key("a: b", "c: b")]
    #[case::quotes("a: 1", "a: '1'")]
    #[case::a_word("a: true", "a: 'true'")]
    #[case::nothing("a: ", "a: ''")]
    #[case::less("[a, b]", "[a]")]
    #[case::more("[a]", "[a, b]")]
    #[case::depth("[a, [b]]", "[[a], b]")]
    #[case::kind("[]", "{}")]
    fn any_difference_is_found(#[case] one: &str, #[case] other: &str) {
        let ((first, _), (_, second)) = (read(one), read(other));
        assert!(!agree(&first, &second));
        let ((first, _), (_, second)) = (read(other), read(one));
        assert!(!agree(&first, &second));
    }

    #[test]
    fn what_is_too_long_to_be_kept_is_left_open() {
        let text = format!("a: {}", "b".repeat(70_000));
        let (first, second) = read(&text);
        assert!(!agree(&first, &second));
    }
}

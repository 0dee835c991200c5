//! Text of others, made harmless for a terminal: it could otherwise move the cursor, colour the
//! screen, hide or reorder what stands beside it (specification of the plugin, section C.3).

use std::borrow::Cow;

/// The text in one line: line ends and tabs become blanks, control characters are spelled out.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        spell(char, &mut clean);
    }
    Cow::Owned(clean)
}

/// The first line of the text, with `…` where more follows.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches(['\r', '\n']);
    match text.split_once('\n') {
        Some((first, _)) => Cow::Owned(format!("{}…", line(first.trim_end_matches('\r')))),
        None => line(text),
    }
}

/// Controls of C0 and C1, and what reorders or hides text: marks of direction, separators of lines,
/// the byte order mark.
fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{061c}'
                | '\u{200e}' | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

fn spell(char: char, clean: &mut String) {
    match char {
        '\n' | '\t' => clean.push(' '),
        '\r' => clean.push_str("\\r"),
        '\0'..='\u{1f}' => {
            clean.push('^');
            clean.push(char::from(u8::try_from(u32::from(char)).unwrap_or_default() + b'@'));
        }
        '\u{7f}' => clean.push_str("^?"),
        _ if is_harmful(char) => clean.extend(char.escape_unicode()),
        _ => clean.push(char),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain", "plain")]
    #[case("red \u{1b}[31m", "red ^[[31m")]
    #[case("over\rwritten", "over\\rwritten")]
    #[case("two\nlines\tand", "two lines and")]
    #[case("bell\u{7} back\u{8} del\u{7f}", "bell^G back^H del^?")]
    #[case("c1 \u{9b}31m", "c1 \\u{9b}31m")]
    #[case("bidi \u{202e}gnp", "bidi \\u{202e}gnp")]
    #[case("grüße ✔", "grüße ✔")]
    fn controls_are_spelled_out(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(line(text), expected);
    }

    #[rstest]
    #[case("one", "one")]
    #[case("one\n", "one")]
    #[case("one\r\ntwo", "one…")]
    #[case("\u{1b}\ntwo", "^[…")]
    fn a_cell_ends_with_the_first_line(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(cell(text), expected);
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_harmful));
            prop_assert!(!cell(&text).chars().any(is_harmful));
        }
    }
}

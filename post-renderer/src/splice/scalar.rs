//! Writes an image as a YAML scalar that every reader takes for that string.

/// The quotes of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// None where the value allows it, else double quotes.
    Plain,
    Single,
    Double,
}

/// Whether `value` can be written at all: one line of printable text. Anything else is no image,
/// whoever put it into the live object.
pub fn is_writable(value: &str) -> bool {
    let printable = |character: char| {
        !character.is_control()
            && !matches!(
                character,
                '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
    };
    !value.is_empty() && value.trim() == value && value.chars().all(printable)
}

pub(super) fn write(value: &str, style: Style) -> String {
    match style {
        Style::Plain if is_plain(value) => value.to_owned(),
        Style::Single => format!("'{}'", value.replace('\'', "''")),
        // JSON's escapes are YAML's too, so a JSON document stays one.
        Style::Plain | Style::Double => {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
        }
    }
}

/// Words that some YAML reader takes for something else than a string.
const WORDS: [&str; 13] =
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity", "none"];

/// Whether any YAML reader, in block and in flow style, reads `value` back as that string without
/// quotes. Errs on the side of quotes.
pub(super) fn is_plain(value: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    if value.is_empty() || value.ends_with(':') || !value.bytes().all(safe) {
        return false;
    }
    match value.as_bytes()[0] {
        b'a'..=b'z' | b'A'..=b'Z' => !WORDS.iter().any(|word| word.eq_ignore_ascii_case(value)),
        // A number or a time may be made of digits, of these letters (hexadecimal, octal, binary,
        // an exponent, a time's T and Z) and of `.:-_`, but of nothing else.
        b'0'..=b'9' => value.bytes().any(|byte| {
            matches!(byte, b'/' | b'@')
                || byte.is_ascii_alphabetic() && !b"abcdefotxzABCDEFOTXZ".contains(&byte)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ghcr.io/acme/web:1.4.2", "ghcr.io/acme/web:1.4.2")]
    #[case("nginx", "nginx")]
    #[case("localhost:5000/web:v1", "localhost:5000/web:v1")]
    #[case("10.0.0.1:5000/web", "10.0.0.1:5000/web")]
    #[case("1password:2", "1password:2")]
    #[case("web@sha256:00ff", "web@sha256:00ff")]
    #[case("1.10", "\"1.10\"")]
    #[case("1e3", "\"1e3\"")]
    #[case("0o17", "\"0o17\"")]
    #[case("0x1f", "\"0x1f\"")]
    #[case("12:30:45", "\"12:30:45\"")]
    #[case("2001-12-14", "\"2001-12-14\"")]
    #[case("1_000", "\"1_000\"")]
    #[case("yes", "\"yes\"")]
    #[case("Y", "\"Y\"")]
    #[case("OFF", "\"OFF\"")]
    #[case("null", "\"null\"")]
    #[case("NaN", "\"NaN\"")]
    #[case(".inf", "\".inf\"")]
    #[case("-", "\"-\"")]
    #[case("web:", "\"web:\"")]
    #[case("a b", "\"a b\"")]
    #[case("a: b", "\"a: b\"")]
    #[case("a #b", "\"a #b\"")]
    #[case("a,b", "\"a,b\"")]
    #[case("*web", "\"*web\"")]
    #[case("!web", "\"!web\"")]
    #[case("a\"b\\c", "\"a\\\"b\\\\c\"")]
    fn quotes_come_only_where_a_reader_needs_them(#[case] value: &str, #[case] expected: &str) {
        assert_eq!(write(value, Style::Plain), expected);
    }

    #[test]
    fn single_quotes_are_doubled() {
        assert_eq!(write("it's", Style::Single), "'it''s'");
    }

    #[rstest]
    #[case("web:1", true)]
    #[case("", false)]
    #[case(" web:1", false)]
    #[case("web:1\n", false)]
    #[case("web\u{7}", false)]
    #[case("web\u{85}x", false)]
    #[case("web\u{2028}x", false)]
    fn control_characters_are_no_image(#[case] value: &str, #[case] expected: bool) {
        assert_eq!(is_writable(value), expected);
    }
}

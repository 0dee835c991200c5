//! Decides from bytes alone which documents can hold a target, so that a stream of thousands of
//! documents costs little more than the search for these words.

use memchr::{memchr_iter, memmem::Finder};

/// Kinds of workload that Belay knows, all of `apps/v1` (rule 5.6).
pub(crate) const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// The searches, prepared once for a stream.
pub(crate) struct Precheck {
    containers: Finder<'static>,
    kinds: [Finder<'static>; 3],
}

impl Precheck {
    pub(crate) fn new() -> Self {
        Self { containers: Finder::new("ontainers"), kinds: KINDS.map(Finder::new) }
    }

    /// Whether `body` can hold a target. Never false for one: YAML writes a word in one piece, but
    /// for the escapes of double quotes, and a document that spells letters with these is parsed.
    pub(crate) fn can_hold_target(&self, body: &[u8]) -> bool {
        if self.containers.find(body).is_some()
            && self.kinds.iter().any(|kind| kind.find(body).is_some())
        {
            return true;
        }
        spells_letters(body)
    }
}

/// Whether an escape of a double-quoted scalar could stand for a letter, or join two lines.
fn spells_letters(body: &[u8]) -> bool {
    memchr_iter(b'\\', body).any(|at| {
        let digits = match body.get(at + 1) {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            Some(b'\n' | b'\r') => return true,
            _ => return false,
        };
        body.get(at + 2..at + 2 + digits)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .and_then(char::from_u32)
            .is_some_and(|letter| letter.is_ascii_alphabetic())
    })
}

/// Whether a document that no parser understands looks like a target: a `kind` of ours at column
/// 0, or anywhere in a document that is written in flow style.
pub(crate) fn looks_like_target(body: &[u8]) -> bool {
    let flow = body.trim_ascii_start().first() == Some(&b'{');
    Finder::new("kind").find_iter(body).any(|at| {
        let quoted = at > 0 && matches!(body[at - 1], b'"' | b'\'');
        let start = at - usize::from(quoted);
        let at_line_start = start == 0 || matches!(body[start - 1], b'\n' | b'\r');
        (flow || at_line_start) && names_our_kind(&body[at + "kind".len()..])
    })
}

fn names_our_kind(after_key: &[u8]) -> bool {
    let line = after_key.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let unquoted = line.strip_prefix(b"\"").or(line.strip_prefix(b"'")).unwrap_or(line);
    let Some(value) = unquoted.trim_ascii_start().strip_prefix(b":") else { return false };
    let value = value.trim_ascii_start();
    let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(value.len());
    let word = &value[..end];
    KINDS.iter().any(|kind| kind.as_bytes() == word) || word.ends_with(b"List")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kind: Deployment\ncontainers:\n", true)]
    #[case("kind: DaemonSet\ninitContainers:\n", true)]
    #[case("kind: ConfigMap\ncontainers:\n", false)]
    #[case("kind: Deployment\nspec: {}\n", false)]
    #[case(r#""k\x69nd": "Job""#, true)]
    #[case("\"kind\": \"Deploy\\\nment\"", true)]
    #[case(r#"data: "\u003cb\u003e \U0001F600 \n \\d""#, false)]
    fn only_documents_with_the_words_are_parsed(#[case] body: &str, #[case] expected: bool) {
        assert_eq!(Precheck::new().can_hold_target(body.as_bytes()), expected);
    }

    #[rstest]
    #[case("a: 1\nkind: Deployment\n", true)]
    #[case("'kind' : \"StatefulSet\"\n", true)]
    #[case("kind: List\n", true)]
    #[case("{\"a\": 1, \"kind\": \"DaemonSet\"", true)]
    #[case("kind: ConfigMap\ndata:\n  x: |\n    kind: Deployment\n", false)]
    #[case("mankind: Deployment\n", false)]
    fn a_broken_target_is_told_by_its_kind_line(#[case] body: &str, #[case] expected: bool) {
        assert_eq!(looks_like_target(body.as_bytes()), expected);
    }
}

//! `tag-pattern`: which release tags count, and which part of them is the version.

use std::str::FromStr;

use super::{InvalidRule, MAX_RULE, text_rule};

const WHAT: &str = "a tag pattern";
const VERSION: &str = "{version}";
/// How many optional characters are tried alone when a pattern is read backwards.
const MAX_ALONE: usize = 4;

/// A pattern over release tags: text that must be there, `x?` for a character that may be there,
/// and `{version}` once: `v?{version}`, `web/v{version}`.
///
/// No Git tag has any of `?`, `*`, `[` or `\`, so none of them needs an escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagPattern {
    text: String,
    before: Vec<Piece>,
    after: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    character: char,
    is_optional: bool,
}

impl TagPattern {
    /// The version in `tag`, never empty; `None` if the tag does not match.
    ///
    /// A character that may be there is taken off where a digit follows it, so that `v?{version}`
    /// finds `1.2.0` in `v1.2.0`, and `vega` in `vega`.
    pub fn version_of<'t>(&self, tag: &'t str) -> Option<&'t str> {
        let version = |takes_optional: bool| {
            let rest = strip_start(tag, &self.before, takes_optional)?;
            let version = strip_end(rest, &self.after, takes_optional)?;
            (!version.is_empty()).then_some(version)
        };
        let (greedy, lazy) = (version(true), version(false));
        let has_digit = |text: &&str| text.starts_with(|c: char| c.is_ascii_digit());
        greedy.filter(has_digit).or(lazy).or(greedy)
    }
}

impl TagPattern {
    /// Tags in which this pattern finds `version`: with all characters that may be there, with
    /// none, and with each one alone.
    pub(super) fn tags_of(&self, version: &str) -> Vec<String> {
        let all = || self.before.iter().chain(&self.after);
        let optional = all().filter(|piece| piece.is_optional).count();
        // Which of the optional characters are there.
        let mut choices = vec![vec![true; optional], vec![false; optional]];
        let alone = |one: usize| (0..optional).map(|other| other == one).collect();
        choices.extend((0..optional.min(MAX_ALONE)).map(alone));
        let tag = |choice: Vec<bool>| {
            let mut choice = choice.into_iter();
            let mut tag = String::new();
            let mut push = |tag: &mut String, piece: &Piece| {
                if !piece.is_optional || choice.next().unwrap_or_default() {
                    tag.push(piece.character);
                }
            };
            self.before.iter().for_each(|piece| push(&mut tag, piece));
            tag.push_str(version);
            self.after.iter().for_each(|piece| push(&mut tag, piece));
            tag
        };
        choices.into_iter().map(tag).filter(|tag| self.version_of(tag) == Some(version)).collect()
    }
}

fn strip_start<'t>(tag: &'t str, pieces: &[Piece], takes_optional: bool) -> Option<&'t str> {
    pieces.iter().try_fold(tag, |rest, piece| match rest.strip_prefix(piece.character) {
        Some(shorter) if takes_optional || !piece.is_optional => Some(shorter),
        _ => piece.is_optional.then_some(rest),
    })
}

fn strip_end<'t>(tag: &'t str, pieces: &[Piece], takes_optional: bool) -> Option<&'t str> {
    pieces.iter().rev().try_fold(tag, |rest, piece| match rest.strip_suffix(piece.character) {
        Some(shorter) if takes_optional || !piece.is_optional => Some(shorter),
        _ => piece.is_optional.then_some(rest),
    })
}

impl Default for TagPattern {
    fn default() -> Self {
        let piece = Piece { character: 'v', is_optional: true };
        Self { text: "v?{version}".to_owned(), before: vec![piece], after: Vec::new() }
    }
}

impl FromStr for TagPattern {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |problem| InvalidRule::new(WHAT, text, problem);
        if text.len() > MAX_RULE {
            return Err(invalid("it is longer than 200 characters"));
        }
        let Some((before, after)) = text.split_once(VERSION) else {
            return Err(invalid("it must contain {version}"));
        };
        if after.contains(VERSION) {
            return Err(invalid("it must contain {version} only once"));
        }
        let before = pieces(before).map_err(invalid)?;
        let after = pieces(after).map_err(invalid)?;
        Ok(Self { text: text.to_owned(), before, after })
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces: Vec<Piece> = Vec::new();
    for character in text.chars() {
        match character {
            '?' => match pieces.last_mut() {
                Some(piece) if !piece.is_optional => piece.is_optional = true,
                _ => return Err("each '?' must follow the character that may be missing"),
            },
            '{' | '}' => return Err("{version} is the only thing that may stand in braces"),
            '*' | '[' | ']' | '\\' | '^' | '~' | ':' => {
                return Err("it is no glob or regular expression: only '?' and {version} are \
                            special, and no tag has any of * [ ] \\ ^ ~ :");
            }
            c if c.is_whitespace() || c.is_control() => {
                return Err("no tag has blanks or control characters");
            }
            character => pieces.push(Piece { character, is_optional: false }),
        }
    }
    Ok(pieces)
}

text_rule!(TagPattern);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("v?{version}", "v1.2.3", Some("1.2.3"))]
    #[case("v?{version}", "1.2.3", Some("1.2.3"))]
    #[case("v?{version}", "vega", Some("vega"))]
    #[case("v?{version}", "v", Some("v"))]
    #[case("v?{version}", "release-1", Some("release-1"))]
    #[case("v?{version}", "", None)]
    #[case("v{version}", "v1.2.3", Some("1.2.3"))]
    #[case("v{version}", "1.2.3", None)]
    #[case("v{version}", "v", None)]
    #[case("web/v{version}", "web/v1.2.3", Some("1.2.3"))]
    #[case("web/v{version}", "api/v1.2.3", None)]
    #[case("web/v{version}", "web-2/v1.2.3", None)]
    #[case("web-v?{version}", "web-1.0", Some("1.0"))]
    #[case("{version}-final", "1.0-final", Some("1.0"))]
    #[case("{version}-final", "1.0", None)]
    #[case("{version}", "nightly", Some("nightly"))]
    #[case("{version}-lts?", "1.0-lts", Some("1.0"))]
    #[case("é{version}", "é1", Some("1"))]
    fn a_pattern_finds_the_version(
        #[case] pattern: &str,
        #[case] tag: &str,
        #[case] version: Option<&str>,
    ) {
        let pattern: TagPattern = pattern.parse().unwrap();
        assert_eq!(pattern.version_of(tag), version);
    }

    #[rstest]
    #[case("")]
    #[case("v")]
    #[case("{version}{version}")]
    #[case("{version}-{version}")]
    #[case("?{version}")]
    #[case("v??{version}")]
    #[case("v{tag}{version}")]
    #[case("{{version}}")]
    #[case("{Version}")]
    #[case("v*{version}")]
    #[case("^v{version}$")]
    #[case("(a+)+[{version}")]
    #[case("v {version}")]
    #[case("v\u{0}{version}")]
    #[case(&format!("{}{{version}}", "a".repeat(192)))]
    fn anything_else_is_no_pattern(#[case] text: &str) {
        text.parse::<TagPattern>().unwrap_err();
    }

    #[test]
    fn the_default_is_the_documented_one() {
        assert_eq!(TagPattern::default(), "v?{version}".parse().unwrap());
    }

    proptest! {
        #[test]
        fn nothing_panics(pattern in "[v?{}a-]{0,6}(\\{version\\})?\\PC{0,6}", tag in "\\PC{0,20}") {
            if let Ok(pattern) = pattern.parse::<TagPattern>() {
                drop(pattern.version_of(&tag).map(ToOwned::to_owned));
            }
        }
    }
}

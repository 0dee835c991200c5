//! `tag-template`: which image tag belongs to a release.

use std::{collections::BTreeSet, str::FromStr};

use super::{InvalidRule, MAX_RULE, TagPattern, text_rule};
use crate::image::is_tag;

const WHAT: &str = "a tag template";
/// The most release tags that one image tag is traced back to.
const MAX_POSSIBLE: usize = 4;

/// A template of image tags: `{version}`, `{tag}-alpine`. `{version}` is what the pattern found in
/// the release's tag, `{tag}` the release's tag as it is; a `+` becomes `_`, which image tags allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagTemplate {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Version,
    Tag,
}

impl TagTemplate {
    /// The image tag of a release; `None` if what comes out is no valid image tag.
    pub fn render(&self, tag: &str, version: &str) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            out.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Version => version,
                Piece::Tag => tag,
            });
            if out.len() > MAX_RULE {
                return None;
            }
        }
        let out = out.replace('+', "_");
        is_tag(&out).then_some(out)
    }

    /// The version that `image_tag` was made of, as far as the template can be read backwards:
    /// where it holds one thing in braces. Without a guess, `None`.
    pub fn version_in(&self, image_tag: &str, pattern: &TagPattern) -> Option<String> {
        let (piece, middle) = self.middle(image_tag)?;
        // The first one only: build metadata is the last part of a version.
        let middle = middle.replacen('_', "+", 1);
        let version = match piece {
            Piece::Tag => pattern.version_of(&middle)?.to_owned(),
            Piece::Version | Piece::Text(_) => middle,
        };
        (!version.is_empty()).then_some(version)
    }

    /// The only thing in braces, and what stands in its place in `image_tag`.
    fn middle<'t>(&self, image_tag: &'t str) -> Option<(&Piece, &'t str)> {
        let mut texts = (String::new(), String::new());
        let mut found = None;
        for piece in &self.pieces {
            match (piece, found) {
                (Piece::Text(text), None) => texts.0.push_str(text),
                (Piece::Text(text), Some(_)) => texts.1.push_str(text),
                (piece, None) => found = Some(piece),
                (_, Some(_)) => return None,
            }
        }
        let (before, after) = (texts.0.replace('+', "_"), texts.1.replace('+', "_"));
        let middle = image_tag.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
        Some((found?, middle))
    }
}

/// Release tags that could have made `image_tag`: of `1.2.3` by default `1.2.3` and `v1.2.3`. At
/// most four; none where the template cannot be read backwards.
pub fn possible_tags(
    image_tag: &str,
    pattern: &TagPattern,
    template: &TagTemplate,
) -> BTreeSet<String> {
    let Some((piece, middle)) = template.middle(image_tag) else { return BTreeSet::new() };
    // A `_` may have been a `+`.
    let spellings = [middle.to_owned(), middle.replacen('_', "+", 1)];
    let made_it = |tag: &String| {
        let version = pattern.version_of(tag);
        version.and_then(|version| template.render(tag, version)).as_deref() == Some(image_tag)
    };
    let tags = spellings.into_iter().flat_map(|text| match piece {
        Piece::Tag => vec![text],
        Piece::Version | Piece::Text(_) => pattern.tags_of(&text),
    });
    let mut possible = BTreeSet::new();
    for tag in tags.filter(made_it) {
        if possible.len() < MAX_POSSIBLE {
            possible.insert(tag);
        }
    }
    possible
}

impl Default for TagTemplate {
    fn default() -> Self {
        Self { text: "{version}".to_owned(), pieces: vec![Piece::Version] }
    }
}

impl FromStr for TagTemplate {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |problem: &str| InvalidRule::new(WHAT, text, problem);
        if text.len() > MAX_RULE {
            return Err(invalid("it is longer than 200 characters"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = if let Some(tail) = rest.strip_prefix("{version}") {
                (Piece::Version, tail)
            } else if let Some(tail) = rest.strip_prefix("{tag}") {
                (Piece::Tag, tail)
            } else {
                let end = rest.find('{').unwrap_or(rest.len());
                let (literal, tail) = rest.split_at(end);
                if literal.is_empty() {
                    return Err(invalid("only {version} and {tag} may stand in braces"));
                }
                (Piece::Text(literal.to_owned()), tail)
            };
            pieces.push(piece);
            rest = tail;
        }
        let is_made_of_the_release = pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
        if !is_made_of_the_release {
            return Err(invalid("it must contain {version} or {tag}"));
        }
        let template = Self { text: text.to_owned(), pieces };
        // Of a harmless release comes a valid tag, or the text around it is at fault.
        if template.render("1", "1").is_none() {
            return Err(invalid(
                "an image tag is at most 128 letters, digits, '_', '.' and '-', and begins with \
                 neither '.' nor '-'",
            ));
        }
        Ok(template)
    }
}

text_rule!(TagTemplate);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("{version}", "v1.2.3", "1.2.3", Some("1.2.3"))]
    #[case("v{version}", "v1.2.3", "1.2.3", Some("v1.2.3"))]
    #[case("{tag}", "v1.2.3", "1.2.3", Some("v1.2.3"))]
    #[case("{version}-alpine", "v1.2.3", "1.2.3", Some("1.2.3-alpine"))]
    #[case("{version}", "v1.2.3+b4", "1.2.3+b4", Some("1.2.3_b4"))]
    #[case("{version}+x", "v1", "1", Some("1_x"))]
    #[case("{tag}", "web/v1.2.3", "1.2.3", None)]
    #[case("{version}", "v?", "?", None)]
    #[case("{version}", "-", "-", None)]
    #[case("{version}{version}{version}", "", &"1".repeat(100), None)]
    fn a_template_makes_an_image_tag(
        #[case] template: &str,
        #[case] tag: &str,
        #[case] version: &str,
        #[case] expected: Option<&str>,
    ) {
        let template: TagTemplate = template.parse().unwrap();
        assert_eq!(template.render(tag, version).as_deref(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("latest")]
    #[case("{Version}")]
    #[case("{}")]
    #[case("{version")]
    #[case("{version} ")]
    #[case("{version}/x")]
    #[case("{version}:x")]
    #[case("{version}@sha256")]
    #[case(".{version}")]
    #[case("-{version}")]
    #[case("{{version}}")]
    #[case("é{version}")]
    #[case(&format!("{}{{version}}", "a".repeat(128)))]
    fn anything_else_is_no_template(#[case] text: &str) {
        text.parse::<TagTemplate>().unwrap_err();
    }

    #[rstest]
    #[case("{version}", "1.2.3", Some("1.2.3"))]
    #[case("{version}", "1.2.3_b4", Some("1.2.3+b4"))]
    #[case("v{version}", "v1.2.3", Some("1.2.3"))]
    #[case("v{version}", "1.2.3", None)]
    #[case("{version}-alpine", "1.2.3-alpine", Some("1.2.3"))]
    #[case("{version}-alpine", "1.2.3", None)]
    #[case("{tag}", "v1.2.3", Some("1.2.3"))]
    #[case("{version}-{tag}", "1.2.3-v1.2.3", None)]
    #[case("{version}", "", None)]
    fn a_template_is_read_backwards(
        #[case] template: &str,
        #[case] image_tag: &str,
        #[case] expected: Option<&str>,
    ) {
        let template: TagTemplate = template.parse().unwrap();
        let version = template.version_in(image_tag, &TagPattern::default());
        assert_eq!(version.as_deref(), expected);
    }

    #[test]
    fn the_default_is_the_documented_one() {
        assert_eq!(TagTemplate::default(), "{version}".parse().unwrap());
    }

    proptest! {
        #[test]
        fn nothing_panics(template in "\\PC{0,6}(\\{version\\}|\\{tag\\})?\\PC{0,6}", tag in "\\PC{0,20}") {
            if let Ok(template) = template.parse::<TagTemplate>() {
                let rendered = template.render(&tag, &tag);
                prop_assert!(rendered.is_none_or(|rendered| is_tag(&rendered)));
                drop(template.version_in(&tag, &TagPattern::default()));
            }
        }
    }
}

//! Blocks: versions that Belay refuses because it left them (the operator specification, section 3,
//! "Blocks").
//!
//! A block is kept as JSON in the annotation `blocked` of the Release that was left, F, and so
//! lives as long as F, which is never culled while the block counts.

use belay_api::reasons::BlockedReason;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::version::{Rank, TagPattern, parse_version};

/// The longest annotation that is read.
const MAX_LENGTH: usize = 4096;

/// How often a failure that was not the release's own fault blocks for a while only.
pub const MAX_TEMPORARY: i32 = 2;

/// Refused versions: every candidate above `to`, up to `from`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// The release tag that was left, F.
    pub from: Mark,
    /// What was gone to, T, which is not refused itself; absent if F alone is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Mark>,
    /// Why.
    pub reason: BlockedReason,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How often F was left.
    pub count: i32,
    /// The ordinal of F's activation that ended in this block.
    pub ordinal: i64,
    /// The use that was made of `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

/// An end of the interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The release tag, or the image tag where no release is known.
    pub tag: String,
    /// When the release was published, to compare those without a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
}

/// A value of `allow` that an activation has used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The annotation's value.
    pub value: String,
    /// The ordinal of the activation that it permits, of the Release that it names.
    pub ordinal: i64,
}

/// An annotation that cannot be read as a block.
#[derive(Debug, thiserror::Error)]
#[error("read the annotation of a blocked Release")]
pub struct InvalidBlock(#[source] Option<serde_json::Error>);

impl Mark {
    /// What it is compared by.
    pub fn rank(&self, pattern: &TagPattern) -> Rank {
        Rank {
            version: pattern.version_of(&self.tag).and_then(parse_version),
            published: self.published,
        }
    }
}

impl Block {
    /// Reads the annotation.
    ///
    /// # Errors
    /// [`InvalidBlock`]. The Release must count as blocked all the same: damage frees nothing.
    pub fn parse(text: &str) -> Result<Self, InvalidBlock> {
        if text.len() > MAX_LENGTH {
            return Err(InvalidBlock(None));
        }
        serde_json::from_str(text).map_err(|error| InvalidBlock(Some(error)))
    }

    /// The annotation's value.
    pub fn to_annotation(&self) -> String {
        // A struct of strings and numbers always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it still refuses anything.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Whether it refuses the release `tag` of this rank. Above F is free; what cannot be compared
    /// with F is not known to be above it.
    pub fn covers(&self, tag: &str, rank: &Rank, pattern: &TagPattern) -> bool {
        if tag == self.from.tag {
            return true;
        }
        match &self.to {
            None => false,
            Some(to) => {
                tag != to.tag
                    && !rank.is_above(&self.from.rank(pattern))
                    && !rank.is_below(&to.rank(pattern))
                    && rank.compare(&to.rank(pattern)) != Some(std::cmp::Ordering::Equal)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn mark(tag: &str, published: Option<i64>) -> Mark {
        Mark { tag: tag.to_owned(), published: published.map(at) }
    }

    fn block(from: Mark, to: Option<Mark>) -> Block {
        Block {
            from,
            to,
            reason: BlockedReason::RolledBack,
            until: None,
            count: 1,
            ordinal: 1,
            allowed: None,
        }
    }

    #[rstest]
    #[case::f_itself("v2.0.0", None, true)]
    #[case::between("v1.9.3", None, true)]
    #[case::just_above_t("v1.9.3-rc.1", None, true)]
    #[case::t_itself("v1.9.2", None, false)]
    #[case::below_t("v1.9.1", None, false)]
    #[case::above_f("v2.0.1", None, false)]
    #[case::another_spelling_of_t("1.9.2", None, false)]
    #[case::not_comparable("nightly", None, true)]
    fn a_block_refuses_what_is_above_t_up_to_f(
        #[case] tag: &str,
        #[case] published: Option<i64>,
        #[case] expected: bool,
    ) {
        let block = block(mark("v2.0.0", None), Some(mark("v1.9.2", None)));
        let pattern = TagPattern::default();
        let rank = mark(tag, published).rank(&pattern);
        assert_eq!(block.covers(tag, &rank, &pattern), expected);
    }

    #[rstest]
    #[case("c", 30, false)]
    #[case("b", 20, true)]
    #[case("ab", 15, true)]
    #[case("a", 10, false)]
    #[case("x", 5, false)]
    fn releases_without_version_are_compared_by_time(
        #[case] tag: &str,
        #[case] published: i64,
        #[case] expected: bool,
    ) {
        let block = block(mark("b", Some(20)), Some(mark("a", Some(10))));
        let pattern = TagPattern::default();
        let rank = mark(tag, Some(published)).rank(&pattern);
        assert_eq!(block.covers(tag, &rank, &pattern), expected);
    }

    #[test]
    fn without_t_only_f_is_refused() {
        let block = block(mark("v2.0.0", None), None);
        let pattern = TagPattern::default();
        for (tag, expected) in [("v2.0.0", true), ("v1.9.9", false), ("v2.0.1", false)] {
            assert_eq!(block.covers(tag, &mark(tag, None).rank(&pattern), &pattern), expected);
        }
    }

    #[test]
    fn a_block_survives_its_annotation() {
        let mut block = block(mark("v2.0.0", Some(7)), Some(mark("v1.9.2", None)));
        block.until = Some(at(3600));
        block.allowed = Some(Allowed { value: "v2.0.0".to_owned(), ordinal: 2 });
        assert_eq!(Block::parse(&block.to_annotation()).unwrap(), block);
        assert!(block.counts_at(at(3599)) && !block.counts_at(at(3600)));
    }

    #[rstest]
    #[case("")]
    #[case("true")]
    #[case("{}")]
    #[case("[1]")]
    #[case(&"[".repeat(5000))]
    #[case(&format!("{{\"from\":{{\"tag\":\"{}\"}}}}", "a".repeat(5000)))]
    fn an_unreadable_block_is_an_error(#[case] text: &str) {
        Block::parse(text).unwrap_err();
    }
}

//! Which of two releases is the higher one.

use std::cmp::Ordering;

use jiff::Timestamp;
use semver::Version;

/// What a release is ordered by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rank {
    /// The version, where it is a semantic one.
    pub version: Option<Version>,
    /// When it was published, where that is known.
    pub published: Option<Timestamp>,
}

impl Rank {
    /// How this release stands to `other`: by version, with build metadata as a tie-break, where
    /// both have one, else by the time of publication; `None` where neither can be compared.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.version, &other.version) {
            (Some(own), Some(other)) => Some(own.cmp(other)),
            _ => Some(self.published?.cmp(&other.published?)),
        }
    }

    /// Whether this release is known to be above `other`.
    pub fn is_above(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }

    /// Whether this release is known to be below `other`.
    pub fn is_below(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Less)
    }

    /// The order in which candidates are listed, best last: those with a version above those
    /// without. Unlike [`Self::compare`] it orders any two.
    pub fn order(&self, other: &Self) -> Ordering {
        self.version.cmp(&other.version).then_with(|| self.published.cmp(&other.published))
    }
}

/// Reads a version: a semantic one, also with one or two of its three numbers (`1.2` is `1.2.0`)
/// and with a leading `v`. Anything else (`2026.01.02`, `1.2.3.4`, `nightly`) is none.
pub fn parse_version(text: &str) -> Option<Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    if let Ok(version) = Version::parse(text) {
        return Some(version);
    }
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let zeros = match numbers.split('.').count() {
        1 => ".0.0",
        2 => ".0",
        _ => return None,
    };
    Version::parse(&format!("{numbers}{zeros}{rest}")).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.2.3", Some("1.2.3"))]
    #[case("v1.2.3", Some("1.2.3"))]
    #[case("1.2", Some("1.2.0"))]
    #[case("1", Some("1.0.0"))]
    #[case("1.2-rc.1", Some("1.2.0-rc.1"))]
    #[case("1.2+b1", Some("1.2.0+b1"))]
    #[case("1.2.3.4", None)]
    #[case("2026.01.02", None)]
    #[case("01.2.3", None)]
    #[case("latest", None)]
    #[case("", None)]
    #[case("v", None)]
    #[case("-", None)]
    #[case("1.", None)]
    #[case("1..2", None)]
    #[case("18446744073709551615.0.0", Some("18446744073709551615.0.0"))]
    #[case("18446744073709551616.0.0", None)]
    #[case("٣.1.0", None)]
    fn versions_are_semantic(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(parse_version(text).map(|version| version.to_string()).as_deref(), expected);
    }

    fn rank(version: &str, published: Option<i64>) -> Rank {
        Rank {
            version: parse_version(version),
            published: published.map(|second| Timestamp::from_second(second).unwrap()),
        }
    }

    #[rstest]
    #[case::numbers(rank("1.10.0", None), rank("1.9.0", None), Some(Ordering::Greater))]
    #[case::prerelease(rank("2.0.0-rc.1", None), rank("2.0.0", None), Some(Ordering::Less))]
    #[case::prerelease_numbers(
        rank("2.0.0-rc.10", None),
        rank("2.0.0-rc.9", None),
        Some(Ordering::Greater)
    )]
    #[case::undotted_prerelease_numbers(
        rank("2.0.0-rc10", None),
        rank("2.0.0-rc9", None),
        Some(Ordering::Less)
    )]
    #[case::build_breaks_a_tie(
        rank("1.0.0+b2", None),
        rank("1.0.0+b1", None),
        Some(Ordering::Greater)
    )]
    #[case::build_numbers(rank("1.0.0+10", None), rank("1.0.0+9", None), Some(Ordering::Greater))]
    #[case::build_only_breaks_a_tie(
        rank("1.0.0+b2", None),
        rank("1.0.1+b1", None),
        Some(Ordering::Less)
    )]
    #[case::short(rank("1.4", None), rank("1.4.0", None), Some(Ordering::Equal))]
    #[case::version_before_time(
        rank("1.4.1", Some(1)),
        rank("1.4.0", Some(2)),
        Some(Ordering::Greater)
    )]
    #[case::time(rank("b", Some(2)), rank("a", Some(1)), Some(Ordering::Greater))]
    #[case::mixed(rank("1.0.0", Some(1)), rank("a", Some(2)), Some(Ordering::Less))]
    #[case::no_time(rank("1.0.0", Some(1)), rank("a", None), None)]
    #[case::nothing(rank("a", None), rank("a", None), None)]
    fn releases_are_compared(
        #[case] one: Rank,
        #[case] other: Rank,
        #[case] expected: Option<Ordering>,
    ) {
        assert_eq!(one.compare(&other), expected);
        assert_eq!(other.compare(&one), expected.map(Ordering::reverse));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,30}") {
            parse_version(&text);
        }
    }
}

//! `range`: which versions are followed.

use std::str::FromStr;

use semver::{Comparator, Prerelease, Version, VersionReq};

use super::{InvalidRule, MAX_RULE, text_rule};

const WHAT: &str = "a range of versions";
const OPERATORS: [char; 5] = ['=', '<', '>', '~', '^'];

/// A range of semantic versions: comparators `=`, `<`, `<=`, `>`, `>=`, `~`, `^` and the wildcards
/// `*`, `x`, `X`; those that must hold together are joined by blanks or commas, alternatives by
/// `||`.
///
/// A bare `1.2.3` is refused: some tools read it as `=1.2.3`, others as `^1.2.3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    text: String,
    alternatives: Vec<VersionReq>,
}

impl Range {
    /// Whether `version` is in the range. A prerelease is taken for the version it comes before
    /// (`2.0.0-rc.1` is in `^2` and not in `^1.9`), unless a comparator names a prerelease of the
    /// same version; then it is compared exactly.
    pub fn contains(&self, version: &Version) -> bool {
        let release = Version { pre: Prerelease::EMPTY, ..version.clone() };
        self.alternatives.iter().any(|all| {
            let is_exact = all.comparators.iter().any(|one| names_prerelease_of(one, version));
            let is_compared = version.pre.is_empty() || is_exact;
            all.matches(if is_compared { version } else { &release })
        })
    }
}

fn names_prerelease_of(comparator: &Comparator, version: &Version) -> bool {
    !comparator.pre.is_empty()
        && comparator.major == version.major
        && comparator.minor == Some(version.minor)
        && comparator.patch == Some(version.patch)
}

impl FromStr for Range {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |problem: String| InvalidRule::new(WHAT, text, problem);
        if text.len() > MAX_RULE {
            return Err(invalid("it is longer than 200 characters".to_owned()));
        }
        let alternatives: Result<Vec<_>, _> = text.split("||").map(alternative).collect();
        Ok(Self { text: text.to_owned(), alternatives: alternatives.map_err(invalid)? })
    }
}

fn alternative(text: &str) -> Result<VersionReq, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it must not be empty; * is any version".to_owned());
    }
    if text.contains('!') {
        return Err("'!' is not supported".to_owned());
    }
    if text.contains(" - ") {
        return Err("ranges with a hyphen are not supported; write >=1.2.0 <2.0.0".to_owned());
    }
    let mut comparators: Vec<String> = Vec::new();
    let mut operator = String::new();
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        operator.push_str(word);
        // `>= 1.2` is one comparator.
        if !word.ends_with(OPERATORS) {
            comparators.push(std::mem::take(&mut operator));
        }
    }
    if !operator.is_empty() {
        return Err("a version must follow each comparison".to_owned());
    }
    for comparator in &comparators {
        let is_wild = comparator.split(['.', '-', '+']).any(|part| matches!(part, "*" | "x" | "X"));
        if !comparator.starts_with(OPERATORS) && !is_wild {
            return Err(format!("write ={comparator} for this version alone, or ^{comparator}"));
        }
    }
    let joined = comparators.join(", ");
    VersionReq::parse(&joined).map_err(|error| error.to_string())
}

text_rule!(Range);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("^1.9", "1.9.0", true)]
    #[case("^1.9", "1.10.3", true)]
    #[case("^1.9", "1.8.9", false)]
    #[case("^1.9", "2.0.0", false)]
    #[case("^1.9", "2.0.0-rc.1", false)]
    #[case("^1.9", "1.10.0-rc.1", true)]
    #[case("^0.3", "0.4.0", false)]
    #[case("~1.2", "1.2.9", true)]
    #[case("~1.2", "1.3.0", false)]
    #[case("1.2.*", "1.2.9", true)]
    #[case("1.x", "1.9.9", true)]
    #[case("1.X", "2.0.0", false)]
    #[case("*", "7.0.0", true)]
    #[case("=1.2.3", "1.2.3", true)]
    #[case("=1.2.3", "1.2.4", false)]
    #[case("=1.2.3", "1.2.3+b4", true)]
    #[case(">=1.0 <2.0", "1.9.9", true)]
    #[case(">=1.0, <2.0", "2.0.0", false)]
    #[case(">= 1.0 < 2.0", "1.0.0", true)]
    #[case("<1.5 || >=2", "1.4.0", true)]
    #[case("<1.5 || >=2", "1.6.0", false)]
    #[case("<1.5||>=2", "2.6.0", true)]
    #[case("<2", "2.0.0-rc.1", false)]
    #[case(">=2.0.0", "2.0.0-rc.1", true)]
    #[case(">=2.0.0-rc.2", "2.0.0-rc.1", false)]
    #[case(">=2.0.0-rc.2", "2.0.0-rc.10", true)]
    #[case(">=2.0.0-rc.2", "2.1.0-rc.1", true)]
    fn a_range_holds_versions(#[case] range: &str, #[case] version: &str, #[case] expected: bool) {
        let range: Range = range.parse().unwrap();
        assert_eq!(range.contains(&version.parse().unwrap()), expected);
    }

    #[rstest]
    #[case("")]
    #[case(" ")]
    #[case("||")]
    #[case("^1 ||")]
    #[case("1.2.3")]
    #[case("1.2")]
    #[case("^1.2 1.4")]
    #[case("latest")]
    #[case("=latest")]
    #[case("1.2 - 1.4")]
    #[case("!=1.2.3")]
    #[case(">=")]
    #[case("^v1.2")]
    #[case("^1.2.3.4")]
    #[case("^01.2")]
    #[case("^99999999999999999999")]
    #[case("(1.0,2.0]")]
    #[case(">=1.0\u{0}")]
    #[case(&"^1 ".repeat(100))]
    #[case(&"^1,".repeat(40))]
    fn anything_else_is_no_range(#[case] text: &str) {
        text.parse::<Range>().unwrap_err();
    }

    #[test]
    fn a_bare_version_is_refused_with_what_to_write() {
        let error = "1.2.3".parse::<Range>().unwrap_err();
        assert_eq!(error.problem(), "write =1.2.3 for this version alone, or ^1.2.3");
    }

    proptest! {
        #[test]
        fn nothing_panics(range in "[\\^~<>=|*x0-9., -]{0,20}") {
            if let Ok(range) = range.parse::<Range>() {
                range.contains(&Version::new(1, 2, 3));
                range.contains(&"1.2.3-rc.1".parse().unwrap());
            }
        }
    }
}

//! Names of repositories.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

const LONGEST: usize = 100;

/// A repository by name, `owner/name`. It prints as it was written; GitHub does not tell capitals
/// apart, and neither does the comparison.
#[derive(Debug, Clone)]
pub struct RepoSlug(String);

/// Text that is no name of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {0:?} as a GitHub repository: expected owner/name")]
pub struct InvalidSlug(String);

impl RepoSlug {
    /// `owner/name` as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for RepoSlug {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Nothing that has a meaning in a path or a query, so that it can stand there as it is.
        let word = |part: &str, dots: bool| {
            (1..=LONGEST).contains(&part.len())
                && part != "."
                && part != ".."
                && part.bytes().all(|b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || (dots && b == b'.')
                })
        };
        match text.split_once('/') {
            Some((owner, name)) if word(owner, false) && word(name, true) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidSlug(belay_api::limits::clip(text, 100))),
        }
    }
}

impl PartialEq for RepoSlug {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for RepoSlug {}

impl Hash for RepoSlug {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Ord for RepoSlug {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for RepoSlug {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RepoSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("acme/web", true)]
    #[case("Acme-Corp_x/web.site-2", true)]
    #[case("acme", false)]
    #[case("acme/", false)]
    #[case("/web", false)]
    #[case("acme/web/x", false)]
    #[case("acme/..", false)]
    #[case("acme/we?b", false)]
    #[case("acme/we%2fb", false)]
    #[case("acme/ web", false)]
    #[case("a.b/web", false)]
    fn a_name_can_stand_in_a_path(#[case] text: &str, #[case] good: bool) {
        assert_eq!(text.parse::<RepoSlug>().is_ok(), good);
    }

    #[test]
    fn capitals_make_no_difference() {
        let (a, b): (RepoSlug, RepoSlug) =
            ("Acme/Web".parse().unwrap(), "acme/web".parse().unwrap());
        assert_eq!(a, b);
        assert_eq!(std::collections::HashSet::from([a, b]).len(), 1);
    }
}

//! Names of GitHub repositories.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MAX_OWNER: usize = 100;
const MAX_NAME: usize = 100;

/// A GitHub repository by name: `owner/name`. It prints as it was written; GitHub does not tell
/// capitals apart, and neither does the comparison.
#[derive(Debug, Clone)]
pub struct RepoSlug {
    text: String,
}

/// Text that is no repository name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as a GitHub repository: expected owner/name")]
pub struct InvalidRepo {
    text: String,
}

impl RepoSlug {
    /// `owner/name` as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Before the slash.
    pub fn owner(&self) -> &str {
        self.text.split_once('/').map_or("", |(owner, _)| owner)
    }

    /// Behind the slash.
    pub fn name(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, name)| name)
    }
}

impl FromStr for RepoSlug {
    type Err = InvalidRepo;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let is_valid = text.split_once('/').is_some_and(|(owner, name)| {
            (1..=MAX_OWNER).contains(&owner.len())
                && owner.bytes().all(is_word)
                && !owner.starts_with('-')
                && (1..=MAX_NAME).contains(&name.len())
                && name.bytes().all(|b| is_word(b) || b == b'.')
                && name != "."
                && name != ".."
        });
        if is_valid {
            Ok(Self { text: text.to_owned() })
        } else {
            Err(InvalidRepo { text: belay_api::limits::clip(text, 100) })
        }
    }
}

impl PartialEq for RepoSlug {
    fn eq(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
    }
}

impl Eq for RepoSlug {}

impl fmt::Display for RepoSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for RepoSlug {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for RepoSlug {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("acme/web")]
    #[case("Acme-Inc/web.site_2")]
    #[case("dev_acme/.github")]
    fn a_repository_is_owner_and_name(#[case] text: &str) {
        let repo: RepoSlug = text.parse().unwrap();
        assert_eq!(format!("{}/{}", repo.owner(), repo.name()), text);
    }

    #[rstest]
    #[case("")]
    #[case("acme")]
    #[case("acme/")]
    #[case("/web")]
    #[case("acme/web/x")]
    #[case("https://github.com/acme/web")]
    #[case("acme/..")]
    #[case("../web")]
    #[case("acme/we b")]
    #[case("acme/web?x=1")]
    #[case("acme/web#x")]
    #[case("acme/wéb")]
    #[case("-acme/web")]
    #[case("acme/web\n")]
    #[case("acme/%2e%2e")]
    #[case(&format!("acme/{}", "a".repeat(101)))]
    fn anything_else_is_none(#[case] text: &str) {
        text.parse::<RepoSlug>().unwrap_err();
    }

    #[test]
    fn capitals_do_not_make_another_repository() {
        assert_eq!("Acme/Web".parse::<RepoSlug>().unwrap(), "acme/web".parse().unwrap());
    }
}

//! A whole reference.

use std::{fmt, str::FromStr};

use super::{InvalidImage, Repository, is_tag};

const WHAT: &str = "an image reference";

/// An image reference: a repository with a tag, a digest, both or neither.
///
/// It prints as it was spelled. Nodes obey the digest where both are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRef {
    repository: Repository,
    tag: Option<String>,
    digest: Option<String>,
}

impl ImageRef {
    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The tag as written: none does not mean `latest` here.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, `sha256:…`.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

impl FromStr for ImageRef {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > belay_api::limits::IMAGE {
            return Err(InvalidImage::new(WHAT, text, "it is longer than 1024 characters"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // The colon of `localhost:5000/web` is a port's.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            let problem = "its digest must be an algorithm, ':' and at least 32 hex digits";
            return Err(InvalidImage::new(WHAT, text, problem));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            let problem = "its tag must be at most 128 letters, digits, '_', '.' and '-'";
            return Err(InvalidImage::new(WHAT, text, problem));
        }
        let repository = name
            .parse::<Repository>()
            .map_err(|error| InvalidImage::new(WHAT, text, error.problem()))?;
        Ok(Self {
            repository,
            tag: tag.map(ToOwned::to_owned),
            digest: digest.map(ToOwned::to_owned),
        })
    }
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let is_hex = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    algorithm.split(['+', '.', '_', '-']).all(is_word)
        && (32..=128).contains(&hex.len())
        && hex.bytes().all(is_hex)
        && (algorithm != "sha256" || hex.len() == 64)
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.repository.spelled())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[rstest]
    #[case("nginx", "library/nginx", None, false)]
    #[case("nginx:1.27", "library/nginx", Some("1.27"), false)]
    #[case("localhost:5000/web", "web", None, false)]
    #[case("localhost:5000/web:2", "web", Some("2"), false)]
    #[case(&format!("ghcr.io/acme/web@{DIGEST}"), "acme/web", None, true)]
    #[case(&format!("ghcr.io/acme/web:1.0.0_b2@{DIGEST}"), "acme/web", Some("1.0.0_b2"), true)]
    #[case(&format!("localhost:5000/web@{DIGEST}"), "web", None, true)]
    fn a_reference_has_up_to_three_parts(
        #[case] text: &str,
        #[case] path: &str,
        #[case] tag: Option<&str>,
        #[case] has_digest: bool,
    ) {
        let image: ImageRef = text.parse().unwrap();
        assert_eq!(image.repository().path(), path);
        assert_eq!(image.tag(), tag);
        assert_eq!(image.digest(), has_digest.then_some(DIGEST));
        assert_eq!(image.to_string(), text);
    }

    #[rstest]
    #[case("")]
    #[case("nginx:")]
    #[case(":1")]
    #[case("nginx@")]
    #[case("nginx@sha256:00")]
    #[case("nginx:1@latest")]
    #[case("nginx:-1")]
    #[case("nginx:.1")]
    #[case("nginx:1 2")]
    #[case("nginx:1+2")]
    #[case("ghcr.io/acme/Web:1")]
    #[case("{{ .Values.image }}")]
    #[case(&format!("nginx:{}", "1".repeat(129)))]
    #[case(&format!("nginx@{DIGEST}0"))]
    #[case(&format!("nginx@{}", DIGEST.to_ascii_uppercase()))]
    fn anything_else_is_no_reference(#[case] text: &str) {
        text.parse::<ImageRef>().unwrap_err();
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
            if let Ok(image) = text.parse::<ImageRef>() {
                prop_assert_eq!(image.to_string(), text);
            }
        }
    }
}

//! The part of a reference before tag and digest.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::InvalidImage;

const WHAT: &str = "an image repository";
/// The longest repository, host included, that registries and nodes take.
const MAX_LENGTH: usize = 255;
/// The longest tag.
const MAX_TAG: usize = 128;

const HUB: &str = "docker.io";
/// Other names of Docker Hub.
const HUB_ALIASES: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];
/// Where Docker Hub keeps images that are named without an owner.
const HUB_LIBRARY: &str = "library/";

/// An image repository: `ghcr.io/acme/web`, `nginx`, `localhost:5000/web`.
///
/// It prints as it was spelled. Two are equal if they name the same repository, whatever the
/// spelling: `nginx` and `index.docker.io/library/nginx` are.
#[derive(Debug, Clone)]
pub struct Repository {
    spelled: String,
    host: String,
    path: String,
}

impl Repository {
    /// The registry's host in lower case, with its port if one is written; `docker.io` where none
    /// is.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path on the registry, with Docker Hub's `library/` written out.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The repository as it was spelled.
    pub fn spelled(&self) -> &str {
        &self.spelled
    }

    /// Whether `other` has the same path, on this or on another host: a mirror of it. Docker Hub's
    /// `library/` may be left out, as it is on many mirrors.
    pub fn is_mirror_of(&self, other: &Self) -> bool {
        let short = |path: &str| path.strip_prefix(HUB_LIBRARY).unwrap_or(path).to_owned();
        let hub = self.host == HUB || other.host == HUB;
        self.path == other.path || (hub && short(&self.path) == short(&other.path))
    }

    /// The image string of `tag` in this repository.
    pub fn with_tag(&self, tag: &str) -> String {
        format!("{}:{tag}", self.spelled)
    }
}

impl FromStr for Repository {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |problem| Err(InvalidImage::new(WHAT, text, problem));
        if text.len() > MAX_LENGTH {
            return invalid("it is longer than 255 characters");
        }
        let (host, path) = match text.split_once('/') {
            Some((first, rest)) if is_host_like(first) => {
                if !is_host(first) {
                    return invalid("its host is not a host name or address with optional port");
                }
                (first.to_ascii_lowercase(), rest)
            }
            _ => (HUB.to_owned(), text),
        };
        if path.contains('@') {
            return invalid("it must not have a digest");
        }
        if path.contains(':') {
            return invalid("it must not have a tag");
        }
        if !path.split('/').all(is_path_component) {
            return invalid(
                "its path must be lower-case letters and digits, joined by '.', '_', '-' or '/'",
            );
        }
        let host = if HUB_ALIASES.contains(&host.as_str()) { HUB.to_owned() } else { host };
        let is_official = host == HUB && !path.contains('/');
        let path = if is_official { format!("{HUB_LIBRARY}{path}") } else { path.to_owned() };
        Ok(Self { spelled: text.to_owned(), host, path })
    }
}

/// Whether the first component of a name is a host, by the rule of the container tools: it has a
/// dot or a port, is `localhost`, or has capitals, which no path has.
fn is_host_like(first: &str) -> bool {
    first.contains(['.', ':', '[']) || first == "localhost" || first != first.to_ascii_lowercase()
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<core::net::Ipv6Addr>().is_err() {
                return false;
            }
            if rest.is_empty() {
                return true;
            }
            let Some(port) = rest.strip_prefix(':') else { return false };
            (None, Some(port))
        }
        None => match text.split_once(':') {
            Some((name, port)) => (Some(name), Some(port)),
            None => (Some(text), None),
        },
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.is_none_or(|name| name.split('.').all(is_label))
        && port.is_none_or(|port| {
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok()
        })
}

/// Letters and digits, joined by one `.`, one or two `_`, or any number of `-`.
fn is_path_component(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut runs = text.as_bytes().chunk_by(|one, next| is_word(*one) == is_word(*next));
    text.bytes().next().is_some_and(is_word)
        && text.bytes().next_back().is_some_and(is_word)
        && runs.all(|run| {
            is_word(run[0]) || matches!(run, b"." | b"_" | b"__") || run.iter().all(|b| *b == b'-')
        })
}

/// Whether `text` can be a tag: at most 128 letters, digits, `_`, `.` and `-`, the first no `.` and
/// no `-`.
pub fn is_tag(text: &str) -> bool {
    text.len() <= MAX_TAG
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        && !text.starts_with(['.', '-'])
}

impl PartialEq for Repository {
    fn eq(&self, other: &Self) -> bool {
        (&self.host, &self.path) == (&other.host, &other.path)
    }
}

impl Eq for Repository {}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.spelled)
    }
}

impl Serialize for Repository {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.spelled)
    }
}

impl<'de> Deserialize<'de> for Repository {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", "docker.io", "library/nginx")]
    #[case("acme/web", "docker.io", "acme/web")]
    #[case("docker.io/nginx", "docker.io", "library/nginx")]
    #[case("index.docker.io/library/nginx", "docker.io", "library/nginx")]
    #[case("registry-1.docker.io/acme/web", "docker.io", "acme/web")]
    #[case("GHCR.io/acme/web", "ghcr.io", "acme/web")]
    #[case("localhost/web", "localhost", "web")]
    #[case("localhost:5000/web", "localhost:5000", "web")]
    #[case("host:5000/app", "host:5000", "app")]
    #[case("10.0.0.1:5000/a/b/c", "10.0.0.1:5000", "a/b/c")]
    #[case("[::1]:5000/web", "[::1]:5000", "web")]
    #[case("[fd00::1]/web", "[fd00::1]", "web")]
    #[case("ghcr.io/a_b__c/d.e/f--g", "ghcr.io", "a_b__c/d.e/f--g")]
    fn a_repository_has_host_and_path(#[case] text: &str, #[case] host: &str, #[case] path: &str) {
        let repository: Repository = text.parse().unwrap();
        assert_eq!((repository.host(), repository.path()), (host, path));
        assert_eq!(repository.to_string(), text);
    }

    #[rstest]
    #[case("")]
    #[case("/")]
    #[case("ghcr.io/")]
    #[case("ghcr.io//web")]
    #[case("/web")]
    #[case("ghcr.io/acme/Web")]
    #[case("ghcr.io/acme/web:1.0")]
    #[case("ghcr.io/acme/web@sha256:00")]
    #[case("localhost:5000")]
    #[case("host:port/web")]
    #[case("host:70000/web")]
    #[case("host:/web:")]
    #[case("ghcr.io:443:443/web")]
    #[case("https://ghcr.io/acme/web")]
    #[case("ghcr.io/acme/web?x=y")]
    #[case("ghcr.io/../web")]
    #[case("ghcr.io/acme/-web")]
    #[case("ghcr.io/acme/web-")]
    #[case("ghcr.io/acme/we___b")]
    #[case("ghcr.io/acme/we..b")]
    #[case("-ghcr.io/web")]
    #[case("[::g]/web")]
    #[case("[::1]x/web")]
    #[case("[::1/web")]
    #[case(" nginx")]
    #[case("nginx\n")]
    #[case("ghcr.io/acme/wéb")]
    #[case(&"a".repeat(256))]
    fn anything_else_is_no_repository(#[case] text: &str) {
        text.parse::<Repository>().unwrap_err();
    }

    #[rstest]
    #[case("mirror.example/acme/web", "ghcr.io/acme/web", true)]
    #[case("mirror.example/library/nginx", "nginx", true)]
    #[case("mirror.example/nginx", "nginx", true)]
    #[case("nginx", "mirror.example/nginx", true)]
    #[case("mirror.example/nginx", "other.example/library/nginx", false)]
    #[case("mirror.example/hub/acme/web", "acme/web", false)]
    #[case("ghcr.io/acme/api", "ghcr.io/acme/web", false)]
    fn a_mirror_has_the_same_path(#[case] one: &str, #[case] other: &str, #[case] expected: bool) {
        let (one, other): (Repository, Repository) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!(one.is_mirror_of(&other), expected);
    }

    #[test]
    fn spelling_does_not_make_another_repository() {
        let parse = |text: &str| text.parse::<Repository>().unwrap();
        assert_eq!(parse("nginx"), parse("index.docker.io/library/nginx"));
        assert_ne!(parse("ghcr.io/acme/web"), parse("quay.io/acme/web"));
        assert_eq!(parse("nginx").with_tag("1.28"), "nginx:1.28");
    }
}

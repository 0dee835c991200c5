//! As much of an image reference as the decision needs: its repository, and which of two tags is
//! the higher version.

use std::cmp::Ordering;

/// The repository of a reference, with Docker Hub's short names written out: `nginx:1` and
/// `docker.io/library/nginx@sha256:…` have the same.
pub fn repository(image: &str) -> String {
    let (name, _) = split_reference(image);
    let (host, path) = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            (host.to_ascii_lowercase(), path)
        }
        _ => ("docker.io".to_owned(), name),
    };
    match host.as_str() {
        "docker.io" | "index.docker.io" | "registry-1.docker.io" if !path.contains('/') => {
            format!("docker.io/library/{path}")
        }
        "index.docker.io" | "registry-1.docker.io" => format!("docker.io/{path}"),
        _ => format!("{host}/{path}"),
    }
}

/// The tag of a reference.
pub fn tag(image: &str) -> Option<&str> {
    split_reference(image).1
}

fn split_reference(image: &str) -> (&str, Option<&str>) {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    match name.rsplit_once(':') {
        // The colon of `localhost:5000/web` is a port's.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    }
}

/// Whether `tag` is a higher version than `other`. Tags that are no versions are not compared.
pub fn is_above(tag: &str, other: &str) -> bool {
    match (Version::of(tag), Version::of(other)) {
        (Some(version), Some(other)) => version.compare(&other) == Ordering::Greater,
        _ => false,
    }
}

/// A version by the rules of semver.org, but for the number of its parts, which is free.
struct Version<'a> {
    numbers: Vec<u64>,
    prerelease: Option<&'a str>,
}

impl<'a> Version<'a> {
    fn of(tag: &'a str) -> Option<Self> {
        let text = tag.strip_prefix(['v', 'V']).unwrap_or(tag);
        // In a tag, `_` stands for the `+` of build metadata.
        let text = text.split(['+', '_']).next()?;
        let (core, prerelease) = match text.split_once('-') {
            Some((core, prerelease)) => (core, Some(prerelease)),
            None => (text, None),
        };
        let numbers: Option<Vec<u64>> = core
            .split('.')
            .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?)
            .collect();
        numbers.map(|numbers| Self { numbers, prerelease })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let length = self.numbers.len().max(other.numbers.len());
        let padded = |version: &Self| -> Vec<u64> {
            version.numbers.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
        };
        padded(self).cmp(&padded(other)).then_with(|| match (self.prerelease, other.prerelease) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(own), Some(other)) => compare_prereleases(own, other),
        })
    }
}

fn compare_prereleases(own: &str, other: &str) -> Ordering {
    let (mut own, mut other) = (own.split('.'), other.split('.'));
    loop {
        let (own, other) = match (own.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(own), Some(other)) => (own, other),
        };
        let order = match (own.parse::<u64>(), other.parse::<u64>()) {
            (Ok(own), Ok(other)) => own.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => own.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", "docker.io/library/nginx")]
    #[case("nginx:1.27", "docker.io/library/nginx")]
    #[case("docker.io/nginx:1", "docker.io/library/nginx")]
    #[case("index.docker.io/library/nginx", "docker.io/library/nginx")]
    #[case("acme/web:1", "docker.io/acme/web")]
    #[case("ghcr.io/acme/web:1.0.0@sha256:00", "ghcr.io/acme/web")]
    #[case("GHCR.io/acme/web", "ghcr.io/acme/web")]
    #[case("localhost:5000/web", "localhost:5000/web")]
    #[case("localhost:5000/web:2", "localhost:5000/web")]
    #[case("localhost/web:2", "localhost/web")]
    fn repositories_are_compared_in_full(#[case] image: &str, #[case] expected: &str) {
        assert_eq!(repository(image), expected);
    }

    #[rstest]
    #[case("1.5.0", "1.4.2", true)]
    #[case("v1.10.0", "1.9.0", true)]
    #[case("1.4.2", "1.4.2", false)]
    #[case("1.4", "1.4.0", false)]
    #[case("1.4.1", "1.4", true)]
    #[case("2.0.0", "2.0.0-rc.1", true)]
    #[case("2.0.0-rc.10", "2.0.0-rc.9", true)]
    #[case("2.0.0-rc.1", "2.0.0-rc", true)]
    #[case("2.0.0-rc", "2.0.0-1", true)]
    #[case("2.0.0_b2", "2.0.0_b1", false)]
    #[case("latest", "1.0.0", false)]
    #[case("1.0.0", "main", false)]
    fn versions_are_compared_and_other_tags_are_not(
        #[case] tag: &str,
        #[case] other: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(is_above(tag, other), expected);
    }
}

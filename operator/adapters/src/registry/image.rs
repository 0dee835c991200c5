//! Where an image is asked for.

use oci_client::Reference;

/// An image: registry, repository, and a tag or digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Image {
    registry: String,
    repository: String,
    version: String,
    digest: Option<String>,
}

/// Text that is no image.
#[derive(Debug, thiserror::Error)]
#[error("read {text:?} as an image")]
pub struct InvalidImage {
    text: String,
    source: oci_client::ParseError,
}

impl Image {
    /// Reads an image as it stands in a pod: `nginx` is `docker.io/library/nginx:latest`.
    ///
    /// # Errors
    /// [`InvalidImage`], also for a host that is an IPv6 address.
    pub fn parse(text: &str) -> Result<Self, InvalidImage> {
        let reference: Reference = text
            .parse()
            .map_err(|source| InvalidImage { text: belay_api::limits::clip(text, 100), source })?;
        let digest = reference.digest().map(str::to_ascii_lowercase);
        let tag = reference.tag().unwrap_or("latest").to_owned();
        Ok(Self {
            registry: reference.registry().to_ascii_lowercase(),
            repository: reference.repository().to_owned(),
            version: digest.clone().unwrap_or(tag),
            digest,
        })
    }

    /// The same image on another host, for registries that have a mirror.
    #[must_use]
    pub fn on(&self, host: &str) -> Self {
        Self { registry: host.to_ascii_lowercase(), ..self.clone() }
    }

    /// `HOST[:PORT]` as pull secrets name it: `docker.io` for Docker Hub.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path without a leading slash.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The digest that the image names, if it names one.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The tag, or the digest where there is one.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// `HOST[:PORT]` that is asked.
    pub(crate) fn host(&self) -> &str {
        match self.registry.as_str() {
            "docker.io" => "index.docker.io",
            host => host,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", "docker.io", "index.docker.io", "library/nginx", "latest")]
    #[case("index.docker.io/a/b:1", "docker.io", "index.docker.io", "a/b", "1")]
    #[case("GHCR.io/acme/web:v1", "ghcr.io", "ghcr.io", "acme/web", "v1")]
    #[case("127.0.0.1:5000/web:v1", "127.0.0.1:5000", "127.0.0.1:5000", "web", "v1")]
    fn an_image_is_taken_apart(
        #[case] text: &str,
        #[case] registry: &str,
        #[case] host: &str,
        #[case] repository: &str,
        #[case] version: &str,
    ) {
        let image = Image::parse(text).unwrap();
        let found = (image.registry(), image.host(), image.repository(), image.version());
        assert_eq!(found, (registry, host, repository, version));
        assert_eq!(image.digest(), None);
    }

    #[test]
    fn a_digest_counts_more_than_a_tag() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let image = Image::parse(&format!("ghcr.io/acme/web:v1@{digest}")).unwrap();
        assert_eq!((image.version(), image.digest()), (digest.as_str(), Some(digest.as_str())));
        assert_eq!(image.on("mirror.example:5000").host(), "mirror.example:5000");
    }

    #[rstest]
    #[case("")]
    #[case("ghcr.io/Acme/web")]
    #[case("ghcr.io/a//b")]
    #[case("ghcr.io/a b")]
    #[case("ghcr.io/a\n")]
    #[case("user@ghcr.io/a")]
    #[case("https://ghcr.io/a")]
    #[case("[::1]:5000/web")]
    fn what_is_no_image_is_refused(#[case] text: &str) {
        Image::parse(text).unwrap_err();
    }
}

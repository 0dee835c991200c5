//! Whether an image is there.

use std::fmt;

use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, StatusCode, header};
use oci_client::{manifest, secrets::RegistryAuth};
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::{
    Image, PullCredential, Registry, Stage, Trouble,
    challenge::{self, Challenge},
    exchange::{Ask, Reply},
};

/// All four kinds: a registry that is not offered an index answers with another digest.
pub(crate) const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";

/// What a registry says.
#[derive(Debug, Clone)]
pub enum Head {
    /// The image is there.
    Found {
        /// The digest, `sha256:…`: of the index, where there is one.
        digest: String,
        /// The kind of manifest, where the registry says it.
        media_type: Option<String>,
        /// With what it was found.
        access: Access,
    },
    /// It is not there (404).
    Missing,
}

/// What opened a registry, for further questions about the same image.
#[derive(Clone)]
pub struct Access {
    pub(crate) auth: RegistryAuth,
    pub(crate) who: Option<[u8; 32]>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

/// The outcome of a check with all credentials that match.
#[derive(Debug)]
pub struct Checked {
    /// What came out of it.
    pub head: Result<Head, Trouble>,
    /// The Secret whose credential was used last; none for an anonymous check.
    pub secret: Option<String>,
}

impl Registry {
    /// Asks for an image with the credentials that [`Keyring::lookup`](super::Keyring::lookup) gives,
    /// in their order: the next one only where one is refused, and anonymously only where there is
    /// none.
    pub async fn check(&self, image: &Image, credentials: &[PullCredential]) -> Checked {
        if credentials.is_empty() {
            return Checked { head: self.head(image, None).await, secret: None };
        }
        let mut last = None;
        for credential in credentials {
            let head = self.head(image, Some(credential)).await;
            let refused = matches!(head, Err(Trouble::Denied { .. }));
            let secret = Some(credential.secret().to_owned());
            last = Some(Checked { head, secret });
            if !refused {
                break;
            }
        }
        match last {
            Some(checked) => checked,
            None => Checked { head: self.head(image, None).await, secret: None },
        }
    }

    /// Asks for an image with one credential, or with none: a HEAD, a token where one is demanded, and
    /// the HEAD again. A GET follows only a HEAD that was answered 200 without a digest.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn head(
        &self,
        image: &Image,
        credential: Option<&PullCredential>,
    ) -> Result<Head, Trouble> {
        self.timed(image.host(), self.exchange(image, credential)).await
    }

    async fn exchange(
        &self,
        image: &Image,
        credential: Option<&PullCredential>,
    ) -> Result<Head, Trouble> {
        let stage = Stage::Manifest;
        let base = self.base(image.host(), stage)?;
        let who = credential.map(PullCredential::fingerprint);
        let mut access = Access { auth: RegistryAuth::Anonymous, who };
        let mut reply = self.manifest(Method::HEAD, &base, image, image.version(), &access).await?;
        if reply.status == StatusCode::UNAUTHORIZED {
            access.auth = match (challenge::of(&reply.headers), credential) {
                (Challenge::Bearer { realm, service }, _) => {
                    let challenge = (realm.as_str(), service.as_deref());
                    self.token(&base, challenge, image, credential).await?
                }
                (Challenge::Basic, Some(it)) => {
                    RegistryAuth::Basic(it.username().to_owned(), it.password().to_owned())
                }
                (Challenge::Basic, None) | (Challenge::None, _) => {
                    return Err(reply.trouble(stage));
                }
            };
            reply = self.manifest(Method::HEAD, &base, image, image.version(), &access).await?;
        }
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(Head::Missing);
        }
        if reply.status != StatusCode::OK {
            return Err(reply.trouble(stage));
        }
        let media_type = text(&reply.headers, header::CONTENT_TYPE.as_str());
        let (digest, media_type) = match digest_of(&reply.headers) {
            Some(digest) => (digest, media_type),
            None => self.hash(&base, image, &access).await?,
        };
        if image.digest().is_some_and(|asked| asked != digest) {
            return Err(reply.unreadable(stage, "the answer has another digest than was asked for"));
        }
        Ok(Head::Found { digest, media_type, access })
    }

    /// The digest of a manifest whose registry does not tell it.
    async fn hash(
        &self,
        base: &Url,
        image: &Image,
        access: &Access,
    ) -> Result<(String, Option<String>), Trouble> {
        let stage = Stage::Manifest;
        let reply = self.manifest(Method::GET, base, image, image.version(), access).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.trouble(stage));
        }
        // Whoever answers everything with 200 and a page, or nothing, is no registry.
        if serde_json::from_slice::<manifest::OciManifest>(&reply.body).is_err() {
            return Err(reply.unreadable(stage, "the answer is no manifest"));
        }
        let media_type = text(&reply.headers, header::CONTENT_TYPE.as_str());
        Ok((sha256(&reply.body), media_type))
    }

    pub(crate) async fn manifest(
        &self,
        method: Method,
        base: &Url,
        image: &Image,
        version: &str,
        access: &Access,
    ) -> Result<Reply, Trouble> {
        let mut url = base.clone();
        url.set_path(&format!("/v2/{}/manifests/{version}", image.repository()));
        let (stage, auth, who) = (Stage::Manifest, &access.auth, access.who);
        self.ask(Ask { stage, method, url, accept: MANIFESTS, auth, who, follow: true }).await
    }
}

/// `sha256:` and 64 digits; anything else is as good as none.
fn digest_of(headers: &HeaderMap) -> Option<String> {
    let text = text(headers, "docker-content-digest")?;
    let digits = text.strip_prefix("sha256:")?;
    let good = digits.len() == 64
        && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    good.then_some(text)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.trim().to_owned())
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

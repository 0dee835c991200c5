//! GitHub Apps and their installations.

use std::fmt;

use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde::{Serialize, Serializer};

use super::{auth::Grants, error::GitHubError};

/// An App as the server knows it.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) id: u64,
    pub(crate) slug: String,
    pub(crate) client_id: String,
    pub(crate) owner: String,
    /// PKCS#1 DER.
    pub(crate) public_key: Vec<u8>,
    pub(crate) created_at: Timestamp,
}

/// An App installed on an account.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    pub(crate) app: u64,
    pub(crate) account: String,
    pub(crate) grants: Grants,
    pub(crate) created_at: Timestamp,
    pub(crate) suspended_at: Option<Timestamp>,
    /// Tokens given so far.
    pub(crate) tokens: u64,
}

/// What an App's owner has: the ids and the private key. The server keeps only the public one.
#[derive(Clone, Serialize)]
pub struct AppCredentials {
    /// The App's id, the issuer of its JWTs.
    pub id: u64,
    /// Its name in URLs.
    pub slug: String,
    /// Its client id, an issuer as good as the id.
    pub client_id: String,
    /// PEM, PKCS#8.
    pub private_key: PrivateKey,
}

impl fmt::Debug for AppCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppCredentials").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A private key that is shown only on purpose.
#[derive(Clone)]
pub struct PrivateKey(String);

impl PrivateKey {
    /// The PEM text.
    pub fn pem(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl Serialize for PrivateKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Draws a key pair: the private half as PEM, the public one as PKCS#1 DER.
pub(crate) fn key_pair(slug: &str) -> Result<(PrivateKey, Vec<u8>), GitHubError> {
    let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
        .map_err(|source| GitHubError::Key { slug: slug.to_owned(), source })?;
    Ok((PrivateKey(pair.serialize_pem()), pair.public_key_raw().to_vec()))
}

//! Where GitHub's credential comes from.

use std::path::{Path, PathBuf};

use octocrab::auth::EncodingKey;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use super::ForgeError;

/// No token and no key is longer.
const LONGEST: usize = 64 << 10;

/// What GitHub is asked with. Files are read anew before each use: a Secret that is mounted changes
/// under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// Without one: 60 requests an hour for the address.
    Anonymous,
    /// A token in a file.
    TokenFile(PathBuf),
    /// An App's installation.
    App(AppKey),
}

impl Credential {
    /// Whether GitHub is asked without one.
    pub fn is_anonymous(&self) -> bool {
        *self == Self::Anonymous
    }
}

/// An App, one of its installations, and the file of its private key (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppKey {
    /// The App's id.
    pub app: u64,
    /// The installation's id.
    pub installation: u64,
    /// The file.
    pub key_file: PathBuf,
}

/// A credential as it was read, and what tells it from another one.
pub(crate) struct Loaded {
    pub(crate) secret: Secret,
    pub(crate) fingerprint: [u8; 32],
}

pub(crate) enum Secret {
    None,
    Token(SecretString),
    Key { app: u64, installation: u64, key: EncodingKey },
}

impl Credential {
    /// Reads it. What cannot be read is an error, never "no credential".
    pub(crate) async fn load(&self) -> Result<Loaded, ForgeError> {
        match self {
            Self::Anonymous => Ok(Loaded { secret: Secret::None, fingerprint: [0; 32] }),
            Self::TokenFile(path) => {
                let text = read(path).await?;
                let token = text.trim_ascii();
                if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
                    return Err(form(path, "expected one line of visible ASCII"));
                }
                let fingerprint = Sha256::digest(token).into();
                Ok(Loaded { secret: Secret::Token(token.to_owned().into()), fingerprint })
            }
            Self::App(AppKey { app, installation, key_file }) => {
                let text = read(key_file).await?;
                let fingerprint = Sha256::digest(&text).into();
                let Ok(key) = EncodingKey::from_rsa_pem(text.as_bytes()) else {
                    return Err(form(key_file, "expected an RSA private key in PEM"));
                };
                let (app, installation) = (*app, *installation);
                Ok(Loaded { secret: Secret::Key { app, installation, key }, fingerprint })
            }
        }
    }
}

async fn read(path: &Path) -> Result<String, ForgeError> {
    let bytes = tokio::fs::read(path)
        .await
        .map_err(|source| ForgeError::Credential { path: path.to_owned(), source })?;
    match String::from_utf8(bytes) {
        Ok(text) if text.len() <= LONGEST => Ok(text),
        Ok(_) => Err(form(path, "it is too long")),
        Err(_) => Err(form(path, "it is no text")),
    }
}

fn form(path: &Path, problem: &'static str) -> ForgeError {
    ForgeError::CredentialForm { path: path.to_owned(), problem }
}

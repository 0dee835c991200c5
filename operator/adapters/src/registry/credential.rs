//! Credentials of pull secrets.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// A user and a password for a registry, with the secret they stand in.
#[derive(Clone)]
pub struct PullCredential {
    secret: String,
    username: SecretString,
    password: SecretString,
}

impl PullCredential {
    /// A credential; `secret` is the name of the Secret that it comes from.
    pub fn new(
        secret: impl Into<String>,
        username: impl Into<SecretString>,
        password: impl Into<SecretString>,
    ) -> Self {
        Self { secret: secret.into(), username: username.into(), password: password.into() }
    }

    /// The name of the Secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub(crate) fn username(&self) -> &str {
        self.username.expose_secret()
    }

    pub(crate) fn password(&self) -> &str {
        self.password.expose_secret()
    }

    /// Tells credentials apart without holding them.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.username().len().to_le_bytes());
        hash.update(self.username());
        hash.update(self.password());
        hash.finalize().into()
    }
}

impl fmt::Debug for PullCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullCredential").field("secret", &self.secret).finish_non_exhaustive()
    }
}

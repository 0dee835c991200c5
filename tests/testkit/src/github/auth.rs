//! Who asks: personal access tokens, Apps with their JWTs, and installation tokens.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use aws_lc_rs::rand;
use http::{HeaderMap, header::AUTHORIZATION};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{error::GitHubError, jwt, state::State};

/// Who sent a request, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Credential {
    /// No `authorization` header.
    Anonymous,
    /// A personal access token.
    Token {
        /// The label it was made with.
        label: String,
    },
    /// A token of an App's installation.
    Installation {
        /// The installation.
        id: u64,
        /// Counts the tokens of this installation from 1.
        serial: u64,
    },
    /// An App, by a JWT it signed.
    App {
        /// The App.
        slug: String,
    },
    /// Something the server does not accept.
    Rejected {
        /// The scheme of the header, in lower case.
        scheme: String,
    },
}

impl Credential {
    /// Whether it was accepted.
    pub fn is_authenticated(&self) -> bool {
        !matches!(self, Self::Anonymous | Self::Rejected { .. })
    }

    /// The label under which requests are counted: that of the token, `installation-ID`,
    /// `app-SLUG`, or `anonymous` for the address.
    ///
    /// All tokens of one installation share a bucket.
    pub fn bucket(&self) -> String {
        match self {
            Self::Anonymous | Self::Rejected { .. } => "anonymous".to_owned(),
            Self::Token { label } => label.clone(),
            Self::Installation { id, .. } => format!("installation-{id}"),
            Self::App { slug } => format!("app-{slug}"),
        }
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("anonymous"),
            Self::Token { label } => write!(f, "token {label}"),
            Self::Installation { id, serial } => write!(f, "installation {id}, token {serial}"),
            Self::App { slug } => write!(f, "app {slug}"),
            Self::Rejected { scheme } => write!(f, "rejected {scheme}"),
        }
    }
}

/// How far a permission goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// May read.
    Read,
    /// May read and write.
    Write,
}

/// What a token or an installation may do, with names as GitHub's permissions have them:
/// `metadata`, `contents`, `deployments` …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// `OWNER/NAME` of each repository; none stands for all, of the account where there is one.
    #[serde(default)]
    pub repositories: Option<Vec<String>>,
    /// Permission names and levels.
    #[serde(default)]
    pub permissions: BTreeMap<String, Level>,
}

impl Rights {
    /// Reads releases and deployments of these repositories.
    pub fn read<R: Into<String>>(repositories: impl IntoIterator<Item = R>) -> Self {
        let repositories = Some(repositories.into_iter().map(Into::into).collect());
        Self { repositories, ..Self::default() }
            .with("metadata", Level::Read)
            .with("contents", Level::Read)
            .with("deployments", Level::Read)
    }

    /// Also writes them: the right to push, by which drafts are seen.
    pub fn write<R: Into<String>>(repositories: impl IntoIterator<Item = R>) -> Self {
        Self::read(repositories).with("contents", Level::Write).with("deployments", Level::Write)
    }

    /// Nothing beyond what is public: such a token only buys the higher limit.
    pub fn public() -> Self {
        Self { repositories: Some(Vec::new()), ..Self::default() }
    }

    /// The same for every repository.
    #[must_use]
    pub fn everywhere(self) -> Self {
        Self { repositories: None, ..self }
    }

    /// With a permission set to a level.
    #[must_use]
    pub fn with(mut self, permission: &str, level: Level) -> Self {
        self.permissions.insert(permission.to_owned(), level);
        self
    }

    /// Without a permission.
    #[must_use]
    pub fn without(mut self, permission: &str) -> Self {
        self.permissions.remove(permission);
        self
    }
}

/// [`Rights`] with repositories by their numeric ids, so that a rename does not touch them and a
/// repository that takes an old name over does not inherit them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grants {
    /// None for all.
    pub(crate) repositories: Option<BTreeSet<u64>>,
    /// Bounds "all" to one account, in lower case.
    pub(crate) account: Option<String>,
    pub(crate) permissions: BTreeMap<String, Level>,
}

impl Grants {
    pub(crate) fn covers(&self, repository: u64, owner: &str) -> bool {
        let account = self.account.as_ref();
        account.is_none_or(|account| account.eq_ignore_ascii_case(owner))
            && self.repositories.as_ref().is_none_or(|ids| ids.contains(&repository))
    }

    pub(crate) fn allows(&self, permission: &str, level: Level) -> bool {
        // Whoever has any permission on a repository may read its metadata.
        if (permission, level) == ("metadata", Level::Read) {
            return !self.permissions.is_empty();
        }
        self.permissions.get(permission).is_some_and(|given| *given >= level)
    }
}

/// A token the server accepts.
#[derive(Clone)]
pub(crate) struct Token {
    secret: String,
    pub(crate) credential: Credential,
    /// The account that acts.
    pub(crate) actor: String,
    pub(crate) grants: Grants,
    pub(crate) expires: Option<Timestamp>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Token").field(&self.credential).field(&self.expires).finish()
    }
}

impl Token {
    pub(crate) fn new(
        prefix: &str,
        credential: Credential,
        actor: String,
        grants: Grants,
        expires: Option<Timestamp>,
    ) -> Result<Self, GitHubError> {
        let secret = format!("{prefix}{}", random_hex::<20>()?);
        Ok(Self { secret, credential, actor, grants, expires })
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

/// Lower-case hex of `N` random bytes.
pub(crate) fn random_hex<const N: usize>() -> Result<String, GitHubError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| GitHubError::Random)?;
    Ok(hex(&bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// What a request's `authorization` stands for.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) credential: Credential,
    pub(crate) actor: Option<String>,
    pub(crate) grants: Grants,
    /// The App, for a JWT.
    pub(crate) app: Option<u64>,
    /// The words of the 401 or 404 that a credential which is not accepted gets.
    pub(crate) refusal: Option<jwt::Refused>,
    /// Tells two tokens of one owner apart: ETags are tied to it.
    pub(crate) fingerprint: String,
}

impl Identity {
    fn anonymous() -> Self {
        Self {
            credential: Credential::Anonymous,
            actor: None,
            grants: Grants { repositories: Some(BTreeSet::new()), ..Grants::default() },
            app: None,
            refusal: None,
            fingerprint: String::new(),
        }
    }

    fn rejected(scheme: &str, refusal: jwt::Refused) -> Self {
        let credential = Credential::Rejected { scheme: scheme.to_owned() };
        Self { credential, refusal: Some(refusal), ..Self::anonymous() }
    }

    /// Reads the `authorization` header: `Bearer` or `token` with a token, `Bearer` with a JWT.
    pub(crate) fn of(state: &State, headers: &HeaderMap, now: Timestamp) -> Self {
        let Some(header) = headers.get(AUTHORIZATION) else { return Self::anonymous() };
        let header = header.to_str().unwrap_or_default();
        let (scheme, secret) = header.split_once(' ').unwrap_or((header, ""));
        let (scheme, secret) = (scheme.to_ascii_lowercase(), secret.trim());
        if scheme != "bearer" && scheme != "token" {
            return Self::rejected(&scheme, jwt::Refused::BadCredentials);
        }
        if scheme == "bearer" && secret.matches('.').count() == 2 {
            return match jwt::verify(&state.apps, secret, now) {
                Ok(app) => Self {
                    credential: Credential::App { slug: app.slug.clone() },
                    app: Some(app.id),
                    fingerprint: format!("app-{}", app.id),
                    ..Self::anonymous()
                },
                Err(refused) => Self::rejected(&scheme, refused),
            };
        }
        let usable = |token: &&Token| {
            token.secret == secret && token.expires.is_none_or(|expires| now < expires)
        };
        match state.tokens.iter().find(usable) {
            Some(token) => Self {
                credential: token.credential.clone(),
                actor: Some(token.actor.clone()),
                grants: token.grants.clone(),
                app: None,
                refusal: None,
                fingerprint: token.secret.clone(),
            },
            None => Self::rejected(&scheme, jwt::Refused::BadCredentials),
        }
    }
}

//! The JWT by which an App proves who it is: RS256, at most ten minutes ahead.

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, dangerous::insecure_decode, decode};
use serde::Deserialize;

use super::app::App;

/// How far ahead `exp` may be, in seconds (GitHub's documentation on JWTs for Apps).
pub const LONGEST_LIFE: i64 = 600;
/// How far an App's clock may be ahead of the server's, in seconds. GitHub tolerates little and
/// advises to back-date `iat` by a minute.
pub const CLOCK_SKEW: i64 = 30;

/// Why a credential was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    BadCredentials,
    Undecodable,
    Expired,
    TooLong,
    IssuedInFuture,
    UnknownApp,
}

impl Refused {
    /// GitHub's words.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::BadCredentials => "Bad credentials",
            Self::Undecodable => "A JSON web token could not be decoded",
            Self::Expired => {
                "'Expiration time' claim ('exp') must be a numeric value representing the future \
                 time at which the assertion expires"
            }
            Self::TooLong => "'Expiration time' claim ('exp') is too far in the future",
            Self::IssuedInFuture => {
                "'Issued at' claim ('iat') must be an Integer representing the time that the \
                 assertion was issued"
            }
            Self::UnknownApp => "Integration not found",
        }
    }
}

#[derive(Debug, Deserialize)]
struct Claims {
    iss: Issuer,
    iat: i64,
    exp: i64,
}

/// The App's id, as a number or as text, or its client id.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Issuer {
    Id(u64),
    Text(String),
}

impl Issuer {
    fn names(&self, app: &App) -> bool {
        match self {
            Self::Id(id) => *id == app.id,
            Self::Text(text) => *text == app.client_id || *text == app.id.to_string(),
        }
    }
}

/// The App that signed a JWT which is valid now.
pub(crate) fn verify<'a>(apps: &'a [App], jwt: &str, now: Timestamp) -> Result<&'a App, Refused> {
    // The issuer decides which key to verify with, so it is read before anything is proven.
    let unproven = insecure_decode::<Claims>(jwt).map_err(|_| Refused::Undecodable)?;
    let app = apps.iter().find(|app| unproven.claims.iss.names(app)).ok_or(Refused::UnknownApp)?;
    // Times are compared below, by the scripted clock instead of the machine's.
    let mut rules = Validation::new(Algorithm::RS256);
    rules.validate_exp = false;
    rules.validate_aud = false;
    let key = DecodingKey::from_rsa_der(&app.public_key);
    let claims = decode::<Claims>(jwt, &key, &rules).map_err(|_| Refused::Undecodable)?.claims;
    let now = now.as_second();
    if claims.exp <= now {
        Err(Refused::Expired)
    } else if claims.exp > now.saturating_add(LONGEST_LIFE) {
        Err(Refused::TooLong)
    } else if claims.iat > now.saturating_add(CLOCK_SKEW) {
        Err(Refused::IssuedInFuture)
    } else {
        Ok(app)
    }
}

//! Users and organisations.

use serde::{Deserialize, Serialize};

/// What an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AccountKind {
    User,
    Organization,
}

impl AccountKind {
    /// As in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Organization => "Organization",
        }
    }
}

/// An account.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) id: u64,
    pub(crate) login: String,
    pub(crate) kind: AccountKind,
}

//! Why GitHub could not be asked, or its answer not be understood.

use std::{path::PathBuf, time::Duration};

/// A request that led to no answer. What GitHub refuses is an [`Answer`](super::Answer).
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The file of a token or key cannot be read. GitHub is not asked without it.
    #[error("read GitHub's credential from {path:?}")]
    Credential {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds nothing that can be a token or a key.
    #[error("use the content of {path:?} as GitHub's credential: {problem}")]
    CredentialForm {
        /// The file.
        path: PathBuf,
        /// What is wrong, without the content.
        problem: &'static str,
    },
    /// The request did not get through, or the connection ended in the middle of the answer.
    #[error("ask GitHub for {path}")]
    Transport {
        /// Path and query.
        path: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer was not whole in time.
    #[error("ask GitHub for {path}: no whole answer within {} s", within.as_secs())]
    Deadline {
        /// Path and query.
        path: String,
        /// The time a request has.
        within: Duration,
    },
    /// The answer is too large; the rest was not read.
    #[error("read GitHub's answer for {path}: it has more than {limit} bytes")]
    TooLarge {
        /// Path and query.
        path: String,
        /// The bound.
        limit: usize,
    },
    /// The answer is no JSON, or not of the types that GitHub documents.
    #[error("read GitHub's answer for {path}: {problem}")]
    Unreadable {
        /// Path and query.
        path: String,
        /// What is wrong, without the answer's text.
        problem: &'static str,
    },
}

impl ForgeError {
    /// What kind of error it is, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Credential { .. } | Self::CredentialForm { .. } => "credential",
            Self::Transport { .. } => "transport",
            Self::Deadline { .. } => "deadline",
            Self::TooLarge { .. } => "too-large",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

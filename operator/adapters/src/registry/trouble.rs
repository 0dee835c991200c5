//! Why it is not known whether an image is there.

use std::fmt;

use jiff::Timestamp;

use super::Refusal;

/// Which request it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// For a token.
    Token,
    /// For a manifest.
    Manifest,
    /// For the image's configuration.
    Blob,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "a token",
            Self::Manifest => "the manifest",
            Self::Blob => "the image's configuration",
        })
    }
}

/// What stood in the way. None of these says that the image is not there, and none quotes an answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The host asks not to be called before then.
    #[error("ask {host} for {stage}: it asks for patience until {until}")]
    Throttled {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// From when on it may be called again.
        until: Timestamp,
        /// Whether it was asked at all, or the call was refused here.
        asked: bool,
    },
    /// The credential, or the lack of one, is refused.
    #[error("ask {host} for {stage}: it answered {status}")]
    Denied {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// The status.
        status: u16,
    },
    /// The registry sends for a token to a place that is not its own. Nothing was sent there.
    #[error("fetch a token for {host} at {realm}: that is not the registry's own place")]
    RealmRefused {
        /// The registry.
        host: String,
        /// The place, host and port alone.
        realm: String,
    },
    /// The operator's configuration does not permit it. Nothing was sent there.
    #[error("ask {host} for {stage}")]
    NotAllowed {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// Why.
        #[source]
        why: Refusal,
    },
    /// Any other status.
    #[error("ask {host} for {stage}: it answered {status}")]
    Upstream {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// The status.
        status: u16,
    },
    /// The request did not get through, or the connection ended in the middle of the answer.
    #[error("ask {host} for {stage}")]
    Transport {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The answers were not whole in time.
    #[error("ask {host}: no whole answer within {seconds} s")]
    Deadline {
        /// The host.
        host: String,
        /// The time that all requests together have.
        seconds: u64,
    },
    /// The answer is too large, or not what it should be.
    #[error("ask {host} for {stage}: {problem}")]
    Unreadable {
        /// The host.
        host: String,
        /// Which request it was.
        stage: Stage,
        /// What is wrong, without the answer's text.
        problem: &'static str,
    },
}

impl Trouble {
    /// What kind of trouble it is, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Throttled { .. } => "throttled",
            Self::Denied { .. } => "denied",
            Self::RealmRefused { .. } => "realm",
            Self::NotAllowed { .. } => "not-allowed",
            Self::Upstream { .. } => "upstream",
            Self::Transport { .. } => "transport",
            Self::Deadline { .. } => "deadline",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

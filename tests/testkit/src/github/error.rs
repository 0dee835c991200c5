//! What can go wrong while the scripted GitHub is started, changed or asked.

use std::io;

use thiserror::Error;

/// Why the scripted GitHub could not do what a test asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GitHubError {
    /// No socket.
    #[error("could not listen on 127.0.0.1:{port}")]
    Listen {
        /// The port that was asked for, 0 for any.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// No thread or no runtime for the server.
    #[error("could not start the thread of the scripted GitHub")]
    Thread(#[source] io::Error),
    /// The key pair of an App could not be made.
    #[error("could not generate the key pair of the App {slug}")]
    Key {
        /// The App.
        slug: String,
        /// Why.
        source: rcgen::Error,
    },
    /// Random bytes for a token or an id could not be had.
    #[error("could not draw random bytes")]
    Random,
    /// Something that was named is not there.
    #[error("there is no {kind} {name}")]
    Missing {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Something that was to be created is there already.
    #[error("there is a {kind} {name} already")]
    Exists {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A value that GitHub could not have.
    #[error("{what} cannot be {value:?}: {why}")]
    Invalid {
        /// Which field.
        what: &'static str,
        /// What was given.
        value: String,
        /// What is expected.
        why: &'static str,
    },
    /// A webhook or a change could not be sent.
    #[error("could not send {what} to {url}")]
    Send {
        /// What was to be sent.
        what: String,
        /// Where to.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The control endpoint refused a change.
    #[error("the scripted GitHub refused {what} ({status}): {why}")]
    Refused {
        /// The change.
        what: String,
        /// The status it answered.
        status: u16,
        /// Its words.
        why: String,
    },
}

impl GitHubError {
    pub(crate) fn missing(kind: &'static str, name: impl Into<String>) -> Self {
        Self::Missing { kind, name: name.into() }
    }

    pub(crate) fn exists(kind: &'static str, name: impl Into<String>) -> Self {
        Self::Exists { kind, name: name.into() }
    }
}

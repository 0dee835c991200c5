//! Why a write did not happen, or why that is not known.

use std::time::Duration;

use jiff::Timestamp;
use kube::core::Status;

/// What may follow an error: this alone decides whether and when a pass is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The world has moved since it was observed: observe again.
    Conflict,
    /// The API server asks not to be called before then.
    Throttled {
        /// From when on it may be called again.
        until: Timestamp,
    },
    /// It may go well later, with the same request. Whether it was committed is not known.
    Transient,
    /// The operator lacks a right.
    Denied,
    /// The API server does not accept such an object.
    Invalid,
    /// The namespace is gone or going: nothing can be written there any more.
    Gone,
    /// Nothing that can be sent follows from the plan, or the answer is none that can be read.
    Bug,
}

/// A write without a good answer. Says what was attempted on which object; why not is its source.
#[derive(Debug, thiserror::Error)]
#[error("{attempt}")]
pub struct WriteError {
    attempt: String,
    class: Class,
    #[source]
    cause: Cause,
}

impl WriteError {
    pub(super) fn new(attempt: impl Into<String>, class: Class, cause: Cause) -> Self {
        Self { attempt: attempt.into(), class, cause }
    }

    /// The same, where more is known than the answer alone says: the world has moved.
    pub(super) fn into_conflict(self) -> Self {
        Self { class: Class::Conflict, ..self }
    }

    /// What may follow.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What kind of error it is, for metrics.
    pub fn category(&self) -> &'static str {
        match (&self.cause, self.class) {
            (Cause::Deadline(_), _) => "deadline",
            (Cause::Transport(_), _) => "transport",
            (Cause::Unreadable(_), _) => "unreadable",
            (_, Class::Conflict) => "conflict",
            (_, Class::Throttled { .. }) => "throttled",
            (_, Class::Transient) => "unavailable",
            (_, Class::Denied) => "denied",
            (_, Class::Invalid) => "invalid",
            (_, Class::Gone) => "gone",
            (_, Class::Bug) => "bug",
        }
    }

    /// The API server's answer, if it gave one.
    pub(super) fn status(&self) -> Option<&Status> {
        match &self.cause {
            Cause::Refused(status) => Some(status),
            _ => None,
        }
    }
}

/// What stood in the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    /// The API server said no.
    #[error("the API server answered {}: {}", .0.code, .0.message)]
    Refused(Box<Status>),
    /// The request did not get through, or the connection ended in the middle of the answer.
    #[error("the request did not get through")]
    Transport(#[source] kube::Error),
    /// The answer was not whole in time.
    #[error("no whole answer within {} s", .0.as_secs())]
    Deadline(Duration),
    /// The answer is no object of the kind that was written.
    #[error("the answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// There is nothing that could be sent.
    #[error("{0}")]
    Unsendable(String),
}

//! What the server was asked and what it answered, to assert on.

use std::collections::VecDeque;

use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;

use super::{auth::Credential, routes::Route};

/// Requests that are kept; older ones are forgotten, their numbers are not given again.
const KEPT: usize = 50_000;

/// One request and its answer. It never holds a secret: `authorization` is reduced to the kind and
/// the label of the credential.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// Counts from 0 and never repeats.
    pub number: u64,
    /// When it arrived, by the scripted clock.
    pub at: Timestamp,
    /// `GET`, `POST` …
    pub method: String,
    /// The path without query, as sent, with the Enterprise prefix where there was one.
    pub path: String,
    /// The query as sent, without `?`; empty when there was none.
    pub query: String,
    /// Header names in lower case, with their values, in the order they arrived.
    pub headers: Vec<(String, String)>,
    /// Who asked.
    pub credential: Credential,
    /// Which route took it; none for a path GitHub does not have.
    pub route: Option<Route>,
    /// The status answered; none when the connection was closed or left hanging.
    pub status: Option<u16>,
    /// Whether a script answered instead of the route.
    pub scripted: bool,
    /// Whether it was charged to the primary limit.
    pub counted: bool,
    /// The body sent with it, as text.
    pub body: String,
}

impl Request {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the answer was 304.
    pub fn not_modified(&self) -> bool {
        self.status == Some(StatusCode::NOT_MODIFIED.as_u16())
    }

    /// Whether the status is one that the route's entry in the table of routes names.
    ///
    /// Scripted answers and unknown paths are outside the table.
    pub fn is_declared(&self) -> bool {
        match (self.route, self.status) {
            (Some(route), Some(status)) if !self.scripted => {
                route.info().statuses().contains(&status)
            }
            _ => true,
        }
    }
}

/// A place in the log: what came before it is left out by [`Log::since`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// The requests up to the moment it was taken, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Log(Vec<Request>);

impl Log {
    /// Every request.
    pub fn requests(&self) -> &[Request] {
        &self.0
    }

    /// The last request.
    pub fn last(&self) -> Option<&Request> {
        self.0.last()
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many requests a test cares for.
    pub fn count(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.0.iter().filter(|request| wanted(request)).count()
    }

    /// What came after a mark.
    #[must_use]
    pub fn since(&self, mark: Mark) -> Self {
        Self(self.0.iter().filter(|request| request.number >= mark.0).cloned().collect())
    }

    /// One line for each request, for the message of a failed assertion.
    pub fn summary(&self) -> String {
        let lines = self.0.iter().map(|request| {
            let status = request.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            let (method, path, query) = (&request.method, &request.path, &request.query);
            let question = if query.is_empty() { "" } else { "?" };
            format!("{status} {method} {path}{question}{query} as {}", request.credential)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The log as the server keeps it.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    requests: VecDeque<Request>,
    next: u64,
}

impl Journal {
    pub(crate) fn push(&mut self, mut request: Request) {
        request.number = self.next;
        self.next += 1;
        if self.requests.len() == KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.next)
    }

    pub(crate) fn snapshot(&self) -> Log {
        Log(self.requests.iter().cloned().collect())
    }
}

//! Faults on the wire: the innermost layer of a client, where a test decides what becomes of a call.
//!
//! The layer stands below retries and authentication, so each attempt is a call of its own, and
//! above the connection, so what it lets through is what the server gets. It works for kube
//! ([`client()`]) and for every [`tower::Service`] from an HTTP request to an HTTP response
//! ([`FaultPlan::http`]; [`ReqwestService`] makes one of a `reqwest::Client`). Where only a URL can be
//! given, it is that of a [`Relay`].
//!
//! A [`FaultPlan`] holds the rules ("for the second apply of a Deployment: crash after commit") and
//! the [`Trace`] of all calls. All clients of one simulated process share one plan.
//!
//! # Crashes
//!
//! A crash ends the *process* of the plan: the call that crashed never returns, nor does any other
//! call that is in flight or made later through a client of that process; none of them is sent, and
//! response bodies that are still open (watches) fall silent. The test then drops all the process
//! owned and starts it again with empty memory:
//!
//! ```no_run
//! use belay_testkit::fault::{self, Calls, Fault, FaultPlan, Nth, PatchKind, Verb};
//!
//! # async fn operator(_: kube::Client) {}
//! # async fn test(config: kube::Config) -> Result<(), Box<dyn std::error::Error>> {
//! let plan = FaultPlan::new();
//! let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
//! plan.inject(apply, Nth::Only(1), Fault::CrashAfter);
//! loop {
//!     let client = fault::client(config.clone(), &plan, true)?;
//!     tokio::select! {
//!         () = operator(client) => break,
//!         // The losing branch is dropped, and with it the operator's memory.
//!         () = plan.crashed() => plan.restart(),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What the process has spawned must be dropped with it (a `JoinSet` does that); a task that is
//! forgotten can at least do no harm, for its client stays silent after [`FaultPlan::restart`].
//!
//! # Every possible crash
//!
//! A reference run without rules gives a trace; [`plans_for`] makes of it one plan for each call and
//! fault. Where object names differ from run to run, [`FaultPlan::alias`] gives them constant ones.

mod body;
mod call;
mod client;
mod layer;
mod plan;
mod relay;
mod rule;
mod trace;

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde_json::json;

pub use self::{
    body::FaultBody,
    call::{CallId, PatchKind, Resource, Target, Verb},
    client::{ReqwestService, client, client_with},
    layer::{FaultLayer, Faulty},
    plan::{FaultPlan, plans_for},
    relay::Relay,
    rule::{Calls, Nth, Rule},
    trace::{Call, Outcome, Trace},
};

/// What becomes of a call.
///
/// "After" means: sent, and the head of the server's answer has arrived, so whatever the server
/// commits is committed. Where sending fails, a fault "after" that has an answer or an error for the
/// caller gives way to the real error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through. As an earlier rule it shields the call from later ones.
    Pass,
    /// The process ends before the request leaves.
    CrashBefore,
    /// The process ends between the server's commit and its answer.
    CrashAfter,
    /// The caller gets this answer; the server gets no request.
    Answer(Answer),
    /// The server has committed, but the caller gets this answer, for example 504.
    AnswerAfter(Answer),
    /// Nothing is sent and the caller waits until it gives up.
    Hang,
    /// The server has committed, but the caller waits until it gives up.
    HangAfter,
    /// Nothing is sent and the caller gets "connection reset".
    Reset,
    /// The server has committed, but the caller gets "connection reset".
    ResetAfter,
    /// The caller gets the head of the server's answer and the beginning of its body.
    Truncate {
        /// How many bytes of the body arrive.
        after_bytes: u64,
        /// What follows them.
        end: End,
    },
}

/// How a truncated body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With an error (`UnexpectedEof`), as when a connection breaks. A body that is shorter than the
    /// limit ends with it too.
    Error,
    /// As if it were complete.
    Eof,
    /// Not at all: no byte and no end, the silent stall of a watch.
    Stall,
}

/// An answer that did not come from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Answer {
    /// An answer without headers and body.
    pub fn new(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// An error as the API server words it: a `Status` object with this reason and message.
    pub fn kubernetes(status: StatusCode, reason: &str, message: &str) -> Self {
        let body = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "code": status.as_u16(), "reason": reason, "message": message,
        });
        Self::new(status)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_string())
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// The same answer with this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

impl Fault {
    /// Whether the server gets the request.
    pub fn sends(&self) -> bool {
        match self {
            Self::Pass
            | Self::CrashAfter
            | Self::AnswerAfter(_)
            | Self::HangAfter
            | Self::ResetAfter
            | Self::Truncate { .. } => true,
            Self::CrashBefore | Self::Answer(_) | Self::Hang | Self::Reset => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::CrashBefore => f.write_str("crash before"),
            Self::CrashAfter => f.write_str("crash after"),
            Self::Answer(answer) => write!(f, "answer {}", answer.status.as_u16()),
            Self::AnswerAfter(answer) => write!(f, "answer {} after", answer.status.as_u16()),
            Self::Hang => f.write_str("hang"),
            Self::HangAfter => f.write_str("hang after"),
            Self::Reset => f.write_str("reset"),
            Self::ResetAfter => f.write_str("reset after"),
            Self::Truncate { after_bytes, end } => {
                let end = match end {
                    End::Error => "error",
                    End::Eof => "end",
                    End::Stall => "stall",
                };
                write!(f, "{end} after {after_bytes} bytes")
            }
        }
    }
}

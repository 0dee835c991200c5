//! What was called, in order.

use std::fmt;

use bytes::Bytes;
use http::StatusCode;

use super::{CallId, Calls, Fault, Target, call::Plain};

/// What the server said to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, for the fault kept the request back.
    NotSent,
    /// Nothing yet.
    InFlight,
    /// This, whatever the caller got.
    Status(StatusCode),
    /// Nothing: the connection failed for this reason.
    Failed(String),
    /// Nothing before the caller, or its process, gave up.
    Dropped,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which it is.
    pub id: CallId,
    /// The process that made it, from 1; see [`super::FaultPlan::restart`].
    pub process: u64,
    /// Its query, decoded.
    pub query: Vec<(String, String)>,
    /// The beginning of its body, if the plan keeps bodies and the body was no stream.
    pub body: Option<Bytes>,
    /// The fault it met.
    pub fault: Option<Fault>,
    /// What the server said.
    pub outcome: Outcome,
}

/// Parts of a query that say what a call means and are the same in every run, unlike for example
/// a resourceVersion.
const TELLING: [&str; 8] = [
    "fieldManager",
    "force",
    "dryRun",
    "fieldValidation",
    "propagationPolicy",
    "fieldSelector",
    "labelSelector",
    "limit",
];

impl Call {
    /// The status the caller got, if it got one.
    pub fn answered(&self) -> Option<StatusCode> {
        match (&self.fault, &self.outcome) {
            (Some(Fault::Answer(answer)), _)
            | (Some(Fault::AnswerAfter(answer)), Outcome::Status(_)) => Some(answer.status),
            (Some(Fault::Truncate { .. } | Fault::Pass) | None, Outcome::Status(status)) => {
                Some(*status)
            }
            _ => None,
        }
    }

    /// The name of the object: from the path or, for a creation, from the body that was kept.
    pub fn object_name(&self) -> Option<String> {
        let resource = self.id.resource()?;
        resource.name.clone().or_else(|| {
            let body: serde_json::Value = serde_json::from_slice(self.body.as_ref()?).ok()?;
            body["metadata"]["name"].as_str().map(str::to_owned)
        })
    }
}

/// `PATCH(apply) apps/v1 deployments shop/web fieldManager=x force=true → 200`: on one line and the
/// same in every run.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, process: _, query, body: _, fault, outcome } = self;
        write!(f, "{id}")?;
        let mut show = |key: &str, value: &str| write!(f, " {}={}", Plain(key), Plain(value));
        match id.target {
            Target::Path { .. } => query.iter().try_for_each(|(key, value)| show(key, value))?,
            Target::Resource(_) => TELLING
                .iter()
                .flat_map(|telling| query.iter().filter(move |(key, _)| key == telling))
                .try_for_each(|(key, value)| show(key, value))?,
        }
        f.write_str(" → ")?;
        match outcome {
            Outcome::NotSent => f.write_str("not sent")?,
            Outcome::InFlight => f.write_str("in flight")?,
            Outcome::Status(status) => f.write_str(status.as_str())?,
            Outcome::Failed(_) => f.write_str("error")?,
            Outcome::Dropped => f.write_str("dropped")?,
        }
        fault.as_ref().map_or(Ok(()), |fault| write!(f, ", {fault}"))
    }
}

/// Calls in the order they were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    pub(crate) calls: Vec<Call>,
}

impl Trace {
    /// The calls.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// How many of the calls are in this set.
    pub fn count(&self, calls: &Calls) -> usize {
        self.calls.iter().filter(|call| calls.contains(&call.id)).count()
    }

    /// Those in this set.
    #[must_use]
    pub fn of(&self, calls: &Calls) -> Self {
        self.filter(|call| calls.contains(&call.id))
    }

    /// Those that change something when they are granted ([`CallId::is_write`]), sent or not.
    #[must_use]
    pub fn writes(&self) -> Self {
        self.filter(|call| call.id.is_write())
    }

    /// Those that met a fault.
    #[must_use]
    pub fn faults(&self) -> Self {
        self.filter(|call| call.fault.is_some())
    }

    /// Those made by this process, from 1.
    #[must_use]
    pub fn process(&self, process: u64) -> Self {
        self.filter(|call| call.process == process)
    }

    /// Those the test chooses.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(&Call) -> bool) -> Self {
        Self { calls: self.calls.iter().filter(|call| keep(call)).cloned().collect() }
    }
}

/// A line for each call, and one before the first call of each process but the first.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut process = 1;
        for call in &self.calls {
            if call.process != process {
                process = call.process;
                writeln!(f, "-- process {process}")?;
            }
            writeln!(f, "{call}")?;
        }
        Ok(())
    }
}

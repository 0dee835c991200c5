//! Errors in kubectl's shape: `Error from server (Reason): …` or `error: …`, then `cause:` and
//! `hint:` lines. The class alone gives the exit code (specification of the plugin, section C.5).

use std::{
    fmt, io, iter,
    ops::{Deref, DerefMut},
};

use kube::core::Status;

use crate::{connect::proxy::ProxyError, exit::Exit};

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command line cannot be followed, or a confirmation was needed and not given.
    Usage,
    /// The object, or its kind, is not there.
    NotFound,
    /// The API server does not permit it.
    Forbidden,
    /// A write met another owner or a newer object.
    Conflict,
    /// There was no answer in time from the API server.
    Unreachable,
    /// `--timeout` passed.
    Timeout,
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads the output any more; nothing is printed.
    ClosedPipe,
    /// Everything else.
    Other,
}

impl Class {
    /// How the run ends.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Usage => Exit::Usage,
            Self::Conflict => Exit::Conflict,
            Self::Timeout => Exit::Timeout,
            Self::Interrupted => Exit::Interrupted,
            Self::ClosedPipe => Exit::ClosedPipe,
            Self::NotFound | Self::Forbidden | Self::Unreachable | Self::Other => Exit::Error,
        }
    }
}

/// Why a verb could not do what it was asked. Its [`Details`] stand on the heap: errors are rare, and
/// results are many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

/// What an [`Error`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// What kind of failure it is.
    pub class: Class,
    /// The API server's reason, such as `NotFound`; `None` if it was not the server that refused.
    pub reason: Option<String>,
    /// What was attempted, on what, and why it failed: one sentence without a prefix.
    pub message: String,
    /// Why, line by line.
    pub causes: Vec<String>,
    /// What to do next, line by line.
    pub hints: Vec<String>,
    /// The original words of others, for `-v`.
    pub detail: Option<String>,
}

impl Error {
    /// An error of that class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            class,
            reason: None,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            detail: None,
        }))
    }

    /// The command line, or a missing confirmation, is at fault.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Class::Usage, message)
    }

    /// Any other failure.
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(Class::Other, message)
    }

    /// What the API server said about `attempt`, such as `get deployments.apps "web"`.
    pub fn of_status(attempt: &str, status: &Status) -> Self {
        let class = match (status.code, status.reason.as_str()) {
            (404, _) => Class::NotFound,
            (401 | 403, _) => Class::Forbidden,
            (409, "Conflict") => Class::Conflict,
            (504, _) => Class::Unreachable,
            _ => Class::Other,
        };
        let said = if status.message.is_empty() {
            format!("{attempt}: the server answered {}", status.code)
        } else {
            status.message.clone()
        };
        let reason = Some(&status.reason).filter(|reason| !reason.is_empty()).cloned();
        let reason = reason.unwrap_or_else(|| status.code.to_string());
        Self::new(class, said).reason(reason)
    }

    /// What kube said about `attempt`.
    pub fn of_kube(attempt: &str, error: &kube::Error) -> Self {
        if let Some(proxy) = of_proxy(error) {
            return Self::new(Class::Unreachable, format!("{attempt}: {proxy}")).hint(&proxy.hint);
        }
        match error {
            kube::Error::Api(status) => {
                let mut error = Self::of_status(attempt, status);
                error.detail = Some(format!("{attempt}: {status:?}"));
                error
            }
            kube::Error::HyperError(_) | kube::Error::Service(_) => {
                let words = chain(error);
                // The layers of the client are no news for people.
                let words = words.trim_start_matches("ServiceError: ");
                let why = match words.strip_prefix("client error (Connect): ") {
                    Some(why) => format!("cannot connect: {why}"),
                    None => words.to_owned(),
                };
                Self::new(Class::Unreachable, format!("{attempt}: {why}"))
            }
            _ => Self::other(format!("{attempt}: {}", chain(error))),
        }
    }

    /// With the API server's reason, such as `NotFound`.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// With a line that says why.
    #[must_use]
    pub fn cause(mut self, line: impl Into<String>) -> Self {
        self.causes.push(line.into());
        self
    }

    /// With a line that says what to do next.
    #[must_use]
    pub fn hint(mut self, line: impl Into<String>) -> Self {
        self.hints.push(line.into());
        self
    }

    /// How the run ends.
    pub fn exit(&self) -> Exit {
        self.class.exit()
    }

    /// The lines that are printed on standard error.
    pub fn lines(&self, verbose: bool) -> Vec<String> {
        if self.class == Class::ClosedPipe {
            return Vec::new();
        }
        let first = match &self.reason {
            Some(reason) => format!("Error from server ({reason}): {}", self.message),
            None => format!("error: {}", self.message),
        };
        let mut lines = vec![first];
        lines.extend(self.causes.iter().map(|cause| format!("cause: {cause}")));
        lines.extend(self.hints.iter().map(|hint| format!("hint: {hint}")));
        if verbose && let Some(detail) = &self.detail {
            lines.push(format!("detail: {detail}"));
        }
        lines
    }
}

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines(false).join("\n"))
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    /// An error of writing the output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Class::ClosedPipe, "nobody reads the output");
        }
        Self::other(format!("write the output: {error}"))
    }
}

/// The proxy's part in a failure.
fn of_proxy<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a ProxyError> {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    causes.find_map(|cause| cause.downcast_ref())
}

/// All causes in one line; some libraries repeat theirs.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(404, "NotFound", Class::NotFound, 1)]
    #[case(403, "Forbidden", Class::Forbidden, 1)]
    #[case(409, "Conflict", Class::Conflict, 4)]
    #[case(409, "AlreadyExists", Class::Other, 1)]
    #[case(500, "InternalError", Class::Other, 1)]
    fn the_servers_answer_gives_class_and_exit_code(
        #[case] code: u16,
        #[case] reason: &str,
        #[case] class: Class,
        #[case] exit: u8,
    ) {
        let status = Status::failure("no", reason).with_code(code);
        let error = Error::of_status("get it", &status);
        assert_eq!((error.class, error.exit().code()), (class, exit));
        assert_eq!(error.to_string(), format!("Error from server ({reason}): no"));
    }

    #[test]
    fn causes_and_hints_follow_and_details_only_when_asked_for() {
        let mut error = Error::usage("no").cause("a").hint("b");
        error.detail = Some("c".to_owned());
        assert_eq!(error.lines(false), ["error: no", "cause: a", "hint: b"]);
        assert_eq!(error.lines(true).len(), 4);
    }

    #[test]
    fn a_closed_pipe_says_nothing() {
        let error = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((error.lines(true).len(), error.exit()), (0, Exit::ClosedPipe));
    }
}

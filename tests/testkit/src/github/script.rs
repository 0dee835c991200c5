//! Scripted answers: "the next three requests for this path answer that".

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::auth::Credential;

/// Which requests a script answers; what is none fits every request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matching {
    /// The method, in capitals.
    pub method: Option<String>,
    /// The path without the Enterprise prefix; `*` stands for any text, `/` included.
    pub path: Option<String>,
    /// A parameter that the query must have, as `NAME=VALUE`.
    pub query: Option<String>,
    /// The label of the credential, as [`Credential::bucket`] gives it.
    pub credential: Option<String>,
}

impl Matching {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests for a path.
    pub fn path(pattern: impl Into<String>) -> Self {
        Self { path: Some(pattern.into()), ..Self::default() }
    }

    /// Only with this method.
    #[must_use]
    pub fn method(self, method: impl Into<String>) -> Self {
        Self { method: Some(method.into()), ..self }
    }

    /// Only with this `NAME=VALUE` in the query.
    #[must_use]
    pub fn query(self, parameter: impl Into<String>) -> Self {
        Self { query: Some(parameter.into()), ..self }
    }

    /// Only from this credential.
    #[must_use]
    pub fn credential(self, label: impl Into<String>) -> Self {
        Self { credential: Some(label.into()), ..self }
    }

    fn fits(&self, request: &Asked<'_>) -> bool {
        let Self { method, path, query, credential } = self;
        method.as_ref().is_none_or(|method| method == request.method)
            && path.as_ref().is_none_or(|path| matches(path, request.path))
            && query.as_ref().is_none_or(|wanted| request.query.split('&').any(|it| it == wanted))
            && credential.as_ref().is_none_or(|label| *label == request.credential.bucket())
    }
}

/// For how long a script answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// For the next so many requests that match.
    Next(u32),
    /// For so many seconds of the scripted clock.
    Seconds(u64),
    /// Until scripts are cleared.
    Always,
}

/// What a script answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Exactly this.
    Answer {
        /// The status.
        status: u16,
        /// Names and values; they replace those the server would send.
        #[serde(default)]
        headers: Vec<(String, String)>,
        /// The body as it is.
        #[serde(default)]
        body: String,
    },
    /// The secondary limit, in GitHub's words.
    SecondaryLimit {
        /// 403 or 429.
        status: u16,
        /// `Retry-After` in seconds; GitHub does not always send one.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// A bare 403 of an organisation that demands single sign-on.
    SingleSignOn,
    /// A bare 403 of an organisation with an IP allow list.
    AddressNotAllowed,
    /// The real answer with its JSON cut off in the middle, complete as far as HTTP goes.
    Garbage,
    /// The real answer padded with blanks to at least so many bytes, still valid JSON.
    Padded {
        /// The size.
        bytes: usize,
    },
    /// The head of the real answer and so many bytes of its body, then the end of the connection.
    Truncated {
        /// Bytes of the body that are sent.
        bytes: usize,
    },
    /// The head of the real answer, which announces the size of a large body, and then one byte after
    /// the other, slowly, for as long as the client waits.
    Drip,
    /// The end of the connection without an answer. The request has no effect.
    Close,
    /// No answer for as long as the client waits. The request has no effect.
    Hang,
}

/// What scripts look at.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) credential: &'a Credential,
}

#[derive(Debug)]
struct Script {
    matching: Matching,
    left: Left,
    reply: Reply,
}

#[derive(Debug, Clone, Copy)]
enum Left {
    Requests(u32),
    Until(Timestamp),
    Always,
}

/// The scripts that are in force, in the order they were given; the first that fits answers.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Vec<Script>);

impl Scripts {
    pub(crate) fn add(&mut self, matching: Matching, times: Times, reply: Reply, now: Timestamp) {
        let left = match times {
            Times::Next(count) => Left::Requests(count),
            Times::Seconds(seconds) => {
                let end = now.saturating_add(Duration::from_secs(seconds));
                Left::Until(end.unwrap_or(Timestamp::MAX))
            }
            Times::Always => Left::Always,
        };
        self.0.push(Script { matching, left, reply });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The reply to a request, which uses the script up by one.
    pub(crate) fn take(&mut self, request: &Asked<'_>, now: Timestamp) -> Option<Reply> {
        self.0.retain(|script| match script.left {
            Left::Requests(count) => count > 0,
            Left::Until(end) => now < end,
            Left::Always => true,
        });
        let script = self.0.iter_mut().find(|script| script.matching.fits(request))?;
        if let Left::Requests(count) = &mut script.left {
            *count -= 1;
        }
        Some(script.reply.clone())
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, mut rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    while let Some((part, after)) = rest.split_once('*') {
        let Some(at) = text.find(part) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
        rest = after;
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/repos/a/b", "/repos/a/b", true)]
    #[case("/repos/a/b", "/repos/a/b/releases", false)]
    #[case("/repos/*", "/repos/a/b", true)]
    #[case("*/releases", "/repos/a/b/releases", true)]
    #[case("*/releases", "/repos/a/b/releases/latest", false)]
    #[case("/repos/*/releases/*", "/repos/a/b/releases/tags/v1", true)]
    #[case("/a*a", "/a", false)]
    #[case("*", "", true)]
    fn a_star_stands_for_any_text(#[case] pattern: &str, #[case] text: &str, #[case] fits: bool) {
        assert_eq!(matches(pattern, text), fits);
    }

    #[test]
    fn a_script_ends_with_its_count_or_its_time() {
        let (mut scripts, now) = (Scripts::default(), Timestamp::UNIX_EPOCH);
        let asked =
            Asked { method: "GET", path: "/", query: "", credential: &Credential::Anonymous };
        scripts.add(Matching::any(), Times::Next(1), Reply::Close, now);
        scripts.add(Matching::any(), Times::Seconds(10), Reply::Hang, now);
        assert_eq!(scripts.take(&asked, now), Some(Reply::Close));
        assert_eq!(scripts.take(&asked, now), Some(Reply::Hang));
        let later = now.saturating_add(Duration::from_secs(9)).unwrap();
        assert_eq!(scripts.take(&asked, later), Some(Reply::Hang));
        let after = now.saturating_add(Duration::from_secs(10)).unwrap();
        assert_eq!(scripts.take(&asked, after), None);
    }
}

//! Sends one request and reads its answer.
//!
//! Not by kube's own methods, because an error of theirs has lost the answer's headers, and with them
//! how long the API server asks to wait.

use std::{fmt, time::Duration};

use belay_api::limits;
use http::{Request, Uri};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::{
    Client,
    client::Body,
    core::{Status, request, response::StatusCause},
};
use serde::de::DeserializeOwned;

use super::error::{Cause, Class, WriteError};
use crate::{
    clock::{self, Clock},
    retry_after,
};

/// The wait before a call that the API server throttled without saying for how long.
const THROTTLED: Duration = Duration::from_secs(1);
/// The longest part of an answer without a `Status` that is repeated.
const MAX_MESSAGE: usize = 500;

/// Sends requests with a deadline.
#[derive(Clone)]
pub(super) struct Sender {
    client: Client,
    clock: Clock,
    patience: Duration,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Sender {
    pub(super) fn new(client: Client, clock: Clock, patience: Duration) -> Self {
        Self { client, clock, patience }
    }

    /// Sends a request; `attempt` says what is attempted on which object.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        attempt: &str,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<T, WriteError> {
        let unsendable = |why: String| {
            let class = Class::Bug;
            WriteError::new(attempt, class, Cause::Unsendable(why))
        };
        let request = request.map_err(|error| unsendable(error.to_string()))?.map(Body::from);
        let exchange = self.exchange(attempt, request);
        tokio::time::timeout(self.patience, exchange).await.unwrap_or_else(|_| {
            let cause = Cause::Deadline(self.patience);
            Err(WriteError::new(attempt, Class::Transient, cause))
        })
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        attempt: &str,
        request: Request<Body>,
    ) -> Result<T, WriteError> {
        let lost = |error| WriteError::new(attempt, Class::Transient, Cause::Transport(error));
        let answer = self.client.send(request).await.map_err(lost)?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(lost)?.to_bytes();
        if head.status.is_success() {
            return serde_json::from_slice(&body)
                .map_err(|error| WriteError::new(attempt, Class::Bug, Cause::Unreadable(error)));
        }
        let now = retry_after::date(&head.headers).unwrap_or_else(|| self.clock.now());
        let mut status = read_status(&body);
        status.code = head.status.as_u16();
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let asked = retry_after::of(&head.headers, now)
            .or((seconds > 0).then(|| Duration::from_secs(seconds.into())));
        let class = class_of(&status, asked, now);
        Err(WriteError::new(attempt, class, Cause::Refused(Box::new(status))))
    }
}

/// The words of a refusal: a `Status`, or whatever a proxy on the way has to say.
fn read_status(body: &[u8]) -> Status {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        Status::failure(&limits::clip(text.trim(), MAX_MESSAGE), "")
    })
}

/// What may follow a refusal. `asked` is for how long the API server asks to wait.
fn class_of(status: &Status, asked: Option<Duration>, now: Timestamp) -> Class {
    let until = |wait| Class::Throttled { until: clock::after(now, wait) };
    match (status.code, asked) {
        (429, asked) => until(asked.unwrap_or(THROTTLED)),
        (500.., Some(asked)) => until(asked),
        // The token is being renewed: it is read again once a minute.
        (401 | 408 | 500.., _) => Class::Transient,
        _ if namespace_is_gone(status) => Class::Gone,
        // Where nothing is served under the path, no object is meant: a CRD is missing for now.
        (404, _) if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
            Class::Transient
        }
        (404 | 409 | 410, _) => Class::Conflict,
        // An object of that name was made anew.
        (422, _) if causes(status).iter().any(|cause| cause.field == "metadata.uid") => {
            Class::Conflict
        }
        (403, _) => Class::Denied,
        _ => Class::Invalid,
    }
}

fn namespace_is_gone(status: &Status) -> bool {
    let terminating = || causes(status).iter().any(|cause| cause.reason == "NamespaceTerminating");
    let kind = status.details.as_ref().map(|details| details.kind.as_str());
    match status.code {
        403 => terminating(),
        404 => kind == Some("namespaces"),
        _ => false,
    }
}

pub(super) fn causes(status: &Status) -> &[StatusCause] {
    status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default()
}

/// Has the API server refuse fields that it does not know, instead of dropping them. kube's builder
/// can say so for patches alone.
pub(super) fn strict(
    request: Result<Request<Vec<u8>>, request::Error>,
) -> Result<Request<Vec<u8>>, request::Error> {
    let mut request = request?;
    let uri = request.uri().to_string();
    let and = match uri.rsplit_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    *request.uri_mut() = Uri::try_from(format!("{uri}{and}fieldValidation=Strict"))
        .map_err(|error| request::Error::BuildRequest(error.into()))?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::fake::{Answer, Server, refusal};

    const NOW: &str = "2026-03-01T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    async fn send(answer: Answer) -> Result<Value, WriteError> {
        let server = Server::answering([answer]);
        let sender = Sender::new(server.client(), Clock::of(now), Duration::from_secs(40));
        let request = request::Request::new("/a").get("b", &kube::api::GetParams::default());
        sender.send("read b", request).await
    }

    fn throttled(seconds: i64) -> Class {
        Class::Throttled { until: now() + jiff::SignedDuration::from_secs(seconds) }
    }

    #[rstest]
    #[case::stale(409, "Conflict", json!({ "name": "b" }), Class::Conflict, "conflict")]
    #[case::exists(409, "AlreadyExists", json!({ "name": "b" }), Class::Conflict, "conflict")]
    #[case::missing(404, "NotFound", json!({ "name": "b", "kind": "releases" }), Class::Conflict, "conflict")]
    #[case::made_anew(
        422, "Invalid", json!({ "causes": [{ "field": "metadata.uid", "reason": "FieldValueInvalid" }] }),
        Class::Conflict, "conflict"
    )]
    #[case::no_namespace(404, "NotFound", json!({ "name": "shop", "kind": "namespaces" }), Class::Gone, "gone")]
    #[case::a_namespace_that_goes(
        403, "Forbidden",
        json!({ "causes": [{ "reason": "NamespaceTerminating", "field": "metadata.namespace" }] }),
        Class::Gone, "gone"
    )]
    #[case::no_crd(404, "NotFound", json!({}), Class::Transient, "unavailable")]
    #[case::no_right(403, "Forbidden", json!({ "name": "b" }), Class::Denied, "denied")]
    #[case::a_bad_body(
        422, "Invalid", json!({ "causes": [{ "field": "status.hold", "reason": "FieldValueInvalid" }] }),
        Class::Invalid, "invalid"
    )]
    #[case::an_unknown_field(400, "BadRequest", json!({}), Class::Invalid, "invalid")]
    #[case::too_large(413, "RequestEntityTooLarge", json!({}), Class::Invalid, "invalid")]
    #[case::a_token_in_renewal(401, "Unauthorized", json!({}), Class::Transient, "unavailable")]
    #[case::an_error(500, "InternalError", json!({}), Class::Transient, "unavailable")]
    #[case::a_late_answer(504, "Timeout", json!({}), Class::Transient, "unavailable")]
    #[case::a_server_that_asks_for_time(
        500, "ServerTimeout", json!({ "retryAfterSeconds": 3 }), throttled(3), "throttled"
    )]
    #[case::throttled(429, "TooManyRequests", json!({ "retryAfterSeconds": 7 }), throttled(7), "throttled")]
    #[case::throttled_without_a_time(429, "TooManyRequests", json!({}), throttled(1), "throttled")]
    #[tokio::test]
    async fn a_refusal_has_a_class(
        #[case] code: u16,
        #[case] reason: &str,
        #[case] details: Value,
        #[case] class: Class,
        #[case] category: &str,
    ) {
        let error = send(Answer::refusal(code, reason, "says why", details)).await.unwrap_err();
        assert_eq!((error.class(), error.category()), (class, category));
        assert_eq!(error.to_string(), "read b");
        let source = error.source().unwrap().to_string();
        assert_eq!(source, format!("the API server answered {code}: says why"));
    }

    #[rstest]
    #[case::of_a_filter("Too many requests, please try again later.", 429, "5", throttled(5))]
    #[case::of_a_proxy("<html>busy</html>", 503, "30", throttled(30))]
    #[tokio::test]
    async fn the_time_to_wait_is_read_from_the_header_of_an_answer_in_plain_text(
        #[case] text: &str,
        #[case] code: u16,
        #[case] wait: &str,
        #[case] class: Class,
    ) {
        let answer = Answer::Of(code, Vec::new(), text.to_owned()).with("retry-after", wait);
        let error = send(answer).await.unwrap_err();
        assert_eq!(error.class(), class);
        assert!(error.source().unwrap().to_string().contains(text));
    }

    #[tokio::test]
    async fn the_wait_counts_from_the_date_of_the_answer() {
        let answer =
            Answer::refusal(429, "TooManyRequests", "", json!({ "retryAfterSeconds": 10 }))
                .with("date", "Sun, 01 Mar 2026 13:00:00 GMT");
        let until = "2026-03-01T13:00:10Z".parse().unwrap();
        assert_eq!(send(answer).await.unwrap_err().class(), Class::Throttled { until });
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends_at_its_deadline() {
        let error = send(Answer::Silence).await.unwrap_err();
        assert_eq!((error.class(), error.category()), (Class::Transient, "deadline"));
        assert_eq!(error.source().unwrap().to_string(), "no whole answer within 40 s");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_transient() {
        let broken = |_: Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::from(
                std::io::ErrorKind::ConnectionReset,
            ))
        };
        let client = Client::new(tower::service_fn(broken), "default");
        let sender = Sender::new(client, Clock::of(now), Duration::from_secs(40));
        let request = request::Request::new("/a").get("b", &kube::api::GetParams::default());
        let error = sender.send::<Value>("read b", request).await.unwrap_err();
        assert_eq!((error.class(), error.category()), (Class::Transient, "transport"));
    }

    #[tokio::test]
    async fn an_answer_that_is_no_object_is_a_bug() {
        let error = send(Answer::Of(200, Vec::new(), "no".to_owned())).await.unwrap_err();
        assert_eq!((error.class(), error.category()), (Class::Bug, "unreadable"));
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_a_bug() {
        let server = Server::default();
        let sender = Sender::new(server.client(), Clock::of(now), Duration::from_secs(40));
        let request = request::Request::new("/a").get("", &kube::api::GetParams::default());
        let error = sender.send::<Value>("read nothing", request).await.unwrap_err();
        assert_eq!((error.class(), error.category()), (Class::Bug, "bug"));
        assert!(server.lines().is_empty());
    }

    #[rstest]
    #[case("/a/b", "/a/b?fieldValidation=Strict")]
    #[case("/a/b?", "/a/b?fieldValidation=Strict")]
    #[case("/a/b?dryRun=All", "/a/b?dryRun=All&fieldValidation=Strict")]
    fn strictness_is_added_to_any_query(#[case] uri: &str, #[case] expected: &str) {
        let request = Request::put(uri).body(Vec::new()).unwrap();
        assert_eq!(strict(Ok(request)).unwrap().uri().to_string(), expected);
    }

    #[test]
    fn the_words_of_a_refusal_survive_unless_they_are_endless() {
        let status = read_status(refusal(409, "Conflict", "m", json!({})).to_string().as_bytes());
        assert_eq!((status.reason.as_str(), status.message.as_str()), ("Conflict", "m"));
        let endless = "x".repeat(5000);
        assert_eq!(read_status(endless.as_bytes()).message.chars().count(), MAX_MESSAGE);
        assert_eq!(read_status(&[0xff, 0xfe]).message, "\u{fffd}\u{fffd}");
    }
}

//! An answer.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

pub(super) type Sent = Response<Full<Bytes>>;

const TEXT: &str = "text/plain; charset=utf-8";

/// A line of text.
pub(super) fn line(status: StatusCode, text: &str) -> Sent {
    // One line, whatever an error's text has in it.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    body(status, TEXT, text + "\n")
}

/// A whole body.
pub(super) fn body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Sent {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// What is not there, or not for who asks: always in these words.
pub(super) fn missing() -> Sent {
    line(StatusCode::NOT_FOUND, "not found")
}

/// With one more header.
pub(super) fn with(mut answer: Sent, name: header::HeaderName, value: &'static str) -> Sent {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

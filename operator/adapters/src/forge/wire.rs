//! The innermost service: one request over the wire, bounded in time and size.
//!
//! octocrab sends requests of its own, for installation tokens, and reads those answers without a
//! bound. Here every one of them passes.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use octocrab::{OctoBody, service::middleware::reqwest_connector::ReqwestConnector};
use tower::Service;

use crate::{
    body::{self, BodyError},
    object::Object,
};

/// Paths of the requests that octocrab sends by itself.
const TOKENS: &str = "/app/installations/";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("send the request")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("wait for the whole answer")]
    Deadline,
    #[error("read an answer that is too large")]
    TooLarge,
    /// The token that the request needs is refused.
    #[error("fetch an installation token")]
    Token { status: StatusCode, headers: HeaderMap, says_limit: bool },
}

/// Sends requests through a [`reqwest::Client`].
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) inner: ReqwestConnector,
    pub(crate) user_agent: HeaderValue,
    pub(crate) within: Duration,
    pub(crate) limit: usize,
}

impl Service<Request<OctoBody>> for Wire {
    type Response = Response<Full<Bytes>>;
    type Error = WireError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, WireError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), WireError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<OctoBody>) -> Self::Future {
        request.headers_mut().insert(header::USER_AGENT, self.user_agent.clone());
        let is_token = request.uri().path().contains(TOKENS);
        let (mut inner, within, limit) = (self.inner.clone(), self.within, self.limit);
        Box::pin(async move {
            let exchange = async {
                let answer = inner.call(request).await.map_err(transport)?;
                let (head, body) = answer.into_parts();
                let body = match body::read(body, limit).await {
                    Ok(body) => body,
                    Err(BodyError::TooLarge) => return Err(WireError::TooLarge),
                    Err(BodyError::Broken(error)) => return Err(transport(error)),
                };
                if is_token && !head.status.is_success() {
                    let says_limit = says_limit(&body);
                    let (status, headers) = (head.status, head.headers);
                    return Err(WireError::Token { status, headers, says_limit });
                }
                Ok(Response::from_parts(head, Full::new(body)))
            };
            tokio::time::timeout(within, exchange).await.unwrap_or(Err(WireError::Deadline))
        })
    }
}

/// Whether a refusal speaks of a rate limit. GitHub's documentation tells to look at the message.
pub(crate) fn says_limit(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    serde_json::from_slice::<Object<Message>>(body)
        .is_ok_and(|Object(it)| it.message.to_ascii_lowercase().contains("rate limit"))
}

/// The cause itself: octocrab prints a backtrace with its own errors.
fn transport(error: octocrab::Error) -> WireError {
    WireError::Transport(match error {
        octocrab::Error::Reqwest { source, .. } => Box::new(source.without_url()),
        other => Box::new(other),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::says_limit;

    #[rstest]
    #[case(r#"{"message":"You have exceeded a secondary rate limit. Please wait"}"#, true)]
    #[case(r#"{"message":"API Rate Limit exceeded for user"}"#, true)]
    #[case(r#"{"message":"Resource protected by organization SAML enforcement."}"#, false)]
    #[case(r#"{"documentation_url":"https://docs/rate limit"}"#, false)]
    #[case(r#"{"message":7}"#, false)]
    #[case("rate limit", false)]
    fn only_the_message_tells_of_a_limit(#[case] body: &str, #[case] expected: bool) {
        assert_eq!(says_limit(body.as_bytes()), expected);
    }
}

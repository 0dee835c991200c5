//! An API server that gives prepared answers, for tests of what is sent and how answers are read.

#![expect(clippy::needless_pass_by_value, reason = "json! literals read better without a &")]

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// What was sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// Method and path: `PUT /apis/…`.
    pub(super) line: String,
    /// The query, its parts sorted.
    pub(super) query: Vec<String>,
    pub(super) content_type: String,
    pub(super) user_agent: String,
    pub(super) body: Value,
}

/// An answer, or none at all.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Of(u16, Vec<(&'static str, String)>, String),
    Silence,
}

impl Answer {
    pub(super) fn ok(body: &Value) -> Self {
        Self::of(200, body)
    }

    pub(super) fn of(status: u16, body: &Value) -> Self {
        Self::Of(status, Vec::new(), body.to_string())
    }

    /// A refusal as the API server words it.
    pub(super) fn refusal(code: u16, reason: &str, message: &str, details: Value) -> Self {
        Self::of(code, &refusal(code, reason, message, details))
    }

    pub(super) fn with(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Of(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Self::Of(status, headers, body)
            }
            Self::Silence => Self::Silence,
        }
    }
}

/// A `Status` that refuses.
pub(super) fn refusal(code: u16, reason: &str, message: &str, details: Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    })
}

/// The server's side.
#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Server {
    /// Gives these answers in turn, and then none any more.
    pub(super) fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, ..Self::default() }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The lines of what was asked.
    pub(super) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    pub(super) fn client(&self) -> Client {
        let this = self.clone();
        let serve = move |request| this.clone().serve(request);
        Client::new(tower::service_fn(serve), "default")
    }

    pub(super) async fn serve(
        self,
        request: Request<Body>,
    ) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = |name: header::HeaderName| {
            let value = head.headers.get(name).map(|value| value.to_str().unwrap());
            value.unwrap_or_default().to_owned()
        };
        let mut query: Vec<String> =
            head.uri.query().unwrap_or_default().split('&').map(str::to_owned).collect();
        query.retain(|part| !part.is_empty());
        query.sort();
        self.asked.lock().unwrap().push(Asked {
            line: format!("{} {}", head.method, head.uri.path()),
            query,
            content_type: text(header::CONTENT_TYPE),
            user_agent: text(header::USER_AGENT),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        });
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Silence);
        match answer {
            Answer::Silence => std::future::pending().await,
            Answer::Of(status, headers, body) => {
                let mut answer = Response::new(Full::from(body));
                *answer.status_mut() = StatusCode::from_u16(status).unwrap();
                for (name, value) in headers {
                    answer.headers_mut().insert(name, value.parse().unwrap());
                }
                Ok(answer)
            }
        }
    }
}

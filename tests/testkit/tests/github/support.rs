//! A client that follows nothing and hides nothing.

use belay_testkit::github::AppCredentials;
use http::HeaderMap;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A header that must be there.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        value.to_str().unwrap()
    }
}

/// A client without redirects, with a `User-Agent`, which GitHub demands.
pub(crate) fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().user_agent("belay-test");
    builder.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Sends a request and reads the answer.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Answer { status, headers, body: answer.bytes().await.unwrap().to_vec() }
}

/// A JWT of an App that was issued a minute ago and lives nine minutes more.
pub(crate) fn jwt(app: &AppCredentials, now: Timestamp) -> String {
    let now = now.as_second();
    sign(app, &json!({ "iss": app.id, "iat": now - 60, "exp": now + 540 }))
}

/// A JWT with any claims.
pub(crate) fn sign(app: &AppCredentials, claims: &Value) -> String {
    let key = EncodingKey::from_rsa_pem(app.private_key.pem().as_bytes()).unwrap();
    jsonwebtoken::encode(&Header::new(Algorithm::RS256), claims, &key).unwrap()
}

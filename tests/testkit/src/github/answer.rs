//! Answers and refusals in GitHub's shapes, entity tags and pages.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, ETAG, LINK, LOCATION},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{auth::hex, jwt};

/// Where errors of paths that GitHub does not document point to.
pub(crate) const DOCS: &str = "https://docs.github.com/rest";
const LIMIT_DOCS: &str = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api";
/// The largest page.
const MOST_PER_PAGE: usize = 100;
const PER_PAGE: usize = 30;

/// An answer, before rate-limit headers and the like are added.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        let kind = HeaderValue::from_static("application/json; charset=utf-8");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        Self { status, headers, body: value.to_string().into_bytes() }
    }

    pub(crate) fn ok(value: &Value) -> Self {
        Self::json(StatusCode::OK, value)
    }

    pub(crate) fn text(status: StatusCode, text: &str) -> Self {
        let kind = HeaderValue::from_static("text/html");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        Self { status, headers, body: text.as_bytes().to_vec() }
    }

    /// An error as every GitHub endpoint words it.
    pub(crate) fn error(status: StatusCode, message: &str, docs: &str) -> Self {
        let code = status.as_u16().to_string();
        let body = json!({ "message": message, "documentation_url": docs, "status": code });
        Self::json(status, &body)
    }

    /// The secondary limit: GitHub has no counter for it and words it the same for 403 and 429.
    pub(crate) fn secondary_limit(status: u16, retry_after: Option<u64>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
        let message = "You have exceeded a secondary rate limit. Please wait a few minutes before \
                       you try again.";
        let docs = format!("{LIMIT_DOCS}#about-secondary-rate-limits");
        let mut answer = Self::error(status, message, &docs);
        if let Some(seconds) = retry_after {
            answer.headers.insert("retry-after", HeaderValue::from(seconds));
        }
        answer
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Adds a weak entity tag of the body and of whoever asks, and turns the answer into a 304
    /// when the client named that tag.
    ///
    /// That a tag fits one token only is GitHub's behaviour (github/docs issue 34689).
    pub(crate) fn tagged(self, fingerprint: &str, if_none_match: Option<&str>) -> Self {
        let digest = Sha256::new().chain_update(fingerprint).chain_update([0]);
        let tag = format!("W/\"{}\"", hex(&digest.chain_update(&self.body).finalize()));
        let mut answer = self.with(ETAG, &tag);
        // Weak comparison, RFC 9110 section 13.1.2.
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let named = |list: &str| list.split(',').any(|it| opaque(it) == opaque(&tag));
        if if_none_match.is_some_and(|list| list.trim() == "*" || named(list)) {
            answer.status = StatusCode::NOT_MODIFIED;
            answer.headers.remove(CONTENT_TYPE);
            answer.body.clear();
        }
        answer
    }
}

/// Why a route does not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Missing, or private: GitHub does not tell which.
    NotFound,
    /// A credential that is not accepted.
    Rejected(jwt::Refused),
    /// A credential is needed.
    Unauthenticated,
    /// The credential may not do this.
    Forbidden(&'static str),
    /// The organisation demands single sign-on.
    SingleSignOn { organization: String },
    /// Renamed or transferred.
    Moved { to: String, read: bool },
    /// The body is no JSON object.
    Unparsable,
    /// `x-github-api-version` names a version that is not served.
    Version { asked: String },
    /// The body is no valid request.
    Invalid { message: String, errors: Option<Value> },
    /// The state of the repository forbids it.
    Conflict(String),
    /// The primary limit is used up.
    Limited { status: StatusCode, whose: String },
}

impl Refusal {
    pub(crate) fn into_answer(self, docs: &str) -> Answer {
        let error = |status, message: &str| Answer::error(status, message, docs);
        match self {
            Self::NotFound => error(StatusCode::NOT_FOUND, "Not Found"),
            Self::Rejected(jwt::Refused::UnknownApp) => {
                Answer::error(StatusCode::NOT_FOUND, jwt::Refused::UnknownApp.message(), DOCS)
            }
            Self::Rejected(refused) => {
                Answer::error(StatusCode::UNAUTHORIZED, refused.message(), DOCS)
            }
            Self::Unauthenticated => error(StatusCode::UNAUTHORIZED, "Requires authentication"),
            Self::Forbidden(message) => error(StatusCode::FORBIDDEN, message),
            Self::SingleSignOn { organization } => {
                let message = "Resource protected by organization SAML enforcement. You must grant \
                               your Personal Access token access to this organization.";
                let sso = format!("required; url=https://github.com/orgs/{organization}/sso");
                let docs = "https://docs.github.com/articles/authenticating-to-a-github-\
                            organization-with-saml-single-sign-on/";
                Answer::error(StatusCode::FORBIDDEN, message, docs)
                    .with(HeaderName::from_static("x-github-sso"), &sso)
            }
            Self::Moved { to, read } => {
                let (status, message) = if read {
                    (StatusCode::MOVED_PERMANENTLY, "Moved Permanently")
                } else {
                    (StatusCode::TEMPORARY_REDIRECT, "Temporary Redirect")
                };
                let body = json!({
                    "message": message,
                    "url": to,
                    "documentation_url":
                        "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api\
                         #follow-redirects",
                });
                Answer::json(status, &body).with(LOCATION, &to)
            }
            Self::Unparsable => error(StatusCode::BAD_REQUEST, "Problems parsing JSON"),
            Self::Version { asked } => {
                let message = format!("\"{asked}\" is not a supported version of the REST API");
                error(StatusCode::BAD_REQUEST, &message)
            }
            Self::Invalid { message, errors } => {
                let mut body = json!({ "message": message });
                if let (Some(errors), Some(body)) = (errors, body.as_object_mut()) {
                    body.insert("errors".to_owned(), errors);
                }
                body["documentation_url"] = docs.into();
                body["status"] = "422".into();
                Answer::json(StatusCode::UNPROCESSABLE_ENTITY, &body)
            }
            Self::Conflict(message) => error(StatusCode::CONFLICT, &message),
            Self::Limited { status, whose } => {
                let message = format!(
                    "API rate limit exceeded for {whose}. If you reach out to GitHub Support for \
                     help, please include the request ID."
                );
                let docs = format!("{LIMIT_DOCS}#about-primary-rate-limits");
                Answer::error(status, &message, &docs)
            }
        }
    }
}

/// Which part of a list was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    size: usize,
    number: usize,
}

impl Page {
    /// Reads `per_page` and `page`; what makes no sense counts as not given, too much as the most.
    pub(crate) fn of(query: &[(String, String)]) -> Self {
        let number = |name: &str| {
            let value = query.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            value.and_then(|value| value.parse::<usize>().ok()).filter(|number| *number > 0)
        };
        Self {
            size: number("per_page").unwrap_or(PER_PAGE).min(MOST_PER_PAGE),
            number: number("page").unwrap_or(1),
        }
    }

    /// The items of this page as JSON, with a `Link` header of absolute addresses where there is
    /// more than one page.
    pub(crate) fn answer<T>(
        self,
        items: &[T],
        url: &str,
        query: &[(String, String)],
        render: impl Fn(&T) -> Value,
    ) -> Answer {
        let skipped = (self.number - 1).saturating_mul(self.size);
        let body: Value = items.iter().skip(skipped).take(self.size).map(render).collect();
        let answer = Answer::ok(&body);
        match self.link(items.len().div_ceil(self.size), url, query) {
            Some(link) => answer.with(LINK, &link),
            None => answer,
        }
    }

    fn link(self, last: usize, url: &str, query: &[(String, String)]) -> Option<String> {
        let mut relations = Vec::new();
        if self.number > 1 {
            relations.push(("prev", self.number - 1));
        }
        if self.number < last {
            relations.extend([("next", self.number + 1), ("last", last)]);
        }
        if self.number > 1 {
            relations.push(("first", 1));
        }
        let link = |(relation, number): &(&str, usize)| {
            let kept = query.iter().filter(|(key, _)| key != "page");
            let mut text = form_urlencoded::Serializer::new(String::new());
            text.extend_pairs(kept).append_pair("page", &number.to_string());
            format!("<{url}?{}>; rel=\"{relation}\"", text.finish())
        };
        let links: Vec<_> = relations.iter().map(link).collect();
        (!links.is_empty()).then(|| links.join(", "))
    }
}

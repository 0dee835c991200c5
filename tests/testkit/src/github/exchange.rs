//! From a request to its answer: credential, script, quota, route, entity tag, log.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, request::Parts};
use jiff::Timestamp;

use super::{
    answer::{Answer, DOCS, Refusal},
    auth::{Credential, Identity},
    clock::http_date,
    log::Request,
    objects::Urls,
    routes::{self, Call, Matched, Route},
    script::{Asked, Reply},
    state::State,
};

/// Where GitHub Enterprise Server has its API; the server answers there and at the root.
pub(crate) const ENTERPRISE_PREFIX: &str = "/api/v3";
/// The one version of the REST API that is modelled, and GitHub's default.
const API_VERSION: &str = "2022-11-28";

/// What is done with the connection.
#[derive(Debug)]
pub(crate) enum Outcome {
    Send(Answer),
    Truncate(Answer, usize),
    Drip(Answer),
    Close,
    Hang,
}

/// A request as it arrived.
pub(crate) struct Incoming<'a> {
    head: &'a Parts,
    body: &'a [u8],
    /// The path without the Enterprise prefix.
    path: &'a str,
    query: &'a str,
    enterprise: bool,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(head: &'a Parts, body: &'a [u8]) -> Self {
        let whole = head.uri.path();
        let below = whole.strip_prefix(ENTERPRISE_PREFIX);
        let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let query = head.uri.query().unwrap_or_default();
        Self { head, body, path: below.unwrap_or(whole), query, enterprise: below.is_some() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Answers one request and writes it into the log.
pub(crate) fn answer(state: &mut State, request: &Incoming<'_>, origin: &str) -> Outcome {
    let now = state.now();
    let identity = Identity::of(state, &request.head.headers, now);
    let matched = routes::find(request.head.method.as_str(), request.path);
    let asked = Asked {
        method: request.head.method.as_str(),
        path: request.path,
        query: request.query,
        credential: &identity.credential,
    };
    let reply = state.scripts.take(&asked, now);
    let scripted = reply.is_some();
    let mut charged = false;
    let outcome = match reply {
        Some(Reply::Close) => Outcome::Close,
        Some(Reply::Hang) => Outcome::Hang,
        reply => {
            let urls = Urls { api: base(origin, request.enterprise) };
            let answer = match canned(reply.as_ref()) {
                Some(answer) => answer,
                None => real(state, request, &identity, matched.as_ref(), &urls, now),
            };
            charged = is_charged(matched.as_ref(), &identity, answer.status);
            finish(state, request, &identity, answer, charged, reply.as_ref(), now)
        }
    };
    let status = match &outcome {
        Outcome::Send(answer) | Outcome::Truncate(answer, _) | Outcome::Drip(answer) => {
            Some(answer.status.as_u16())
        }
        Outcome::Close | Outcome::Hang => None,
    };
    state.journal.push(Request {
        number: 0,
        at: now,
        method: request.head.method.to_string(),
        path: request.head.uri.path().to_owned(),
        query: request.query.to_owned(),
        headers: headers(&request.head.headers, &identity),
        credential: identity.credential,
        route: matched.map(|matched| matched.info.route),
        status,
        scripted,
        counted: charged,
        body: String::from_utf8_lossy(request.body).into_owned(),
    });
    outcome
}

/// The base of the API, without a slash at the end.
pub(crate) fn base(origin: &str, enterprise: bool) -> String {
    format!("{origin}{}", if enterprise { ENTERPRISE_PREFIX } else { "" })
}

/// Answers that do not depend on the route.
fn canned(reply: Option<&Reply>) -> Option<Answer> {
    match reply? {
        Reply::Answer { status, headers, body } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
            let mut answer = Answer::json(status, &serde_json::Value::Null);
            answer.body = body.clone().into_bytes();
            let mut headers = headers.iter();
            answer = headers.try_fold(answer, |answer, (name, value)| {
                Some(answer.with(HeaderName::try_from(name).ok()?, value))
            })?;
            Some(answer)
        }
        Reply::SecondaryLimit { status, retry_after } => {
            Some(Answer::secondary_limit(*status, *retry_after))
        }
        Reply::SingleSignOn => {
            let organization = "acme".to_owned();
            Some(Refusal::SingleSignOn { organization }.into_answer(DOCS))
        }
        Reply::AddressNotAllowed => {
            let message = "Although you appear to have the correct authorization credentials, the \
                           organization has an IP allow list enabled, and your IP address is not \
                           permitted to access this resource.";
            Some(Refusal::Forbidden(message).into_answer(DOCS))
        }
        Reply::Garbage
        | Reply::Padded { .. }
        | Reply::Truncated { .. }
        | Reply::Drip
        | Reply::Close
        | Reply::Hang => None,
    }
}

/// The route's answer.
fn real(
    state: &mut State,
    request: &Incoming<'_>,
    identity: &Identity,
    matched: Option<&Matched>,
    urls: &Urls,
    now: Timestamp,
) -> Answer {
    if request.header("user-agent").is_none_or(|agent| agent.trim().is_empty()) {
        let text = "Request forbidden by administrative rules. Please make sure your request has a \
                    User-Agent header (https://docs.github.com/en/rest/overview/resources-in-the-\
                    rest-api#user-agent-required).";
        return Answer::text(StatusCode::FORBIDDEN, text);
    }
    let docs = matched.map_or(DOCS, |matched| matched.info.docs);
    let answer = attempt(state, request, identity, matched, urls, now);
    let answer = answer.unwrap_or_else(|refusal| refusal.into_answer(docs));
    let method = request.head.method.as_str();
    if answer.status == StatusCode::OK && matches!(method, "GET" | "HEAD") {
        return answer.tagged(&identity.fingerprint, request.header("if-none-match"));
    }
    answer
}

fn attempt(
    state: &mut State,
    request: &Incoming<'_>,
    identity: &Identity,
    matched: Option<&Matched>,
    urls: &Urls,
    now: Timestamp,
) -> Result<Answer, Refusal> {
    if let Some(refused) = identity.refusal {
        return Err(Refusal::Rejected(refused));
    }
    if let Some(version) = request.header("x-github-api-version")
        && version != API_VERSION
    {
        return Err(Refusal::Version { asked: version.to_owned() });
    }
    let matched = matched.ok_or(Refusal::NotFound)?;
    let quota = state.limits.quota(&identity.credential, now);
    if matched.info.route != Route::RateLimit && quota.is_some_and(|quota| quota.remaining() == 0) {
        let status = state.limits.settings.status();
        return Err(Refusal::Limited { status, whose: whose(state, identity) });
    }
    let query: Vec<_> = form_urlencoded::parse(request.query.as_bytes()).into_owned().collect();
    routes::answer(&mut Call {
        state,
        identity,
        matched,
        query: &query,
        raw_query: request.query,
        body: request.body,
        urls,
        now,
    })
}

fn whose(state: &State, identity: &Identity) -> String {
    match &identity.credential {
        Credential::Anonymous | Credential::Rejected { .. } => "127.0.0.1".to_owned(),
        Credential::Token { label } => {
            format!("user ID {}", state.account(label).map_or(0, |account| account.id))
        }
        Credential::Installation { id, .. } => format!("installation ID {id}"),
        Credential::App { slug } => format!("app {slug}"),
    }
}

/// Whether the primary limit is charged: not for asking for the quota, and for a 304 only when the
/// request had no accepted credential (GitHub's best practices on conditional requests).
fn is_charged(matched: Option<&Matched>, identity: &Identity, status: StatusCode) -> bool {
    let free = matched.is_some_and(|matched| matched.info.route == Route::RateLimit);
    let unchanged = status == StatusCode::NOT_MODIFIED && identity.credential.is_authenticated();
    !free && !unchanged
}

/// Adds what every answer has, and does to it what the script says.
fn finish(
    state: &mut State,
    request: &Incoming<'_>,
    identity: &Identity,
    mut answer: Answer,
    charged: bool,
    reply: Option<&Reply>,
    now: Timestamp,
) -> Outcome {
    if charged {
        state.limits.charge(&identity.credential, now);
    }
    let mut headers = common_headers(state, request, now);
    if let Some(quota) = state.limits.quota(&identity.credential, now) {
        quota.write(&mut headers);
    }
    headers.extend(std::mem::take(&mut answer.headers));
    answer.headers = headers;
    match reply {
        Some(Reply::Garbage) => {
            answer.body.truncate(answer.body.len() / 2);
            Outcome::Send(answer)
        }
        Some(Reply::Padded { bytes }) => {
            let size = answer.body.len().max(*bytes);
            answer.body.resize(size, b' ');
            Outcome::Send(answer)
        }
        Some(Reply::Truncated { bytes }) => Outcome::Truncate(answer, *bytes),
        Some(Reply::Drip) => Outcome::Drip(answer),
        _ => Outcome::Send(answer),
    }
}

fn common_headers(state: &mut State, request: &Incoming<'_>, now: Timestamp) -> HeaderMap {
    let number = state.serve();
    let id = format!("C0DE:{number:04X}:BE1A:{:08X}", now.as_second());
    let texts = [
        ("date", http_date(now)),
        ("x-github-request-id", id),
        ("x-github-api-version-selected", API_VERSION.to_owned()),
        ("x-github-media-type", "github.v3; format=json".to_owned()),
        ("cache-control", "private, max-age=60, s-maxage=60".to_owned()),
        ("vary", "Accept, Authorization, Cookie, X-GitHub-OTP".to_owned()),
    ];
    let mut headers = HeaderMap::new();
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    if request.enterprise {
        headers.insert("x-github-enterprise-version", HeaderValue::from_static("3.19.0"));
    }
    headers
}

/// Headers for the log, `authorization` without its secret.
fn headers(sent: &HeaderMap, identity: &Identity) -> Vec<(String, String)> {
    let entry = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = if name == http::header::AUTHORIZATION {
            identity.credential.to_string()
        } else {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        (name.to_string(), value)
    };
    sent.iter().map(entry).collect()
}

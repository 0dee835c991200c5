//! The control endpoint, on the port of the API below `/_belay/`:
//!
//! * `POST /_belay/CHANGE` with the fields of a [`Change`] as JSON
//! * `POST /_belay/deliver` sends a webhook
//! * `GET /_belay/state` and `GET /_belay/log`
//!
//! It has no credential: the server listens on loopback and holds nothing but test data.

use http::{StatusCode, request::Parts};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    change::Change,
    error::GitHubError,
    server::Shared,
    state::State,
    webhook::{Event, Signature, Webhook},
};

/// Where it is.
pub(crate) const PREFIX: &str = "/_belay/";

/// A webhook to be sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deliver {
    pub(crate) url: String,
    pub(crate) event: Event,
    #[serde(default)]
    pub(crate) signature: Signature,
}

pub(crate) async fn answer(shared: &Shared, head: &Parts, body: &[u8]) -> Answer {
    let name = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let result = match (head.method.as_str(), name) {
        ("GET", "state") => Ok(summary(&shared.state())),
        ("GET", "log") => Ok(json!(shared.state().journal.snapshot().requests())),
        ("POST", "deliver") => match serde_json::from_slice(body) {
            Ok(deliver) => self::deliver(shared, deliver).await.map_err(|error| Failed::of(&error)),
            Err(error) => Err(Failed(StatusCode::BAD_REQUEST, error.to_string())),
        },
        ("POST", name) => change(shared, name, body),
        _ => Err(Failed(StatusCode::NOT_FOUND, format!("there is no {name} to be read"))),
    };
    match result {
        Ok(value) => Answer::ok(&value),
        Err(Failed(status, why)) => Answer::json(status, &json!({ "error": why })),
    }
}

/// A status and the reason in words.
struct Failed(StatusCode, String);

impl Failed {
    fn of(error: &GitHubError) -> Self {
        let status = match error {
            GitHubError::Missing { .. } => StatusCode::NOT_FOUND,
            GitHubError::Exists { .. } => StatusCode::CONFLICT,
            GitHubError::Invalid { .. } => StatusCode::BAD_REQUEST,
            GitHubError::Send { .. } => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        Self(status, words)
    }
}

fn change(shared: &Shared, name: &str, body: &[u8]) -> Result<Value, Failed> {
    let refused = |error: serde_json::Error| Failed(StatusCode::BAD_REQUEST, error.to_string());
    let fields = if body.is_empty() { Ok(json!({})) } else { serde_json::from_slice(body) };
    let change = Change::from_parts(name, &fields.map_err(refused)?).map_err(refused)?;
    change.apply(&mut shared.state()).map_err(|error| Failed::of(&error))
}

async fn deliver(shared: &Shared, deliver: Deliver) -> Result<Value, GitHubError> {
    let Deliver { url, event, signature } = deliver;
    let webhook = Webhook::of(&shared.state(), &shared.origin, &event)?.signed(signature);
    let status = webhook.deliver(&url).await?;
    Ok(json!({ "status": status, "delivery": webhook.delivery() }))
}

/// What there is, without secrets.
fn summary(state: &State) -> Value {
    let repositories = state.repositories().map(|it| {
        let releases = it.newest_first(true).into_iter().map(|release| {
            json!({
                "id": release.id,
                "tag": release.tag,
                "draft": release.draft,
                "prerelease": release.prerelease,
            })
        });
        let deployments = it.deployments.iter().map(|deployment| {
            json!({
                "id": deployment.id,
                "ref": deployment.reference,
                "environment": deployment.environment,
                "state": deployment.statuses.last().map(|status| status.state),
            })
        });
        json!({
            "id": it.id,
            "name": it.full_name(),
            "private": it.private,
            "latest": it.latest().map(|release| &release.tag),
            "releases": releases.collect::<Vec<_>>(),
            "deployments": deployments.collect::<Vec<_>>(),
        })
    });
    let apps = state.apps.iter().map(|app| json!({ "id": app.id, "slug": app.slug }));
    let installations = state.installations.iter().map(
        |it| json!({ "id": it.id, "account": it.account, "suspended": it.suspended_at.is_some() }),
    );
    json!({
        "now": state.now(),
        "limits": state.limits.settings,
        "repositories": repositories.collect::<Vec<_>>(),
        "tokens": state.token_labels().collect::<Vec<_>>(),
        "apps": apps.collect::<Vec<_>>(),
        "installations": installations.collect::<Vec<_>>(),
    })
}

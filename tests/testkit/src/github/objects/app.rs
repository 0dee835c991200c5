use serde_json::{Value, json};

use super::{HTML, Urls, account, repository};
use crate::github::{
    app::{App, Installation},
    auth::{Grants, Token},
    clock::rfc3339,
    repository::Repository,
    state::State,
};

/// Schema `integration`.
pub(crate) fn app(state: &State, app: &App, urls: &Urls) -> Value {
    let installations = state.installations.iter().filter(|it| it.app == app.id);
    let slug = &app.slug;
    json!({
        "id": app.id,
        "slug": slug,
        "node_id": format!("A_{}", app.id),
        "client_id": app.client_id,
        "owner": account(state, &app.owner, urls),
        "name": slug,
        "description": Value::Null,
        "external_url": format!("{HTML}/apps/{slug}"),
        "html_url": format!("{HTML}/apps/{slug}"),
        "created_at": rfc3339(app.created_at),
        "updated_at": rfc3339(app.created_at),
        "permissions": { "metadata": "read", "contents": "read", "deployments": "write" },
        "events": ["release", "deployment_status"],
        "installations_count": installations.count(),
    })
}

/// Schema `installation`.
pub(crate) fn installation(state: &State, app: &App, it: &Installation, urls: &Urls) -> Value {
    let owner = account(state, &it.account, urls);
    json!({
        "id": it.id,
        "client_id": app.client_id,
        "target_id": owner["id"],
        "target_type": owner["type"],
        "account": owner,
        "repository_selection": selection(&it.grants),
        "access_tokens_url": format!("{}/app/installations/{}/access_tokens", urls.api, it.id),
        "repositories_url": format!("{}/installation/repositories", urls.api),
        "html_url": format!("{HTML}/organizations/{}/settings/installations/{}", it.account, it.id),
        "app_id": app.id,
        "app_slug": app.slug,
        "permissions": it.grants.permissions,
        "events": ["release", "deployment_status"],
        "created_at": rfc3339(it.created_at),
        "updated_at": rfc3339(it.suspended_at.unwrap_or(it.created_at)),
        "single_file_name": Value::Null,
        "has_multiple_single_files": false,
        "single_file_paths": [],
        "suspended_by": it.suspended_at.map(|_| account(state, &it.account, urls)),
        "suspended_at": it.suspended_at.map(rfc3339),
    })
}

/// Schema `installation-token`; `repositories` are named where the request asked for some.
pub(crate) fn installation_token(
    state: &State,
    token: &Token,
    repositories: Option<&[&Repository]>,
    urls: &Urls,
) -> Value {
    let mut answer = json!({
        "token": token.secret(),
        "expires_at": token.expires.map(rfc3339),
        "permissions": token.grants.permissions,
        "repository_selection": selection(&token.grants),
    });
    if let (Some(repositories), Some(answer)) = (repositories, answer.as_object_mut()) {
        let list = repositories.iter().map(|it| repository(state, it, urls));
        answer.insert("repositories".to_owned(), list.collect());
    }
    answer
}

fn selection(grants: &Grants) -> &'static str {
    if grants.repositories.is_some() { "selected" } else { "all" }
}

//! Apps and their installations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Call, Refusal, created};
use crate::github::{
    app::{App, Installation},
    auth::{Credential, Level},
    jwt, objects,
    state::Named,
};

/// `GET /app`
pub(super) fn app(call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(Answer::ok(&objects::app(call.state, authenticated(call)?, call.urls)))
}

/// `GET /app/installations`
pub(super) fn installations(call: &Call<'_>) -> Result<Answer, Refusal> {
    let app = authenticated(call)?;
    let own: Vec<_> = call.state.installations.iter().filter(|it| it.app == app.id).collect();
    let url = format!("{}/app/installations", call.urls.api);
    Ok(call.page().answer(&own, &url, call.query, |installation| {
        objects::installation(call.state, app, installation, call.urls)
    }))
}

/// `GET /app/installations/{installation_id}`
pub(super) fn installation(call: &Call<'_>) -> Result<Answer, Refusal> {
    let (app, installation) = of_path(call)?;
    Ok(Answer::ok(&objects::installation(call.state, app, installation, call.urls)))
}

/// `GET /repos/{owner}/{repo}/installation`
pub(super) fn of_repository(call: &Call<'_>) -> Result<Answer, Refusal> {
    let app = authenticated(call)?;
    let repository = call.repository()?;
    let covers =
        |it: &&Installation| it.app == app.id && it.grants.covers(repository.id, &repository.owner);
    let found = call.state.installations.iter().find(covers).ok_or(Refusal::NotFound)?;
    Ok(Answer::ok(&objects::installation(call.state, app, found, call.urls)))
}

/// What a token may be narrowed to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Narrowed {
    repositories: Option<Vec<String>>,
    repository_ids: Option<Vec<u64>>,
    permissions: Option<BTreeMap<String, Level>>,
}

/// `POST /app/installations/{installation_id}/access_tokens`
pub(super) fn create_token(call: &mut Call<'_>) -> Result<Answer, Refusal> {
    let (_, installation) = of_path(call)?;
    if installation.suspended_at.is_some() {
        return Err(Refusal::Forbidden("This installation has been suspended"));
    }
    let object = Value::Object(call.object()?);
    let asked: Narrowed = serde_json::from_value(object).map_err(|error| Refusal::Invalid {
        message: format!("Invalid request.\n\n{error}"),
        errors: None,
    })?;
    let (id, mut grants) = (installation.id, installation.grants.clone());
    let named = repositories(call, installation, &asked)?;
    if let Some(ids) = &named {
        grants.repositories = Some(ids.clone());
    }
    if let Some(permissions) = asked.permissions {
        if !permissions.iter().all(|(name, level)| grants.allows(name, *level)) {
            let message = "The permissions requested are not granted to this installation.";
            return Err(Refusal::Invalid { message: message.to_owned(), errors: None });
        }
        grants.permissions = permissions;
    }
    let token = call.state.create_installation_token(id, grants).cloned();
    let token = token.map_err(|_| Refusal::NotFound)?;
    let listed = named
        .as_ref()
        .map(|ids| ids.iter().filter_map(|id| call.state.repository(*id)).collect::<Vec<_>>());
    let body = objects::installation_token(call.state, &token, listed.as_deref(), call.urls);
    Ok(created(&body))
}

/// The repositories a token is asked for, none where it is to have all of the installation's.
fn repositories(
    call: &Call<'_>,
    installation: &Installation,
    asked: &Narrowed,
) -> Result<Option<BTreeSet<u64>>, Refusal> {
    let Narrowed { repositories, repository_ids, .. } = asked;
    if repositories.is_none() && repository_ids.is_none() {
        return Ok(None);
    }
    let by_name = |name: &String| match call.state.find(&format!("{}/{name}", installation.account))
    {
        Some(Named::Here(id)) => Some(id),
        Some(Named::Moved(_)) | None => None,
    };
    let named = repositories.iter().flatten().map(by_name);
    let numbered = repository_ids.iter().flatten().copied().map(Some);
    let covered = |id: &u64| {
        let found = call.state.repository(*id);
        found.is_some_and(|it| installation.grants.covers(it.id, &it.owner))
    };
    let ids: Option<BTreeSet<_>> =
        named.chain(numbered).map(|id| id.filter(|id| covered(id))).collect();
    ids.map(Some).ok_or_else(|| Refusal::Invalid {
        message:
            "There is at least one repository that does not exist or is not accessible to the \
                  parent installation."
                .to_owned(),
        errors: None,
    })
}

/// The App that signed the request's JWT.
fn authenticated<'a>(call: &'a Call<'_>) -> Result<&'a App, Refusal> {
    let Credential::App { slug } = &call.identity.credential else {
        return Err(Refusal::Rejected(jwt::Refused::Undecodable));
    };
    call.state.app(slug).map_err(|_| Refusal::NotFound)
}

fn of_path<'a>(call: &'a Call<'_>) -> Result<(&'a App, &'a Installation), Refusal> {
    let app = authenticated(call)?;
    let id = call.matched.number("installation_id").ok_or(Refusal::NotFound)?;
    let own = |it: &&Installation| it.id == id && it.app == app.id;
    let installation = call.state.installations.iter().find(own).ok_or(Refusal::NotFound)?;
    Ok((app, installation))
}

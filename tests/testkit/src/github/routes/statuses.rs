//! Deployment statuses.

use serde::Deserialize;

use super::{
    Answer, Call, Refusal, created,
    deployments::{limit, of_path, parse},
};
use crate::github::{
    deployment::{DeploymentState, DeploymentStatus},
    objects,
};

/// The body of a request for a status, with GitHub's defaults.
#[derive(Debug, Deserialize)]
struct NewStatus {
    state: String,
    #[serde(default)]
    target_url: String,
    #[serde(default)]
    log_url: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    environment: Option<String>,
    #[serde(default)]
    environment_url: String,
    #[serde(default = "yes")]
    auto_inactive: bool,
}

fn yes() -> bool {
    true
}

/// `POST …/deployments/{deployment_id}/statuses`
pub(super) fn create(call: &mut Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.writable("deployments")?;
    let (repository, deployment) = (repository.id, of_path(call, repository)?.id);
    let new: NewStatus = parse(call, "state")?;
    let state = DeploymentState::ALL.into_iter().find(|state| state.name() == new.state);
    let state = state.ok_or_else(|| {
        let names: Vec<_> = DeploymentState::ALL.iter().map(|state| state.name()).collect();
        let (given, names) = (&new.state, names.join("\", \""));
        let message = format!("Invalid request.\n\n{given} is not a member of [\"{names}\"].");
        Refusal::Invalid { message, errors: None }
    })?;
    limit("DeploymentStatus", &new.description)?;
    let creator = call.actor();
    let added = call.state.add_status(repository, deployment, new.auto_inactive, |id, now, of| {
        DeploymentStatus {
            id,
            state,
            creator,
            description: new.description,
            environment: new.environment.unwrap_or_else(|| of.environment.clone()),
            environment_url: new.environment_url,
            log_url: if new.log_url.is_empty() { new.target_url } else { new.log_url },
            created_at: now,
        }
    });
    let added = added.ok_or(Refusal::NotFound)?;
    Ok(created(&object(call, added)?))
}

/// `GET …/deployments/{deployment_id}/statuses`, newest first.
pub(super) fn list(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("deployments")?;
    let deployment = of_path(call, repository)?;
    let statuses: Vec<_> = deployment.statuses.iter().rev().collect();
    let url = format!("{}/deployments/{}/statuses", call.by_id(repository), deployment.id);
    Ok(call.page().answer(&statuses, &url, call.query, |status| {
        objects::deployment_status(call.state, repository, deployment, status, call.urls)
    }))
}

/// `GET …/deployments/{deployment_id}/statuses/{status_id}`
pub(super) fn show(call: &Call<'_>) -> Result<Answer, Refusal> {
    let id = call.matched.number("status_id").ok_or(Refusal::NotFound)?;
    Ok(Answer::ok(&object(call, id)?))
}

fn object(call: &Call<'_>, status: u64) -> Result<serde_json::Value, Refusal> {
    let repository = call.readable("deployments")?;
    let deployment = of_path(call, repository)?;
    let found = deployment.statuses.iter().find(|it| it.id == status).ok_or(Refusal::NotFound)?;
    Ok(objects::deployment_status(call.state, repository, deployment, found, call.urls))
}

//! Deployments.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Call, Refusal, created};
use crate::github::{
    deployment::Deployment,
    objects,
    repository::{Base, CommitState, DEFAULT_BRANCH, Repository},
};

/// The longest description of a deployment and of a status.
pub(super) const LONGEST_DESCRIPTION: usize = 140;

/// The body of a request for a deployment, with GitHub's defaults.
#[derive(Debug, Deserialize)]
struct NewDeployment {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default = "deploy")]
    task: String,
    #[serde(default = "yes")]
    auto_merge: bool,
    /// None asks for every context there is, an empty list for none.
    #[serde(default)]
    required_contexts: Option<Vec<String>>,
    #[serde(default)]
    payload: Option<Value>,
    #[serde(default = "production")]
    environment: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    transient_environment: bool,
    #[serde(default)]
    production_environment: Option<bool>,
}

fn deploy() -> String {
    "deploy".to_owned()
}

fn production() -> String {
    "production".to_owned()
}

fn yes() -> bool {
    true
}

/// `POST …/deployments`
pub(super) fn create(call: &mut Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.writable("deployments")?;
    let new: NewDeployment = parse(call, "ref")?;
    if let Some(payload) = &new.payload
        && !payload.is_object()
        && !payload.is_string()
    {
        return Err(invalid("payload", "an object or a string"));
    }
    limit("Deployment", new.description.as_deref().unwrap_or_default())?;
    let sha = repository.commit(&new.reference).ok_or_else(|| Refusal::Invalid {
        message: format!("No ref found for: {}", new.reference),
        errors: None,
    })?;
    let id = repository.id;
    if new.auto_merge {
        match repository.branches.get(&new.reference).map(|branch| branch.base) {
            Some(Base::Behind) => return Ok(merge(call, id, &new.reference)),
            Some(Base::Conflicting) => {
                let message = format!("Conflict merging {DEFAULT_BRANCH} into {}", new.reference);
                return Err(Refusal::Conflict(message));
            }
            Some(Base::Current) | None => {}
        }
    }
    if !contexts_passed(repository, &sha, new.required_contexts.as_deref()) {
        let message = format!("Conflict: Commit status checks failed for {}.", new.reference);
        return Err(Refusal::Conflict(message));
    }
    let creator = call.actor();
    let added = call.state.add_deployment(id, |id, now| Deployment {
        id,
        sha,
        reference: new.reference,
        task: new.task,
        payload: new.payload.unwrap_or_else(|| json!({})),
        production: new.production_environment.unwrap_or(new.environment == "production"),
        original_environment: new.environment.clone(),
        environment: new.environment,
        description: new.description,
        creator,
        created_at: now,
        updated_at: now,
        transient: new.transient_environment,
        statuses: Vec::new(),
    });
    let added = added.ok_or(Refusal::NotFound)?;
    let (repository, deployment) = find(call, id, added)?;
    Ok(created(&objects::deployment(call.state, repository, deployment, call.urls)))
}

/// The default branch is merged into the ref, and nothing is deployed.
fn merge(call: &mut Call<'_>, repository: u64, branch: &str) -> Answer {
    let branches = call.state.repository_mut(repository).map(|it| &mut it.branches);
    if let Some(branch) = branches.and_then(|branches| branches.get_mut(branch)) {
        branch.base = Base::Current;
    }
    let message = format!("Auto-merged {DEFAULT_BRANCH} into {branch} on deployment.");
    Answer::json(StatusCode::ACCEPTED, &json!({ "message": message }))
}

fn contexts_passed(repository: &Repository, sha: &str, required: Option<&[String]>) -> bool {
    let none = BTreeMap::new();
    let known = repository.statuses.get(sha).unwrap_or(&none);
    match required {
        None => known.values().all(|state| *state == CommitState::Success),
        Some(required) => {
            required.iter().all(|context| known.get(context) == Some(&CommitState::Success))
        }
    }
}

/// `GET …/deployments`, newest first, filtered by `sha`, `ref`, `task` and `environment`.
pub(super) fn list(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("deployments")?;
    let fits = |name: &str, value: &str| call.parameter(name).is_none_or(|wanted| wanted == value);
    let wanted = |it: &&Deployment| {
        fits("sha", &it.sha)
            && fits("ref", &it.reference)
            && fits("task", &it.task)
            && fits("environment", &it.environment)
    };
    let deployments: Vec<_> = repository.deployments.iter().rev().filter(wanted).collect();
    let url = format!("{}/deployments", call.by_id(repository));
    Ok(call.page().answer(&deployments, &url, call.query, |deployment| {
        objects::deployment(call.state, repository, deployment, call.urls)
    }))
}

/// `GET …/deployments/{deployment_id}`
pub(super) fn show(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("deployments")?;
    let deployment = of_path(call, repository)?;
    Ok(Answer::ok(&objects::deployment(call.state, repository, deployment, call.urls)))
}

/// The deployment that the path names.
pub(super) fn of_path<'a>(
    call: &Call<'_>,
    repository: &'a Repository,
) -> Result<&'a Deployment, Refusal> {
    let id = call.matched.number("deployment_id").ok_or(Refusal::NotFound)?;
    repository.deployments.iter().find(|it| it.id == id).ok_or(Refusal::NotFound)
}

fn find<'a>(
    call: &'a Call<'_>,
    repository: u64,
    deployment: u64,
) -> Result<(&'a Repository, &'a Deployment), Refusal> {
    let repository = call.state.repository(repository).ok_or(Refusal::NotFound)?;
    let deployment = repository.deployments.iter().find(|it| it.id == deployment);
    Ok((repository, deployment.ok_or(Refusal::NotFound)?))
}

/// Reads a body with one field that must be there.
pub(super) fn parse<T: serde::de::DeserializeOwned>(
    call: &Call<'_>,
    required: &str,
) -> Result<T, Refusal> {
    let mut object = call.object()?;
    if !object.contains_key(required) {
        let message = format!("Invalid request.\n\n\"{required}\" wasn't supplied.");
        return Err(Refusal::Invalid { message, errors: None });
    }
    // As in JSON Schema with `nullable`: null is as good as not given.
    object.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(object)).map_err(|error| Refusal::Invalid {
        message: format!("Invalid request.\n\n{error}"),
        errors: None,
    })
}

/// Refuses descriptions that are too long.
pub(super) fn limit(resource: &str, description: &str) -> Result<(), Refusal> {
    if description.chars().count() <= LONGEST_DESCRIPTION {
        return Ok(());
    }
    let message = format!("description is too long (maximum is {LONGEST_DESCRIPTION} characters)");
    Err(Refusal::Invalid {
        message: "Validation Failed".to_owned(),
        errors: Some(json!([{
            "resource": resource, "code": "custom", "field": "description", "message": message,
        }])),
    })
}

fn invalid(field: &str, expected: &str) -> Refusal {
    let message = format!("Invalid request.\n\nFor '{field}', expected {expected}.");
    Refusal::Invalid { message, errors: None }
}

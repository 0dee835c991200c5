use serde_json::{Value, json};

use super::{Urls, account};
use crate::github::{
    clock::rfc3339,
    deployment::{Deployment, DeploymentStatus},
    repository::Repository,
    state::State,
};

fn url(repository: &Repository, deployment: &Deployment, urls: &Urls) -> String {
    format!("{}/deployments/{}", urls.repository(&repository.full_name()), deployment.id)
}

/// Schema `deployment`.
pub(crate) fn deployment(state: &State, repo: &Repository, it: &Deployment, urls: &Urls) -> Value {
    let url = url(repo, it, urls);
    json!({
        "url": url,
        "id": it.id,
        "node_id": format!("DE_{}", it.id),
        "task": it.task,
        "original_environment": it.original_environment,
        "environment": it.environment,
        "description": it.description,
        "created_at": rfc3339(it.created_at),
        "updated_at": rfc3339(it.updated_at),
        "statuses_url": format!("{url}/statuses"),
        "repository_url": urls.repository(&repo.full_name()),
        "creator": account(state, &it.creator, urls),
        "sha": it.sha,
        "ref": it.reference,
        "payload": it.payload,
        "transient_environment": it.transient,
        "production_environment": it.production,
        "performed_via_github_app": Value::Null,
    })
}

/// Schema `deployment-status`.
pub(crate) fn deployment_status(
    state: &State,
    repo: &Repository,
    of: &Deployment,
    it: &DeploymentStatus,
    urls: &Urls,
) -> Value {
    let deployment = url(repo, of, urls);
    json!({
        "url": format!("{deployment}/statuses/{}", it.id),
        "id": it.id,
        "node_id": format!("DES_{}", it.id),
        "state": it.state.name(),
        "creator": account(state, &it.creator, urls),
        "description": it.description,
        "environment": it.environment,
        "target_url": it.log_url,
        "created_at": rfc3339(it.created_at),
        "updated_at": rfc3339(it.created_at),
        "deployment_url": deployment,
        "repository_url": urls.repository(&repo.full_name()),
        "environment_url": it.environment_url,
        "log_url": it.log_url,
        "performed_via_github_app": Value::Null,
    })
}

//! The routes: one table that the server matches requests against, and that tests walk through.

mod apps;
mod deployments;
mod rate_limit;
mod releases;
mod statuses;
mod table;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value};

pub(crate) use self::table::{Matched, find};
pub use self::table::{ROUTES, Route, RouteInfo};
use super::{
    answer::{Answer, Page, Refusal},
    auth::{Credential, Identity, Level},
    objects::{Urls, full_repository},
    repository::Repository,
    state::{Named, State},
};

/// One request on its way through a route.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) identity: &'a Identity,
    pub(crate) matched: &'a Matched,
    pub(crate) query: &'a [(String, String)],
    pub(crate) raw_query: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) urls: &'a Urls,
    pub(crate) now: Timestamp,
}

/// Answers a request that has a route, a credential that is accepted, and quota.
pub(crate) fn answer(call: &mut Call<'_>) -> Result<Answer, Refusal> {
    match call.matched.info.route {
        Route::RateLimit => rate_limit::show(call),
        Route::App => apps::app(call),
        Route::Installations => apps::installations(call),
        Route::Installation => apps::installation(call),
        Route::CreateInstallationToken => apps::create_token(call),
        Route::RepositoryInstallation => apps::of_repository(call),
        Route::Repository => repository(call),
        Route::Releases => releases::list(call),
        Route::LatestRelease => releases::latest(call),
        Route::ReleaseByTag => releases::by_tag(call),
        Route::Release => releases::by_id(call),
        Route::Deployments => deployments::list(call),
        Route::CreateDeployment => deployments::create(call),
        Route::Deployment => deployments::show(call),
        Route::DeploymentStatuses => statuses::list(call),
        Route::CreateDeploymentStatus => statuses::create(call),
        Route::DeploymentStatus => statuses::show(call),
    }
}

fn repository(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("metadata")?;
    let push = call.identity.credential.is_authenticated().then(|| call.may_push(repository));
    Ok(Answer::ok(&full_repository(call.state, repository, push, call.urls)))
}

impl Call<'_> {
    /// The repository that the path names, if the credential may know of it.
    pub(crate) fn repository(&self) -> Result<&Repository, Refusal> {
        let (repository, moved) = self.named()?;
        if repository.private && !self.covers(repository) {
            return Err(Refusal::NotFound);
        }
        let owner = repository.owner.to_ascii_lowercase();
        if matches!(self.identity.credential, Credential::Token { .. })
            && self.state.sso.contains(&owner)
        {
            return Err(Refusal::SingleSignOn { organization: repository.owner.clone() });
        }
        if moved {
            return Err(self.moved(repository));
        }
        Ok(repository)
    }

    /// The same for the parts that a permission guards. What is public needs none to be read.
    pub(crate) fn readable(&self, permission: &str) -> Result<&Repository, Refusal> {
        if matches!(self.identity.credential, Credential::App { .. }) {
            return Err(Refusal::Forbidden(INTEGRATION));
        }
        let repository = self.repository()?;
        if repository.private {
            self.demand(repository, permission, Level::Read)?;
        }
        Ok(repository)
    }

    /// The same for changes.
    pub(crate) fn writable(&self, permission: &str) -> Result<&Repository, Refusal> {
        let repository = self.readable(permission)?;
        if self.identity.credential == Credential::Anonymous {
            return Err(Refusal::Unauthenticated);
        }
        self.demand(repository, permission, Level::Write)?;
        Ok(repository)
    }

    /// Whether the credential may push, which is what drafts are shown by.
    pub(crate) fn may_push(&self, repository: &Repository) -> bool {
        self.covers(repository) && self.identity.grants.allows("contents", Level::Write)
    }

    fn covers(&self, repository: &Repository) -> bool {
        // An App itself may ask which installation of it covers a repository.
        let own = |app| {
            let mut installations = self.state.installations.iter().filter(|it| it.app == app);
            installations.any(|it| it.grants.covers(repository.id, &repository.owner))
        };
        self.identity.app.is_some_and(own)
            || self.identity.grants.covers(repository.id, &repository.owner)
    }

    fn demand(
        &self,
        repository: &Repository,
        permission: &str,
        level: Level,
    ) -> Result<(), Refusal> {
        if self.covers(repository) && self.identity.grants.allows(permission, level) {
            return Ok(());
        }
        Err(Refusal::Forbidden(match self.identity.credential {
            Credential::Installation { .. } => INTEGRATION,
            _ => "Resource not accessible by personal access token",
        }))
    }

    fn named(&self) -> Result<(&Repository, bool), Refusal> {
        let part = |name| self.matched.text(name).unwrap_or_default();
        let by_name = || self.state.find(&format!("{}/{}", part("owner"), part("repo")));
        let by_id = self.matched.number("repository_id").map(Named::Here);
        let (id, moved) = match by_id.or_else(by_name) {
            Some(Named::Here(id)) => (id, false),
            Some(Named::Moved(id)) => (id, true),
            None => return Err(Refusal::NotFound),
        };
        self.state.repository(id).map(|it| (it, moved)).ok_or(Refusal::NotFound)
    }

    fn moved(&self, repository: &Repository) -> Refusal {
        let question = if self.raw_query.is_empty() { "" } else { "?" };
        let (base, rest) = (self.by_id(repository), &self.matched.rest);
        let read = self.matched.info.method == "GET";
        Refusal::Moved { to: format!("{base}{rest}{question}{}", self.raw_query), read }
    }

    /// The address that survives renames.
    pub(crate) fn by_id(&self, repository: &Repository) -> String {
        format!("{}/repositories/{}", self.urls.api, repository.id)
    }

    pub(crate) fn page(&self) -> Page {
        Page::of(self.query)
    }

    /// A parameter of the query.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as a JSON object; an empty one counts as `{}`.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, Refusal> {
        if self.body.is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_slice(self.body).map_err(|_| Refusal::Unparsable)
    }

    /// The account that acts.
    pub(crate) fn actor(&self) -> String {
        self.identity.actor.clone().unwrap_or_default()
    }
}

const INTEGRATION: &str = "Resource not accessible by integration";

/// A `201` with the new object and its address.
pub(crate) fn created(value: &Value) -> Answer {
    let answer = Answer::json(StatusCode::CREATED, value);
    match value.get("url").and_then(Value::as_str) {
        Some(url) => answer.with(http::header::LOCATION, url),
        None => answer,
    }
}

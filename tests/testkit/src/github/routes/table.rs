//! The table of routes.

use percent_encoding::percent_decode_str;
use serde::Serialize;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// The quota.
    RateLimit,
    /// The App itself.
    App,
    /// The App's installations.
    Installations,
    /// One of them.
    Installation,
    /// A token for one of them.
    CreateInstallationToken,
    /// The installation that covers a repository.
    RepositoryInstallation,
    /// A repository.
    Repository,
    /// Its releases.
    Releases,
    /// The latest.
    LatestRelease,
    /// The published one of a tag.
    ReleaseByTag,
    /// One by its id.
    Release,
    /// Deployments.
    Deployments,
    /// A new one.
    CreateDeployment,
    /// One of them.
    Deployment,
    /// Its statuses.
    DeploymentStatuses,
    /// A new one.
    CreateDeploymentStatus,
    /// One of them.
    DeploymentStatus,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct RouteInfo {
    /// Which.
    pub route: Route,
    /// The method; `HEAD` goes with `GET`.
    pub method: &'static str,
    /// The path as in GitHub's OpenAPI description. `/repos/{owner}/{repo}` stands for
    /// `/repositories/{repository_id}` too.
    pub path: &'static str,
    /// What `documentation_url` of its errors says.
    pub docs: &'static str,
    /// Statuses that only some routes answer; [`RouteInfo::statuses`] has all.
    own: &'static [u16],
}

const REPOSITORY: &str = "/repos/{owner}/{repo}";
const BY_ID: &str = "/repositories/{repository_id}";

macro_rules! routes {
    ($($route:ident: $method:ident $path:literal [$($own:literal),*] $docs:literal;)*) => {
        /// Every route. Where two fit a path, the first one counts.
        pub const ROUTES: &[RouteInfo] = &[$(RouteInfo {
            route: Route::$route,
            method: stringify!($method),
            path: $path,
            docs: concat!("https://docs.github.com/rest/", $docs),
            own: &[$($own),*],
        }),*];

        impl Route {
            /// Its row of the table.
            pub fn info(self) -> &'static RouteInfo {
                const INDEX: &[Route] = &[$(Route::$route),*];
                let at = INDEX.iter().position(|route| *route == self).unwrap_or_default();
                // Both lists come from the same rows.
                ROUTES.get(at).unwrap_or(&ROUTES[0])
            }
        }
    };
}

routes! {
    RateLimit: GET "/rate_limit" [200]
        "rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user";
    App: GET "/app" [200] "apps/apps#get-the-authenticated-app";
    Installations: GET "/app/installations" [200]
        "apps/apps#list-installations-for-the-authenticated-app";
    Installation: GET "/app/installations/{installation_id}" [200]
        "apps/apps#get-an-installation-for-the-authenticated-app";
    CreateInstallationToken: POST "/app/installations/{installation_id}/access_tokens" [201, 422]
        "apps/apps#create-an-installation-access-token-for-an-app";
    RepositoryInstallation: GET "/repos/{owner}/{repo}/installation" [200]
        "apps/apps#get-a-repository-installation-for-the-authenticated-app";
    Repository: GET "/repos/{owner}/{repo}" [200] "repos/repos#get-a-repository";
    Releases: GET "/repos/{owner}/{repo}/releases" [200] "releases/releases#list-releases";
    LatestRelease: GET "/repos/{owner}/{repo}/releases/latest" [200]
        "releases/releases#get-the-latest-release";
    ReleaseByTag: GET "/repos/{owner}/{repo}/releases/tags/{tag}" [200]
        "releases/releases#get-a-release-by-tag-name";
    Release: GET "/repos/{owner}/{repo}/releases/{release_id}" [200]
        "releases/releases#get-a-release";
    Deployments: GET "/repos/{owner}/{repo}/deployments" [200]
        "deployments/deployments#list-deployments";
    CreateDeployment: POST "/repos/{owner}/{repo}/deployments" [201, 202, 409, 422]
        "deployments/deployments#create-a-deployment";
    Deployment: GET "/repos/{owner}/{repo}/deployments/{deployment_id}" [200]
        "deployments/deployments#get-a-deployment";
    DeploymentStatuses: GET "/repos/{owner}/{repo}/deployments/{deployment_id}/statuses" [200]
        "deployments/statuses#list-deployment-statuses";
    CreateDeploymentStatus:
        POST "/repos/{owner}/{repo}/deployments/{deployment_id}/statuses" [201, 422]
        "deployments/statuses#create-a-deployment-status";
    DeploymentStatus:
        GET "/repos/{owner}/{repo}/deployments/{deployment_id}/statuses/{status_id}" [200]
        "deployments/statuses#get-a-deployment-status";
}

impl RouteInfo {
    /// Whether its path starts with a repository, and so follows renames.
    pub fn is_of_repository(&self) -> bool {
        self.path.starts_with(REPOSITORY)
    }

    /// Every status it can answer unless a script does.
    pub fn statuses(&self) -> Vec<u16> {
        let mut statuses = self.own.to_vec();
        // A wrong API version, a bad credential, no User-Agent, an unknown App.
        statuses.extend([400, 401, 403, 404]);
        if self.route != Route::RateLimit {
            statuses.push(429);
        }
        let read = self.method == "GET";
        if read {
            statuses.push(304);
        }
        if self.is_of_repository() {
            statuses.push(if read { 301 } else { 307 });
        }
        statuses.sort_unstable();
        statuses
    }

    /// The parameters of a path that fits, and what follows the repository in it.
    fn parameters(&self, path: &str) -> Option<(Vec<(&'static str, String)>, String)> {
        let fits = |template, path| parameters(template, path);
        if !self.is_of_repository() {
            return fits(self.path, path).map(|parameters| (parameters, String::new()));
        }
        let below = self.path.strip_prefix(REPOSITORY).unwrap_or_default();
        let (mut parameters, rest) = [REPOSITORY, BY_ID].into_iter().find_map(|prefix| {
            let segments = prefix.split('/').count();
            let end = path.match_indices('/').nth(segments - 1).map_or(path.len(), |(at, _)| at);
            let (head, rest) = path.split_at(end);
            fits(prefix, head).map(|parameters| (parameters, rest))
        })?;
        parameters.extend(fits(below, rest)?);
        Some((parameters, rest.to_owned()))
    }
}

/// Matches segment by segment; a tag, which may hold slashes, takes all that is left.
fn parameters(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut parameters = Vec::new();
    let mut rest = Some(path);
    for part in template.split('/') {
        let (segment, after) = match rest?.split_once('/') {
            Some((segment, after)) => (segment, Some(after)),
            None => (rest?, None),
        };
        match part.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some("tag") => {
                parameters.push(("tag", decode(rest?)));
                return Some(parameters);
            }
            Some(name) if !segment.is_empty() => parameters.push((name, decode(segment))),
            None if part == segment => {}
            Some(_) | None => return None,
        }
        rest = after;
    }
    rest.is_none().then_some(parameters)
}

/// A route and what its path holds.
#[derive(Debug)]
pub(crate) struct Matched {
    pub(crate) info: &'static RouteInfo,
    parameters: Vec<(&'static str, String)>,
    /// The path behind the repository, as sent.
    pub(crate) rest: String,
}

impl Matched {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

/// The route of a request, none where GitHub has none (as far as it is modelled).
pub(crate) fn find(method: &str, path: &str) -> Option<Matched> {
    let method = if method == "HEAD" { "GET" } else { method };
    ROUTES.iter().filter(|info| info.method == method).find_map(|info| {
        let (parameters, rest) = info.parameters(path)?;
        Some(Matched { info, parameters, rest })
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET", "/repos/a/b", Some(Route::Repository))]
    #[case("HEAD", "/repos/a/b", Some(Route::Repository))]
    #[case("GET", "/repositories/7", Some(Route::Repository))]
    #[case("GET", "/repos/a", None)]
    #[case("GET", "/repos//b", None)]
    #[case("GET", "/repos/a/b/", None)]
    #[case("GET", "/repos/a/b/releases/latest", Some(Route::LatestRelease))]
    #[case("GET", "/repositories/7/releases/latest", Some(Route::LatestRelease))]
    #[case("GET", "/repos/a/b/releases/12", Some(Route::Release))]
    #[case("GET", "/repos/a/b/releases/tags/v1", Some(Route::ReleaseByTag))]
    #[case("GET", "/repos/a/b/releases/tags/chart/v1", Some(Route::ReleaseByTag))]
    #[case("GET", "/repos/a/b/releases/tags", Some(Route::Release))]
    #[case("POST", "/repos/a/b/releases", None)]
    #[case("POST", "/repositories/7/deployments/8/statuses", Some(Route::CreateDeploymentStatus))]
    #[case("GET", "/", None)]
    #[case("GET", "", None)]
    fn paths_lead_to_routes(
        #[case] method: &str,
        #[case] path: &str,
        #[case] route: Option<Route>,
    ) {
        assert_eq!(find(method, path).map(|matched| matched.info.route), route);
    }

    #[rstest]
    #[case("/repos/a/b/releases/tags/chart%2Fv1", "chart/v1", "/releases/tags/chart%2Fv1")]
    #[case("/repositories/7/releases/tags/chart/v1", "chart/v1", "/releases/tags/chart/v1")]
    fn tags_may_hold_slashes(#[case] path: &str, #[case] tag: &str, #[case] rest: &str) {
        let matched = find("GET", path).unwrap();
        assert_eq!((matched.text("tag"), matched.rest.as_str()), (Some(tag), rest));
    }

    #[test]
    fn every_route_finds_its_row() {
        for info in ROUTES {
            assert_eq!(info.route.info().path, info.path);
            assert_eq!(info.route.info().method, info.method);
        }
    }
}

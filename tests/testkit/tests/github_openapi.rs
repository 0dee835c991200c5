//! Every kind of answer of the scripted GitHub against GitHub's published OpenAPI description.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "github/support.rs"]
mod support;

use std::{collections::BTreeSet, sync::LazyLock};

use belay_components::Components;
use belay_testkit::github::{
    AppCredentials, Base, CommitState, DeploymentState, Event, GitHub, LimitSettings, Matching,
    NewRelease, ROUTES, ReleaseAction, Reply, Rights, Route, RouteInfo, Times, WINDOW,
    openapi::{Described, Description},
};
use boon::{Compiler, Format, Schemas};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Answer, client, jwt, send, sign};

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let file = Components::from_env().unwrap().github_description().unwrap();
    Description::read(&file).unwrap()
});

fn validate(schema: Value, body: &Value) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.enable_format_assertions();
    // The validator takes the operators of RFC 6570, `{/name}` and the like, for errors.
    compiler.register_format(Format { name: "uri-template", func: |_| Ok(()) });
    let name = "https://schema.test/answer.json";
    compiler.add_resource(name, schema).map_err(|error| format!("{error:#}"))?;
    let index = compiler.compile(name, &mut schemas).map_err(|error| format!("{error:#}"))?;
    schemas.validate(body, index).map_err(|error| format!("{error:#}"))
}

/// Whether an answer is as the description says, or where it says nothing as GitHub words errors.
fn check(info: &RouteInfo, answer: &Answer) -> Result<(), String> {
    let empty = |answer: &Answer| match answer.body.as_slice() {
        [] => Ok(()),
        body => Err(format!("a body of {} bytes where none belongs", body.len())),
    };
    let schema = match DESCRIPTION.answer(info.method, info.path, answer.status) {
        Described::Body(schema) => schema,
        Described::Empty => return empty(answer),
        Described::Unmentioned if answer.status == 304 => return empty(answer),
        Described::Unmentioned => DESCRIPTION.component("basic-error").unwrap(),
    };
    let body = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    validate(schema, &body)
}

/// A server with something behind every route.
struct World {
    github: GitHub,
    token: String,
    app: AppCredentials,
    stranger: AppCredentials,
    installation: u64,
    suspended: u64,
    release: u64,
    deployment: u64,
    status: u64,
}

const OLD: &str = "acme/old";
const REPO: &str = "acme/web";

impl World {
    async fn new() -> Self {
        let github = GitHub::start().await.unwrap();
        github.create_repository(OLD).unwrap();
        let full = NewRelease::new("v1.0.0").asset("web.tar.gz");
        let release = github.publish(OLD, full).unwrap();
        github.publish(OLD, NewRelease::new("v1.1.0").draft()).unwrap();
        github.publish(OLD, NewRelease::new("v1.1.0-rc.1").prerelease()).unwrap();
        github.set_branch(OLD, "topic", Base::Behind).unwrap();
        github.set_branch(OLD, "conflict", Base::Conflicting).unwrap();
        github.set_branch(OLD, "red", Base::Current).unwrap();
        github.set_commit_status(OLD, "red", "ci", CommitState::Failure).unwrap();
        let token = github.create_token("ci", &Rights::write([OLD])).unwrap();
        let app = github.create_app("belay", "acme").unwrap();
        let stranger = GitHub::start().await.unwrap().create_app("stranger", "x").unwrap();
        // The other server's ids are the same numbers: an App that no one knows has another.
        let stranger = AppCredentials { id: 9_999, ..stranger };
        let rights = Rights::write(Vec::<String>::new()).everywhere();
        let installation = github.install_app("belay", "acme", &rights).unwrap();
        let suspended = github.install_app("belay", "other", &rights).unwrap();
        github.suspend_installation(suspended, true).unwrap();
        let mut world = Self {
            github,
            token,
            app,
            stranger,
            installation,
            suspended,
            release,
            deployment: 0,
            status: 0,
        };
        let create = world.request(Route::CreateDeployment, OLD);
        world.deployment = send(create).await.json()["id"].as_u64().unwrap();
        let create = world.request(Route::CreateDeploymentStatus, OLD);
        world.status = send(create).await.json()["id"].as_u64().unwrap();
        world.github.rename_repository(OLD, REPO).unwrap();
        world
    }

    /// The bucket and the secret that a route is asked with.
    fn credential(&self, route: Route) -> (&'static str, String) {
        match route {
            Route::App
            | Route::Installations
            | Route::Installation
            | Route::CreateInstallationToken
            | Route::RepositoryInstallation => ("app-belay", jwt(&self.app, self.github.now())),
            _ => ("ci", self.token.clone()),
        }
    }

    fn path(&self, info: &RouteInfo, repo: &str) -> String {
        let (owner, name) = repo.split_once('/').unwrap();
        info.path
            .replace("{owner}", owner)
            .replace("{repo}", name)
            .replace("{tag}", "v1.0.0")
            .replace("{release_id}", &self.release.to_string())
            .replace("{deployment_id}", &self.deployment.to_string())
            .replace("{status_id}", &self.status.to_string())
            .replace("{installation_id}", &self.installation.to_string())
    }

    /// A request that a route answers with 200 or 201.
    fn request(&self, route: Route, repo: &str) -> reqwest::RequestBuilder {
        let request = self.bare(route, &self.path(route.info(), repo));
        request.bearer_auth(self.credential(route).1)
    }

    /// The same without a credential and for any path.
    fn bare(&self, route: Route, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.github.base_url());
        match route {
            Route::CreateDeployment => client().post(url).json(&json!({
                "ref": "v1.0.0",
                "environment": "staging",
                "description": "to the stage",
                "auto_merge": false,
                "required_contexts": [],
                "payload": { "release_uid": "7" },
            })),
            Route::CreateDeploymentStatus => client().post(url).json(&json!({
                "state": "success", "log_url": "https://example.com/log",
            })),
            Route::CreateInstallationToken => client().post(url),
            _ => client().get(url),
        }
    }

    /// The answers that every route has, under the name of what was wrong.
    async fn common(&self, info: &RouteInfo) -> Vec<(&'static str, Answer)> {
        let route = info.route;
        let request = |repo| self.request(route, repo);
        let bare = || self.bare(route, &self.path(info, REPO));
        let mut answers = vec![("", send(request(REPO)).await)];
        if info.method == "GET" {
            let tag = answers[0].1.header("etag").to_owned();
            let unchanged = request(REPO).header("if-none-match", tag);
            answers.push(("unchanged", send(unchanged).await));
        }
        let version = request(REPO).header("x-github-api-version", "1999-12-31");
        answers.push(("version", send(version).await));
        answers.push(("bad token", send(bare().bearer_auth("ghp_nonsense")).await));
        answers.push(("bad JWT", send(bare().bearer_auth("a.b.c")).await));
        let stranger = jwt(&self.stranger, self.github.now());
        answers.push(("unknown App", send(bare().bearer_auth(stranger)).await));
        if info.is_of_repository() {
            answers.push(("moved", send(request(OLD)).await));
            answers.push(("missing", send(request("acme/nothing")).await));
        }
        if route != Route::RateLimit {
            let (bucket, _) = self.credential(route);
            for exceeded_status in [403, 429] {
                let settings = LimitSettings { exceeded_status, ..LimitSettings::default() };
                self.github.set_limits(settings).unwrap();
                self.github.exhaust(bucket);
                answers.push(("limit", send(request(REPO)).await));
            }
            self.github.advance(WINDOW);
        }
        answers
    }

    /// The answers that only some routes have.
    async fn special(&self) -> Vec<(&'static str, Route, Answer)> {
        let mut answers = Vec::new();
        let base = self.github.base_url();
        let deployments = format!("{base}/repos/{REPO}/deployments");
        let deploy = |body: Value| client().post(&deployments).bearer_auth(&self.token).json(&body);
        let statuses = format!("{deployments}/{}/statuses", self.deployment);
        let report = |body: Value| client().post(&statuses).bearer_auth(&self.token).json(&body);
        let tokens = |installation: u64, body: Value| {
            let url = format!("{base}/app/installations/{installation}/access_tokens");
            client().post(url).bearer_auth(jwt(&self.app, self.github.now())).json(&body)
        };
        let minimal = json!({ "ref": "main" });
        let long = "x".repeat(141);
        let cases = [
            ("minimal", Route::CreateDeployment, deploy(minimal.clone())),
            ("text payload", Route::CreateDeployment, {
                deploy(json!({ "ref": "main", "payload": "text", "description": null }))
            }),
            ("merged", Route::CreateDeployment, deploy(json!({ "ref": "topic" }))),
            ("merge conflict", Route::CreateDeployment, deploy(json!({ "ref": "conflict" }))),
            ("failed checks", Route::CreateDeployment, deploy(json!({ "ref": "red" }))),
            ("no ref", Route::CreateDeployment, deploy(json!({}))),
            ("unknown ref", Route::CreateDeployment, deploy(json!({ "ref": "nothing" }))),
            ("wrong type", Route::CreateDeployment, deploy(json!({ "ref": 1 }))),
            ("wrong payload", Route::CreateDeployment, {
                deploy(json!({ "ref": "main", "payload": [1] }))
            }),
            ("long", Route::CreateDeployment, {
                deploy(json!({ "ref": "main", "description": long }))
            }),
            ("no JSON", Route::CreateDeployment, deploy(minimal.clone()).body("{")),
            ("anonymous", Route::CreateDeployment, client().post(&deployments).json(&minimal)),
            ("no state", Route::CreateDeploymentStatus, report(json!({}))),
            ("wrong state", Route::CreateDeploymentStatus, report(json!({ "state": "done" }))),
            ("long", Route::CreateDeploymentStatus, {
                report(json!({ "state": "success", "description": long }))
            }),
            ("bare", Route::CreateDeploymentStatus, report(json!({ "state": "queued" }))),
            ("narrowed", Route::CreateInstallationToken, {
                let narrow = json!({
                    "repositories": ["web"], "permissions": { "contents": "read" },
                });
                tokens(self.installation, narrow)
            }),
            ("foreign repository", Route::CreateInstallationToken, {
                tokens(self.installation, json!({ "repositories": ["nothing"] }))
            }),
            ("too much", Route::CreateInstallationToken, {
                tokens(self.installation, json!({ "permissions": { "issues": "write" } }))
            }),
            ("suspended", Route::CreateInstallationToken, tokens(self.suspended, json!({}))),
        ];
        for (name, route, request) in cases {
            answers.push((name, route, send(request).await));
        }
        for info in ROUTES {
            let numbered = info.path.contains("_id}") || info.path.contains("{tag}");
            if numbered {
                let path = self.path(info, REPO);
                let known = if info.path.contains("{tag}") { "v1.0.0" } else { "" };
                let path = match known {
                    "" => replace_numbers(&path),
                    tag => path.replace(tag, "v9"),
                };
                let request = self.bare(info.route, &path);
                let secret = self.credential(info.route).1;
                answers.push(("unknown id", info.route, send(request.bearer_auth(secret)).await));
            }
        }
        let app = format!("{base}/app");
        let no_jwt = client().get(app).bearer_auth(&self.token);
        answers.push(("no JWT", Route::App, send(no_jwt).await));
        let claims = json!({ "iss": self.app.id, "iat": 0, "exp": 1 });
        let expired = client().get(format!("{base}/app")).bearer_auth(sign(&self.app, &claims));
        answers.push(("expired JWT", Route::App, send(expired).await));
        let by_app = client().get(format!("{base}/repos/{REPO}"));
        let by_app = by_app.bearer_auth(jwt(&self.app, self.github.now()));
        answers.push(("App", Route::Repository, send(by_app).await));
        self.github.require_single_sign_on("acme", true);
        answers.push(("SSO", Route::Releases, send(self.request(Route::Releases, REPO)).await));
        self.github.require_single_sign_on("acme", false);
        self.github.set_limits(LimitSettings::off()).unwrap();
        answers.push(("off", Route::RateLimit, send(self.request(Route::RateLimit, REPO)).await));
        self.github.set_limits(LimitSettings::default()).unwrap();
        answers
    }
}

/// A path with ids that nothing has.
fn replace_numbers(path: &str) -> String {
    let part = |part: &str| {
        if part.parse::<u64>().is_ok() { "99999".to_owned() } else { part.to_owned() }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_answer_of_every_route_is_as_github_describes_it() {
    let world = World::new().await;
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let mut look = |name: &str, info: &RouteInfo, answer: &Answer| {
        seen.insert((info.route, answer.status));
        if let Err(why) = check(info, answer) {
            wrong.push(format!("{} {} {name} {}: {why}", info.method, info.path, answer.status));
        }
    };
    for info in ROUTES {
        for (name, answer) in world.common(info).await {
            look(name, info, &answer);
        }
    }
    for (name, route, answer) in world.special().await {
        look(name, route.info(), &answer);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The one answer that is no JSON: what stands in front of the API refuses a missing User-Agent.
    for info in ROUTES {
        let url = format!("{}{}", world.github.base_url(), world.path(info, REPO));
        let method = info.method.parse().unwrap();
        let answer = send(reqwest::Client::new().request(method, url)).await;
        assert_eq!(answer.status, 403, "{}", info.path);
        assert_eq!(answer.header("content-type"), "text/html");
        seen.insert((info.route, 403));
    }

    let all = ROUTES
        .iter()
        .flat_map(|info| info.statuses().into_iter().map(move |status| (info.route, status)));
    let all: BTreeSet<_> = all.collect();
    assert_eq!(seen.difference(&all).collect::<Vec<_>>(), Vec::<&_>::new(), "not in the table");
    assert_eq!(all.difference(&seen).collect::<Vec<_>>(), Vec::<&_>::new(), "never validated");
    let undeclared = world.github.log().count(|request| !request.is_declared());
    assert_eq!(undeclared, 0, "{}", world.github.log().summary());
}

#[test]
fn every_route_is_one_of_githubs() {
    for info in ROUTES {
        assert!(DESCRIPTION.has(info.method, info.path), "{} {}", info.method, info.path);
        assert!(info.docs.starts_with("https://docs.github.com/rest/"), "{}", info.docs);
    }
}

#[tokio::test]
async fn a_path_that_github_does_not_have_is_not_found_in_its_words() {
    let github = GitHub::start().await.unwrap();
    let answer = send(client().get(format!("{}/nothing", github.base_url()))).await;
    assert_eq!((answer.status, answer.json()["message"].as_str()), (404, Some("Not Found")));
    validate(DESCRIPTION.component("basic-error").unwrap(), &answer.json()).unwrap();
}

#[rstest]
#[case::secondary(Reply::SecondaryLimit { status: 403, retry_after: Some(17) }, 403)]
#[case::secondary_without_a_time(Reply::SecondaryLimit { status: 429, retry_after: None }, 429)]
#[case::single_sign_on(Reply::SingleSignOn, 403)]
#[case::address(Reply::AddressNotAllowed, 403)]
#[tokio::test]
async fn scripted_refusals_are_in_githubs_shape(#[case] reply: Reply, #[case] status: u16) {
    let github = GitHub::start().await.unwrap();
    github.script(Matching::any(), Times::Always, reply).unwrap();
    let answer = send(client().get(format!("{}/repos/a/b", github.base_url()))).await;
    assert_eq!(answer.status, status);
    validate(DESCRIPTION.component("basic-error").unwrap(), &answer.json()).unwrap();
}

#[tokio::test]
async fn webhooks_carry_the_payloads_that_github_describes() {
    let world = World::new().await;
    let github = &world.github;
    let (repo, tag) = (REPO.to_owned(), "v1.0.0".to_owned());
    let release = |action, tag: &str| {
        (Event::Release { repo: repo.clone(), tag: tag.to_owned(), action }, action.name())
    };
    let mut events = vec![
        (Event::Ping { repo: repo.clone() }, "ping".to_owned()),
        (
            Event::DeploymentStatus { repo: repo.clone(), deployment: world.deployment },
            "deployment-status-created".to_owned(),
        ),
    ];
    for action in ReleaseAction::ALL {
        // A payload's own flags must fit its action.
        let tag = match action {
            ReleaseAction::Prereleased => "v1.1.0-rc.1",
            ReleaseAction::Unpublished => "v1.1.0",
            _ => &tag,
        };
        let (event, name) = release(action, tag);
        events.push((event, format!("release-{name}")));
    }
    github.report_deployment(REPO, world.deployment, DeploymentState::InProgress).unwrap();
    for (event, name) in events {
        let webhook = github.webhook(&event).unwrap();
        let payload = serde_json::from_slice(webhook.body()).unwrap();
        let schema = DESCRIPTION.webhook(&name).unwrap_or_else(|| panic!("no webhook {name}"));
        validate(schema, &payload).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

/// A release as the server answers it, for the validator to be tried on.
async fn a_release() -> Answer {
    let github = GitHub::start().await.unwrap();
    github.create_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0").asset("web.tar.gz")).unwrap();
    send(client().get(format!("{}/repos/{REPO}/releases/latest", github.base_url()))).await
}

#[rstest]
#[case::missing_required("tag_name", None)]
#[case::missing_nested("author/node_id", None)]
#[case::wrong_type("id", Some(json!("1")))]
#[case::null_where_none_may_be("draft", Some(Value::Null))]
#[case::wrong_format("created_at", Some(json!("yesterday")))]
#[case::wrong_uri("url", Some(json!("not a uri")))]
#[case::wrong_enum("assets/0/state", Some(json!("lost")))]
#[case::unknown_property("tagName", Some(json!("v1")))]
#[case::unknown_nested_property("author/name_", Some(json!("x")))]
#[tokio::test]
async fn a_wrong_answer_is_caught(#[case] at: &str, #[case] value: Option<Value>) {
    let right = a_release().await;
    let info = Route::LatestRelease.info();
    check(info, &right).unwrap();
    let mut body = right.json();
    let (parent, name) = at.rsplit_once('/').unwrap_or(("", at));
    let parent = if parent.is_empty() { String::new() } else { format!("/{parent}") };
    let object = body.pointer_mut(&parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => object.insert(name.to_owned(), value),
        None => object.remove(name),
    };
    let wrong = Answer { body: body.to_string().into_bytes(), ..right };
    check(info, &wrong).unwrap_err();
}

#[rstest]
#[case(304, b"{}".as_slice())]
#[case(404, b"".as_slice())]
#[case(404, b"[]".as_slice())]
#[case(404, br#"{"massage":"Not Found"}"#.as_slice())]
fn a_wrong_error_is_caught(#[case] status: u16, #[case] body: &[u8]) {
    let answer = Answer { status, headers: http::HeaderMap::new(), body: body.to_vec() };
    check(Route::Releases.info(), &answer).unwrap_err();
}

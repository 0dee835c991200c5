//! Apps: JWTs and installation tokens.

use std::time::Duration;

use belay_testkit::github::{
    AppCredentials, CLOCK_SKEW, Clock, GitHub, INSTALLATION_TOKEN_LIFE, LONGEST_LIFE, Level,
    NewRelease, Rights,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Answer, client, jwt, send, sign};

struct World {
    github: GitHub,
    app: AppCredentials,
    installation: u64,
}

impl World {
    fn new() -> Self {
        let clock = Clock::Standing("2026-03-01T12:00:00Z".parse().unwrap());
        let github = GitHub::builder().clock(clock).start().unwrap();
        github.create_private_repository("acme/web").unwrap();
        github.create_private_repository("acme/api").unwrap();
        github.create_private_repository("other/web").unwrap();
        github.publish("acme/web", NewRelease::new("v1.0.0")).unwrap();
        let app = github.create_app("belay", "acme").unwrap();
        let rights = Rights::read(Vec::<String>::new()).everywhere();
        let rights = rights.with("deployments", Level::Write);
        let installation = github.install_app("belay", "acme", &rights).unwrap();
        Self { github, app, installation }
    }

    async fn token(&self, body: &Value) -> Answer {
        let (base, id) = (self.github.base_url(), self.installation);
        let request = client().post(format!("{base}/app/installations/{id}/access_tokens"));
        send(request.bearer_auth(jwt(&self.app, self.github.now())).json(body)).await
    }

    async fn get(&self, path: &str, secret: &str) -> Answer {
        send(client().get(format!("{}{path}", self.github.base_url())).bearer_auth(secret)).await
    }
}

fn secret(answer: &Answer) -> String {
    answer.json()["token"].as_str().unwrap().to_owned()
}

#[rstest]
#[case::good(0, 540, 200, "")]
#[case::longest(0, LONGEST_LIFE, 200, "")]
#[case::fast_clock(CLOCK_SKEW, 540, 200, "")]
#[case::too_long(0, LONGEST_LIFE + 60, 401, "'exp') is too far in the future")]
#[case::expired(-660, -60, 401, "('exp') must be a numeric value")]
#[case::from_the_future(CLOCK_SKEW + 60, 540, 401, "('iat') must be an Integer")]
#[tokio::test]
async fn the_times_of_a_jwt_are_checked(
    #[case] issued: i64,
    #[case] expires: i64,
    #[case] status: u16,
    #[case] words: &str,
) {
    let world = World::new();
    let now = world.github.now().as_second();
    let claims = json!({ "iss": world.app.id, "iat": now + issued, "exp": now + expires });
    let answer = world.get("/app", &sign(&world.app, &claims)).await;
    assert_eq!(answer.status, status);
    let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(words), "{message}");
}

#[rstest]
#[case::number(|app: &AppCredentials| json!(app.id), 200)]
#[case::text(|app: &AppCredentials| json!(app.id.to_string()), 200)]
#[case::client_id(|app: &AppCredentials| json!(app.client_id), 200)]
#[case::slug(|app: &AppCredentials| json!(app.slug), 404)]
#[case::another(|app: &AppCredentials| json!(app.id + 1), 404)]
#[case::none(|_: &AppCredentials| Value::Null, 401)]
#[tokio::test]
async fn the_issuer_is_the_app_or_its_client_id(
    #[case] issuer: fn(&AppCredentials) -> Value,
    #[case] status: u16,
) {
    let world = World::new();
    let now = world.github.now().as_second();
    let claims = json!({ "iss": issuer(&world.app), "iat": now, "exp": now + 60 });
    assert_eq!(world.get("/app", &sign(&world.app, &claims)).await.status, status);
}

#[tokio::test]
async fn only_the_apps_own_key_signs_for_it() {
    let world = World::new();
    let other = world.github.create_app("other", "acme").unwrap();
    let now = world.github.now().as_second();
    let claims = json!({ "iss": world.app.id, "iat": now, "exp": now + 60 });
    let forged = sign(&other, &claims);
    let answer = world.get("/app", &forged).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["message"], "A JSON web token could not be decoded");

    let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    let key = jsonwebtoken::EncodingKey::from_secret(b"secret");
    let weak = jsonwebtoken::encode(&header, &claims, &key).unwrap();
    assert_eq!(world.get("/app", &weak).await.status, 401, "only RS256 is accepted");
}

#[tokio::test]
async fn an_app_finds_its_installations() {
    let world = World::new();
    let jwt = jwt(&world.app, world.github.now());
    let app = world.get("/app", &jwt).await.json();
    assert_eq!(
        (app["slug"].as_str(), app["installations_count"].as_u64()),
        (Some("belay"), Some(1))
    );
    let list = world.get("/app/installations", &jwt).await.json();
    assert_eq!(list[0]["id"], world.installation);
    let one = world.get("/repos/acme/web/installation", &jwt).await.json();
    assert_eq!((&one["id"], &one["account"]["login"]), (&list[0]["id"], &"acme".into()));
    assert_eq!(world.get("/repos/other/web/installation", &jwt).await.status, 404);
    assert_eq!(world.get("/repos/acme/web/releases", &jwt).await.status, 403);
}

#[tokio::test]
async fn an_installation_token_lives_an_hour_by_the_scripted_clock() {
    let world = World::new();
    let answer = world.token(&json!({})).await;
    assert_eq!(answer.status, 201);
    let expected = world.github.now() + INSTALLATION_TOKEN_LIFE;
    let expires: jiff::Timestamp = answer.json()["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(expires, expected);
    assert_eq!(answer.json()["repository_selection"], "all");
    let token = secret(&answer);
    let path = "/repos/acme/web/releases/latest";
    assert_eq!(world.get(path, &token).await.status, 200);
    world.github.advance(Duration::from_mins(59));
    assert_eq!(world.get(path, &token).await.status, 200);
    world.github.advance(Duration::from_mins(1));
    let answer = world.get(path, &token).await;
    assert_eq!((answer.status, &answer.json()["message"]), (401, &"Bad credentials".into()));
    let again = secret(&world.token(&json!({})).await);
    assert_eq!(world.get(path, &again).await.status, 200);
}

#[tokio::test]
async fn a_token_reaches_what_its_installation_covers_and_no_further() {
    let world = World::new();
    let token = secret(&world.token(&json!({})).await);
    for (repo, status) in [("acme/web", 200), ("acme/api", 200), ("other/web", 404)] {
        assert_eq!(world.get(&format!("/repos/{repo}"), &token).await.status, status, "{repo}");
    }
    let narrow = json!({ "repositories": ["web"], "permissions": { "contents": "read" } });
    let answer = world.token(&narrow).await;
    assert_eq!(answer.json()["permissions"], json!({ "contents": "read" }));
    assert_eq!(answer.json()["repositories"][0]["full_name"], "acme/web");
    let token = secret(&answer);
    assert_eq!(world.get("/repos/acme/web/releases", &token).await.status, 200);
    assert_eq!(world.get("/repos/acme/api/releases", &token).await.status, 404);
    let refused = world.get("/repos/acme/web/deployments", &token).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["message"], "Resource not accessible by integration");
}

#[rstest]
#[case::unknown(json!({ "repositories": ["nothing"] }), 422)]
#[case::foreign(json!({ "repository_ids": [1] }), 422)]
#[case::not_granted(json!({ "permissions": { "issues": "read" } }), 422)]
#[case::higher(json!({ "permissions": { "contents": "write" } }), 422)]
#[case::malformed(json!({ "permissions": { "contents": "most" } }), 422)]
#[case::lower(json!({ "permissions": { "deployments": "read" } }), 201)]
#[tokio::test]
async fn a_token_has_at_most_what_was_granted(#[case] body: Value, #[case] status: u16) {
    assert_eq!(World::new().token(&body).await.status, status);
}

#[tokio::test]
async fn a_suspended_installation_gives_no_tokens() {
    let world = World::new();
    world.github.suspend_installation(world.installation, true).unwrap();
    let refused = world.token(&json!({})).await;
    assert_eq!(
        (refused.status, &refused.json()["message"]),
        (403, &"This installation has been suspended".into())
    );
    world.github.suspend_installation(world.installation, false).unwrap();
    assert_eq!(world.token(&json!({})).await.status, 201);
}

#[tokio::test]
async fn a_revoked_token_is_bad() {
    let world = World::new();
    let token = secret(&world.token(&json!({})).await);
    world.github.revoke(&format!("installation-{}", world.installation)).unwrap();
    assert_eq!(world.get("/repos/acme/web", &token).await.status, 401);
    world.github.revoke("nobody").unwrap_err();
}

#[rstest]
#[case("Bearer", 200)]
#[case("bearer", 200)]
#[case("token", 200)]
#[case("Basic", 401)]
#[tokio::test]
async fn a_token_is_taken_by_two_schemes(#[case] scheme: &str, #[case] status: u16) {
    let world = World::new();
    let token = world.github.create_token("ci", &Rights::read(["acme/web"])).unwrap();
    let request = client().get(format!("{}/repos/acme/web", world.github.base_url()));
    let answer = send(request.header("authorization", format!("{scheme} {token}"))).await;
    assert_eq!(answer.status, status);
}

#[tokio::test]
async fn the_log_names_credentials_and_never_shows_them() {
    let world = World::new();
    let installation = secret(&world.token(&json!({})).await);
    let personal = world.github.create_token("ci", &Rights::read(["acme/web"])).unwrap();
    for secret in [installation.as_str(), &personal, "nonsense"] {
        world.get("/repos/acme/web", secret).await;
    }
    let log = world.github.log();
    let kinds: Vec<_> = log.requests().iter().map(|it| it.credential.to_string()).collect();
    let first = format!("installation {}, token 1", world.installation);
    assert_eq!(kinds, ["app belay", first.as_str(), "token ci", "rejected bearer"]);
    let headers = log.requests().iter().map(|it| it.header("authorization").unwrap());
    assert_eq!(headers.collect::<Vec<_>>(), kinds);
    let text = format!("{}{log:?}", serde_json::to_string(log.requests()).unwrap());
    for secret in [installation.as_str(), &personal, "nonsense", "eyJ"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let debug = format!("{:?} {:?}", world.github, world.app);
    assert!(!debug.contains(&personal) && !debug.contains("PRIVATE KEY"), "{debug}");
}

//! Apps: installation tokens are fetched when needed, and once.

use std::sync::Arc;

use belay_adapters::forge::{AppKey, Client, Credential, Settings};
use belay_testkit::github::{GitHub, LimitSettings, Matching, NewRelease, Reply, Rights, Times};
use rstest::rstest;

use crate::support::{REPO, latest, settings, word};

struct World {
    github: GitHub,
    installation: u64,
    credential: Credential,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let github = GitHub::builder().start().unwrap();
        github.create_private_repository(REPO).unwrap();
        github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
        let app = github.create_app("belay", "acme").unwrap();
        let rights = Rights::read(Vec::<String>::new()).everywhere();
        let installation = github.install_app("belay", "acme", &rights).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("key.pem");
        std::fs::write(&key_file, app.private_key.pem()).unwrap();
        let credential = Credential::App(AppKey { app: app.id, installation, key_file });
        Self { github, installation, credential, folder }
    }

    fn client(&self) -> Client {
        Client::new(settings(&self.github, self.credential.clone())).unwrap()
    }

    fn tokens(&self) -> usize {
        self.github.log().count(|it| it.method == "POST")
    }
}

#[tokio::test]
async fn one_token_serves_all_requests_also_those_at_a_time() {
    let world = World::new();
    let client = Arc::new(world.client());
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { word(&latest(&client).await) })
        })
        .collect();
    for task in asking {
        let answer = task.await.unwrap();
        assert!(answer.ends_with(" v1.0.0"), "{answer}");
    }
    assert_eq!(world.tokens(), 1, "{}", world.github.log().summary());
    let log = world.github.log();
    let path = format!("/app/installations/{}/access_tokens", world.installation);
    assert_eq!(log.requests()[0].path, path);
    assert_eq!(log.count(|it| it.method == "GET"), 8);
}

#[tokio::test]
async fn a_token_that_is_bad_before_its_time_is_replaced_without_a_failure() {
    let world = World::new();
    let client = world.client();
    for _ in 0..3 {
        let answer = word(&latest(&client).await);
        assert!(answer.ends_with(" v1.0.0"), "{answer}");
        world.github.revoke(&format!("installation-{}", world.installation)).unwrap();
    }
    assert_eq!(world.tokens(), 3, "{}", world.github.log().summary());
}

#[rstest]
#[case::an_hour(3600, 1)]
#[case::a_minute(60, 1)]
#[case::a_moment(20, 3)]
#[tokio::test]
async fn a_token_is_renewed_half_a_minute_before_it_expires(
    #[case] life: i64,
    #[case] at_least: usize,
) {
    let world = World::new();
    let token = world.github.create_token("ci", &Rights::read([REPO])).unwrap();
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(life);
    let body = format!(
        r#"{{"token":"{token}","expires_at":"{expires}","permissions":{{}},"repository_selection":"all"}}"#
    );
    let reply = Reply::Answer { status: 201, headers: Vec::new(), body };
    world.github.script(Matching::any().method("POST"), Times::Always, reply).unwrap();
    let client = world.client();
    for _ in 0..3 {
        let answer = word(&latest(&client).await);
        assert!(answer.ends_with(" v1.0.0"), "{answer}");
    }
    let tokens = world.tokens();
    assert!(tokens >= at_least && (at_least > 1 || tokens == 1), "{tokens}");
}

#[tokio::test]
async fn an_enterprise_server_gives_tokens_below_its_path() {
    let world = World::new();
    let base = world.github.enterprise_url().parse().unwrap();
    let settings = settings(&world.github, world.credential.clone());
    let client = Client::new(Settings { base, ..settings }).unwrap();
    assert_eq!(word(&latest(&client).await), "fresh v1.0.0");
    let log = world.github.log();
    assert!(log.requests().iter().all(|it| it.path.starts_with("/api/v3/")), "{}", log.summary());
}

#[tokio::test]
async fn a_suspended_installation_is_denied_and_asks_for_nothing_else() {
    let world = World::new();
    world.github.suspend_installation(world.installation, true).unwrap();
    assert_eq!(word(&latest(&world.client()).await), "denied 403");
    assert_eq!(world.github.log().len(), 1);
}

#[rstest]
#[case::secondary(Reply::SecondaryLimit { status: 403, retry_after: Some(30) }, "throttled true")]
#[case::silent(Reply::SecondaryLimit { status: 429, retry_after: None }, "throttled true")]
#[case::broken(Reply::Answer { status: 502, headers: Vec::new(), body: String::new() }, "upstream 502")]
#[case::gone(Reply::Answer { status: 404, headers: Vec::new(), body: String::new() }, "denied 404")]
#[case::closed(Reply::Close, "transport")]
#[case::garbage(Reply::Garbage, "unreadable")]
#[case::huge(Reply::Padded { bytes: 10 << 20 }, "too-large")]
#[tokio::test]
async fn a_token_that_is_not_given_is_told_as_what_it_is(
    #[case] reply: Reply,
    #[case] expected: &str,
) {
    let world = World::new();
    let matching = Matching::path("/app/installations/*").method("POST");
    world.github.script(matching, Times::Always, reply).unwrap();
    let client = world.client();
    let answer = latest(&client).await;
    assert_eq!(word(&answer), expected);
    assert_eq!(world.github.log().len(), 1, "nothing is asked without a token");
    if expected == "throttled true" {
        assert_eq!(word(&latest(&client).await), "throttled false");
        assert_eq!(world.github.log().len(), 1, "{}", world.github.log().summary());
    }
    let text = format!("{answer:?}");
    assert!(!text.contains("ghs_") && !text.contains("PRIVATE"), "{text}");
}

#[tokio::test]
async fn the_apps_own_quota_is_not_the_installations() {
    let world = World::new();
    let client = world.client();
    let limits = LimitSettings { authenticated: 100, ..LimitSettings::default() };
    world.github.set_limits(limits).unwrap();
    latest(&client).await.unwrap();
    let quota = client.budget().quota(world.github.now()).unwrap();
    assert_eq!((quota.limit, quota.remaining), (100, 99));
    world.github.exhaust("app-belay");
    world.github.revoke(&format!("installation-{}", world.installation)).unwrap();
    assert_eq!(word(&latest(&client).await), "throttled true");
    assert_eq!(client.budget().quota(world.github.now()), Some(quota));
}

#[tokio::test]
async fn a_key_that_is_none_asks_nothing_and_is_not_printed() {
    let world = World::new();
    let key_file = world.folder.path().join("key.pem");
    let client = world.client();
    std::fs::write(&key_file, "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END").unwrap();
    let error = latest(&client).await.unwrap_err();
    assert_eq!(error.category(), "credential");
    assert!(!format!("{error} {error:?}").contains("c2VjcmV0"));
    assert_eq!(world.github.log().len(), 0);
}

//! Who sees a repository, and what becomes of its names. Also that the server comes and goes.

use belay_testkit::github::{GitHub, GitHubError, Level, NewRelease, Rights};
use rstest::rstest;

use crate::support::{Answer, client, send};

async fn get(github: &GitHub, path: &str, token: Option<&str>) -> Answer {
    let mut request = client().get(format!("{}{path}", github.base_url()));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    send(request).await
}

#[rstest]
#[case::root(false)]
#[case::enterprise(true)]
#[tokio::test]
async fn a_renamed_repository_is_found_again_by_its_id(#[case] enterprise: bool) {
    let github = GitHub::start().await.unwrap();
    let id = github.create_repository("acme/web").unwrap();
    github.publish("acme/web", NewRelease::new("v1.0.0")).unwrap();
    github.rename_repository("acme/web", "acme/site").unwrap();
    github.rename_repository("acme/site", "newco/site").unwrap();

    let base = if enterprise { github.enterprise_url() } else { github.base_url() };
    let mark = github.mark();
    for old in ["acme/web", "acme/site", "ACME/Web"] {
        let url = format!("{base}/repos/{old}/releases/latest?x=1%2F2");
        let moved = send(client().get(url)).await;
        assert_eq!(moved.status, 301);
        let to = format!("{base}/repositories/{id}/releases/latest?x=1%2F2");
        assert_eq!(moved.header("location"), to);
        let body = moved.json();
        assert_eq!(
            (body["message"].as_str(), body["url"].as_str()),
            (Some("Moved Permanently"), Some(to.as_str()))
        );
        assert_eq!(send(client().get(to)).await.json()["tag_name"], "v1.0.0");
    }
    let repository = send(client().get(format!("{base}/repositories/{id}"))).await.json();
    assert_eq!(
        (repository["id"].as_u64(), repository["full_name"].as_str()),
        (Some(id), Some("newco/site"))
    );
    assert_eq!(github.log().since(mark).count(|it| it.status == Some(301)), 3);
}

#[tokio::test]
async fn a_change_to_a_renamed_repository_is_redirected_with_its_method() {
    let github = GitHub::start().await.unwrap();
    let id = github.create_repository("acme/web").unwrap();
    let token = github.create_token("ci", &Rights::write(["acme/web"])).unwrap();
    github.rename_repository("acme/web", "acme/site").unwrap();
    let url = format!("{}/repos/acme/web/deployments", github.base_url());
    let answer = send(client().post(url).bearer_auth(&token).body(r#"{"ref":"main"}"#)).await;
    assert_eq!(answer.status, 307);
    let to = answer.header("location").to_owned();
    assert_eq!(to, format!("{}/repositories/{id}/deployments", github.base_url()));
    let answer = send(client().post(to).bearer_auth(&token).body(r#"{"ref":"main"}"#)).await;
    assert_eq!(answer.status, 201, "rights follow the id");
}

#[tokio::test]
async fn a_name_that_was_taken_over_leads_to_another_id() {
    let github = GitHub::start().await.unwrap();
    let id = github.create_repository("acme/web").unwrap();
    github.publish("acme/web", NewRelease::new("v1.0.0")).unwrap();
    let token = github.create_token("ci", &Rights::write(["acme/web"])).unwrap();
    github.rename_repository("acme/web", "acme/site").unwrap();
    let other = github.create_repository("acme/web").unwrap();
    assert_ne!(other, id);
    let found = get(&github, "/repos/acme/web", Some(&token)).await.json();
    assert_eq!(found["id"].as_u64(), Some(other));
    assert_eq!(found["permissions"]["push"], false, "rights do not follow the name");
    assert_eq!(get(&github, "/repos/acme/web/releases/latest", None).await.status, 404);
    assert_eq!(
        get(&github, &format!("/repositories/{id}/releases/latest"), None).await.status,
        200
    );

    let third = github.recreate_repository("acme/web").unwrap();
    assert_ne!(third, other);
    assert_eq!(get(&github, &format!("/repositories/{other}"), None).await.status, 404);
    github.rename_repository("acme/site", "acme/web").unwrap_err();
}

#[tokio::test]
async fn private_and_missing_are_told_in_the_same_words() {
    let github = GitHub::start().await.unwrap();
    github.create_private_repository("acme/secret").unwrap();
    github.create_repository("acme/web").unwrap();
    github.publish("acme/secret", NewRelease::new("v1.0.0")).unwrap();
    let stranger = github.create_token("stranger", &Rights::write(["acme/web"])).unwrap();
    let member = github.create_token("member", &Rights::read(["acme/secret"])).unwrap();
    for path in ["", "/releases", "/releases/latest", "/deployments"] {
        for token in [None, Some(stranger.as_str())] {
            let hidden = get(&github, &format!("/repos/acme/secret{path}"), token).await;
            let missing = get(&github, &format!("/repos/acme/nothing{path}"), token).await;
            assert_eq!((hidden.status, missing.status), (404, 404), "{path}");
            assert_eq!(hidden.json(), missing.json());
        }
        let found = get(&github, &format!("/repos/acme/secret{path}"), Some(&member)).await;
        assert_eq!(found.status, 200, "{path}");
    }
    github.rename_repository("acme/secret", "acme/hidden").unwrap();
    assert_eq!(get(&github, "/repos/acme/secret", None).await.status, 404, "no redirect tells");
    assert_eq!(get(&github, "/repos/acme/secret", Some(&member)).await.status, 301);
    github.set_private("acme/hidden", false).unwrap();
    assert_eq!(get(&github, "/repos/acme/hidden", None).await.status, 200);
    github.delete_repository("acme/hidden").unwrap();
    assert_eq!(get(&github, "/repos/acme/hidden", Some(&member)).await.status, 404);
    assert_eq!(get(&github, "/repos/acme/secret", Some(&member)).await.status, 404);
}

#[rstest]
#[case::none(Rights::read(["acme/secret"]), 200, 200)]
#[case::contents(Rights::read(["acme/secret"]).without("contents"), 403, 200)]
#[case::deployments(Rights::read(["acme/secret"]).without("deployments"), 200, 403)]
#[case::only_deployments(
    Rights { repositories: Some(vec!["acme/secret".into()]), ..Rights::default() }
        .with("deployments", Level::Write),
    403,
    200
)]
#[tokio::test]
async fn a_permission_that_is_missing_is_a_bare_403(
    #[case] rights: Rights,
    #[case] releases: u16,
    #[case] deployments: u16,
) {
    let github = GitHub::start().await.unwrap();
    github.create_private_repository("acme/secret").unwrap();
    let token = github.create_token("ci", &rights).unwrap();
    for (path, status) in [("", 200), ("/releases", releases), ("/deployments", deployments)] {
        let answer = get(&github, &format!("/repos/acme/secret{path}"), Some(&token)).await;
        assert_eq!(answer.status, status, "{path}");
        assert_ne!(answer.header("x-ratelimit-remaining"), "0");
        assert!(!answer.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn single_sign_on_stops_personal_tokens_alone() {
    let github = GitHub::start().await.unwrap();
    github.create_repository("acme/web").unwrap();
    let token = github.create_token("ci", &Rights::read(["acme/web"])).unwrap();
    github.require_single_sign_on("Acme", true);
    let refused = get(&github, "/repos/acme/web/releases", Some(&token)).await;
    assert_eq!(refused.status, 403);
    assert!(refused.header("x-github-sso").starts_with("required; url="));
    assert_eq!(get(&github, "/repos/acme/web/releases", None).await.status, 200);
    github.require_single_sign_on("acme", false);
    assert_eq!(get(&github, "/repos/acme/web/releases", Some(&token)).await.status, 200);
}

#[tokio::test]
async fn a_head_request_is_answered_without_a_body() {
    let github = GitHub::start().await.unwrap();
    github.create_repository("acme/web").unwrap();
    let url = format!("{}/repos/acme/web", github.base_url());
    let (head, get) = (send(client().head(&url)).await, send(client().get(&url)).await);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), get.header("etag"));
}

#[test]
fn one_server_serves_several_runtimes_and_code_without_one() {
    let github = GitHub::builder().start().unwrap();
    github.create_repository("acme/web").unwrap();
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(get(&github, "/repos/acme/web", None)).status
    };
    let statuses = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(statuses, [200; 4]);
    assert_eq!(github.log().len(), 4);
}

#[tokio::test]
async fn a_server_that_is_dropped_is_gone_and_its_port_is_free() {
    // Below the range from which the other tests' servers get their ports.
    let port = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let github = GitHub::builder().port(port).start().unwrap();
    let url = github.base_url().to_owned();
    // This connection is kept open by its client.
    let kept = client();
    assert_eq!(kept.get(format!("{url}/repos/a/b")).send().await.unwrap().status(), 404);
    let taken = GitHub::builder().port(port).start().unwrap_err();
    assert!(matches!(taken, GitHubError::Listen { port: it, .. } if it == port), "{taken}");
    drop(github);
    kept.get(&url).send().await.unwrap_err();
    assert!(client().get(&url).send().await.unwrap_err().is_connect());
    GitHub::builder().port(port).start().unwrap();
}

//! Primary limits, and what every answer says of them.

use std::time::Duration;

use belay_testkit::github::{Clock, GitHub, LimitSettings, NewRelease, Rights};
use rstest::rstest;

use crate::support::{Answer, client, send};

const REPO: &str = "acme/web";

fn github() -> GitHub {
    let clock = Clock::Standing("2026-03-01T12:00:00Z".parse().unwrap());
    let github = GitHub::builder().clock(clock).start().unwrap();
    github.create_repository("acme/old").unwrap();
    github.rename_repository("acme/old", REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    github
}

async fn get(github: &GitHub, path: &str, token: Option<&str>) -> Answer {
    let mut request = client().get(format!("{}{path}", github.base_url()));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    send(request).await
}

fn quota(answer: &Answer) -> [&str; 4] {
    ["limit", "remaining", "used", "reset"].map(|it| answer.header(&format!("x-ratelimit-{it}")))
}

#[rstest]
#[case::ok("/repos/acme/web/releases", None, 200)]
#[case::missing("/repos/acme/nothing", None, 404)]
#[case::moved("/repos/acme/old", None, 301)]
#[case::no_route("/nothing", None, 404)]
#[case::bad_token("/repos/acme/web", Some("nonsense"), 401)]
#[tokio::test]
async fn every_answer_says_what_is_left(
    #[case] path: &str,
    #[case] token: Option<&str>,
    #[case] status: u16,
) {
    let github = github();
    let answer = get(&github, path, token).await;
    assert_eq!(answer.status, status);
    // One hour after noon on the first of March.
    assert_eq!(quota(&answer), ["60", "59", "1", "1772370000"]);
    assert_eq!(answer.header("x-ratelimit-resource"), "core");
    assert_eq!(answer.header("date"), "Sun, 01 Mar 2026 12:00:00 GMT");
    assert!(!answer.header("x-github-request-id").is_empty());
}

#[rstest]
#[case(403)]
#[case(429)]
#[tokio::test]
async fn above_the_limit_everything_is_refused_until_the_window_ends(#[case] status: u16) {
    let github = github();
    let settings =
        LimitSettings { anonymous: 2, exceeded_status: status, ..LimitSettings::default() };
    github.set_limits(settings).unwrap();
    let path = "/repos/acme/web/releases/latest";
    for left in ["1", "0"] {
        let answer = get(&github, path, None).await;
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining")), (200, left));
    }
    let refused = get(&github, path, None).await;
    assert_eq!((refused.status, refused.header("x-ratelimit-remaining")), (status, "0"));
    assert!(!refused.headers.contains_key("retry-after"));
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("API rate limit exceeded for 127.0.0.1"), "{message}");

    let token = github.create_token("ci", &Rights::public()).unwrap();
    assert_eq!(quota(&get(&github, path, Some(&token)).await)[..2], ["5000", "4999"]);

    github.advance(Duration::from_secs(3599));
    assert_eq!(get(&github, path, None).await.status, status);
    github.advance(Duration::from_secs(1));
    let again = get(&github, path, None).await;
    assert_eq!((again.status, quota(&again)), (200, ["2", "1", "1", "1772373600"]));
}

#[tokio::test]
async fn asking_for_the_quota_is_free() {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    for _ in 0..3 {
        let answer = get(&github, "/rate_limit", Some(&token)).await;
        assert_eq!((answer.status, answer.header("x-ratelimit-used")), (200, "0"));
        assert_eq!(answer.json()["resources"]["core"]["remaining"], 5_000);
    }
    github.exhaust("ci");
    let answer = get(&github, "/rate_limit", Some(&token)).await;
    assert_eq!((answer.status, &answer.json()["rate"]["remaining"]), (200, &0.into()));
    assert_eq!(get(&github, "/repos/acme/web", Some(&token)).await.status, 403);
}

#[tokio::test]
async fn an_enterprise_server_has_no_limits_and_says_nothing_of_them() {
    let github = github();
    github.exhaust("anonymous");
    github.set_limits(LimitSettings::off()).unwrap();
    let request = client().get(format!("{}/repos/acme/web/releases", github.enterprise_url()));
    let answer = send(request).await;
    assert_eq!(answer.status, 200);
    let limits = |name: &&http::HeaderName| name.as_str().starts_with("x-ratelimit");
    assert_eq!(answer.headers.keys().find(limits), None);
    assert_eq!(answer.header("x-github-enterprise-version"), "3.19.0");
    let quota = send(client().get(format!("{}/rate_limit", github.enterprise_url()))).await;
    assert_eq!(quota.status, 404);
}

#[test]
fn a_status_that_github_does_not_use_is_refused() {
    let settings = LimitSettings { exceeded_status: 503, ..LimitSettings::default() };
    let refused = github().set_limits(settings).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the status above the limit cannot be \"503\": expected 403 or 429"
    );
}

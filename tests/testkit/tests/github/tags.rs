//! Entity tags.

use belay_testkit::github::{GitHub, NewRelease, Rights};
use rstest::rstest;

use crate::support::{Answer, client, jwt, send};

const REPO: &str = "acme/web";

fn github() -> GitHub {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    github
}

async fn get(github: &GitHub, token: Option<&str>, tag: Option<&str>) -> Answer {
    let mut request = client().get(format!("{}/repos/{REPO}/releases", github.base_url()));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    send(request).await
}

#[rstest]
#[case::anonymous(false, "2")]
#[case::authorised(true, "1")]
#[tokio::test]
async fn a_304_is_charged_only_without_a_credential(#[case] authorised: bool, #[case] used: &str) {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let token = authorised.then_some(token.as_str());
    let first = get(&github, token, None).await;
    assert_eq!((first.status, first.header("x-ratelimit-used")), (200, "1"));
    let mark = github.mark();
    let second = get(&github, token, Some(first.header("etag"))).await;
    assert_eq!((second.status, second.body.as_slice()), (304, b"".as_slice()));
    assert_eq!(second.header("etag"), first.header("etag"));
    assert_eq!(second.header("x-ratelimit-used"), used);
    assert!(!second.headers.contains_key("content-type"));
    let log = github.log().since(mark);
    assert_eq!(log.count(|it| it.not_modified() && it.counted != authorised), 1);
}

#[rstest]
#[case::verbatim(|tag: &str| tag.to_owned(), 304)]
#[case::as_strong(|tag: &str| tag.trim_start_matches("W/").to_owned(), 304)]
#[case::in_a_list(|tag: &str| format!("\"other\", {tag}"), 304)]
#[case::any(|_: &str| "*".to_owned(), 304)]
#[case::another(|_: &str| "W/\"other\"".to_owned(), 200)]
#[case::without_quotes(|tag: &str| tag.replace('"', ""), 200)]
#[tokio::test]
async fn tags_are_compared_weakly(#[case] sent: fn(&str) -> String, #[case] status: u16) {
    let github = github();
    let first = get(&github, None, None).await;
    assert!(first.header("etag").starts_with("W/\""));
    let second = get(&github, None, Some(&sent(first.header("etag")))).await;
    assert_eq!(second.status, status);
}

#[tokio::test]
async fn any_change_makes_another_tag() {
    let github = github();
    let first = get(&github, None, None).await;
    github.publish(REPO, NewRelease::new("v1.1.0").draft()).unwrap();
    assert_eq!(get(&github, None, Some(first.header("etag"))).await.status, 304, "a hidden draft");
    github.publish(REPO, NewRelease::new("v1.1.1")).unwrap();
    let second = get(&github, None, Some(first.header("etag"))).await;
    assert_eq!(second.status, 200);
    assert_ne!(second.header("etag"), first.header("etag"));
}

#[tokio::test]
async fn a_tag_fits_the_token_it_was_given_to_alone() {
    let github = github();
    let one = github.create_token("one", &Rights::public()).unwrap();
    let two = github.create_token("two", &Rights::public()).unwrap();
    let first = get(&github, Some(&one), None).await;
    let tag = Some(first.header("etag"));
    assert_eq!(get(&github, Some(&two), tag).await.status, 200);
    assert_eq!(get(&github, None, tag).await.status, 200);
    assert_eq!(get(&github, Some(&one), tag).await.status, 304);
}

#[tokio::test]
async fn a_new_installation_token_knows_no_tag_of_the_one_before() {
    let github = github();
    let app = github.create_app("belay", "acme").unwrap();
    let installation = github.install_app("belay", "acme", &Rights::read([REPO])).unwrap();
    let path = format!("{}/app/installations/{installation}/access_tokens", github.base_url());
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let request = client().post(&path).bearer_auth(jwt(&app, github.now()));
        tokens.push(send(request).await.json()["token"].as_str().unwrap().to_owned());
    }
    let first = get(&github, Some(&tokens[0]), None).await;
    let second = get(&github, Some(&tokens[1]), Some(first.header("etag"))).await;
    assert_eq!(second.status, 200);
    assert_eq!(second.json(), first.json());
    assert_eq!(second.header("x-ratelimit-used"), "2", "both count for the installation");
}

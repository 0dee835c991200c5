//! Scripted answers.

use std::time::Duration;

use belay_testkit::github::{Clock, GitHub, Matching, NewRelease, Reply, Rights, Times};
use rstest::rstest;
use serde_json::Value;

use crate::support::{Answer, client, send};

const REPO: &str = "acme/web";

fn github() -> GitHub {
    let clock = Clock::Standing("2026-03-01T12:00:00Z".parse().unwrap());
    let github = GitHub::builder().clock(clock).start().unwrap();
    github.create_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    github
}

fn releases(github: &GitHub) -> reqwest::RequestBuilder {
    client().get(format!("{}/repos/{REPO}/releases?per_page=100", github.base_url()))
}

async fn get(github: &GitHub) -> Answer {
    send(releases(github)).await
}

#[rstest]
#[case(403, Some(17))]
#[case(403, None)]
#[case(429, Some(1))]
#[case(429, None)]
#[tokio::test]
async fn the_secondary_limit_comes_in_four_forms(
    #[case] status: u16,
    #[case] retry_after: Option<u64>,
) {
    let github = github();
    let reply = Reply::SecondaryLimit { status, retry_after };
    github.script(Matching::any(), Times::Next(2), reply).unwrap();
    for _ in 0..2 {
        let answer = get(&github).await;
        assert_eq!(answer.status, status);
        let sent = answer.headers.get("retry-after").map(|it| it.to_str().unwrap().to_owned());
        assert_eq!(sent, retry_after.map(|it| it.to_string()));
        assert_ne!(answer.header("x-ratelimit-remaining"), "0");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("secondary rate limit"), "{message}");
    }
    assert_eq!(get(&github).await.status, 200);
    assert_eq!(github.log().count(|it| it.scripted), 2);
}

#[tokio::test]
async fn a_script_can_last_for_a_time() {
    let github = github();
    let reply = Reply::SecondaryLimit { status: 403, retry_after: Some(60) };
    github.script(Matching::any(), Times::Seconds(60), reply).unwrap();
    assert_eq!(get(&github).await.status, 403);
    github.advance(Duration::from_secs(59));
    assert_eq!(get(&github).await.status, 403);
    github.advance(Duration::from_secs(1));
    assert_eq!(get(&github).await.status, 200);
}

#[tokio::test]
async fn a_script_answers_only_what_it_matches() {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let matching = Matching::path("/repos/*/releases").method("GET").query("per_page=100");
    let reply = Reply::Answer {
        status: 502,
        headers: vec![("X-From".to_owned(), "script".to_owned())],
        body: "<html>Bad Gateway".to_owned(),
    };
    github.script(matching.credential("ci"), Times::Always, reply).unwrap();
    assert_eq!(get(&github).await.status, 200, "another credential");
    let other = client().get(format!("{}/repos/{REPO}/releases", github.base_url()));
    assert_eq!(send(other.bearer_auth(&token)).await.status, 200, "another query");
    let below = format!("{}/repos/{REPO}/releases?per_page=100", github.enterprise_url());
    for request in [releases(&github), client().get(below)] {
        let answer = send(request.bearer_auth(&token)).await;
        assert_eq!((answer.status, answer.header("x-from")), (502, "script"));
        assert_eq!(answer.body, b"<html>Bad Gateway");
    }
    github.clear_scripts();
    assert_eq!(send(releases(&github).bearer_auth(&token)).await.status, 200);
}

#[tokio::test]
async fn garbage_is_a_whole_answer_that_is_no_json() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Garbage).unwrap();
    let answer = get(&github).await;
    assert_eq!(
        (answer.status, answer.header("content-length")),
        (200, answer.body.len().to_string().as_str())
    );
    assert!(!answer.body.is_empty());
    serde_json::from_slice::<Value>(&answer.body).unwrap_err();
}

#[tokio::test]
async fn a_padded_answer_is_too_large_and_still_json() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Padded { bytes: (4 << 20) + 1 }).unwrap();
    let answer = get(&github).await;
    assert_eq!(answer.body.len(), (4 << 20) + 1);
    assert_eq!(answer.json(), get(&github).await.json());
}

#[rstest]
#[case(100, true)]
#[case(30, false)]
#[tokio::test]
async fn long_notes_make_a_large_page_too_large_and_a_small_one_not(
    #[case] per_page: usize,
    #[case] too_large: bool,
) {
    let github = github();
    for number in 0..100 {
        let release = NewRelease::new(format!("v2.0.{number}")).notes_of(60_000);
        github.publish(REPO, release).unwrap();
    }
    let url = format!("{}/repos/{REPO}/releases?per_page={per_page}", github.base_url());
    assert_eq!(send(client().get(url)).await.body.len() > 4 << 20, too_large);
}

#[tokio::test]
async fn a_truncated_answer_announces_more_than_it_sends() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Truncated { bytes: 100 }).unwrap();
    let mut answer = releases(&github).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.content_length().unwrap() > 100);
    let mut read = 0;
    let end = loop {
        match answer.chunk().await {
            Ok(Some(part)) => read += part.len(),
            end => break end,
        }
    };
    assert!(end.is_err(), "the end must not look like one");
    assert_eq!(read, 100);
    assert_eq!(github.log().last().unwrap().status, Some(200));
}

#[tokio::test]
async fn a_dripping_answer_goes_on_and_on() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Drip).unwrap();
    let mut answer = releases(&github).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.content_length()), (200, Some(1 << 20)));
    for _ in 0..5 {
        assert_eq!(answer.chunk().await.unwrap().unwrap(), " ");
    }
    // The end of the server ends the answer.
    drop(github);
    while answer.chunk().await.is_ok() {}
}

#[tokio::test]
async fn a_closed_connection_is_an_error_without_an_effect() {
    let github = github();
    let token = github.create_token("ci", &Rights::write([REPO])).unwrap();
    github.script(Matching::any().method("POST"), Times::Next(1), Reply::Close).unwrap();
    let url = format!("{}/repos/{REPO}/deployments", github.base_url());
    let post = client().post(&url).bearer_auth(&token).body(r#"{"ref":"main"}"#);
    post.send().await.unwrap_err();
    assert_eq!(send(client().get(&url)).await.json(), Value::Array(Vec::new()));
    let log = github.log();
    let closed: Vec<_> = log.requests().iter().filter(|it| it.method == "POST").collect();
    assert_eq!((closed.len(), closed[0].status), (1, None));
}

#[tokio::test]
async fn a_request_that_hangs_does_not_hold_up_others() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Hang).unwrap();
    let hanging = tokio::spawn(releases(&github).send());
    let seen = belay_testkit::wait::until("the first request", belay_testkit::wait::SOON, || {
        std::future::ready(if github.log().is_empty() { Err("no request") } else { Ok(()) })
    });
    seen.await.unwrap();
    assert_eq!(get(&github).await.status, 200);
    assert!(!hanging.is_finished());
    // The end of the server ends the request.
    drop(github);
    hanging.await.unwrap().unwrap_err();
}

#[rstest]
#[case(Reply::Answer { status: 100, headers: Vec::new(), body: String::new() })]
#[case(Reply::Answer { status: 999, headers: Vec::new(), body: String::new() })]
#[case(Reply::Answer { status: 200, headers: vec![("a b".into(), "c".into())], body: String::new() })]
#[case(Reply::Answer { status: 200, headers: vec![("a".into(), "\n".into())], body: String::new() })]
#[case(Reply::SecondaryLimit { status: 500, retry_after: None })]
fn an_answer_that_cannot_be_sent_is_refused(#[case] reply: Reply) {
    github().script(Matching::any(), Times::Always, reply).unwrap_err();
}

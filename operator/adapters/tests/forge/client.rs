//! One request: what goes over the wire, and what each answer is.

use belay_adapters::forge::{Client, Credential, Release};
use belay_testkit::github::{Matching, NewRelease, Reply, Times};
use rstest::rstest;

use crate::support::{LATEST, REPO, anonymous, github, latest, settings, values, word};

#[tokio::test]
async fn the_second_answer_is_a_304_with_the_value_of_the_first() {
    let (github, answers) = (github(), &mut Vec::new());
    let client = anonymous(&github);
    for _ in 0..2 {
        answers.push(word(&latest(&client).await));
    }
    github.publish(REPO, NewRelease::new("v1.1.0")).unwrap();
    answers.push(word(&latest(&client).await));
    assert_eq!(*answers, ["fresh v1.0.0", "unchanged v1.0.0", "fresh v1.1.0"]);
    let log = github.log();
    let statuses: Vec<_> = log.requests().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Some(200), Some(304), Some(200)], "{}", log.summary());
}

#[tokio::test]
async fn a_request_has_one_user_agent_one_version_and_no_more_than_it_needs() {
    let github = github();
    latest(&anonymous(&github)).await.unwrap();
    let log = github.log();
    let request = log.last().unwrap();
    assert_eq!(values(request, "user-agent"), [concat!("belay/", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(values(request, "x-github-api-version").len(), 1);
    assert_eq!(values(request, "accept"), ["application/vnd.github+json"]);
    assert_eq!(values(request, "authorization"), Vec::<&str>::new());
    assert_eq!(values(request, "if-none-match"), Vec::<&str>::new());
}

#[tokio::test]
async fn an_enterprise_servers_path_stays_before_every_request() {
    let github = github();
    let base = github.enterprise_url().parse().unwrap();
    let settings = settings(&github, Credential::Anonymous);
    let client = Client::new(belay_adapters::forge::Settings { base, ..settings }).unwrap();
    assert_eq!(word(&latest(&client).await), "fresh v1.0.0");
    assert_eq!(github.log().last().unwrap().path, format!("/api/v3{LATEST}"));
    github.rename_repository(REPO, "acme/site").unwrap();
    let id = github.repository_id("acme/site").unwrap();
    assert_eq!(word(&latest(&client).await), format!("moved Some({id})"));
}

#[rstest]
#[case::server_error(500, "upstream 500")]
#[case::bad_gateway(502, "upstream 502")]
#[case::unavailable(503, "upstream 503")]
#[case::unauthorised(401, "denied 401")]
#[case::forbidden(403, "denied 403")]
#[case::gone(410, "denied 410")]
#[case::legal(451, "denied 451")]
#[case::missing(404, "missing")]
#[case::too_many(429, "throttled true")]
#[case::empty(204, "upstream 204")]
#[case::unasked_304(304, "upstream 304")]
#[case::moved_nowhere(301, "moved None")]
#[tokio::test]
async fn each_status_is_one_answer_and_one_request(#[case] status: u16, #[case] expected: &str) {
    let github = github();
    let reply = Reply::Answer { status, headers: Vec::new(), body: String::new() };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    assert_eq!(word(&latest(&anonymous(&github)).await), expected);
    assert_eq!(github.log().len(), 1, "nothing is sent twice: {}", github.log().summary());
}

#[tokio::test]
async fn single_sign_on_and_an_address_list_are_refusals_and_no_limits() {
    let github = github();
    let client = anonymous(&github);
    for reply in [Reply::SingleSignOn, Reply::AddressNotAllowed] {
        github.script(Matching::any(), Times::Next(1), reply).unwrap();
        assert_eq!(word(&latest(&client).await), "denied 403");
    }
    assert_eq!(word(&latest(&client).await), "fresh v1.0.0", "nothing closes the budget");
}

#[tokio::test]
async fn a_page_tells_whether_another_follows_also_when_it_is_unchanged() {
    let github = github();
    github.publish(REPO, NewRelease::new("v1.1.0")).unwrap();
    let client = anonymous(&github);
    let path = |page: u32| format!("/repos/{REPO}/releases?per_page=1&page={page}");
    for _ in 0..2 {
        let mut found = Vec::new();
        for page in [1, 2] {
            let answer = client.get::<Vec<Release>>(&path(page)).await.unwrap();
            let page = answer.page().unwrap().clone();
            found.push((page.value[0].tag.clone(), page.more));
        }
        assert_eq!(found, [("v1.1.0".to_owned(), true), ("v1.0.0".to_owned(), false)]);
    }
    assert_eq!(github.log().count(belay_testkit::github::Request::not_modified), 2);
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let github = github();
    let settings = settings(&github, Credential::Anonymous);
    let client =
        Client::new(belay_adapters::forge::Settings { remembered: 1, ..settings }).unwrap();
    let other = format!("/repos/{REPO}/releases/tags/v1.0.0");
    for expected in ["fresh v1.0.0", "fresh v1.0.0"] {
        assert_eq!(word(&latest(&client).await), expected);
        assert_eq!(word(&client.get::<Release>(&other).await), "fresh v1.0.0");
    }
}

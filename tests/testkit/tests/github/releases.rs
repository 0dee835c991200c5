//! Releases: lists and pages, the latest, drafts.

use belay_testkit::github::{GitHub, MakeLatest, NewRelease, ReleaseEdit, Rights};
use jiff::{Timestamp, ToSpan as _};
use rstest::rstest;
use serde_json::Value;

use crate::support::{client, send};

const REPO: &str = "acme/web";

fn github() -> GitHub {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    github
}

fn day(number: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + (24 * number).hours()
}

async fn get(github: &GitHub, path: &str, token: Option<&str>) -> (u16, Value) {
    let mut request = client().get(format!("{}/repos/{REPO}{path}", github.base_url()));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = send(request).await;
    (answer.status, answer.json())
}

async fn tags(github: &GitHub, path: &str, token: Option<&str>) -> Vec<String> {
    let (status, list) = get(github, path, token).await;
    assert_eq!(status, 200, "{list}");
    let tag = |release: &Value| release["tag_name"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(tag).collect()
}

/// The relations of a `Link` header and their addresses.
fn links(header: Option<&http::HeaderValue>) -> Vec<(String, String)> {
    let Some(header) = header else { return Vec::new() };
    let link = |link: &str| {
        let (url, relation) = link.split_once(">; rel=").unwrap();
        (relation.trim_matches('"').to_owned(), url.trim_start_matches('<').to_owned())
    };
    header.to_str().unwrap().split(", ").map(link).collect()
}

#[rstest]
#[case::root(false)]
#[case::enterprise(true)]
#[tokio::test]
async fn pages_are_linked_by_absolute_addresses_that_survive_renames(#[case] enterprise: bool) {
    let github = github();
    for number in 0..5 {
        let release = NewRelease::new(format!("v1.{number}.0")).created_at(day(number));
        github.publish(REPO, release).unwrap();
    }
    let base = if enterprise { github.enterprise_url() } else { github.base_url() };
    let id = github.repository_id(REPO).unwrap();
    let page = |number| format!("{base}/repositories/{id}/releases?per_page=2&page={number}");
    let relations = [
        vec![("next", page(2)), ("last", page(3))],
        vec![("prev", page(1)), ("next", page(3)), ("last", page(3)), ("first", page(1))],
        vec![("prev", page(2)), ("first", page(1))],
    ];
    let mut url = format!("{base}/repos/{REPO}/releases?per_page=2");
    let mut seen = Vec::new();
    for expected in relations {
        let answer = send(client().get(&url)).await;
        let found = links(answer.headers.get("link"));
        let found: Vec<_> =
            found.iter().map(|(relation, url)| (relation.as_str(), url.clone())).collect();
        assert_eq!(found, expected);
        for release in answer.json().as_array().unwrap() {
            seen.push(release["tag_name"].as_str().unwrap().to_owned());
            let prefix = format!("{base}/repos/{REPO}/releases/");
            assert!(release["url"].as_str().unwrap().starts_with(&prefix), "{release}");
        }
        if let Some((_, next)) = found.iter().find(|(relation, _)| *relation == "next") {
            url.clone_from(next);
        }
    }
    assert_eq!(seen, ["v1.4.0", "v1.3.0", "v1.2.0", "v1.1.0", "v1.0.0"]);
}

#[rstest]
#[case::default("", 30, true)]
#[case::most("?per_page=100", 100, true)]
#[case::too_many("?per_page=200", 100, true)]
#[case::none("?per_page=0", 30, true)]
#[case::no_number("?per_page=all&page=x", 30, true)]
#[case::second("?per_page=100&page=2", 1, true)]
#[case::beyond("?page=9", 0, true)]
#[tokio::test]
async fn a_page_has_at_most_a_hundred(
    #[case] query: &str,
    #[case] count: usize,
    #[case] linked: bool,
) {
    let github = github();
    for number in 0..101 {
        github.publish(REPO, NewRelease::new(format!("v{number}"))).unwrap();
    }
    let answer =
        send(client().get(format!("{}/repos/{REPO}/releases{query}", github.base_url()))).await;
    assert_eq!(answer.json().as_array().unwrap().len(), count);
    assert_eq!(answer.headers.contains_key("link"), linked);
}

#[tokio::test]
async fn a_list_on_one_page_has_no_links() {
    let github = github();
    github.publish(REPO, NewRelease::new("v1")).unwrap();
    let answer = send(client().get(format!("{}/repos/{REPO}/releases", github.base_url()))).await;
    assert_eq!(answer.json().as_array().unwrap().len(), 1);
    assert!(!answer.headers.contains_key("link"));
}

/// A release of a table: what it is and the day of its commit.
type Row = (&'static str, i64, MakeLatest, bool);

#[rstest]
#[case::none(&[], None)]
#[case::the_last_published_wins_over_a_newer_commit(
    &[("v2.0.0", 9, MakeLatest::True, false), ("v1.9.1", 3, MakeLatest::True, false)],
    Some("v1.9.1")
)]
#[case::a_backport_that_was_told_not_to(
    &[("v2.0.0", 1, MakeLatest::True, false), ("v1.9.1", 3, MakeLatest::False, false)],
    Some("v2.0.0")
)]
#[case::legacy_goes_by_the_commit(
    &[("v2.0.0", 9, MakeLatest::True, false), ("v1.9.1", 3, MakeLatest::Legacy, false)],
    Some("v2.0.0")
)]
#[case::legacy_takes_a_backport_with_a_newer_commit(
    &[("v2.0.0", 1, MakeLatest::Legacy, false), ("v1.9.1", 3, MakeLatest::Legacy, false)],
    Some("v1.9.1")
)]
#[case::legacy_of_one_commit_takes_the_higher_version(
    &[("v1.10.0", 1, MakeLatest::Legacy, false), ("v1.9.0", 1, MakeLatest::Legacy, false)],
    Some("v1.10.0")
)]
#[case::a_prerelease_never(
    &[("v1.0.0", 1, MakeLatest::True, false), ("v2.0.0-rc.1", 2, MakeLatest::True, true)],
    Some("v1.0.0")
)]
#[case::only_prereleases(&[("v2.0.0-rc.1", 2, MakeLatest::True, true)], None)]
#[tokio::test]
async fn the_latest_release_is_githubs(#[case] rows: &[Row], #[case] expected: Option<&str>) {
    let github = github();
    for (tag, committed, make_latest, prerelease) in rows {
        let release = NewRelease::new(*tag).created_at(day(*committed)).make_latest(*make_latest);
        let release = if *prerelease { release.prerelease() } else { release };
        github.publish(REPO, release).unwrap();
    }
    let (status, body) = get(&github, "/releases/latest", None).await;
    match expected {
        Some(tag) => assert_eq!((status, body["tag_name"].as_str()), (200, Some(tag))),
        None => assert_eq!((status, body["message"].as_str()), (404, Some("Not Found"))),
    }
}

#[tokio::test]
async fn withdrawing_the_latest_release_brings_the_newest_other_one_back() {
    let github = github();
    for (tag, committed) in [("v1.0.0", 1), ("v1.1.0", 2), ("v1.2.0", 3)] {
        github.publish(REPO, NewRelease::new(tag).created_at(day(committed))).unwrap();
    }
    github.withdraw(REPO, "v1.2.0").unwrap();
    assert_eq!(get(&github, "/releases/latest", None).await.1["tag_name"], "v1.1.0");
    github.withdraw_to_draft(REPO, "v1.1.0").unwrap();
    assert_eq!(get(&github, "/releases/latest", None).await.1["tag_name"], "v1.0.0");
    let demote = ReleaseEdit { prerelease: Some(true), ..ReleaseEdit::default() };
    github.edit(REPO, "v1.0.0", demote).unwrap();
    assert_eq!(get(&github, "/releases/latest", None).await.0, 404);
    assert_eq!(tags(&github, "/releases", None).await, ["v1.0.0"]);
}

#[tokio::test]
async fn drafts_are_seen_only_by_those_who_may_push() {
    let github = github();
    let draft = github.publish(REPO, NewRelease::new("v2.0.0").draft()).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0").created_at(day(0))).unwrap();
    let reader = github.create_token("reader", &Rights::read([REPO])).unwrap();
    let pusher = github.create_token("pusher", &Rights::write([REPO])).unwrap();
    let by_id = format!("/releases/{draft}");
    for token in [None, Some(reader.as_str())] {
        assert_eq!(tags(&github, "/releases", token).await, ["v1.0.0"]);
        assert_eq!(get(&github, &by_id, token).await.0, 404);
    }
    let pusher = Some(pusher.as_str());
    assert_eq!(tags(&github, "/releases", pusher).await, ["v2.0.0", "v1.0.0"]);
    let (status, release) = get(&github, &by_id, pusher).await;
    assert_eq!((status, release["draft"].as_bool()), (200, Some(true)));
    assert!(release["published_at"].is_null());
    assert_eq!(get(&github, "/releases/tags/v2.0.0", pusher).await.0, 404);
    assert_eq!(get(&github, "/releases/latest", pusher).await.1["tag_name"], "v1.0.0");

    let publish = ReleaseEdit { draft: Some(false), ..ReleaseEdit::default() };
    github.edit(REPO, "v2.0.0", publish).unwrap();
    assert_eq!(get(&github, "/releases/tags/v2.0.0", None).await.0, 200);
    assert_eq!(get(&github, "/releases/latest", None).await.1["tag_name"], "v2.0.0");
    assert!(get(&github, &by_id, None).await.1["published_at"].is_string());
}

#[tokio::test]
async fn an_edit_keeps_the_release_and_its_id() {
    let github = github();
    let id = github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    let edit = ReleaseEdit {
        tag: Some("v1.0.1".into()),
        notes: Some("fixed".into()),
        ..ReleaseEdit::default()
    };
    assert_eq!(github.edit(REPO, "v1.0.0", edit).unwrap(), id);
    assert_eq!(get(&github, "/releases/tags/v1.0.0", None).await.0, 404);
    let (_, release) = get(&github, "/releases/tags/v1.0.1", None).await;
    assert_eq!((release["id"].as_u64(), release["body"].as_str()), (Some(id), Some("fixed")));
    assert_eq!(release["name"], "v1.0.0");
}

#[rstest]
#[case("chart/v1.0.0")]
#[case("v1.0.0+build 1")]
#[tokio::test]
async fn tags_may_hold_any_letter(#[case] tag: &str) {
    let github = github();
    github.publish(REPO, NewRelease::new(tag)).unwrap();
    let escaped = tag.replace('+', "%2B").replace(' ', "%20");
    let encoded = escaped.replace('/', "%2F");
    for path in [&escaped, &encoded] {
        let (status, release) = get(&github, &format!("/releases/tags/{path}"), None).await;
        assert_eq!((status, release["tag_name"].as_str()), (200, Some(tag)), "{path}");
    }
}

#[test]
fn what_github_would_not_do_is_refused() {
    let github = github();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    let again = github.publish(REPO, NewRelease::new("v1.0.0")).unwrap_err();
    assert_eq!(again.to_string(), "there is a release v1.0.0 of acme/web already");
    let missing = github.publish("acme/nothing", NewRelease::new("v1")).unwrap_err();
    assert_eq!(missing.to_string(), "there is no repository acme/nothing");
    let withdrawn = github.withdraw(REPO, "v9").unwrap_err();
    assert_eq!(withdrawn.to_string(), "there is no release v9 of acme/web");
    github.publish(REPO, NewRelease::new("")).unwrap_err();
    github.create_repository("no-slash").unwrap_err();
    github.create_repository("ACME/Web").unwrap_err();
}

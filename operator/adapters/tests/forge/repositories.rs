//! Which repository a name leads to, and what is known of it.

use belay_adapters::forge::{Forge, Reading, Unknown, Wants};
use belay_testkit::github::{GitHub, Matching, NewRelease, Reply, Times};
use rstest::rstest;

use crate::support::{REPO, forge, github, slug};

fn latest_and(tags: &[&str]) -> Wants {
    Wants { latest: true, list: false, tags: tags.iter().map(|it| (*it).to_owned()).collect() }
}

fn listed() -> Wants {
    Wants { list: true, ..Wants::default() }
}

async fn read(forge: &Forge) -> Reading {
    forge.read(&slug(REPO), &latest_and(&[])).await
}

fn latest(reading: &Reading) -> Result<Option<String>, Unknown> {
    reading.latest.clone().unwrap().map(|it| it.map(|release| release.tag))
}

#[tokio::test]
async fn a_reading_at_rest_is_one_request_for_each_thing() {
    let github = github();
    let forge = forge(&github);
    let wants = Wants { list: true, ..latest_and(&["v1.0.0", "v9"]) };
    let first = forge.read(&slug(REPO), &wants).await;
    assert_eq!((first.requests.all, first.requests.not_modified), (5, 0), "and the identity");
    assert_eq!(latest(&first), Ok(Some("v1.0.0".to_owned())));
    assert_eq!(first.tags["v1.0.0"].as_ref().unwrap().as_ref().unwrap().tag, "v1.0.0");
    assert_eq!(first.tags["v9"], Ok(None));
    let identity = first.identity.clone().unwrap();
    assert_eq!(identity.id, github.repository_id(REPO).unwrap());
    assert_eq!((identity.full_name.as_str(), identity.private), (REPO, false));
    let second = forge.read(&slug("ACME/Web"), &Wants { list: true, ..latest_and(&[]) }).await;
    assert_eq!(second.identity, first.identity);
    let third = read(&forge).await;
    assert_eq!((third.requests.all, third.requests.not_modified), (1, 1));
    assert_eq!(latest(&third), Ok(Some("v1.0.0".to_owned())));
}

#[tokio::test]
async fn a_rename_is_followed_by_the_id() {
    let github = github();
    let forge = forge(&github);
    let before = read(&forge).await.identity.unwrap();
    github.rename_repository(REPO, "newco/site").unwrap();
    for _ in 0..2 {
        github
            .publish("newco/site", NewRelease::new(format!("v1.{}.0", github.log().len())))
            .unwrap();
        let reading = read(&forge).await;
        let identity = reading.identity.clone().unwrap();
        assert_eq!((identity.id, identity.moved), (before.id, true));
        assert_eq!(identity.full_name, "newco/site");
        assert_ne!(latest(&reading), Ok(Some("v1.0.0".to_owned())));
    }
    github.rename_repository("newco/site", "newco/page").unwrap();
    assert_eq!(read(&forge).await.identity.unwrap().full_name, "newco/page");
    let mark = github.mark();
    let reading = read(&forge).await;
    let log = github.log().since(mark);
    assert_eq!((reading.requests.all, reading.requests.not_modified), (1, 1));
    assert_eq!(log.requests()[0].path, format!("/repositories/{}/releases/latest", before.id));
}

#[rstest]
#[case::renamed_before(true)]
#[case::deleted(false)]
#[tokio::test]
async fn another_repository_under_the_name_has_another_id(#[case] renamed: bool) {
    let github = github();
    let forge = forge(&github);
    let before = read(&forge).await.identity.unwrap();
    if renamed {
        github.rename_repository(REPO, "newco/site").unwrap();
        assert_eq!(read(&forge).await.identity.unwrap().id, before.id);
        github.publish("newco/site", NewRelease::new("v1.5.0")).unwrap();
    }
    let other = github.recreate_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v2.0.0")).unwrap();
    let reading = read(&forge).await;
    let identity = reading.identity.clone().unwrap();
    assert_eq!((identity.id, identity.moved), (other, false), "{}", github.log().summary());
    assert_ne!(identity.id, before.id);
    assert_eq!(
        latest(&reading),
        Ok(Some("v2.0.0".to_owned())),
        "of the repository that the id names"
    );
}

#[tokio::test]
async fn an_empty_repository_that_took_the_name_is_seen_too() {
    let github = github();
    let forge = forge(&github);
    read(&forge).await;
    let other = github.recreate_repository(REPO).unwrap();
    let reading = read(&forge).await;
    assert_eq!((reading.identity.clone().unwrap().id, latest(&reading)), (other, Ok(None)));
}

#[tokio::test]
async fn content_of_the_former_repository_is_not_told_under_the_new_ones_id() {
    let github = github();
    let forge = forge(&github);
    read(&forge).await;
    let other = github.recreate_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v2.0.0")).unwrap();
    // The name changes hands between the two requests: the first still finds the former one.
    let body = r#"{"tag_name":"v1.1.0","draft":false,"prerelease":false,"published_at":null}"#;
    let reply = Reply::Answer { status: 200, headers: Vec::new(), body: body.to_owned() };
    github.script(Matching::path("*/releases/latest"), Times::Next(1), reply).unwrap();
    let reading = read(&forge).await;
    assert_eq!(latest(&reading), Ok(Some("v2.0.0".to_owned())), "{}", github.log().summary());
    assert_eq!(reading.identity.unwrap().id, other);
}

#[tokio::test]
async fn a_redirect_that_is_over_is_not_followed_any_further() {
    let github = github();
    let here = github.repository_id(REPO).unwrap();
    let there = github.create_repository("acme/site").unwrap();
    github.publish("acme/site", NewRelease::new("v7.0.0")).unwrap();
    let headers = vec![("location".to_owned(), format!("/repositories/{there}/releases/latest"))];
    let reply = Reply::Answer { status: 301, headers, body: String::new() };
    github.script(Matching::path("*/releases/latest"), Times::Next(1), reply).unwrap();
    let reading = read(&forge(&github)).await;
    assert_eq!(latest(&reading), Ok(Some("v1.0.0".to_owned())), "{}", github.log().summary());
    assert_eq!(reading.identity.unwrap().id, here);
}

#[tokio::test]
async fn no_release_is_not_the_same_as_no_repository() {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    let forge = forge(&github);
    let wants = Wants { list: true, ..latest_and(&["v1"]) };
    let reading = forge.read(&slug(REPO), &wants).await;
    assert_eq!((latest(&reading), reading.problem()), (Ok(None), None));
    assert_eq!(reading.list.as_ref().unwrap().as_ref().unwrap().releases, []);
    github.create_private_repository("acme/secret").unwrap();
    github.publish("acme/secret", NewRelease::new("v1")).unwrap();
    let private = forge.read(&slug("acme/secret"), &wants).await;
    let missing = forge.read(&slug("acme/nothing"), &wants).await;
    assert!(private.says_the_same(&missing), "{private:?} {missing:?}");
    assert_eq!(latest(&private), Err(Unknown::Hidden));
    assert_eq!(private.list, Some(Err(Unknown::Hidden)));
    assert_eq!(private.tags["v1"], Err(Unknown::Hidden));
}

#[rstest]
#[case::secondary(Reply::SecondaryLimit { status: 403, retry_after: Some(60) })]
#[case::broken(Reply::Answer { status: 502, headers: Vec::new(), body: String::new() })]
#[case::denied(Reply::SingleSignOn)]
#[case::closed(Reply::Close)]
#[case::garbage(Reply::Garbage)]
#[tokio::test]
async fn what_fails_is_never_told_as_nothing(
    #[case] reply: Reply,
    #[values("*", "*/releases/latest", "/repos/acme/web")] path: &str,
) {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    if path != "/repos/acme/web" {
        github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    }
    github.script(Matching::path(path), Times::Always, reply).unwrap();
    let reading = read(&forge(&github)).await;
    let unknown = latest(&reading).unwrap_err();
    assert_ne!(unknown, Unknown::Hidden);
    assert!(reading.problem().is_some());
}

#[tokio::test]
async fn content_that_was_read_before_its_name_was_looked_up_is_looked_up_later() {
    let github = github();
    let forge = forge(&github);
    let before = read(&forge).await.identity.unwrap();
    let other = github.recreate_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v2.0.0")).unwrap();
    let bad = Reply::Answer { status: 502, headers: Vec::new(), body: String::new() };
    github.script(Matching::path("/repos/acme/web"), Times::Next(1), bad).unwrap();
    let reading = read(&forge).await;
    assert!(reading.identity.is_err());
    // Now the content is a 304; the name must be looked up all the same.
    let reading = read(&forge).await;
    assert_eq!(reading.identity.unwrap().id, other, "{}", github.log().summary());
    assert_ne!(other, before.id);
}

#[rstest]
#[case::elsewhere("https://example.com/repositories/1")]
#[case::no_id("/repos/acme/site")]
#[case::in_a_circle("/repositories/1")]
#[tokio::test]
async fn a_redirect_that_leads_nowhere_is_unknown(#[case] to: &str) {
    let github = github();
    let headers = vec![("location".to_owned(), to.to_owned())];
    let reply = Reply::Answer { status: 301, headers, body: String::new() };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    let reading = read(&forge(&github)).await;
    assert!(matches!(reading.identity, Err(Unknown::Failed { .. })), "{reading:?}");
    assert!(latest(&reading).is_err());
    assert!(github.log().len() <= 5, "{}", github.log().summary());
}

#[rstest]
#[case::hundred(1_000, 150, &["100"], 150, false)]
#[case::thirty(60_000, 100, &["100", "30"], 100, false)]
#[case::ten(200_000, 40, &["100", "30", "10"], 40, false)]
#[case::more_than_ten_pages(0, 1_001, &["100"], 1_000, true)]
#[tokio::test]
async fn pages_are_as_large_as_the_bound_allows(
    #[case] notes: usize,
    #[case] releases: usize,
    #[case] sizes: &[&str],
    #[case] found: usize,
    #[case] truncated: bool,
) {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    for number in 0..releases {
        let release = NewRelease::new(format!("v1.0.{number}")).notes_of(notes);
        github.publish(REPO, release).unwrap();
    }
    let forge = forge(&github);
    let reading = forge.read(&slug(REPO), &listed()).await;
    let listing = reading.list.unwrap().unwrap();
    assert_eq!((listing.releases.len(), listing.truncated), (found, truncated));
    let log = github.log();
    let mut asked: Vec<_> = log
        .requests()
        .iter()
        .filter_map(|it| it.query.strip_prefix("per_page=")?.split('&').next())
        .collect();
    asked.dedup();
    assert_eq!(asked, sizes);
    // The next reading starts with the size that was good.
    let mark = github.mark();
    let again = forge.read(&slug(REPO), &listed()).await;
    assert_eq!(again.requests.all, again.requests.not_modified, "{}", github.log().summary());
    let good = format!("per_page={}", sizes.last().unwrap());
    assert!(github.log().since(mark).requests().iter().all(|it| it.query.starts_with(&good)));
}

#[tokio::test]
async fn a_tag_may_have_any_characters() {
    let github = github();
    github.publish(REPO, NewRelease::new("web/v1.0.0+a%b")).unwrap();
    let reading = forge(&github).read(&slug(REPO), &latest_and(&["web/v1.0.0+a%b"])).await;
    let release = reading.tags["web/v1.0.0+a%b"].clone().unwrap();
    assert_eq!(release.unwrap().tag, "web/v1.0.0+a%b");
}

//! Which release would be taken, and what keeps the others back.

use belay_testkit::github::{NewRelease, Rights};
use rstest::rstest;

use crate::support::{REPO, candidates, github, json, table};

const TAGS: [&str; 5] = ["v1.0.0", "v1.1.0", "v2.0.0-rc.1", "nightly", "v1.2.0"];

#[rstest]
#[case::latest(&["--running", "1.1.0"], &["v1.2.0 free"], Some("v1.2.0"))]
#[case::latest_runs(&["--running", "1.2.0"], &["v1.2.0 Lower"], None)]
#[case::nothing_runs(&[], &["v1.2.0 free"], Some("v1.2.0"))]
#[case::held(&["--running", "1.1.0", "--hold", "true"], &["v1.2.0 Hold"], None)]
#[case::young(&["--running", "1.1.0", "--min-age", "9999h"], &["v1.2.0 Age"], None)]
#[case::range(
    &["--running", "1.0.0", "--range", "~1.1"],
    &["v2.0.0-rc.1 Prerelease", "v1.2.0 Range", "v1.1.0 free", "v1.0.0 Range", "nightly Range"],
    Some("v1.1.0")
)]
#[case::prereleases(
    &["--running", "1.0.0", "--range", ">=1.0.0-0", "--prereleases"],
    &["v2.0.0-rc.1 free", "v1.2.0 Outranked", "v1.1.0 Outranked", "v1.0.0 Lower", "nightly Range"],
    Some("v2.0.0-rc.1")
)]
#[case::pattern(
    &["--running", "1.1.0", "--tag-pattern", "v{version}"],
    &["v2.0.0-rc.1 Prerelease", "v1.2.0 free", "v1.1.0 Lower", "v1.0.0 Lower", "nightly Pattern"],
    Some("v1.2.0")
)]
#[case::template(&["--running", "v1.2.0-alpine", "--tag-template", "{tag}-alpine"],
    &["v1.2.0 Lower"], None)]
#[case::nothing_runs_and_all_are_listed(
    &["--tag-pattern", "v{version}", "--range", "^1"],
    &["v2.0.0-rc.1 Prerelease", "v1.2.0 free", "v1.1.0 Outranked", "v1.0.0 Outranked", "nightly Pattern"],
    Some("v1.2.0")
)]
fn each_candidate_has_its_gate(
    #[case] words: &[&str],
    #[case] expected: &[&str],
    #[case] chosen: Option<&str>,
) {
    let github = github(&TAGS);
    let explained = json(&github, &[&[REPO], words].concat());
    let (gates, found) = candidates(&explained);
    let gates: Vec<_> = gates.iter().map(String::as_str).collect();
    assert_eq!((gates.as_slice(), found), (expected, chosen));
}

#[test]
fn the_table_is_for_people() {
    let github = github(&["v1.0.0", "v1.1.0"]);
    let text = table(&github, &[REPO, "--running", "1.0.0", "--range", "^1"]);
    let id = github.repository_id(REPO).unwrap();
    let repository = format!("repository  acme/web (public, id {id}, read without a token)\n");
    assert!(text.starts_with(&repository), "{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> = text.lines().skip_while(|line| !line.contains("TAG")).collect();
    assert_eq!(words(rows[0]), ["TAG", "PUBLISHED", "IMAGE", "TAG", "GATE", "WHY"]);
    let first = words(rows[1]);
    assert_eq!(first[..2], ["*", "v1.1.0"]);
    assert_eq!(first[3..5], ["1.1.0", "free"]);
    assert!(rows[2].starts_with("   v1.0.0") && rows[2].ends_with("it runs"), "{text}");
    let columns = |row: &str, word| row.find(word);
    assert_eq!(columns(rows[0], "GATE"), columns(rows[1], "free"), "{text}");
    assert!(text.ends_with("v1.1.0 would be rolled out, once its image is there.\n"), "{text}");
}

#[test]
fn a_date_is_compared_where_there_is_no_version() {
    let github = github(&["2026.01.01", "2026.01.02"]);
    let explained = json(&github, &[REPO, "--running", "2026.01.01"]);
    let (gates, chosen) = candidates(&explained);
    assert_eq!((gates, chosen), (vec!["2026.01.02 free".to_owned()], Some("2026.01.02")));
}

#[test]
fn only_the_best_are_listed_and_that_is_said() {
    let tags: Vec<_> = (0..15).map(|number| format!("v1.{number}.0")).collect();
    let github = github(&tags.iter().map(String::as_str).collect::<Vec<_>>());
    let text = table(&github, &[REPO, "--range", "^1"]);
    assert!(text.contains("Of 15 releases that were read 10 are shown."), "{text}");
    let explained = json(&github, &[REPO, "--range", "^1", "--running", "1.14.0"]);
    assert_eq!(candidates(&explained).0.len(), 10);
}

#[test]
fn a_repository_without_releases_has_no_candidate() {
    let text = table(&github(&[]), &[REPO]);
    assert!(
        text.ends_with("There is no candidate: the repository has no such release.\n"),
        "{text}"
    );
}

#[test]
fn a_token_shows_what_is_private() {
    let github = github(&[]);
    github.create_private_repository("acme/secret").unwrap();
    github.publish("acme/secret", NewRelease::new("v1.0.0")).unwrap();
    let token = github.create_token("ci", &Rights::read(["acme/secret"])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, &token).unwrap();
    let file = file.to_str().unwrap();
    let explained = json(&github, &["acme/secret", "--github-token-file", file]);
    assert_eq!(explained["repository"]["private"], true);
    assert_eq!(explained["repository"]["anonymous"], false);
    assert!(!explained.to_string().contains(&token));
}

#[test]
fn a_renamed_repository_is_told() {
    let github = github(&["v1.0.0"]);
    github.rename_repository(REPO, "acme/site").unwrap();
    let explained = json(&github, &[REPO]);
    assert_eq!(explained["repository"]["name"], "acme/site");
    assert_eq!(explained["repository"]["renamed"], true);
    assert_eq!(explained["chosen"], "v1.0.0");
}

#[test]
fn what_a_terminal_obeys_is_not_printed() {
    use belay_testkit::github::{Matching, Reply, Times};

    let github = github(&["v1.0.0"]);
    let body = serde_json::json!({
        "tag_name": "v9.0.0\u{1b}[2J", "draft": false, "prerelease": false,
        "published_at": "2026-03-01T12:00:00Z",
    });
    let latest = Matching::path("/repos/acme/web/releases/latest");
    let reply = Reply::Answer { status: 200, headers: Vec::new(), body: body.to_string() };
    github.script(latest, Times::Always, reply).unwrap();
    let text = table(&github, &[REPO]);
    assert!(text.contains("v9.0.0") && !text.contains('\u{1b}'), "{text:?}");
}

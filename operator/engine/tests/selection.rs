//! The gates and the choice, against lists of releases.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use belay_api::{AnnotationPrefix, gates::Gate, reasons::BlockedReason};
use belay_engine::{
    Timestamp,
    annotations::{LiveContainer, Reading, Subject, Support, TargetSettings, read},
    block::{Block, Mark},
    selection::{Context, GithubRelease, GithubReleases, Missing, Running, Selection, select},
};
use rstest::rstest;

const HOUR: i64 = 3600;
const NOW: i64 = 1_000 * HOUR;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn settings(annotations: &[(&str, &str)]) -> TargetSettings {
    let annotations: BTreeMap<_, _> = [("repo", "acme/web")]
        .iter()
        .chain(annotations)
        .map(|(name, value)| (format!("belay.dev/{name}"), (*value).to_owned()))
        .collect();
    let containers =
        [LiveContainer { name: "app".parse().unwrap(), image: "ghcr.io/acme/web:1".to_owned() }];
    let subject = Subject {
        kind: "Deployment",
        name: "web",
        annotations: &annotations,
        containers: &containers,
        progress_deadline: None,
    };
    match read(&AnnotationPrefix::default(), subject, Support::default()) {
        Reading::Followed { settings, .. } => *settings,
        other => panic!("{other}"),
    }
}

/// A release per word: a tag, with `!` for a draft, `~` for a prerelease, `@H` for the hour of
/// publication. The first one is GitHub's latest.
fn releases(words: &str) -> GithubReleases {
    let items: Vec<_> = words
        .split_whitespace()
        .enumerate()
        .map(|(index, word)| {
            let (tag, hour) = match word.split_once('@') {
                Some((tag, hour)) => (tag, hour.parse().unwrap()),
                None => (word, 500 - i64::try_from(index).unwrap()),
            };
            GithubRelease {
                tag: tag.trim_matches(['!', '~']).to_owned(),
                draft: tag.contains('!'),
                prerelease: tag.contains('~'),
                published: Some(at(hour * HOUR)),
                author: None,
                url: None,
            }
        })
        .collect();
    let latest = items.first().map(|release| release.tag.clone());
    GithubReleases { items, latest, truncated: false }
}

struct Case<'a> {
    annotations: &'a [(&'a str, &'a str)],
    releases: &'a str,
    running: Running<'a>,
    blocks: Vec<Block>,
    allowed: Option<&'a str>,
    missing: BTreeMap<String, Missing>,
}

impl<'a> Case<'a> {
    fn new(annotations: &'a [(&'a str, &'a str)], releases: &'a str, image_tag: &'a str) -> Self {
        Self {
            annotations,
            releases,
            running: Running { release_tag: None, image_tag: Some(image_tag) },
            blocks: Vec::new(),
            allowed: None,
            missing: BTreeMap::new(),
        }
    }

    fn select(&self) -> Selection {
        select(
            &settings(self.annotations),
            &Context {
                releases: &releases(self.releases),
                running: self.running,
                blocks: &self.blocks,
                allowed: self.allowed,
                missing: &self.missing,
                now: at(NOW),
            },
        )
    }

    fn chosen(&self) -> Option<String> {
        self.select().chosen().map(|candidate| candidate.tag.clone())
    }
}

fn gates(selection: &Selection) -> Vec<String> {
    selection
        .candidates
        .iter()
        .map(|one| {
            format!(
                "{} {}",
                one.tag,
                one.gate.map_or("-", |gate| { belay_api::NamedValue::as_str(gate) })
            )
        })
        .collect()
}

#[rstest]
#[case::next("v1.1.0 v1.0.0", "1.0.0", Some("v1.1.0"))]
#[case::the_same("v1.0.0", "1.0.0", None)]
#[case::a_backport_became_latest("v1.0.5 v1.1.0", "1.1.0", None)]
#[case::only_latest_counts("v1.0.1 v1.2.0", "1.0.0", Some("v1.0.1"))]
#[case::latest_is_lower_than_a_manual_hotfix("v1.1.0", "1.1.1", None)]
#[case::latest_is_a_prerelease_by_version("v1.1.0-rc.1", "1.0.0", None)]
#[case::a_prerelease_runs("v1.1.0", "1.1.0-rc.9", Some("v1.1.0"))]
#[case::dates_by_time("2026.01.02@20 2026.01.01@10", "2026.01.01", Some("2026.01.02"))]
#[case::dates_backwards("2026.01.01@10 2026.01.02@20", "2026.01.02", None)]
#[case::nothing_published("", "1.0.0", None)]
#[case::build_metadata("v1.0.0+b2", "1.0.0_b1", Some("v1.0.0+b2"))]
fn without_a_range_githubs_latest_is_followed_upwards(
    #[case] releases: &str,
    #[case] image_tag: &str,
    #[case] expected: Option<&str>,
) {
    assert_eq!(Case::new(&[], releases, image_tag).chosen().as_deref(), expected);
}

#[rstest]
#[case::highest("v1.1.0 v1.9.0 v1.10.0 v2.0.0", "^1", "1.0.0", Some("v1.10.0"))]
#[case::a_late_backport("v1.9.1@90 v1.10.0@80", "^1", "1.9.0", Some("v1.10.0"))]
#[case::not_lower("v1.9.1 v1.10.0", "^1", "1.10.0", None)]
#[case::running_is_no_version("v1.9.1 v1.10.0", "^1", "latest", Some("v1.10.0"))]
#[case::running_is_a_newer_nonversion("nightly@90 v1.10.0@80", "^1", "nightly", Some("v1.10.0"))]
#[case::prereleases_do_not_count("v1.10.0-rc.1 v1.9.1", "^1", "1.9.0", Some("v1.9.1"))]
#[case::running_above_the_range("v1.9.1", "^1", "2.0.0", None)]
#[case::nothing_in_range("v2.0.0", "^1", "1.0.0", None)]
fn with_a_range_the_highest_in_it_is_followed(
    #[case] releases: &str,
    #[case] range: &str,
    #[case] image_tag: &str,
    #[case] expected: Option<&str>,
) {
    let annotations = [("range", range)];
    assert_eq!(Case::new(&annotations, releases, image_tag).chosen().as_deref(), expected);
}

#[test]
fn prereleases_count_where_they_are_asked_for() {
    let annotations = [("range", "^1"), ("prereleases", "true")];
    let case = Case::new(&annotations, "v2.0.0-rc.1 v1.10.0-rc.1~ v1.9.1", "1.9.0");
    assert_eq!(case.chosen().as_deref(), Some("v1.10.0-rc.1"));
}

#[rstest]
#[case("web/v1.1.0 web/v1.2.0 api/v3.0.0", Some("web/v1.2.0"))]
#[case("api/v3.0.0", None)]
fn with_a_pattern_the_list_is_searched(#[case] releases: &str, #[case] expected: Option<&str>) {
    let annotations = [("tag-pattern", "web/v{version}")];
    assert_eq!(Case::new(&annotations, releases, "1.0.0").chosen().as_deref(), expected);
}

#[test]
fn every_candidate_has_its_reason_best_first() {
    let annotations = [("range", "^1"), ("min-age", "24h")];
    let releases = "v2.0.0 v1.9.0! v1.8.0~ v1.7.0@999 v1.6.0 v1.5.0 v1.4.0 v1.3.0 v1.1.0-rc.1 \
                    nightly";
    let selection = Case::new(&annotations, releases, "1.4.0").select();
    assert_eq!(
        gates(&selection),
        [
            "v2.0.0 Range",
            "v1.9.0 Draft",
            "v1.8.0 Prerelease",
            "v1.7.0 Age",
            "v1.6.0 -",
            "v1.5.0 Outranked",
            "v1.4.0 Lower",
            "v1.3.0 Lower",
            "v1.1.0-rc.1 Prerelease",
            "nightly Range",
        ]
    );
    assert_eq!(selection.chosen().unwrap().image_tag, "1.6.0");
    // v1.7.0 is old enough a day after it was published.
    assert_eq!(selection.wake, Some(at(999 * HOUR + 24 * HOUR)));
    for candidate in &selection.candidates {
        assert_eq!(candidate.gate.is_none(), candidate.message.is_empty(), "{}", candidate.tag);
    }
}

#[rstest]
#[case(&[("tag-pattern", "web-{version}")], "v1.1.0", Gate::Pattern)]
#[case(&[("tag-template", "{tag}"), ("tag-pattern", "web/{version}")], "web/1.1.0", Gate::InvalidTag)]
#[case(&[("hold", "true")], "v1.1.0", Gate::Hold)]
#[case(&[("hold", "1.0.0")], "v1.1.0", Gate::Hold)]
#[case(&[("min-age", "9999999h")], "v1.1.0", Gate::Age)]
#[case(&[], "v1.0.0", Gate::Lower)]
fn a_gate_keeps_the_only_candidate_back(
    #[case] annotations: &[(&str, &str)],
    #[case] releases: &str,
    #[case] expected: Gate,
) {
    let selection = Case::new(annotations, releases, "1.0.0").select();
    assert_eq!(selection.candidates[0].gate, Some(expected));
    assert_eq!(selection.choice, None);
}

fn block(from: &str, to: Option<&str>, until: Option<i64>) -> Block {
    let mark = |tag: &str| Mark { tag: tag.to_owned(), published: None };
    Block {
        from: mark(from),
        to: to.map(mark),
        reason: BlockedReason::RolledBack,
        until: until.map(at),
        count: 1,
        ordinal: 1,
        allowed: None,
    }
}

#[rstest]
#[case::the_one_left("v2.0.0", None, None)]
#[case::all_between("v1.9.5", None, None)]
#[case::above_is_free("v2.0.1", None, Some("v2.0.1"))]
#[case::allowed("v2.0.0", Some("v2.0.0"), Some("v2.0.0"))]
#[case::allowed_by_image_tag("v2.0.0", Some("2.0.0"), Some("v2.0.0"))]
#[case::another_is_allowed("v2.0.0", Some("v1.9.5"), None)]
fn a_block_keeps_back_all_that_was_skipped(
    #[case] releases: &str,
    #[case] allowed: Option<&str>,
    #[case] expected: Option<&str>,
) {
    let mut case = Case::new(&[], releases, "1.9.2");
    case.blocks = vec![block("v2.0.0", Some("v1.9.2"), None)];
    case.allowed = allowed;
    assert_eq!(case.chosen().as_deref(), expected);
}

#[rstest]
#[case::over(Some(NOW), Some("v2.0.0"), None)]
#[case::not_over(Some(NOW + 60), None, Some(NOW + 60))]
#[case::for_good(None, None, None)]
fn a_temporary_block_ends_by_itself(
    #[case] until: Option<i64>,
    #[case] expected: Option<&str>,
    #[case] wake: Option<i64>,
) {
    let mut case = Case::new(&[], "v2.0.0", "1.9.2");
    case.blocks = vec![block("v2.0.0", None, until)];
    assert_eq!(case.chosen().as_deref(), expected);
    assert_eq!(case.select().wake, wake.map(at));
}

#[test]
fn of_two_blocks_the_longer_one_counts() {
    let mut case = Case::new(&[], "v2.0.0", "1.9.2");
    case.blocks =
        vec![block("v2.0.0", None, Some(NOW + 60)), block("v2.1.0", Some("v1.9.2"), None)];
    assert_eq!(case.select().wake, None);
    assert_eq!(case.chosen(), None);
}

#[rstest]
#[case::a_minute_ago(60, Some("v1.2.0"), &[])]
#[case::an_hour_ago(HOUR, Some("v1.1.0"), &["1.2.0"])]
fn a_missing_image_yields_after_an_hour(
    #[case] age: i64,
    #[case] expected: Option<&str>,
    #[case] overdue: &[&str],
) {
    let annotations = [("range", "^1")];
    let mut case = Case::new(&annotations, "v1.2.0 v1.1.0", "1.0.0");
    case.missing.insert("v1.2.0".to_owned(), Missing { since: at(NOW - age) });
    assert_eq!(case.chosen().as_deref(), expected);
    assert_eq!(case.select().overdue, overdue);
}

#[test]
fn a_missing_image_yields_to_nothing_that_is_lower() {
    let annotations = [("range", "^1")];
    let mut case = Case::new(&annotations, "v1.2.0 v1.0.0", "1.0.0");
    case.missing.insert("v1.2.0".to_owned(), Missing { since: at(NOW - HOUR) });
    assert_eq!(case.chosen(), None);
}

#[test]
fn without_a_range_a_missing_image_is_waited_for() {
    let mut case = Case::new(&[], "v1.2.0 v1.1.0", "1.0.0");
    case.missing.insert("v1.2.0".to_owned(), Missing { since: at(NOW - 99 * HOUR) });
    assert_eq!(case.chosen().as_deref(), Some("v1.2.0"));
}

#[rstest]
#[case::unknown_tag("v1.1.0", "main", true)]
#[case::unknown_date_tag("2026.01.02", "2025.12.31", true)]
#[case::of_a_listed_release("v1.1.0@20 main@10", "main", false)]
#[case::versions("v1.1.0", "1.0.0", false)]
fn what_cannot_be_compared_is_for_a_person(
    #[case] releases: &str,
    #[case] image_tag: &str,
    #[case] expected: bool,
) {
    let selection = Case::new(&[], releases, image_tag).select();
    assert_eq!(selection.cannot_compare.is_some(), expected);
    assert_eq!(selection.choice.is_none(), expected);
}

#[rstest]
#[case::the_release_wins(Some("v1.9.0"), Some("whatever"), None)]
#[case::by_template(None, Some("v1.9.0"), None)]
#[case::lower(Some("v1.7.0"), Some("1.9.0"), Some("v1.8.0"))]
fn the_running_version_is_that_of_the_release(
    #[case] release_tag: Option<&str>,
    #[case] image_tag: Option<&str>,
    #[case] expected: Option<&str>,
) {
    let mut case = Case::new(&[], "v1.8.0", "");
    case.running = Running { release_tag, image_tag };
    assert_eq!(case.chosen().as_deref(), expected);
}

#[test]
fn the_chosen_one_is_always_listed() {
    let annotations = [("range", "<1.5")];
    let list: Vec<_> = (0..60).map(|minor| format!("v1.{minor}.0")).collect();
    let case = Case::new(&annotations, &list.join(" "), "1.0.0").select();
    assert_eq!(case.candidates.len(), 10);
    assert_eq!(case.chosen().unwrap().tag, "v1.4.0");
}

#[test]
fn hostile_tags_are_survived() {
    let long = "9".repeat(100_000);
    let tags = format!("{long} v1.0.0-{long} \u{202e}evil ../../x {{{{x}}}} $(reboot)");
    let annotations = [("range", "*")];
    let selection = Case::new(&annotations, &tags, "0.1.0").select();
    assert_eq!(selection.choice, None);
    for candidate in selection.candidates {
        assert!(candidate.tag.len() < 4_000 && candidate.message.len() < 4_000);
    }
}

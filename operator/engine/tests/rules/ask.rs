//! What must be asked of GitHub.

use std::collections::BTreeSet;

use belay_api::{annotations::TargetAnnotation, gates::Verdict};
use belay_engine::selection::ForgeAsk;
use rstest::rstest;

use crate::case::{Case, DAY, HOUR, image, name_of};

fn ask(case: &mut Case) -> Option<ForgeAsk> {
    let releases = case.releases().clone();
    let workload = case.workload().clone();
    ForgeAsk::of(&workload, &releases, &case.settings)
}

fn tags(case: &mut Case) -> Vec<String> {
    ask(case).unwrap().tags.into_iter().collect()
}

#[rstest]
#[case::plain(&[], true, false)]
#[case::range(&[("range", "^1")], false, true)]
#[case::pattern(&[("tag-pattern", "v{version}")], false, true)]
fn pages_are_listed_where_a_range_or_a_pattern_is_written(
    #[case] annotations: &[(&str, &str)],
    #[case] latest: bool,
    #[case] list: bool,
) {
    let mut case = Case::new();
    for (name, value) in annotations {
        case.annotate(name.parse().unwrap(), value);
    }
    let ask = ask(&mut case).unwrap();
    assert_eq!((ask.repo.as_str(), ask.latest, ask.list), ("acme/web", latest, list));
    assert_eq!(ask.tags.is_empty(), list);
}

#[test]
fn what_is_not_followed_or_cannot_be_followed_asks_nothing() {
    let mut case = Case::new();
    case.annotate(TargetAnnotation::Bake, "soon");
    assert_eq!(ask(&mut case), None);
    case.strip(TargetAnnotation::Bake);
    case.strip(TargetAnnotation::Repo);
    assert_eq!(ask(&mut case), None);
}

#[test]
fn the_release_that_runs_is_asked_for() {
    assert_eq!(tags(&mut Case::moved(HOUR, Some(60))), ["v1.1.0"]);
}

#[test]
fn after_a_change_by_others_it_is_the_last_one_and_what_could_be_live() {
    let mut case = Case::moved(HOUR, Some(60));
    case.write("kubectl-edit", false, &image("0.9.0"));
    // Before it is written down that its activation has ended, and after.
    assert_eq!(tags(&mut case), ["0.9.0", "v0.9.0", "v1.1.0"]);
    case.passes();
    assert_eq!(tags(&mut case), ["0.9.0", "v0.9.0", "v1.1.0"]);
}

#[rstest]
#[case::default("{version}", "v?{version}", "1.2.3", &["1.2.3", "v1.2.3"])]
#[case::template("{version}-alpine", "v?{version}", "1.2.3-alpine", &["1.2.3", "v1.2.3"])]
#[case::whole_tag("{tag}", "v?{version}", "v1.2.3", &["v1.2.3"])]
#[case::build_metadata("{version}", "v?{version}", "1.2.3_4", &[
    "1.2.3+4", "1.2.3_4", "v1.2.3+4", "v1.2.3_4",
])]
#[case::not_made_by_the_template("{version}-alpine", "v?{version}", "1.2.3", &[])]
#[case::two_in_braces("{tag}-{version}", "v?{version}", "v1-1", &[])]
#[case::no_version("{version}", "v?{version}", "edge", &["edge"])]
fn an_image_is_traced_back_to_the_releases_that_could_have_made_it(
    #[case] template: &str,
    #[case] pattern: &str,
    #[case] image_tag: &str,
    #[case] expected: &[&str],
) {
    let pattern = pattern.parse().unwrap();
    let template = template.parse().unwrap();
    let found = belay_engine::version::possible_tags(image_tag, &pattern, &template);
    let expected: BTreeSet<_> = expected.iter().map(|one| (*one).to_owned()).collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case("web/v?{version}", &["web/1.2.3", "web/v1.2.3"])]
#[case("{version}-x?y?", &["1.2.3-", "1.2.3-x", "1.2.3-xy", "1.2.3-y"])]
fn a_pattern_is_read_backwards_too(#[case] pattern: &str, #[case] expected: &[&str]) {
    let pattern = pattern.parse().unwrap();
    let template = "{version}".parse().unwrap();
    let found = belay_engine::version::possible_tags("1.2.3", &pattern, &template);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn what_runs_by_digest_has_no_tag_to_ask_for() {
    let mut case = Case::bare("1.0.0");
    let digest = format!("ghcr.io/acme/web@sha256:{}", "a".repeat(64));
    case.workload().containers[0].live.image = digest;
    assert_eq!(tags(&mut case), [] as [&str; 0]);
}

#[test]
fn releases_of_others_and_of_images_are_not_asked_for() {
    let mut case = Case::new();
    case.has_run("v7.7.7", -9 * DAY, Some(-8 * DAY), Some(Verdict::Healthy));
    case.release_mut("v7.7.7").spec.config.target_name = "api".to_owned();
    assert_eq!(tags(&mut case), ["v1.0.0"]);
    let name = name_of("v1.0.0");
    let release = case.releases().iter_mut().find(|one| one.metadata.name.as_ref() == Some(&name));
    release.unwrap().spec.config.revisions[0].source = Some("ghcr.io/acme/web".to_owned());
    // Its image, not its tag, is what is known of the live one.
    assert_eq!(tags(&mut case), ["1.0.0", "v1.0.0"]);
}

#[test]
fn a_hostile_history_does_not_make_it_ask_for_much() {
    let mut case = Case::new();
    for number in 0..100 {
        case.has_run(&format!("v3.{number}.0"), -9 * DAY, Some(-8 * DAY), Some(Verdict::Healthy));
    }
    case.write("kubectl-edit", false, &image("0.9.0"));
    assert!(tags(&mut case).len() <= 5);
}

//! What users write on a workload: every sound value is understood, every other one gives a problem
//! that names the key.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use belay_api::{
    AnnotationPrefix, Duration, NamedValue, TargetName,
    annotations::{ImageCheck, Mode, OnFailure, PauseMode, TargetAnnotation},
};
use belay_engine::annotations::{
    Adopt, Hold, LiveContainer, Problem, Reading, Subject, Support, TargetSettings, read,
    target_name,
};
use proptest::prelude::*;
use rstest::rstest;

const ALL: Support = Support { scaled_objects: true, image_check_skip: true };

fn read_with(
    annotations: &[(&str, &str)],
    containers: &[(&str, &str)],
    deadline: Option<i32>,
    support: Support,
) -> Reading {
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(name, value)| (format!("belay.dev/{name}"), (*value).to_owned()))
        .collect();
    let containers: Vec<_> = containers
        .iter()
        .map(|(name, image)| LiveContainer {
            name: name.parse().unwrap(),
            image: (*image).to_owned(),
        })
        .collect();
    let subject = Subject {
        kind: "Deployment",
        name: "web",
        annotations: &annotations,
        containers: &containers,
        progress_deadline: deadline,
    };
    read(&AnnotationPrefix::default(), subject, support)
}

fn settings(annotations: &[(&str, &str)]) -> TargetSettings {
    let all = [&[("repo", "acme/web")], annotations].concat();
    match read_with(&all, &[("app", "ghcr.io/acme/web:1.0.0")], None, ALL) {
        Reading::Followed { settings, .. } => *settings,
        other => panic!("{other}"),
    }
}

fn problems(annotations: &[(&str, &str)]) -> Vec<Problem> {
    let has_repo = annotations.iter().any(|(name, _)| *name == "repo");
    let repo: &[_] = if has_repo { &[] } else { &[("repo", "acme/web")] };
    match read_with(&[repo, annotations].concat(), &[("app", "web:1")], None, ALL) {
        Reading::Problems(problems) => problems,
        other => panic!("{other}"),
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let settings = settings(&[]);
    assert_eq!(settings.repo.as_str(), "acme/web");
    assert_eq!(settings.image, None);
    assert_eq!(settings.containers, ["app".parse().unwrap()]);
    assert_eq!(settings.target.as_str(), "web");
    assert_eq!(settings.tag_pattern.to_string(), "v?{version}");
    assert!(!settings.lists_releases);
    assert_eq!(settings.tag_template.to_string(), "{version}");
    assert_eq!(settings.range, None);
    assert_eq!(settings.min_age, Duration::from_secs(0));
    assert_eq!(settings.bake, Duration::from_secs(60));
    assert_eq!(settings.deadline, Duration::from_secs(600));
    assert_eq!(settings.image_check, ImageCheck::Required);
    assert_eq!(settings.on_failure, OnFailure::Rollback);
    assert_eq!(settings.mode, Mode::Apply);
    assert!(!settings.prereleases && !settings.digest);
    assert_eq!((settings.hold, settings.allow, settings.adopt), (None, None, None));
    assert!(settings.take_over.is_empty());
}

#[test]
fn every_annotation_is_read() {
    let settings = settings(&[
        ("image", "ghcr.io/acme/web"),
        ("container", "app"),
        ("target", "shop.web"),
        ("scaledobject", "web"),
        ("tag-pattern", "web/v{version}"),
        ("tag-template", "{version}-alpine"),
        ("range", "^1.9"),
        ("prereleases", "true"),
        ("min-age", "1h"),
        ("digest", "true"),
        ("image-check", "required"),
        ("pause", "full"),
        ("deadline", "5m"),
        ("bake", "0s"),
        ("on-failure", "stop"),
        ("mode", "observe"),
        ("hold", "1.9.2"),
        ("allow", "web/v1.9.3"),
        ("take-over", "spinnaker"),
        ("adopt", "kubectl-edit=web:7"),
    ]);
    assert_eq!(settings.image.unwrap().path(), "acme/web");
    assert_eq!(settings.target, "shop.web".parse::<TargetName>().unwrap());
    assert_eq!(settings.scaled_object.as_deref(), Some("web"));
    assert!(settings.lists_releases && settings.prereleases && settings.digest);
    assert_eq!(settings.range.unwrap().to_string(), "^1.9");
    assert_eq!(settings.min_age, Duration::from_secs(3600));
    assert_eq!(settings.pause, Some(PauseMode::Full));
    assert_eq!(settings.deadline, Duration::from_secs(300));
    assert_eq!(settings.bake, Duration::from_secs(0));
    assert_eq!(settings.on_failure, OnFailure::Stop);
    assert_eq!(settings.mode, Mode::Observe);
    assert_eq!(settings.hold, Some(Hold::Tag("1.9.2".to_owned())));
    assert_eq!(settings.allow.as_deref(), Some("web/v1.9.3"));
    assert_eq!(settings.take_over, ["spinnaker"]);
    assert!(matches!(settings.adopt, Some(Adopt::Image { .. })));
}

#[rstest]
#[case::hold_true(&[("hold", "true")], |s: &TargetSettings| s.hold == Some(Hold::Here))]
#[case::hold_false(&[("hold", "false")], |s: &TargetSettings| s.hold.is_none())]
#[case::skip(&[("image-check", "skip")], |s: &TargetSettings| s.image_check == ImageCheck::Skip)]
fn values_mean_what_they_say(
    #[case] annotations: &[(&str, &str)],
    #[case] holds: fn(&TargetSettings) -> bool,
) {
    assert!(holds(&settings(annotations)));
}

#[rstest]
#[case::kubernetes_own(None, Some(120), 120)]
#[case::none(None, None, 600)]
#[case::written("30s", Some(120), 30)]
#[case::hostile(None, Some(-1), 600)]
#[case::zero(None, Some(0), 600)]
fn the_deadline_is_that_of_the_workload_unless_written(
    #[case] written: impl Into<Option<&'static str>>,
    #[case] own: Option<i32>,
    #[case] expected: u64,
) {
    let written = written.into().map(|value| ("deadline", value));
    let mut annotations = vec![("repo", "acme/web")];
    annotations.extend(written);
    let Reading::Followed { settings, .. } = read_with(&annotations, &[("app", "web:1")], own, ALL)
    else {
        panic!("not followed")
    };
    assert_eq!(settings.deadline, Duration::from_secs(expected));
}

#[rstest]
#[case("repo", "")]
#[case("repo", "acme")]
#[case("repo", "https://github.com/acme/web")]
#[case("image", "")]
#[case("image", "ghcr.io/acme/web:1.0")]
#[case("image", "https://ghcr.io/acme/web")]
#[case("container", "")]
#[case("container", "app,app")]
#[case("container", "other")]
#[case("target", "")]
#[case("target", "Web")]
#[case("scaledobject", "")]
#[case("scaledobject", "a/b")]
#[case("tag-pattern", "v*")]
#[case("tag-template", "latest")]
#[case("range", "1.2.3")]
#[case("range", "")]
#[case("prereleases", "yes")]
#[case("prereleases", "True")]
#[case("min-age", "1d")]
#[case("min-age", "-1h")]
#[case("digest", "sha256")]
#[case("image-check", "off")]
#[case("pause", "half")]
#[case("deadline", "0s")]
#[case("deadline", "10")]
#[case("bake", "1 minute")]
#[case("on-failure", "restart")]
#[case("mode", "dry-run")]
#[case("hold", "")]
#[case("hold", "a b")]
#[case("allow", "a\nb")]
#[case("take-over", "kubectl-edit")]
#[case("adopt", "true")]
fn a_wrong_value_names_its_key_and_nothing_else(#[case] name: &str, #[case] value: &str) {
    let problems = problems(&[(name, value)]);
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, [format!("belay.dev/{name}")]);
    assert_eq!(problems[0].value.as_deref(), Some(value));
    assert!(!problems[0].problem.is_empty());
}

#[test]
fn all_problems_are_named_at_once() {
    let problems = problems(&[("bake", "x"), ("range", "nope"), ("repo", "x")]);
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["belay.dev/repo", "belay.dev/range", "belay.dev/bake"]);
}

#[test]
fn the_digest_needs_the_registry() {
    let problems = problems(&[("digest", "true"), ("image-check", "skip")]);
    assert_eq!(problems[0].key, "belay.dev/digest");
}

#[rstest]
#[case("scaledobject", "web", "not supported by this version of Belay")]
#[case("image-check", "skip", "this operator is not configured to permit skip")]
fn what_this_operator_cannot_do_is_refused(
    #[case] name: &str,
    #[case] value: &str,
    #[case] expected: &str,
) {
    let annotations = [("repo", "acme/web"), (name, value)];
    let reading = read_with(&annotations, &[("app", "web:1")], None, Support::default());
    let Reading::Problems(problems) = reading else { panic!("{reading}") };
    assert_eq!(problems[0].to_string(), format!("belay.dev/{name}: {value:?}: {expected}"));
}

#[test]
fn a_workload_without_repo_is_not_followed_whatever_else_it_says() {
    assert_eq!(read_with(&[("bake", "nonsense")], &[], None, ALL), Reading::NotFollowed);
}

#[test]
fn names_that_mean_nothing_are_reported_and_hinder_nothing() {
    let annotations = [("repo", "acme/web"), ("tag-patern", "x"), ("release", "web-c4c1645")];
    let reading = read_with(&annotations, &[("app", "web:1")], None, ALL);
    let Reading::Followed { unknown, .. } = reading else { panic!("{reading}") };
    assert_eq!(unknown, ["tag-patern"]);
}

#[test]
fn another_prefix_has_annotations_of_its_own() {
    let annotations = BTreeMap::from([
        ("release.example.com/repo".to_owned(), "acme/web".to_owned()),
        ("release.example.com/image".to_owned(), "ghcr.io/acme/web".to_owned()),
        ("release.example.com/container".to_owned(), "app".to_owned()),
        ("belay.dev/repo".to_owned(), "acme/other".to_owned()),
    ]);
    let containers =
        [LiveContainer { name: "app".parse().unwrap(), image: "ghcr.io/acme/web:1".to_owned() }];
    let subject = Subject {
        kind: "Deployment",
        name: "web",
        annotations: &annotations,
        containers: &containers,
        progress_deadline: None,
    };
    let reading = read(&"release.example.com".parse().unwrap(), subject, Support::default());
    let Reading::Followed { settings, .. } = reading else { panic!("{reading}") };
    assert_eq!(settings.repo.as_str(), "acme/web");
}

#[test]
fn a_problem_never_repeats_a_long_value() {
    let value = "x".repeat(200_000);
    for annotation in TargetAnnotation::ALL {
        let problems = problems(&[(annotation.as_str(), &value)]);
        assert!(problems[0].to_string().len() < 1_000, "{annotation}");
    }
}

#[test]
fn settings_survive_serialisation() {
    let settings = settings(&[("range", "^1"), ("hold", "true"), ("adopt", "m=web:7")]);
    let json = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<TargetSettings>(&json).unwrap(), settings);
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,30}",
        "[a-z0-9./:@,=~^<>*?{}| -]{0,30}",
        any::<Vec<char>>().prop_map(|chars| chars.into_iter().take(50).collect()),
        Just("{version}".repeat(20)),
        Just("9".repeat(300)),
        Just("((((a+)+)+)+)$".to_owned()),
        Just("\u{0}\u{1b}[31m".to_owned()),
        Just("../../etc/passwd".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_set_of_annotations_makes_the_reader_panic(
        values in proptest::collection::vec((0..TargetAnnotation::ALL.len(), hostile()), 0..8),
        image in hostile(),
    ) {
        let mut annotations = vec![("repo", "acme/web")];
        let named: Vec<_> = values
            .iter()
            .map(|(index, value)| (TargetAnnotation::ALL[*index].as_str(), value.as_str()))
            .collect();
        annotations.extend(named);
        let reading = read_with(&annotations, &[("app", &image), ("side", "envoy:1")], None, ALL);
        if let Reading::Problems(problems) = reading {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.to_string().len() < 2_000);
            }
        }
    }
}

#[rstest]
#[case::own_name("Deployment", "web", &[("repo", "acme/web")], Some("web"))]
#[case::of_another_kind("StatefulSet", "web", &[("repo", "acme/web")], Some("statefulset.web"))]
#[case::written("Deployment", "web", &[("repo", "acme/web"), ("target", "shop")], Some("shop"))]
#[case::all_else_is_wrong(
    "Deployment",
    "web",
    &[("repo", "no slash"), ("bake", "soon"), ("target", "shop")],
    Some("shop")
)]
#[case::written_badly("Deployment", "web", &[("repo", "acme/web"), ("target", "A B")], None)]
#[case::not_followed("Deployment", "web", &[("target", "shop")], None)]
fn the_target_is_known_whatever_else_is_wrong(
    #[case] kind: &str,
    #[case] name: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] expected: Option<&str>,
) {
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(name, value)| (format!("belay.dev/{name}"), (*value).to_owned()))
        .collect();
    let found = target_name(&AnnotationPrefix::default(), kind, name, &annotations);
    assert_eq!(found.as_ref().map(TargetName::as_str), expected);
}

#[test]
fn a_workload_whose_name_is_too_long_has_no_target_unless_it_is_written() {
    let name = "a".repeat(250);
    let mut annotations = BTreeMap::from([("belay.dev/repo".to_owned(), "acme/web".to_owned())]);
    let prefix = AnnotationPrefix::default();
    assert_eq!(target_name(&prefix, "Deployment", &name, &annotations), None);
    annotations.insert("belay.dev/target".to_owned(), "web".to_owned());
    assert!(target_name(&prefix, "Deployment", &name, &annotations).is_some());
}

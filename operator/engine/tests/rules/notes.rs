//! What is said of how the operator does without something (sections 1.4, 3.7 and 10).

use belay_api::{
    annotations::TargetAnnotation,
    gates::ForgeBudget::{self, Exhausted, Low},
};
use belay_engine::observed::{Fact, Forge};
use rstest::rstest;

use crate::case::{Case, at};

#[test]
fn pods_that_are_listed_instead_of_watched_are_noted_while_that_is_so() {
    let mut case = Case::new();
    let why = "the operator has no right to watch pods, and lists them every 10 s".to_owned();
    case.observed.handicaps.pods_listed = Some(why.clone());
    case.passes();
    assert_eq!(case.condition("PodsListed"), Some(("PodsListed".to_owned(), why)));
    assert_eq!(case.reason("Ready").as_deref(), Some("Ready"), "it hinders nothing");
    case.observed.handicaps.pods_listed = None;
    case.passes();
    assert_eq!(case.condition("PodsListed"), None);
}

#[rstest]
#[case::images_are_checked("required", true)]
#[case::they_are_not("skip", false)]
fn platforms_that_nobody_checks_are_noted_where_images_are_checked(
    #[case] check: &str,
    #[case] is_noted: bool,
) {
    let mut case = Case::new();
    case.settings.image_check_skip = true;
    case.annotate(TargetAnnotation::ImageCheck, check);
    case.passes();
    assert_eq!(case.condition("PlatformsNotChecked"), None);
    case.observed.handicaps.no_platforms = true;
    case.passes();
    assert_eq!(case.condition("PlatformsNotChecked").is_some(), is_noted);
}

#[test]
fn what_is_left_of_githubs_limit_is_shown_in_one_word() {
    let budget = |case: &mut Case| case.status().forge.clone().unwrap().budget.known();
    let mut case = Case::new();
    assert_eq!(budget(&mut case), Some(ForgeBudget::Ok));
    let Fact::Known { value: Forge::Found { is_low, .. }, .. } = &mut case.observed.forge else {
        panic!("GitHub's answer is not known")
    };
    *is_low = true;
    case.passes();
    assert_eq!(budget(&mut case), Some(Low));
    let until = at(case.now + 60);
    case.observed.forge = Fact::known(Forge::Throttled { until }, at(case.now));
    case.passes();
    assert_eq!(budget(&mut case), Some(Exhausted));
}

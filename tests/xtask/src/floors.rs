//! The number of tests may not fall: the least that each group of tests has to run.
//!
//! Kept as JSON in [`FILE`], a number for each group. Only a person lowers a number, in a change that shows it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Where the floors stand, from the top of the repository.
pub const FILE: &str = "tests/xtask/test-floor.json";

/// The least number of tests of each group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Floors(BTreeMap<String, u64>);

impl Floors {
    /// Reads the content of [`FILE`].
    ///
    /// # Errors
    /// When it is no JSON object of whole numbers.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).with_context(|| format!("read {FILE}"))
    }

    /// What to write into [`FILE`].
    ///
    /// # Errors
    /// None that a map of numbers can cause.
    pub fn print(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self).context("print the floors")? + "\n")
    }

    /// What is wrong with the number of passed tests of each group that ran; empty if nothing is.
    ///
    /// With `whole`, all groups should have run, so one that has a floor and did not run is wrong as well.
    pub fn compare(&self, passed: &BTreeMap<String, u64>, whole: bool) -> Vec<String> {
        let ran = passed.iter().map(|(group, count)| (group, Some(*count)));
        let absent = self.0.keys().filter(|group| whole && !passed.contains_key(*group));
        let all: BTreeMap<_, _> = ran.chain(absent.map(|group| (group, None))).collect();
        all.into_iter()
            .filter_map(|(group, count)| match (count, self.0.get(group)) {
                (Some(count), Some(floor)) if count < *floor => Some(format!(
                    "group {group} passed {count} tests, and its floor is {floor}: where tests were merged or \
                     moved on purpose, lower it in {FILE} and say so in the commit"
                )),
                (Some(_), None) => Some(format!(
                    "group {group} has no floor in {FILE}: `cargo xtask test --bless` writes one"
                )),
                (None, Some(floor)) => Some(format!(
                    "group {group} did not run, and its floor is {floor}: remove it from {FILE} if it is gone"
                )),
                _ => None,
            })
            .collect()
    }

    /// Raises floors to what passed, never lowers one; says which groups changed.
    pub fn raise(&mut self, passed: &BTreeMap<String, u64>) -> BTreeSet<String> {
        let mut raised = BTreeSet::new();
        for (group, count) in passed {
            let before = self.0.get(group).copied();
            if before.is_none_or(|floor| floor < *count) {
                self.0.insert(group.clone(), *count);
                raised.insert(group.clone());
            }
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|(group, count)| ((*group).to_owned(), *count)).collect()
    }

    fn floors() -> Floors {
        Floors::parse(r#"{"operator": 7, "units": 100}"#).unwrap()
    }

    #[rstest]
    #[case::the_same(&[("operator", 7), ("units", 100)], true, None)]
    #[case::more(&[("operator", 8), ("units", 101)], true, None)]
    #[case::fewer(&[("operator", 6), ("units", 100)], true, Some("group operator passed 6 tests"))]
    #[case::none(&[("operator", 0)], false, Some("group operator passed 0 tests"))]
    #[case::new(&[("operator", 7), ("units", 100), ("demo", 1)], true, Some("group demo has no floor"))]
    #[case::gone(&[("units", 100)], true, Some("group operator did not run"))]
    #[case::one_group_alone(&[("units", 100)], false, None)]
    fn counts_are_compared_with_the_floor(
        #[case] passed: &[(&str, u64)],
        #[case] whole: bool,
        #[case] told: Option<&str>,
    ) {
        let wrong = floors().compare(&counts(passed), whole);
        match told {
            None => assert_eq!(wrong, Vec::<String>::new()),
            Some(start) => assert!(wrong.len() == 1 && wrong[0].starts_with(start), "{wrong:?}"),
        }
    }

    #[test]
    fn floors_are_raised_and_never_lowered() {
        let mut floors = floors();
        let raised = floors.raise(&counts(&[("operator", 3), ("units", 120), ("demo", 0)]));
        assert_eq!(raised.into_iter().collect::<Vec<_>>(), ["demo", "units"]);
        let expected = Floors(counts(&[("demo", 0), ("operator", 7), ("units", 120)]));
        assert_eq!(floors, expected);
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let text = floors().print().unwrap();
        assert!(text.ends_with("}\n"), "{text}");
        assert_eq!(Floors::parse(&text).unwrap(), floors());
    }

    #[rstest]
    #[case("")]
    #[case("[1]")]
    #[case(r#"{"units": -1}"#)]
    #[case(r#"{"units": "many"}"#)]
    fn another_content_is_refused(#[case] text: &str) {
        Floors::parse(text).unwrap_err();
    }
}

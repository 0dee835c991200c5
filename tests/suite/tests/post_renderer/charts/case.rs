//! `case.json`, which stands beside each chart.

use std::collections::BTreeMap;

use serde::Deserialize;

use belay_suite::helms::Major;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The point of the chart, for whoever reads it.
    #[serde(rename = "about")]
    _about: String,
    /// More arguments of `helm template`.
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// How many documents with content Helm hands over.
    pub(crate) documents: ByMajor<usize>,
    pub(crate) targets: Vec<ExpectedTarget>,
    pub(crate) owned: Vec<Owned>,
    pub(crate) preserve: Expected,
    pub(crate) strip: Expected,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByMajor<T> {
    #[serde(rename = "3")]
    three: T,
    #[serde(rename = "4")]
    four: T,
}

impl<T> ByMajor<T> {
    pub(crate) fn of(&self, major: Major) -> &T {
        match major {
            Major::Three => &self.three,
            Major::Four => &self.four,
        }
    }
}

/// A workload that must be found, and no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedTarget {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) hook: bool,
    /// The one major that hands it over, where that is not both.
    pub(crate) only: Option<Major>,
    /// Images by name; `null` for an empty or an absent one.
    pub(crate) containers: BTreeMap<String, Option<String>>,
    #[serde(default)]
    pub(crate) init: BTreeMap<String, Option<String>>,
    /// How many containers there are, where not all of them are named above.
    pub(crate) count: Option<usize>,
}

/// A container whose image the operator owns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owned {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    #[serde(default = "containers")]
    pub(crate) list: String,
    pub(crate) container: String,
    pub(crate) live: String,
}

fn containers() -> String {
    "containers".to_owned()
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Expected {
    Each(Box<ByMajor<Change>>),
    Both(Change),
}

impl Expected {
    pub(crate) fn of(&self, major: Major) -> &Change {
        match self {
            Self::Each(each) => each.of(major),
            Self::Both(both) => both,
        }
    }
}

/// What must become of the bytes.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Change {
    /// What becomes of each owned container, where it is not what was asked for.
    pub(crate) outcomes: Option<Vec<String>>,
    /// The lines that are no longer there, and those that are instead, without their indentation.
    pub(crate) gone: Option<Vec<String>>,
    pub(crate) new: Option<Vec<String>>,
    /// Or all of the output: the input with each of these texts, which it has once, replaced.
    pub(crate) in_place: Option<Vec<(String, String)>>,
    /// Or no output: the beginning of the error.
    pub(crate) error: Option<String>,
}

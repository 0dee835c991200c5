//! Sets of annotations, each with the pod that it is about and what must be said of it.
//!
//! Nothing here reads annotations: a set is put together from values that are known to be good or
//! bad, and so it is known which keys must be named. See [`crate::values`].

use std::collections::{BTreeMap, BTreeSet};

use belay_testkit::objects::Workload;
use serde_json::json;

use crate::{
    dice::Dice,
    pods::{Pod, Repositories},
    values,
};

/// All that a user may write on a workload.
pub(crate) const KEYS: [&str; 21] = [
    "repo",
    "image",
    "container",
    "target",
    "scaledobject",
    "tag-pattern",
    "tag-template",
    "range",
    "prereleases",
    "min-age",
    "digest",
    "image-check",
    "pause",
    "deadline",
    "bake",
    "on-failure",
    "mode",
    "hold",
    "allow",
    "take-over",
    "adopt",
];
/// Keys that mean nothing, and hinder nothing.
const STRANGE: &[&str] = &["tag-patern", "rnage", "Repo", "x", "release", "blocked", "schema"];
/// What the API server takes of all annotations of an object, keys included.
const MOST: usize = 256 * 1024;
/// What is left for the values that are good.
const ROOM: usize = 20_000;
/// Of this label are the Deployments of a batch.
pub(crate) const BATCH: &str = "hostile-batch";

/// What the operator is told, as far as it decides about annotations.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) repositories: Repositories,
    /// Whether `image-check: skip` is permitted.
    pub(crate) permits_skip: bool,
}

/// What must be said of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Label {
    /// Nothing: it has no `repo`.
    NotFollowed,
    /// Anything but that it is invalid.
    Valid,
    /// That these keys are wrong and no others. Of each group one key must be named at least.
    Bad(BTreeSet<Vec<&'static str>>),
}

/// A set.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    /// Of the Deployment.
    pub(crate) name: String,
    /// Of the ReleaseTarget.
    pub(crate) shown_as: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) pod: Pod,
    /// Whether the Deployment is paused (`spec.paused`). Most are, whatever their annotations, since
    /// Kubernetes' controllers have little to do with them then.
    is_paused: bool,
    pub(crate) label: Label,
}

/// A set that is being put together.
struct Draft<'t> {
    dice: Dice,
    terms: &'t Terms,
    name: String,
    pod: Pod,
    values: BTreeMap<&'static str, String>,
    bad: BTreeSet<Vec<&'static str>>,
}

impl Set {
    /// Number `number` of a seed. Each can be had without those before it, and again under another
    /// name: `attempt` is part of that.
    pub(crate) fn new(seed: u64, number: usize, attempt: usize, terms: &Terms) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
        let pod = Pod::new(&mut dice, &terms.repositories);
        let name = format!("set-{number:05}-{attempt}");
        let draft = Draft { dice, terms, name, pod, values: BTreeMap::new(), bad: BTreeSet::new() };
        draft.finish()
    }

    /// The Deployment, of a batch.
    pub(crate) fn workload(&self, batch: usize) -> serde_json::Value {
        let workload = Workload::deployment(&self.name).replicas(0);
        let mut workload = workload.spec("paused", json!(self.is_paused));
        for (name, image) in &self.pod.containers {
            workload = workload.image(name, image);
        }
        for (name, image) in &self.pod.init {
            workload = workload.init_image(name, image);
        }
        for (key, value) in &self.annotations {
            workload = workload.annotation(key, value);
        }
        let mut object = workload.json().clone();
        object["metadata"]["labels"][BATCH] = json!(batch.to_string());
        object
    }

    /// The set for a person, long values cut.
    pub(crate) fn describe(&self) -> String {
        let shown = self.annotations.iter().map(|(key, value)| {
            let start: String = value.chars().take(120).collect();
            format!("  {key}: {start:?} ({} bytes)", value.len())
        });
        let shown: Vec<_> = shown.collect();
        let (name, label, pod) = (&self.name, &self.label, &self.pod);
        format!("{name} {label:?}\n{}\n  {:?} {:?}", shown.join("\n"), pod.containers, pod.init)
    }
}

impl Draft<'_> {
    fn finish(mut self) -> Set {
        let kind = self.dice.below(100);
        let is_followed = kind >= 4;
        if is_followed {
            let repo = values::good("repo", &mut self.dice);
            self.values.insert("repo", repo);
        }
        if kind >= 30 {
            let count = match self.dice.below(20) {
                0 => 6 + self.dice.below(10),
                1..=5 => 2 + self.dice.below(3),
                _ => 1,
            };
            (0..count).for_each(|_| self.spoil());
        }
        self.decorate();
        let target = self.values.get("target").filter(|_| !self.bad.contains(&vec!["target"]));
        let shown_as = target.unwrap_or(&self.name).clone();
        let mut annotations: BTreeMap<String, String> = self
            .values
            .iter()
            .map(|(key, value)| (format!("belay.dev/{key}"), value.clone()))
            .collect();
        self.strew(&mut annotations);
        let label = match (is_followed, self.bad.is_empty()) {
            (false, _) => Label::NotFollowed,
            (true, true) => Label::Valid,
            (true, false) => Label::Bad(self.bad),
        };
        let is_paused = !self.dice.one_in(10);
        Set { name: self.name, shown_as, annotations, pod: self.pod, is_paused, label }
    }

    /// Makes one key bad that is not bad yet.
    fn spoil(&mut self) {
        let key = self.dice.one_of(&KEYS);
        if self.bad.iter().flatten().any(|bad| *bad == key) {
            return;
        }
        let value = match key {
            "container" if self.pod.is_ambiguous && self.dice.one_in(3) => {
                self.bad.insert(vec![key]);
                return;
            }
            "container" => self.pod.bad_value(&mut self.dice),
            "image-check" if !self.terms.permits_skip && self.dice.one_in(3) => "skip".to_owned(),
            "image-check" if self.terms.permits_skip && self.dice.one_in(3) => return self.skip(),
            _ => values::bad(key, &mut self.dice),
        };
        if self.size() + value.len() + ROOM > MOST {
            return;
        }
        self.values.insert(key, value);
        self.bad.insert(vec![key]);
    }

    /// A digest that nobody can know: which of the two keys is wrong is a matter of taste.
    fn skip(&mut self) {
        if self.values.contains_key("digest") {
            return;
        }
        self.values.insert("digest", "true".to_owned());
        self.values.insert("image-check", "skip".to_owned());
        self.bad.insert(vec!["digest", "image-check"]);
    }

    /// Gives some of the other keys good values.
    fn decorate(&mut self) {
        let is_spoilt = |draft: &Self, key| draft.bad.iter().flatten().any(|bad| *bad == key);
        for key in KEYS {
            if self.values.contains_key(key) || is_spoilt(self, key) || key == "scaledobject" {
                continue;
            }
            if key == "container" && self.pod.is_ambiguous {
                let value = self.pod.good_value(&mut self.dice);
                self.values.insert(key, value);
                continue;
            }
            if key == "repo" || !self.dice.one_in(4) {
                continue;
            }
            let value = match key {
                "container" => self.pod.good_value(&mut self.dice),
                "target" => self.target(),
                "image-check" if self.may_skip() && self.dice.one_in(2) => "skip".to_owned(),
                "image" if self.dice.one_in(2) => self.terms.repositories.own.clone(),
                _ => values::good(key, &mut self.dice),
            };
            self.values.insert(key, value);
        }
    }

    fn may_skip(&self) -> bool {
        let has_digest = self.values.get("digest").is_some_and(|value| value == "true");
        self.terms.permits_skip && !has_digest
    }

    /// A name that no other set has.
    fn target(&mut self) -> String {
        let name = &self.name;
        match self.dice.below(4) {
            0 => format!("{name}.shop.example"),
            1 => format!("{name}{}", "-a".repeat((245 - name.len()) / 2)),
            _ => format!("t-{name}"),
        }
    }

    /// Annotations of others, and misspelt ones.
    fn strew(&mut self, annotations: &mut BTreeMap<String, String>) {
        if self.dice.one_in(5) {
            let key = format!("belay.dev/{}", self.dice.pick(STRANGE));
            annotations.insert(key, self.dice.junk());
        }
        if self.dice.one_in(20) {
            annotations.insert("belay.example.com/repo".to_owned(), self.dice.junk());
        }
        if self.dice.one_in(400) {
            // To the last byte, so that not even Kubernetes' own annotations fit any more.
            let key = "example.com/fill".to_owned();
            let left = MOST.saturating_sub(size(annotations) + key.len());
            annotations.insert(key, "x".repeat(left));
        }
    }

    fn size(&self) -> usize {
        self.values.values().map(|value| value.len() + 40).sum()
    }
}

fn size(annotations: &BTreeMap<String, String>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn terms(permits_skip: bool) -> Terms {
    let repositories = Repositories {
        own: "127.0.0.1:5000/sets".to_owned(),
        foreign: "127.0.0.1:5000/x".to_owned(),
    };
    Terms { repositories, permits_skip }
}

#[test]
fn the_sets_hold_every_key_with_many_good_and_bad_values_and_fit_on_an_object() {
    let mut labels = [0_usize; 3];
    let mut good: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut bad: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut full = 0;
    for number in 0..10_000 {
        let set = Set::new(1, number, 0, &terms(number % 2 == 0));
        let size = size(&set.annotations);
        assert!(size <= MOST, "{} has {size} bytes", set.name);
        full += usize::from(size == MOST);
        let blamed: BTreeSet<&str> = match &set.label {
            Label::NotFollowed => {
                labels[0] += 1;
                continue;
            }
            Label::Valid => {
                labels[1] += 1;
                BTreeSet::new()
            }
            Label::Bad(groups) => {
                labels[2] += 1;
                groups.iter().flatten().copied().collect()
            }
        };
        for key in KEYS {
            let value = set.annotations.get(&format!("belay.dev/{key}"));
            let to = if blamed.contains(key) { &mut bad } else { &mut good };
            let start = |value: &String| value.chars().take(50).collect();
            to.entry(key).or_default().extend(value.map(start));
        }
    }
    assert!(labels[0] > 200 && labels[1] > 2_000 && labels[2] > 6_000, "{labels:?}");
    assert!(full >= 10, "{full}");
    for key in KEYS {
        let (good, bad) = (good.get(key).map_or(0, BTreeSet::len), bad[key].len());
        let least = usize::from(key != "scaledobject");
        assert!(good >= least && bad >= 8, "{key}: {good} good, {bad} bad values");
    }
}

#[test]
fn a_seed_brings_its_sets_back() {
    let all = |seed| (0..50).map(move |number| Set::new(seed, number, 0, &terms(true)).describe());
    assert!(all(7).eq(all(7)));
    assert!(!all(7).eq(all(8)));
}

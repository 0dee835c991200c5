//! The matrix as `tests/suite/matrix/post-renderer.json` states it.
//!
//! The state of a container is one string: `1.1.0 by belay-operator/A, stored none` is the live
//! image (short for `registry.example/web:1.1.0`), the managers that own it, each with the first
//! X

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use belay_suite::helms::Major;

/// Every combination of a mode and a situation is a cell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matrix {
    pub(crate) modes: Vec<Mode>,
    pub(crate) situations: Vec<Situation>,
}

/// Which Helm, and how it applies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mode {
    pub(crate) name: String,
    /// What it is, for the reader.
    pub(crate) about: String,
    /// Where upgrades are merged; also the name for all such modes.
    pub(crate) side: Side,
    /// How the release is born.
    pub(crate) born: Way,
    /// How it is upgraded.
    pub(crate) then: Way,
}

/// Where the manifest is merged with the live object.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Client,
    Server,
}

/// A Helm, with arguments for each install and upgrade.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    pub(crate) helm: Major,
    #[serde(default)]
    pub(crate) args: String,
}

/// What a release goes through.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Situation {
    pub(crate) name: String,
    /// What it is, for the reader.
    pub(crate) about: String,
    /// A folder of `tests/suite/charts`, `matrix` unless given.
    #[serde(default)]
    pub(crate) chart: Option<String>,
    /// Arguments for each install, upgrade and template. `OTHER` stands for a second namespace.
    #[serde(default)]
    pub(crate) args: String,
    /// Workloads to look at besides `web`.
    #[serde(default)]
    pub(crate) watch: BTreeSet<Place>,
    pub(crate) steps: Vec<Step>,
}

/// A container of some object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// `app` of the Deployment `web`.
    Web,
    /// `sidecar` of the same.
    Sidecar,
    /// Its init container.
    Init,
    /// `app` of the Deployment `web` in the second namespace.
    Other,
    /// `app` of the Deployment `web-hook`, a hook.
    Hook,
    /// `app` of `web`, a Deployment of another group.
    Custom,
}

/// One thing that somebody does: one of the first five fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Helm is run: the verb and its arguments, without release, chart and namespace.
    #[serde(default)]
    pub(crate) helm: Option<String>,
    /// The operator moves the image to this tag and says so in its annotation.
    #[serde(default)]
    pub(crate) operator: Option<String>,
    /// Somebody sets the image to this tag with `kubectl edit`.
    #[serde(default)]
    pub(crate) person: Option<String>,
    /// Somebody sets the annotations: `key=value`, or `key-` to remove one.
    #[serde(default)]
    pub(crate) annotate: Option<String>,
    /// Somebody deletes the workload.
    #[serde(default)]
    pub(crate) delete: Option<Place>,

    /// The modes and sides in which this is done, with spaces between them; all unless given.
    #[serde(default)]
    pub(crate) only: Option<String>,
    /// For `helm`: the way of another mode.
    #[serde(default)]
    pub(crate) like: Option<String>,
    /// For `helm`: arguments of belay.
    #[serde(default)]
    pub(crate) belay: Option<String>,
    /// For `helm`: the post-renderer is forgotten.
    #[serde(default)]
    pub(crate) forgotten: bool,
    /// For `operator` and `person`: which workload, `web` unless given.
    #[serde(default)]
    pub(crate) on: Option<Place>,
    /// For `operator`: without force, as which every move of the operator begins.
    #[serde(default)]
    pub(crate) unforced: bool,
    /// What must follow: for `all`, for a side, or for modes with spaces between them. The more
    /// special one wins, field by field.
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, Expected>,
}

/// What must follow a step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// The exit code, 0 unless given.
    #[serde(default)]
    pub(crate) exit: Option<i32>,
    /// What Helm, or the API server, says: a part of it.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Helm does not offer this here; `error` is its own reason.
    #[serde(default)]
    pub(crate) na: Option<bool>,
    /// What belay decides about `web`; `none` where Helm does not get as far as running it.
    #[serde(default)]
    pub(crate) decision: Option<String>,
    /// What it decides about others, `pass` unless given.
    #[serde(default)]
    pub(crate) decided: Option<BTreeMap<Place, String>>,
    /// Parts of belay's report.
    #[serde(default)]
    pub(crate) says: Option<Vec<String>>,
    /// The state of `web`.
    #[serde(default)]
    pub(crate) web: Option<String>,
    /// The states of others.
    #[serde(default)]
    pub(crate) also: Option<BTreeMap<Place, String>>,
    /// How often `web` rolls where that does not follow from its image: there and back again.
    #[serde(default)]
    pub(crate) rolls: Option<i64>,
    /// Something else of `web` changes: its generation moves, nothing rolls.
    #[serde(default)]
    pub(crate) touched: Option<bool>,
    /// The image that Helm prints, for `template` and dry runs.
    #[serde(default)]
    pub(crate) prints: Option<String>,
    /// The newest record: `2 deployed`. Follows from verb and exit code, except after a failure.
    #[serde(default)]
    pub(crate) record: Option<String>,
    /// A heading of `docs/guide/post-renderer.md` that says what to do about this.
    #[serde(default)]
    pub(crate) guide: Option<String>,
}

impl Matrix {
    /// Reads and checks it.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let matrix: Self = serde_json::from_str(text).context("parse the matrix")?;
        let names = |names: Vec<&String>| {
            let unique: BTreeSet<_> = names.iter().collect();
            unique.len() == names.len() && !names.is_empty()
        };
        ensure!(names(matrix.modes.iter().map(|mode| &mode.name).collect()), "names of modes");
        let situations = matrix.situations.iter().map(|situation| &situation.name).collect();
        ensure!(names(situations), "names of situations");
        for situation in &matrix.situations {
            matrix.check(situation).with_context(|| format!("situation {}", situation.name))?;
        }
        Ok(matrix)
    }

    /// The mode of this name.
    pub(crate) fn mode(&self, name: &str) -> Result<&Mode> {
        self.modes.iter().find(|mode| mode.name == name).with_context(|| format!("no mode {name}"))
    }

    fn check(&self, situation: &Situation) -> Result<()> {
        ensure!(!situation.about.is_empty(), "says nothing about itself");
        for step in &situation.steps {
            let acts = [&step.helm, &step.operator, &step.person, &step.annotate];
            let acts = acts.into_iter().flatten().count() + usize::from(step.delete.is_some());
            ensure!(acts == 1, "a step is one act: {step:?}");
            let selectors = step.expect.keys().chain(&step.only);
            for name in selectors.flat_map(|selector| selector.split_whitespace()) {
                let known = ["all", "client", "server"].contains(&name);
                ensure!(known || self.mode(name).is_ok(), "nothing is called {name}");
            }
            if let Some(like) = &step.like {
                self.mode(like)?;
            }
        }
        for mode in &self.modes {
            let steps: Vec<_> = situation.steps.iter().filter(|step| step.is_for(mode)).collect();
            for step in &steps {
                let expected = step.expected(mode)?;
                let fails = expected.exit.is_some_and(|exit| exit != 0);
                let reason = expected.error.as_ref().is_some_and(|error| !error.is_empty());
                ensure!(!fails || reason, "{}: a failure without its words: {step:?}", mode.name);
                ensure!(
                    expected.na != Some(true) || fails,
                    "{}: what is not offered fails: {step:?}",
                    mode.name
                );
            }
            let last = steps.iter().rev().find(|step| step.helm.is_some());
            let last = last.with_context(|| format!("{}: Helm is never run", mode.name))?;
            let state = last.expected(mode)?.web;
            ensure!(state.is_some(), "{}: the last run of Helm states no `web`", mode.name);
        }
        Ok(())
    }
}

impl Step {
    /// Whether this is done in a mode.
    pub(crate) fn is_for(&self, mode: &Mode) -> bool {
        self.only.as_ref().is_none_or(|selector| rank(selector, mode).is_some())
    }

    /// What must follow in a mode.
    pub(crate) fn expected(&self, mode: &Mode) -> Result<Expected> {
        let mut matching: Vec<_> = self
            .expect
            .iter()
            .filter_map(|(selector, expected)| Some((rank(selector, mode)?, expected)))
            .collect();
        matching.sort_by_key(|(rank, _)| *rank);
        let same = matching.windows(2).any(|pair| pair[0].0 == pair[1].0);
        ensure!(!same, "two expectations for {}: {self:?}", mode.name);
        let mut whole = Expected::default();
        for (_, special) in matching {
            whole.overlay(special.clone());
        }
        Ok(whole)
    }
}

/// How special a selector is for a mode: `all`, then its side, then its name.
fn rank(selector: &str, mode: &Mode) -> Option<u8> {
    let side = match mode.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    let of = |name: &str| match name {
        _ if name == mode.name => Some(2),
        _ if name == side => Some(1),
        "all" => Some(0),
        _ => None,
    };
    selector.split_whitespace().filter_map(of).max()
}

impl Expected {
    fn overlay(&mut self, special: Self) {
        let Self {
            exit,
            error,
            na,
            decision,
            decided,
            says,
            web,
            also,
            rolls,
            touched,
            prints,
            record,
            guide,
        } = special;
        set(&mut self.exit, exit);
        set(&mut self.error, error);
        set(&mut self.na, na);
        set(&mut self.decision, decision);
        set(&mut self.decided, decided);
        set(&mut self.says, says);
        set(&mut self.web, web);
        set(&mut self.also, also);
        set(&mut self.rolls, rolls);
        set(&mut self.touched, touched);
        set(&mut self.prints, prints);
        set(&mut self.record, record);
        set(&mut self.guide, guide);
    }
}

fn set<T>(general: &mut Option<T>, special: Option<T>) {
    if special.is_some() {
        *general = special;
    }
}

//! One cell: a situation, gone through in one mode, in a namespace of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use belay_testkit::{Cluster, tool::Finished};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{
    data::{Expected, Matrix, Mode, Place, Situation, Step, Way},
    look::{Look, Scene, image_of},
};
use belay_suite::helms::{self, OPERATOR, WEB};

/// What became of a cell.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was not as the matrix says.
    pub(crate) problems: Vec<String>,
    /// belay's decisions about `web`, in turn.
    pub(crate) decisions: Vec<String>,
    /// What the last run of Helm did to the image of `web`.
    pub(crate) image: String,
    /// Helm's own words where it does not offer this.
    pub(crate) not_offered: Option<String>,
    /// Where the guide says what to do.
    pub(crate) guides: BTreeSet<String>,
}

/// A cell on its way.
struct Cell<'m> {
    cluster: &'static Cluster,
    matrix: &'m Matrix,
    mode: &'m Mode,
    situation: &'m Situation,
    scene: Scene,
    chart: PathBuf,
    /// `$XDG_STATE_HOME`.
    state: PathBuf,
    look: Look,
    outcome: Outcome,
}

/// What a step did, beside what can be looked at.
#[derive(Default)]
struct Done {
    exit: i32,
    stdout: String,
    /// What Helm or the API server said.
    words: String,
    report: Option<String>,
}

/// Goes through a situation in one mode.
pub(crate) async fn run(matrix: &Matrix, mode: &Mode, situation: &Situation) -> Result<Outcome> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("matrix").await?;
    let other = if situation.watch.contains(&Place::Other) {
        cluster.namespace("matrix-other").await?
    } else {
        String::new()
    };
    let folder = cluster.run().folder().join(&namespace);
    let group = format!("{namespace}.example.test");
    let mut cell = Cell {
        cluster,
        matrix,
        mode,
        situation,
        chart: chart(situation, &folder, &group)?,
        state: folder.join("state"),
        scene: Scene { client: cluster.admin()?, namespace, other, group },
        look: Look::default(),
        outcome: Outcome::default(),
    };
    for (number, step) in situation.steps.iter().enumerate() {
        if step.is_for(mode) {
            let what = format!("step {}", number + 1);
            cell.step(step, &what).await.with_context(|| what.clone())?;
        }
    }
    Ok(cell.outcome)
}

/// The chart; one with a CRD is copied, so that each cell has a CRD of its own.
fn chart(situation: &Situation, folder: &Path, group: &str) -> Result<PathBuf> {
    let chart = situation.chart.as_deref().unwrap_or("matrix");
    let source = helms::suite("charts").join(chart);
    if !source.join("crds").is_dir() {
        return Ok(source);
    }
    let copy = folder.join("chart");
    for part in ["", "crds", "templates"] {
        fs::create_dir_all(copy.join(part))?;
        for entry in fs::read_dir(source.join(part))? {
            let path = entry?.path();
            if path.is_file() {
                let text = fs::read_to_string(&path)?.replace("GROUP", group);
                fs::write(copy.join(part).join(path.file_name().unwrap_or_default()), text)?;
            }
        }
    }
    Ok(copy)
}

impl Cell<'_> {
    async fn step(&mut self, step: &Step, what: &str) -> Result<()> {
        let done = self.act(step).await?;
        let mut look = self.scene.look(&self.situation.watch).await?;
        look.stored = match &step.helm {
            Some(_) => self.stored().await?,
            None => self.look.stored.clone(),
        };
        let before = std::mem::replace(&mut self.look, look);
        let expected = step.expected(self.mode)?;
        let mut problems = Vec::new();
        if step.helm.is_some() {
            self.compare_run(step, &expected, &before, &done, &mut problems);
        } else if !expected.error.as_ref().is_none_or(|error| done.words.contains(error.as_str()))
            || expected.error.is_none() && done.exit != 0
        {
            problems.push(format!("the API server says {:?}", done.words));
        }
        if step.helm.is_some() || !step.expect.is_empty() {
            self.compare_states(&expected, &before, &mut problems);
        }
        self.outcome.guides.extend(expected.guide.clone());
        if expected.na == Some(true) {
            self.outcome.not_offered = expected.error;
        }
        if !problems.is_empty() {
            let command = step.helm.as_deref().unwrap_or_default();
            let mut lines = vec![format!("{what} {command}")];
            lines.extend(problems.into_iter().map(|problem| format!("    {problem}")));
            let report = done.report.unwrap_or_default();
            for (name, said) in [("Helm", &done.words), ("belay", &report)] {
                let said = said.trim().lines();
                lines.extend(said.map(|line| format!("      {name}: {line}")));
            }
            let text = lines.join("\n");
            self.outcome.problems.push(text);
        }
        Ok(())
    }

    async fn act(&self, step: &Step) -> Result<Done> {
        let place = step.on.unwrap_or(Place::Web);
        if let Some(run) = &step.helm {
            return self.helm(step, run).await;
        }
        if let Some(tag) = &step.operator {
            let annotations = json!({ "belay.dev/release": format!("web-{tag}") });
            let params = PatchParams::apply(OPERATOR);
            let params = if step.unforced { params } else { params.force() };
            return self.move_image(place, tag, &annotations, &params, Patch::Apply).await;
        }
        if let Some(tag) = &step.person {
            let params = PatchParams {
                field_manager: Some("kubectl-edit".to_owned()),
                ..PatchParams::default()
            };
            return self.move_image(place, tag, &json!({}), &params, Patch::Strategic).await;
        }
        if let Some(annotation) = &step.annotate {
            let (key, value) = match annotation.split_once('=') {
                Some((key, value)) => (key, json!(value)),
                None => (annotation.trim_end_matches('-'), json!(null)),
            };
            let params = PatchParams {
                field_manager: Some("kubectl-annotate".to_owned()),
                ..PatchParams::default()
            };
            let patch = json!({ "metadata": { "annotations": { key: value } } });
            self.scene.api(place).patch(place.object(), &params, &Patch::Merge(patch)).await?;
        }
        if let Some(place) = step.delete {
            let params = DeleteParams::background();
            self.scene.api(place).delete(place.object(), &params).await?;
        }
        Ok(Done::default())
    }

    /// Sets the image of one container, and annotations.
    async fn move_image(
        &self,
        place: Place,
        tag: &str,
        annotations: &serde_json::Value,
        params: &PatchParams,
        patch: impl FnOnce(serde_json::Value) -> Patch<serde_json::Value>,
    ) -> Result<Done> {
        let image = format!("registry.example/web:{tag}");
        let body = json!({
            "apiVersion": format!("{}/v1", self.scene.group_of(place)),
            "kind": "Deployment",
            "metadata": { "name": place.object(), "annotations": annotations },
            "spec": { "template": { "spec": { "containers": [
                { "name": place.container(), "image": image },
            ]}}},
        });
        match self.scene.api(place).patch(place.object(), params, &patch(body)).await {
            Ok(_) => Ok(Done::default()),
            Err(kube::Error::Api(status)) => {
                Ok(Done { exit: 1, words: status.message.clone(), ..Done::default() })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn helm(&self, step: &Step, run: &str) -> Result<Done> {
        let mode = match &step.like {
            Some(name) => self.matrix.mode(name)?,
            None => self.mode,
        };
        let mut words = run.split_whitespace();
        let verb = words.next().context("an empty command")?;
        let Way { helm, args } = if verb == "install" { &mode.born } else { &mode.then };
        let renders = ["install", "upgrade", "template"].contains(&verb);
        let report = helms::report_below(&self.state);
        // What is found there later is of this run.
        let _ = fs::remove_file(&report);
        let mut tool = helms::helm(self.cluster, *helm, &self.state).await?;
        tool = tool.args([verb, WEB]);
        if renders {
            let situation = self.situation.args.replace("OTHER", &self.scene.other);
            tool = tool.arg(&self.chart).args(situation.split_whitespace());
        }
        tool = tool.args(words).args(["-n", &self.scene.namespace]);
        if verb == "install" || verb == "upgrade" {
            tool = tool.args(args.split_whitespace()).args(["--timeout", "60s"]);
        }
        if renders && !step.forgotten {
            tool = tool.args(["--post-renderer", "belay"]);
            for argument in step.belay.iter().flat_map(|args| args.split_whitespace()) {
                tool = tool.args(["--post-renderer-args", argument]);
            }
        }
        let Finished { status, stdout, stderr, .. } = tool.run().await?;
        let exit = status.code().context("Helm was killed")?;
        Ok(Done { exit, stdout, words: stderr, report: fs::read_to_string(&report).ok() })
    }

    /// What Helm stored last.
    async fn stored(&self) -> Result<BTreeMap<Place, String>> {
        let tool = helms::helm(self.cluster, self.mode.then.helm, &self.state).await?;
        let found = tool.args(["get", "manifest", WEB, "-n", &self.scene.namespace]).run().await?;
        if !found.status.success() && found.stderr.contains("release: not found") {
            return Ok(BTreeMap::new());
        }
        self.scene.images_in(&found.ok()?, &self.situation.watch)
    }

    /// Compares what Helm and belay said.
    fn compare_run(
        &mut self,
        step: &Step,
        expected: &Expected,
        before: &Look,
        done: &Done,
        problems: &mut Vec<String>,
    ) {
        let exit = expected.exit.unwrap_or(0);
        if done.exit != exit {
            problems.push(format!("exit code {} instead of {exit}", done.exit));
        }
        if let Some(error) = &expected.error
            && !done.words.contains(error.as_str())
        {
            problems.push(format!("Helm does not say {error:?}"));
        }
        let verb = step.helm.as_deref().and_then(|run| run.split_whitespace().next());
        let simulated = verb == Some("template")
            || step.helm.as_ref().is_some_and(|run| run.contains("--dry-run"));
        let newest = before.records.last_key_value().map_or(0, |(version, _)| *version);
        let record = match &expected.record {
            Some(record) => Some(record.clone()),
            None if simulated => Some(before.record()),
            None if exit == 0 => Some(format!("{} deployed", newest + 1)),
            None => None,
        };
        if let Some(record) = record
            && record != self.look.record()
        {
            problems.push(format!("newest record {:?} instead of {record:?}", self.look.record()));
        }
        if let Some(prints) = &expected.prints {
            let manifest = done.stdout.split_once("MANIFEST:").map_or(&done.stdout[..], |m| m.1);
            let manifest = manifest.split("\nNOTES:").next().unwrap_or_default();
            match self.scene.images_in(manifest, &BTreeSet::new()) {
                Ok(images) if images.get(&Place::Web) == Some(prints) => {}
                found => problems.push(format!("prints {found:?} instead of {prints}")),
            }
        }
        self.compare_decisions(step, expected, done, problems);
        let (was, is) = (before.state(Place::Web), self.look.state(Place::Web));
        let (was, is) = (image_of(&was), image_of(&is));
        self.outcome.image = match (was, is) {
            _ if expected.na == Some(true) => String::new(),
            ("absent", is) => format!("image {is}"),
            (was, is) if was == is => format!("image {is} kept"),
            (was, is) => format!("image {was} -> {is}"),
        };
    }

    fn compare_decisions(
        &mut self,
        step: &Step,
        expected: &Expected,
        done: &Done,
        problems: &mut Vec<String>,
    ) {
        let decisions = done.report.as_deref().map(decisions);
        let ran = match (&expected.decision, &decisions) {
            (None, None) if step.forgotten => return,
            (None, None) if step.helm.as_ref().is_some_and(|run| run.starts_with("rollback")) => {
                return;
            }
            (Some(none), None) if none == "none" => return,
            (_, None) => return problems.push("belay left no report".to_owned()),
            (None, Some(_)) => return problems.push("belay ran, which is not expected".to_owned()),
            (Some(_), Some(decisions)) => decisions,
        };
        let key = |place: Place| {
            let namespace = self.scene.namespace_of(place);
            format!("{namespace}/{} {}", place.object(), place.container())
        };
        let mut wanted = BTreeMap::new();
        wanted.extend(expected.decision.clone().map(|word| (key(Place::Web), word)));
        for (place, word) in expected.decided.iter().flatten() {
            wanted.insert(key(*place), word.clone());
        }
        for (container, word) in &wanted {
            let found = ran.get(container).map_or("nothing", String::as_str);
            if found != word {
                problems.push(format!("belay decides {found} about {container}, not {word}"));
            }
        }
        for (container, word) in ran {
            if word != "pass" && !wanted.contains_key(container) {
                problems.push(format!("belay decides {word} about {container}"));
            }
        }
        self.outcome.decisions.extend(ran.get(&key(Place::Web)).cloned());
        for part in expected.says.iter().flatten() {
            if !done.report.iter().any(|report| report.contains(part.as_str())) {
                problems.push(format!("the report does not say {part:?}"));
            }
        }
    }

    /// Compares what there is.
    fn compare_states(&self, expected: &Expected, before: &Look, problems: &mut Vec<String>) {
        let mut places: BTreeSet<_> = self.situation.watch.clone();
        places.extend([Place::Web, Place::Sidecar, Place::Init]);
        for place in places {
            let said = match place {
                Place::Web => expected.web.as_ref(),
                _ => {
                    expected.also.iter().flatten().find(|also| *also.0 == place).map(|also| also.1)
                }
            };
            let (was, is) = (before.state(place), self.look.state(place));
            match said {
                Some(wanted) if *wanted != is => {
                    problems.push(format!("{place:?} is {is:?} instead of {wanted:?}"));
                }
                None if image_of(&was) != "absent" && but_for_helm(&was) != but_for_helm(&is) => {
                    problems.push(format!("{place:?} is {is:?}, was {was:?}"));
                }
                _ => {}
            }
        }
        for (place, was) in &before.rollouts {
            let Some(is) = self.look.rollouts.get(place).filter(|is| is.uid == was.uid) else {
                // Gone, or another one of the same name: nothing rolled.
                continue;
            };
            let (old, new) = (before.state(*place), self.look.state(*place));
            let follows = i64::from(image_of(&old) != image_of(&new));
            let rolls = match place {
                Place::Web => expected.rolls.unwrap_or(follows),
                _ => follows,
            };
            let rolled = is.revision - was.revision;
            if rolled != rolls {
                problems.push(format!("{place:?} rolled {rolled} times instead of {rolls}"));
            }
            let touched = *place == Place::Web && expected.touched == Some(true);
            if touched == (is.generation == was.generation) && rolls == 0 {
                let (was, is) = (was.generation, is.generation);
                problems.push(format!("{place:?} moved from generation {was} to {is}"));
            }
            if rolls == 0 && is.replica_sets != was.replica_sets {
                problems.push(format!("{place:?} has other ReplicaSets: {was:?}, {is:?}"));
            }
        }
    }
}

/// A live state without Helm's own claim, which changes its operation with how Helm applies.
fn but_for_helm(state: &str) -> String {
    let live = state.split(',').next().unwrap_or_default();
    let words = live.split(' ').filter(|word| !["helm/U", "helm/A", "+"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Decisions by namespace, name and container, read from belay's report.
fn decisions(report: &str) -> BTreeMap<String, String> {
    let mut decisions = BTreeMap::new();
    for line in report.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [word @ ("preserve" | "strip" | "pass" | "fail"), _kind, object, container, ..] =
            words[..]
            && object.contains('/')
        {
            decisions.insert(format!("{object} {container}"), (*word).to_owned());
        }
    }
    decisions
}

//! Charts in the idioms of popular ones, as both Helms render them.
//!
//! Beside each chart, `case.json` says by hand which workloads Helm hands over, and which bytes a
//! preserved and a stripped image change. Who checks is no part of `belay`: kubectl reads every
//! stream with the YAML reader that the API server has, and both Helms read what was spliced.

mod case;

use std::{
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use belay_post_renderer::{
    scan::{self, ContainerList, Manifest, Target},
    splice::{self, Action, Edit, Outcome},
    split, verify,
};
use belay_testkit::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::Semaphore, task::JoinSet};

use self::case::{Case, Change, Owned};
use belay_suite::helms::{self, Major, WEB};

/// How many charts are worked on at the same time.
const AT_ONCE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Preserve,
    Strip,
}

impl Verb {
    fn expected(self, case: &Case, major: Major) -> &Change {
        match self {
            Self::Preserve => case.preserve.of(major),
            Self::Strip => case.strip.of(major),
        }
    }

    fn edits<'o>(self, manifest: &Manifest<'_>, owned: &'o [Owned]) -> Result<Vec<Edit<'o>>> {
        let edit = |owned: &'o Owned| {
            let (target, container) = place(manifest, owned)?;
            let image = owned.live.as_str();
            let action = match self {
                Self::Preserve => Action::Preserve { image },
                Self::Strip => Action::Strip { image },
            };
            Ok(Edit { target, container, action })
        };
        owned.iter().map(edit).collect()
    }

    fn outcome(self) -> &'static str {
        match self {
            Self::Preserve => "preserved",
            Self::Strip => "stripped",
        }
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Preserved => "preserved",
        Outcome::Stripped => "stripped",
        Outcome::PreservedInstead(_) => "preserved instead",
        Outcome::Unchanged => "unchanged",
    }
}

/// Where the owned container is among the targets.
fn place(manifest: &Manifest<'_>, owned: &Owned) -> Result<(usize, usize)> {
    let is_target = |target: &Target| {
        target.kind.as_str() == owned.kind
            && target.name.as_deref() == Some(&owned.name)
            && target.namespace == owned.namespace
            && !target.hook
    };
    let target = manifest.targets.iter().position(is_target).context("no such target")?;
    let container = manifest.targets[target]
        .containers
        .iter()
        .position(|container| {
            container.list.as_str() == owned.list
                && container.name.as_deref() == Some(&owned.container)
        })
        .with_context(|| format!("no container {} in {}", owned.container, owned.name))?;
    Ok((target, container))
}

/// A chart under one Helm.
struct Run {
    cluster: &'static Cluster,
    chart: PathBuf,
    case: Case,
    major: Major,
    plugins: Arc<TempDir>,
    folder: TempDir,
}

impl Run {
    async fn check(&self) -> Result<()> {
        let recorded = self.folder.path().join("input");
        self.helm("tee", &recorded).await?;
        let input = fs::read(&recorded).context("Helm ran no post-renderer")?;
        let manifest = scan::read(&input, "belay.dev")?;
        self.check_targets(&manifest).context("the targets")?;
        no_decision_changes_nothing(&manifest)?;

        let mut streams = vec![recorded];
        let mut spliced = Vec::new();
        for verb in [Verb::Preserve, Verb::Strip] {
            let Some(outcomes) = self.splice(&manifest, verb).context(format!("{verb:?}"))? else {
                continue;
            };
            let output = self.file(verb, "output");
            let rendered = self.file(verb, "rendered");
            fs::write(&rendered, self.helm("cat", &output).await?)?;
            streams.extend([output, rendered]);
            spliced.push((verb, outcomes));
        }
        let mut objects = self.objects(&streams).await?.into_iter();
        let before = objects.next().context("kubectl read nothing")?;
        images_are_what_kubectl_reads(&manifest, &before)?;
        for ((verb, outcomes), read) in spliced.iter().zip(objects.collect::<Vec<_>>().chunks(2)) {
            let [after, rendered] = read else { bail!("kubectl read too little") };
            let wanted = self.wanted(&before, *verb, outcomes)?;
            same(&wanted, after).context(format!("{verb:?}: kubectl reads something else"))?;
            self.rendered(&wanted, rendered).context(format!("{verb:?}: Helm's own output"))?;
        }
        Ok(())
    }

    fn file(&self, verb: Verb, name: &str) -> PathBuf {
        self.folder.path().join(format!("{verb:?}.{name}"))
    }

    /// `helm template` through `tee FILE`, which records what it reads, or `cat FILE`, which prints
    /// that file instead.
    async fn helm(&self, renderer: &str, file: &Path) -> Result<String> {
        let tool = self.cluster.tool(self.major.binary())?.args(["template", WEB]);
        let tool = tool.arg(&self.chart).args(&self.case.args);
        let tool = tool.args(["--post-renderer", renderer, "--post-renderer-args"]).arg(file);
        Ok(tool.env("HELM_PLUGINS", self.plugins.path()).ok().await?)
    }

    fn check_targets(&self, manifest: &Manifest<'_>) -> Result<()> {
        let documents = split::count(&manifest.documents);
        equal("the documents", &documents, self.case.documents.of(self.major))?;
        let expected = self.case.targets.iter();
        let expected: Vec<_> =
            expected.filter(|target| target.only.is_none_or(|only| only == self.major)).collect();
        ensure!(expected.len() == manifest.targets.len(), "found {:?}", manifest.targets);
        for target in expected {
            let is_it = |found: &&Target| {
                found.kind.as_str() == target.kind
                    && found.name.as_deref() == Some(&target.name)
                    && found.namespace == target.namespace
                    && found.hook == target.hook
            };
            let found = manifest.targets.iter().find(is_it).context(target.name.clone())?;
            let count = target.containers.len() + target.init.len();
            equal("containers", &found.containers.len(), &target.count.unwrap_or(count))?;
            equal("a file name", &found.filename.is_some(), &(self.major == Major::Four))?;
            for (list, images) in [
                (ContainerList::Containers, &target.containers),
                (ContainerList::InitContainers, &target.init),
            ] {
                for (name, image) in images {
                    let mut found = found
                        .containers
                        .iter()
                        .filter(|found| (found.list, found.name.as_ref()) == (list, Some(name)));
                    let one = found.next().with_context(|| format!("no container {name}"))?;
                    ensure!(found.next().is_none(), "two containers {name}");
                    equal(name, &one.image, image)?;
                }
            }
        }
        Ok(())
    }

    /// Splices, and writes the output; `None` where an error is expected.
    fn splice(&self, manifest: &Manifest<'_>, verb: Verb) -> Result<Option<Vec<&'static str>>> {
        let expected = verb.expected(&self.case, self.major);
        let edits = verb.edits(manifest, &self.case.owned)?;
        let spliced = match (splice::apply(manifest, &edits), &expected.error) {
            (Ok(spliced), None) => spliced,
            (Err(error), Some(words)) => {
                ensure!(error.to_string().starts_with(words.as_str()), "the error is {error}");
                return Ok(None);
            }
            (Ok(_), Some(words)) => bail!("it worked, where the error was to be: {words}"),
            (Err(error), None) => return Err(error.into()),
        };
        verify::check(manifest, &edits, &spliced)?;
        let outcomes: Vec<_> = spliced.outcomes.iter().copied().map(outcome).collect();
        let asked = || vec![verb.outcome().to_owned(); edits.len()];
        let wanted = expected.outcomes.clone().unwrap_or_else(asked);
        ensure!(outcomes == wanted, "the outcomes are {outcomes:?}, not {wanted:?}");
        check_bytes(manifest.input, &spliced.bytes, expected)?;
        fs::write(self.file(verb, "output"), &spliced.bytes)?;
        Ok(Some(outcomes))
    }

    /// The objects of several streams, in order and with Lists taken apart, as kubectl reads them.
    async fn objects(&self, streams: &[PathBuf]) -> Result<Vec<Vec<Value>>> {
        let mark = self.folder.path().join("mark.json");
        let end = json!({ "apiVersion": "v1", "kind": "EndOfStream", "metadata": { "name": "-" } });
        fs::write(&mark, end.to_string())?;
        let mut tool = self.cluster.tool(Binary::Kubectl)?;
        tool = tool.args(["patch", "--local", "--type=merge", "-p", "{}", "-o", "json"]);
        for stream in streams {
            tool = tool.arg("-f").arg(stream).arg("-f").arg(&mark);
        }
        let text = tool.ok().await.context("kubectl cannot read it")?;
        let mut read = vec![Vec::new()];
        for object in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            let object = object?;
            match read.last_mut() {
                Some(last) if object != end => last.push(object),
                _ => read.push(Vec::new()),
            }
        }
        let rest = read.pop();
        ensure!(rest.is_some_and(|rest| rest.is_empty()) && read.len() == streams.len());
        Ok(read)
    }

    /// What `before` must have become, by nothing but the case.
    fn wanted(&self, before: &[Value], verb: Verb, outcomes: &[&str]) -> Result<Vec<Value>> {
        let mut wanted = before.to_vec();
        ensure!(outcomes.len() == self.case.owned.len(), "an outcome for each");
        for (owned, outcome) in self.case.owned.iter().zip(outcomes) {
            let is_it = |object: &&mut Value| {
                is_object(object, &owned.kind, &owned.name, owned.namespace.as_deref())
            };
            let object = wanted.iter_mut().find(is_it).context("no such object")?;
            let list = &mut object["spec"]["template"]["spec"][&owned.list];
            let container = list
                .as_array_mut()
                .and_then(|list| list.iter_mut().find(|one| one["name"] == *owned.container))
                .and_then(Value::as_object_mut)
                .context("no such container")?;
            match (*outcome, verb) {
                ("unchanged", _) => {}
                ("stripped", Verb::Strip) => drop(container.shift_remove("image")),
                (outcome, _) => {
                    ensure!(outcome.starts_with("preserved"), "what is {outcome}?");
                    container.insert("image".to_owned(), json!(owned.live));
                }
            }
        }
        Ok(wanted)
    }

    /// What Helm prints holds all that it was given. Beside it Helm 3 prints hooks, and Helm 4
    /// CRDs, that no post-renderer sees.
    fn rendered(&self, wanted: &[Value], rendered: &[Value]) -> Result<()> {
        let mut rest = rendered.to_vec();
        for object in wanted {
            let object = without_filename(object);
            let at = rest.iter().position(|other| *other == object);
            let at = at.with_context(|| format!("there is no {object} in {}", json!(rendered)))?;
            rest.remove(at);
        }
        for object in rest {
            let unseen = match self.major {
                Major::Three => !object["metadata"]["annotations"][scan::HOOK_ANNOTATION].is_null(),
                Major::Four => object["kind"] == "CustomResourceDefinition",
            };
            ensure!(unseen, "nobody gave Helm {object}");
        }
        Ok(())
    }
}

/// `assert_eq!` as an error, so that it says of which chart.
fn equal<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T) -> Result<()> {
    ensure!(found == wanted, "{what}: found {found:?}, not {wanted:?}");
    Ok(())
}

fn is_object(object: &Value, kind: &str, name: &str, namespace: Option<&str>) -> bool {
    let metadata = &object["metadata"];
    object["apiVersion"] == "apps/v1"
        && object["kind"] == kind
        && metadata["name"] == name
        && metadata["namespace"].as_str() == namespace
}

/// An object as Helm 4 keeps it: without the annotation it adds for the post-renderer alone.
fn without_filename(object: &Value) -> Value {
    let mut object = object.clone();
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations
        && annotations.shift_remove(scan::FILENAME_ANNOTATION).is_some()
        && annotations.is_empty()
        && let Some(metadata) = object["metadata"].as_object_mut()
    {
        metadata.shift_remove("annotations");
    }
    object
}

fn no_decision_changes_nothing(manifest: &Manifest<'_>) -> Result<()> {
    let spliced = splice::apply(manifest, &[])?;
    verify::check(manifest, &[], &spliced)?;
    ensure!(spliced.bytes == manifest.input, "bytes differ without a decision");
    Ok(())
}

/// What was found is what the API server's reader makes of the same bytes.
fn images_are_what_kubectl_reads(manifest: &Manifest<'_>, objects: &[Value]) -> Result<()> {
    for target in &manifest.targets {
        let name = target.name.as_deref().unwrap_or_default();
        let is_it = |object: &&Value| {
            is_object(object, target.kind.as_str(), name, target.namespace.as_deref())
        };
        let object = objects.iter().find(is_it).with_context(|| format!("no {name}"))?;
        for container in &target.containers {
            let list = &object["spec"]["template"]["spec"][container.list.as_str()];
            let read = &list[container.index];
            equal(name, &container.name.as_deref(), &read["name"].as_str())?;
            let image = read["image"].as_str().filter(|image| !image.is_empty());
            equal(name, &container.image.as_deref(), &image)?;
        }
    }
    Ok(())
}

fn check_bytes(input: &[u8], output: &[u8], expected: &Change) -> Result<()> {
    let (input, output) = (std::str::from_utf8(input)?, std::str::from_utf8(output)?);
    match expected {
        Change { in_place: Some(edits), gone: None, new: None, .. } => {
            let mut wanted = input.to_owned();
            for (old, new) in edits {
                ensure!(wanted.matches(old).count() == 1, "{old:?} is not once in {wanted}");
                wanted = wanted.replace(old, new);
            }
            ensure!(output == wanted, "spliced {output}\nnot {wanted}");
        }
        Change { in_place: None, gone: Some(gone), new: Some(new), .. } => {
            equal("the lines that are gone", &lines_only_in(input, output), gone)?;
            equal("the new lines", &lines_only_in(output, input), new)?;
        }
        _ => bail!("the case says nothing, or too much, about the bytes"),
    }
    Ok(())
}

/// The lines of `one` that `other` does not have as often, in order.
fn lines_only_in(one: &str, other: &str) -> Vec<String> {
    let mut others: Vec<_> = other.lines().collect();
    let mut only = Vec::new();
    for line in one.lines() {
        match others.iter().position(|other| *other == line) {
            Some(at) => drop(others.remove(at)),
            None => only.push(line.trim().to_owned()),
        }
    }
    only
}

fn same(wanted: &[Value], found: &[Value]) -> Result<()> {
    ensure!(wanted.len() == found.len(), "{} objects, not {}", found.len(), wanted.len());
    for (wanted, found) in wanted.iter().zip(found) {
        ensure!(wanted == found, "wanted {wanted}\nfound {found}");
    }
    Ok(())
}

/// `tee` and `cat` as plugins of Helm 4; Helm 3 finds both on `PATH`.
fn plugins() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for name in ["tee", "cat"] {
        fs::create_dir(folder.path().join(name))?;
        let manifest = json!({
            "apiVersion": "v1", "type": "postrenderer/v1", "name": name, "version": "0.1.0",
            "runtime": "subprocess",
            "runtimeConfig": { "platformCommand": [{ "command": name }] },
        });
        fs::write(folder.path().join(name).join("plugin.yaml"), manifest.to_string())?;
    }
    Ok(folder)
}

fn charts() -> Result<Vec<PathBuf>> {
    let mut charts = Vec::new();
    for entry in fs::read_dir(helms::suite("charts/idioms"))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            charts.push(entry.path());
        }
    }
    charts.sort();
    Ok(charts)
}

#[tokio::test]
async fn every_chart_keeps_all_but_the_owned_image_under_both_helms() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let plugins = Arc::new(plugins()?);
    let charts = charts()?;
    ensure!(charts.len() >= 22, "only {} charts", charts.len());
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for chart in charts {
        for major in [Major::Three, Major::Four] {
            let (turns, plugins, chart) = (turns.clone(), plugins.clone(), chart.clone());
            runs.spawn(async move {
                let _turn = turns.acquire().await?;
                let name = chart.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let what = format!("chart {name}, {major:?}");
                let case = fs::read(chart.join("case.json")).context(what.clone())?;
                let case = serde_json::from_slice(&case).context(what.clone())?;
                let folder = tempfile::tempdir()?;
                Run { cluster, chart, case, major, plugins, folder }.check().await.context(what)
            });
        }
    }
    let mut failures = Vec::new();
    while let Some(run) = runs.join_next().await {
        match run {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failures.push(format!("{error:?}")),
            Err(panic) => failures.push(panic.to_string()),
        }
    }
    ensure!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
    Ok(())
}

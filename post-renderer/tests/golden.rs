//! A folder for each trap that YAML sets: `input.yaml`, `decisions.json`, and what must come out,
//! `output.yaml`, or the `error` that `decisions.json` names. The outputs are written by hand.

use std::{error::Error, fs, path::Path};

use belay_post_renderer::{
    scan::{self, Manifest},
    splice::{self, Action, Edit, Outcome},
    split, verify,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    decisions: Vec<Decision>,
    /// A part of the error, with its causes, that is expected instead of an output.
    error: Option<String>,
    /// How many targets the input has.
    targets: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    r#do: String,
    image: String,
    container: String,
    #[serde(default = "containers")]
    list: String,
    /// The target's name and namespace, where there are several.
    name: Option<String>,
    namespace: Option<String>,
    /// Which of the containers with that name; else all.
    nth: Option<usize>,
    /// `preserved instead`, where that is the point.
    outcome: Option<String>,
}

fn containers() -> String {
    "containers".to_owned()
}

impl Decision {
    fn edits<'e>(&'e self, manifest: &Manifest<'_>) -> Vec<Edit<'e>> {
        let action = match self.r#do.as_str() {
            "preserve" => Action::Preserve { image: &self.image },
            "strip" => Action::Strip { image: &self.image },
            other => panic!("unknown decision {other}"),
        };
        let mut edits = Vec::new();
        for (at, target) in manifest.targets.iter().enumerate() {
            let differs =
                |wanted: &Option<String>, is: &Option<String>| wanted.is_some() && wanted != is;
            if differs(&self.name, &target.name) || differs(&self.namespace, &target.namespace) {
                continue;
            }
            for (index, container) in target.containers.iter().enumerate() {
                if container.list.as_str() == self.list
                    && container.name.as_ref() == Some(&self.container)
                {
                    edits.push(Edit { target: at, container: index, action });
                }
            }
        }
        match self.nth {
            Some(nth) => vec![edits[nth]],
            None => edits,
        }
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, wanted: &T) -> Result<(), String> {
    if is == wanted { Ok(()) } else { Err(format!("{what}: {is:?}, wanted {wanted:?}")) }
}

fn run(input: &[u8], case: &Case) -> Result<Vec<u8>, String> {
    let manifest = scan::read(input, "belay.dev").map_err(|error| chain(&error))?;
    if let Some(targets) = case.targets {
        equal("targets", &manifest.targets.len(), &targets)?;
    }
    let mut edits = Vec::new();
    let mut instead = Vec::new();
    for decision in &case.decisions {
        let own = decision.edits(&manifest);
        equal("has a container", &own.is_empty(), &false)?;
        instead.extend(own.iter().map(|_| decision.outcome.as_deref()));
        edits.extend(own);
    }
    let spliced = splice::apply(&manifest, &edits).map_err(|error| chain(&error))?;
    verify::check(&manifest, &edits, &spliced).map_err(|error| chain(&error))?;
    for (outcome, expected) in spliced.outcomes.iter().zip(instead) {
        let is_instead = matches!(outcome, Outcome::PreservedInstead(_));
        equal("preserved instead", &is_instead, &(expected == Some("preserved instead")))?;
    }
    Ok(spliced.bytes.into_owned())
}

fn check(folder: &Path) -> Result<(), String> {
    let read = |name: &str| fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let input = read("input.yaml")?;
    let case: Case = serde_json::from_slice(&read("decisions.json")?).map_err(|e| e.to_string())?;
    match (&case.error, run(&input, &case)) {
        (Some(expected), Err(error)) if error.contains(expected) => Ok(()),
        (Some(expected), got) => Err(format!(
            "expected the error {expected:?}, got {:?}",
            got.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        )),
        (None, Err(error)) => Err(format!("error: {error}")),
        (None, Ok(output)) => {
            let expected = read("output.yaml")?;
            let documents = |bytes: &[u8]| split::count(&split::split(bytes));
            equal("documents", &documents(&expected), &documents(&input))?;
            if output == expected {
                return Ok(());
            }
            Err(format!(
                "got\n{}\nexpected\n{}",
                String::from_utf8_lossy(&output),
                String::from_utf8_lossy(&expected)
            ))
        }
    }
}

#[test]
fn every_golden_comes_out_as_written_by_hand() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut folders: Vec<_> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 45, "only {} goldens in {}", folders.len(), root.display());
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            check(folder).err().map(|failure| format!("== {name}: {failure}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
}

//! Files that are generated from code, and the check that they are current.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path},
    process::{ExitCode, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    cargo::{Cargo, Profile},
    chart_crds,
};

/// Where the programs' files live: all of this folder is generated.
const FOLDER: &str = "docs/reference";

/// Where the chart's templates of CRDs live: all of this folder is generated too.
const CHART: &str = "charts/belay/templates/crds";

/// The programs that make them. Each prints one JSON object of file names and texts.
const PROGRAMS: [&str; 2] = ["crdgen", "reference"];

/// Writes the files, or compares them.
pub(crate) fn run(cargo: &Cargo, check: bool) -> Result<ExitCode> {
    let mut wanted = BTreeMap::new();
    for name in PROGRAMS {
        let output = cargo
            .program(name, Profile::Debug)?
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("start {name}"))?;
        ensure!(output.status.success(), "{name} failed ({})", output.status);
        add(&mut wanted, name, &output.stdout)?;
    }
    let templates = chart_crds::templates(&wanted)?;
    let mut stale = Vec::new();
    for (folder, files) in [(FOLDER, wanted), (CHART, templates)] {
        let names = compare(&cargo.root().join(folder), &files)?;
        if !check {
            write(cargo.root(), folder, &names, &files)?;
        }
        stale.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    ensure!(
        stale.is_empty() || !check,
        "not current: {}; run `cargo xtask generate` and commit what it writes",
        stale.join(", ")
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of a folder that are stale, and removes those that are not wanted.
fn write(
    root: &Path,
    folder: &str,
    stale: &[String],
    wanted: &BTreeMap<String, String>,
) -> Result<()> {
    for name in stale {
        let path = root.join(folder).join(name);
        if let Some(text) = wanted.get(name) {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            println!("wrote {folder}/{name}");
        } else {
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            println!("removed {folder}/{name}");
        }
    }
    Ok(())
}

/// Adds what one program printed to what the others did.
fn add(wanted: &mut BTreeMap<String, String>, program: &str, printed: &[u8]) -> Result<()> {
    let files: BTreeMap<String, String> =
        serde_json::from_slice(printed).with_context(|| format!("read the output of {program}"))?;
    for (name, text) in files {
        let inside = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside, "{program} names {name:?}, which is not below {FOLDER}");
        let known = wanted.insert(name.clone(), text).is_some();
        ensure!(!known, "{program} names {name}, which another program makes");
    }
    Ok(())
}

/// Names of files that differ, are missing, or are there without being generated.
fn compare(folder: &Path, wanted: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for (name, text) in wanted {
        if fs::read_to_string(folder.join(name)).ok().as_ref() != Some(text) {
            stale.push(name.clone());
        }
    }
    let mut there = Vec::new();
    list(folder, folder, &mut there)?;
    stale.extend(there.into_iter().filter(|name| !wanted.contains_key(name)));
    Ok(stale)
}

fn list(top: &Path, folder: &Path, names: &mut Vec<String>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(top, &path, names)?;
        } else {
            names.push(path.strip_prefix(top)?.display().to_string());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_missing_and_surplus_files_are_told() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("crds")).unwrap();
        for (name, text) in [("same.md", "a"), ("crds/old.yaml", "a"), ("surplus.md", "a")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let wanted = [("same.md", "a"), ("crds/old.yaml", "b"), ("missing.md", "a")];
        let wanted = wanted.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let mut stale = compare(dir.path(), &wanted).unwrap();
        stale.sort();
        assert_eq!(stale, ["crds/old.yaml", "missing.md", "surplus.md"]);
    }

    #[test]
    fn files_of_several_programs_are_put_together() {
        let mut wanted = BTreeMap::new();
        add(&mut wanted, "one", br#"{"a.md":"a"}"#).unwrap();
        add(&mut wanted, "two", br#"{"b/c.md":"c"}"#).unwrap();
        let names: Vec<_> = wanted.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.md", "b/c.md"]);
    }

    #[test]
    fn a_name_outside_of_the_folder_or_made_twice_is_refused() {
        let mut wanted = BTreeMap::from([("a.md".to_owned(), "a".to_owned())]);
        add(&mut wanted, "two", br#"{"../README.md":""}"#).unwrap_err();
        let error = add(&mut wanted, "two", br#"{"a.md":"b"}"#).unwrap_err();
        assert_eq!(error.to_string(), "two names a.md, which another program makes");
    }
}

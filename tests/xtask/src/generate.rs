//! Files that are generated from code, and the check that they are current.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path},
    process::{ExitCode, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::cargo::{Cargo, Profile};

/// Where generated files live: all of this folder is generated.
const FOLDER: &str = "docs/reference";

/// Writes the files, or compares them.
pub(crate) fn run(cargo: &Cargo, check: bool) -> Result<ExitCode> {
    let output = cargo
        .program("crdgen", Profile::Debug)?
        .stderr(Stdio::inherit())
        .output()
        .context("start crdgen")?;
    ensure!(output.status.success(), "crdgen failed ({})", output.status);
    let wanted: BTreeMap<String, String> =
        serde_json::from_slice(&output.stdout).context("read the output of crdgen")?;
    let folder = cargo.root().join(FOLDER);
    let stale = compare(&folder, &wanted)?;
    if check {
        ensure!(
            stale.is_empty(),
            "not current: {}; run `cargo xtask generate` and commit what it writes",
            stale.join(", ")
        );
        return Ok(ExitCode::SUCCESS);
    }
    for name in &stale {
        let path = folder.join(name);
        if let Some(text) = wanted.get(name) {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            println!("wrote {FOLDER}/{name}");
        } else {
            fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            println!("removed {FOLDER}/{name}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Names of files that differ, are missing, or are there without being generated.
fn compare(folder: &Path, wanted: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for (name, text) in wanted {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside, "crdgen names {name:?}, which is not below {FOLDER}");
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
    fn a_name_outside_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = BTreeMap::from([("../README.md".to_owned(), String::new())]);
        compare(dir.path(), &wanted).unwrap_err();
    }
}

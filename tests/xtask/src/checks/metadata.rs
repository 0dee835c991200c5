//! What cargo says about the crates of this workspace and those it depends on.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The part of `cargo metadata` that the checks need.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    pub(super) workspace_members: BTreeSet<String>,
    pub(super) workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) id: String,
    /// An SPDX expression, or its older form with `/`.
    pub(super) license: Option<String>,
    /// Absent for crates that are read from a folder.
    pub(super) source: Option<String>,
    pub(super) manifest_path: PathBuf,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    /// The package's name, whatever name the manifest gives it.
    pub(super) name: String,
    /// Absent for a normal dependency.
    pub(super) kind: Option<Kind>,
    /// Present for crates of this work tree.
    pub(super) path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Dev,
    Build,
}

impl Metadata {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let output = cargo(root, &["metadata", "--format-version", "1", "--locked"])?;
        serde_json::from_slice(&output).context("read the output of `cargo metadata`")
    }

    pub(super) fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_member(package))
    }

    /// A member's folder from the top of the work tree, with `/` between the parts.
    pub(super) fn folder(&self, package: &Package) -> String {
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        let inside = folder.strip_prefix(&self.workspace_root).unwrap_or(folder);
        inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    }
}

/// Name and version of every crate that some build of this workspace compiles, on any platform.
///
/// `cargo metadata` cannot say this. It prints the resolution of the lock file, in which a weak feature
/// (`ring?/std`) counts as if it turned its dependency on: `ring` is a node there, with an edge from
/// rustls-webpki, although no build ever compiles it (cargo's "features" chapter, under resolver version 2, and
/// cargo issue 10801). `cargo tree` runs the same feature resolver as a build and leaves such crates out.
pub(super) fn built_crates(root: &Path) -> Result<BTreeSet<(String, String)>> {
    let output = cargo(
        root,
        &[
            "tree",
            "--workspace",
            "--locked",
            "--target=all",
            "--edges=normal,build,dev",
            "--prefix=none",
            "--format={p}",
        ],
    )?;
    let text = String::from_utf8(output).context("read the output of `cargo tree`")?;
    parse_tree(&text)
}

fn parse_tree(text: &str) -> Result<BTreeSet<(String, String)>> {
    let crates = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let version = words.next().and_then(|word| word.strip_prefix('v'));
            let version = version.with_context(|| format!("no version in {line:?}"))?;
            Ok((name.to_owned(), version.to_owned()))
        })
        .collect::<Result<BTreeSet<_>>>()?;
    ensure!(!crates.is_empty(), "`cargo tree` names no crate");
    Ok(crates)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .current_dir(root)
        .output()
        .context("start cargo")?;
    ensure!(
        output.status.success(),
        "`cargo {}` failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;

    /// A crate of the workspace at `folder`, which depends on `uses`: kind and name.
    pub(in crate::checks) fn member(folder: &str, name: &str, uses: &[(&str, &str)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(kind, used)| Dependency {
                name: (*used).to_owned(),
                kind: match *kind {
                    "dev" => Some(Kind::Dev),
                    "build" => Some(Kind::Build),
                    _ => None,
                },
                path: used.starts_with("belay").then(|| PathBuf::from("/somewhere")),
            })
            .collect();
        Package {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            id: format!("path+{name}"),
            license: Some("Apache-2.0".to_owned()),
            source: None,
            manifest_path: Path::new("/clone").join(folder).join("Cargo.toml"),
            dependencies,
        }
    }

    /// A crate from crates.io.
    pub(in crate::checks) fn published(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            id: format!("registry+{name}@{version}"),
            license: Some(licence.to_owned()),
            source: Some(super::super::dependencies::CRATES_IO.to_owned()),
            manifest_path: PathBuf::from("/elsewhere/Cargo.toml"),
            dependencies: Vec::new(),
        }
    }

    pub(in crate::checks) fn metadata(packages: Vec<Package>) -> Metadata {
        let members = packages.iter().filter(|package| package.source.is_none());
        Metadata {
            workspace_members: members.map(|package| package.id.clone()).collect(),
            workspace_root: PathBuf::from("/clone"),
            packages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_are_read_from_the_tree() {
        let text = "xtask v0.1.0 (/clone/tests/xtask)\nserde_derive v1.0.229 (proc-macro)\n\n\
                    serde v1.0.229 (*)\nserde v1.0.229\n";
        let crates = parse_tree(text).unwrap();
        let crates: Vec<_> = crates.iter().map(|(n, v)| format!("{n} {v}")).collect();
        assert_eq!(crates, ["serde 1.0.229", "serde_derive 1.0.229", "xtask 0.1.0"]);
    }

    #[test]
    fn output_of_another_shape_is_an_error_and_not_an_empty_set() {
        parse_tree("").unwrap_err();
        parse_tree("serde\n").unwrap_err();
    }

    #[test]
    fn kinds_of_dependencies_are_told_apart() {
        let text = r#"{"packages": [{"name": "a", "version": "1.0.0", "id": "a", "license": null, "source": null,
            "manifest_path": "/clone/operator/a/Cargo.toml", "dependencies": [
                {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}]}],
            "workspace_members": ["a"], "workspace_root": "/clone"}"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        let member = metadata.members().next().unwrap();
        let kinds: Vec<_> = member.dependencies.iter().map(|used| used.kind).collect();
        assert_eq!(kinds, [None, Some(Kind::Dev), Some(Kind::Build)]);
        assert_eq!(metadata.folder(member), "operator/a");
    }
}

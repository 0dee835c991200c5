//! The static checks: dependencies, layers, honest tests, links, vocabulary.
//!
//! Each check is a function over what was read before, so that its tests show how it fails; [`run_all`]
//! is the one place that reads the work tree and asks cargo.

mod dependencies;
mod duplicates;
mod layers;
mod leaks;
mod licence;
mod links;
mod markdown;
mod metadata;
mod outside;
mod prose;
mod repository;
mod source;
mod tests_honest;

use std::{fmt, path::Path};

use anyhow::Result;

use self::{
    metadata::{Metadata, built_crates},
    repository::Repository,
};

/// Something that a static check does not accept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// What is wrong, and where.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl Finding {
    fn new(check: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    to mend it: {}", self.check, self.what, self.fix)
    }
}

/// Runs every check over the work tree whose top is `root`; nothing found means all is well.
///
/// Files that git would track are looked at, new ones included; ignored ones are not.
///
/// # Errors
/// When git or cargo cannot be asked, or a file cannot be read: a check that did not run is not a check
/// that passed.
pub fn run_all(root: &Path) -> Result<Vec<Finding>> {
    let repository = Repository::open(root)?;
    let metadata = Metadata::read(root)?;
    let rust = repository.texts("rs")?;
    let pages = repository.texts("md")?;
    let decisions: String = pages
        .iter()
        .filter(|(path, _)| path.starts_with("docs/decisions/"))
        .map(|(_, text)| text.as_str())
        .collect();

    let mut findings = dependencies::check(&dependencies::Input {
        metadata: &metadata,
        built: &built_crates(root)?,
        manifest: &repository.text("Cargo.toml")?,
        decisions: &decisions,
    });
    findings.extend(layers::check(&metadata, repository.files(), &rust));
    findings.extend(tests_honest::check(&rust));
    findings.extend(links::check(repository.files(), &pages));
    for path in repository.files().iter().filter(|path| leaks::is_checked(path)) {
        findings.extend(leaks::check(path, &repository.bytes(path)?));
    }
    findings.extend(prose::check(&rust));
    for path in repository.files().iter().filter(|path| path.starts_with(outside::WORKFLOWS)) {
        findings.extend(outside::workflow(path, &repository.text(path)?));
    }
    findings.extend(outside::dockerfile(
        &repository.text("operator/Dockerfile")?,
        &repository.text("rust-toolchain.toml")?,
        &repository.text("charts/belay/values.yaml")?,
    ));
    Ok(findings)
}

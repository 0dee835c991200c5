//! Reads the files that git knows, or would know after `git add`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// The files of a work tree, by their path from its top with `/` between the parts.
#[derive(Debug)]
pub(super) struct Repository {
    root: PathBuf,
    files: BTreeSet<String>,
}

impl Repository {
    pub(super) fn open(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("start git, which names the files to check")?;
        ensure!(
            output.status.success(),
            "`git ls-files` failed in {}: {}",
            root.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        // A file that was removed but not yet committed is still in the index.
        let files = listed
            .split_terminator('\0')
            .filter(|path| root.join(path).is_file())
            .map(str::to_owned)
            .collect::<BTreeSet<_>>();
        ensure!(!files.is_empty(), "git knows no file in {}", root.display());
        Ok(Self { root: root.to_owned(), files })
    }

    pub(super) fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.root.join(path)).with_context(|| format!("read {path}"))
    }

    pub(super) fn text(&self, path: &str) -> Result<String> {
        String::from_utf8(self.bytes(path)?).with_context(|| format!("{path} is not UTF-8"))
    }

    /// The texts of all files with this extension, by path.
    pub(super) fn texts(&self, extension: &str) -> Result<BTreeMap<String, String>> {
        self.files
            .iter()
            .filter(|path| Path::new(path).extension().is_some_and(|found| found == extension))
            .map(|path| Ok((path.clone(), self.text(path)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, words: &[&str]) {
        assert!(Command::new("git").args(words).current_dir(folder).status().unwrap().success());
    }

    #[test]
    fn new_files_are_listed_and_ignored_or_removed_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]);
        for (name, text) in
            [("kept.md", "a"), ("removed.md", "b"), (".gitignore", "/target\n"), ("target", "c")]
        {
            fs::write(folder.path().join(name), text).unwrap();
        }
        git(folder.path(), &["add", "."]);
        fs::remove_file(folder.path().join("removed.md")).unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/new.md"), "d").unwrap();

        let repository = Repository::open(folder.path()).unwrap();
        let names: Vec<_> = repository.files().iter().map(String::as_str).collect();
        assert_eq!(names, [".gitignore", "kept.md", "sub/new.md"]);
        let pages = repository.texts("md").unwrap();
        assert_eq!(pages["sub/new.md"], "d");
        assert_eq!(pages.len(), 2);
    }

    #[test]
    fn a_folder_without_git_is_an_error_and_not_an_empty_list() {
        let folder = tempfile::tempdir().unwrap();
        let error = Repository::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("git ls-files"), "{error}");
    }
}

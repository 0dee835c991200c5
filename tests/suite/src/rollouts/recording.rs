//! The files of recordings: one line of JSON for the head, and one for each thing that happened.

use std::{fs, io::Write as _, path::Path, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest that all files may be together, in bytes: they are read by people as well.
pub const MAX_BYTES: u64 = 1_000_000;

const EXTENSION: &str = "jsonl";

/// What happened in one scenario, in the order of the API server's versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What was recorded.
    pub head: Head,
    /// What happened.
    pub moments: Vec<Moment>,
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The scenario's name; the file's, too.
    pub scenario: String,
    /// What it shows, in words for people.
    pub about: String,
    /// The version of Kubernetes whose controllers these were.
    pub kubernetes: String,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When it was seen; all times of a recording are shifted by the same number of seconds.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// An image was written into the template; what comes now is the rollout of it.
    Applied(Applied),
    /// Somebody did something else, in words for people.
    Did(String),
    /// An event of the Deployment.
    Deployment(Change),
    /// An event of one of its ReplicaSets.
    ReplicaSet(Change),
    /// An event of one of its pods.
    Pod(Change),
}

/// The write of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The field manager.
    pub by: String,
    /// The image.
    pub image: String,
    /// The generation that the write made.
    pub generation: i64,
    /// The API server's time of the write, in whole seconds.
    pub time: Timestamp,
}

/// An event of an object: those of its sections that are not as they were at its last event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its resourceVersion, counted from the recording's first.
    pub version: u64,
    /// Whether it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// `metadata`, `spec` and `status`, as far as they matter and have changed.
    #[serde(flatten)]
    pub sections: Map<String, Value>,
}

/// The folder of the committed recordings.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/rollouts")
}

impl Recording {
    /// The file of a scenario.
    pub fn file(folder: &Path, scenario: &str) -> PathBuf {
        folder.join(format!("{scenario}.{EXTENSION}"))
    }

    /// The scenarios that a folder has files of, in order of name.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn scenarios(folder: &Path) -> Result<Vec<String>> {
        let entries = fs::read_dir(folder)
            .with_context(|| format!("read the recordings in {}", folder.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            let path = entry.context("read the recordings' folder")?.path();
            if path.extension().is_some_and(|found| found == EXTENSION) {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads the recording of a scenario.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is no moment.
    pub fn read(folder: &Path, scenario: &str) -> Result<Self> {
        let path = Self::file(folder, scenario);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("read {}", path.display()))
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// Which line is no moment.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines().enumerate();
        let (_, head) = lines.next().context("the file is empty")?;
        let head = serde_json::from_str(head).context("line 1 is no head of a recording")?;
        let moments = lines
            .map(|(number, line)| {
                serde_json::from_str(line)
                    .with_context(|| format!("line {} is no moment", number + 1))
            })
            .collect::<Result<_>>()?;
        Ok(Self { head, moments })
    }

    /// The file's text.
    ///
    /// # Errors
    /// When something has no JSON, which nothing here lacks.
    pub fn print(&self) -> Result<String> {
        let mut text = serde_json::to_string(&self.head)?;
        text.push('\n');
        for moment in &self.moments {
            text.push_str(&serde_json::to_string(moment)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Writes the file of the scenario.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = Self::file(folder, &self.head.scenario);
        let text = self.print()?;
        ensure!(Self::parse(&text)? == *self, "{} would not be read as it was", path.display());
        fs::create_dir_all(folder)
            .with_context(|| format!("make the folder {}", folder.display()))?;
        let mut file =
            fs::File::create(&path).with_context(|| format!("write {}", path.display()))?;
        file.write_all(text.as_bytes()).with_context(|| format!("write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_one_it_is() {
        let head = r#"{"scenario":"a","about":"b","kubernetes":"v1"}"#;
        assert_eq!(Recording::parse(head).unwrap().moments, []);
        let error = Recording::parse(&format!("{head}\n{{}}\n")).unwrap_err();
        assert_eq!(error.to_string(), "line 2 is no moment");
    }
}

//! What `explain` found, for people and for programs.

use std::fmt::Write as _;

use belay_adapters::forge::{Identity, Reading};
use belay_api::gates::Gate;
use belay_engine::{Timestamp, annotations::TargetSettings};
use serde::Serialize;

use super::Judged;

/// What `explain` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The repository.
    pub repository: Repository,
    /// The tag of the image that is said to run.
    pub running: Option<String>,
    /// Which releases count, in words.
    pub follows: String,
    /// Releases that were read.
    pub read: usize,
    /// Whether the repository has more releases than are read.
    pub truncated: bool,
    /// The candidates, best first: at most as many as a status lists.
    pub candidates: Vec<Explained>,
    /// The tag of the one that would be taken.
    pub chosen: Option<String>,
    /// When a candidate becomes free by itself.
    pub again: Option<Timestamp>,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// `owner/name` as GitHub has it now.
    pub name: String,
    /// The numeric id.
    pub id: u64,
    /// Whether it is private.
    pub private: bool,
    /// Whether it was asked for under an old name.
    pub renamed: bool,
    /// Whether GitHub was asked without a credential.
    pub anonymous: bool,
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The release's tag.
    pub tag: String,
    /// When it was published.
    pub published: Option<Timestamp>,
    /// The image tag that belongs to it; empty where there is none.
    pub image_tag: String,
    /// What keeps it back.
    pub gate: Option<Gate>,
    /// Why, in words for people.
    pub message: String,
    /// Whether it would be taken.
    pub chosen: bool,
}

const HEAD: [&str; 6] = ["", "TAG", "PUBLISHED", "IMAGE TAG", "GATE", "WHY"];

impl Explanation {
    pub(super) fn of(
        reading: &Reading,
        settings: &TargetSettings,
        running: Option<&str>,
        anonymous: bool,
        judged: Judged,
    ) -> Self {
        let Judged { candidates, choice, wake, read, truncated } = judged;
        let candidates: Vec<_> = candidates
            .into_iter()
            .enumerate()
            .map(|(index, (candidate, published))| Explained {
                tag: candidate.tag,
                published,
                image_tag: candidate.image_tag,
                gate: candidate.gate,
                message: candidate.message,
                chosen: choice == Some(index),
            })
            .collect();
        Self {
            repository: repository(reading.identity.as_ref().ok(), settings, anonymous),
            running: running.map(str::to_owned),
            follows: follows(settings),
            read,
            truncated,
            chosen: candidates.iter().find(|one| one.chosen).map(|one| one.tag.clone()),
            candidates,
            again: wake,
        }
    }

    /// For people: what was asked, a table of candidates, and what follows.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let Repository { name, id, private, renamed, anonymous } = &self.repository;
        let kind = if *private { "private" } else { "public" };
        let renamed = if *renamed { ", asked for under an old name" } else { "" };
        let asked = if *anonymous { ", read without a token" } else { "" };
        let running = self.running.as_deref().unwrap_or("not said: older than every release");
        // Writing to a String does not fail.
        let _ = writeln!(text, "repository  {name} ({kind}, id {id}{renamed}{asked})");
        let _ = writeln!(text, "follows     {}", self.follows);
        let _ = writeln!(text, "running     {running}");
        if !self.candidates.is_empty() {
            text.push('\n');
            self.rows(&mut text);
        }
        let _ = writeln!(text, "\n{}", self.outcome());
        plain(&text)
    }

    fn rows(&self, text: &mut String) {
        let mut rows = vec![HEAD.map(str::to_owned)];
        rows.extend(self.candidates.iter().map(|one| {
            let published = one.published.map_or("-".to_owned(), |time| time.to_string());
            let image_tag = if one.image_tag.is_empty() { "-" } else { &one.image_tag };
            let gate = one.gate.map_or("free".to_owned(), |gate| gate.to_string());
            let mark = if one.chosen { "*" } else { "" };
            let message = if one.chosen { "the operator would take it" } else { &one.message };
            [
                mark.to_owned(),
                one.tag.clone(),
                published,
                image_tag.to_owned(),
                gate,
                message.to_owned(),
            ]
        }));
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths = [width(0), width(1), width(2), width(3), width(4), 0];
        for row in &rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }

    fn outcome(&self) -> String {
        let mut text = match (&self.chosen, self.candidates.is_empty()) {
            (Some(tag), _) => format!("{tag} would be rolled out, once its image is there."),
            (None, true) => "There is no candidate: the repository has no such release.".to_owned(),
            (None, false) => "Nothing would be rolled out.".to_owned(),
        };
        if let Some(time) = self.again {
            let _ = write!(text, " That changes by itself at {time}.");
        }
        let shown = self.candidates.len();
        if shown < self.read {
            let _ = write!(text, " Of {} releases that were read {shown} are shown.", self.read);
        }
        if self.truncated {
            text.push_str(" The repository has more, which are not read.");
        }
        text
    }
}

fn repository(
    identity: Option<&Identity>,
    settings: &TargetSettings,
    anonymous: bool,
) -> Repository {
    let asked = settings.repo.to_string();
    Repository {
        name: identity.map_or(asked, |identity| identity.full_name.clone()),
        id: identity.map(|identity| identity.id).unwrap_or_default(),
        private: identity.is_some_and(|identity| identity.private),
        renamed: identity.is_some_and(|identity| identity.moved),
        anonymous,
    }
}

fn follows(settings: &TargetSettings) -> String {
    let mut text = match &settings.range {
        Some(range) => format!("the highest release in {range}"),
        None if settings.lists_all() => "the highest release".to_owned(),
        None => "GitHub's latest release".to_owned(),
    };
    let _ = write!(text, " by the pattern {}", settings.tag_pattern);
    text
}

/// Text of others may hold what a terminal obeys.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

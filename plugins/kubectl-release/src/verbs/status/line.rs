//! One line per change, for logs.

use belay_api::reasons::ProgressingReason;

use super::{
    tree,
    view::{Options, Seen, seconds},
};
use crate::print::Line;

/// As long as the longest usual word, `Progressing`.
const WORD: usize = 11;

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Lines {
    said: Option<String>,
    change: Option<String>,
}

impl Lines {
    /// The next line, unless it would say what the one before said.
    pub(super) fn next(&mut self, seen: &Seen<'_>, options: &Options) -> Option<Line> {
        let change = seen.change();
        let text = text(seen);
        let key = format!("{} {text}", change.as_deref().unwrap_or_default());
        if self.said.as_ref() == Some(&key) {
            return None;
        }
        let is_new = change.is_some() && change != self.change;
        let shown = match change.as_ref().filter(|_| is_new) {
            Some(change) if text.is_empty() => change.clone(),
            Some(change) => format!("{change} {text}"),
            None => text,
        };
        let snapshot = seen.snapshot;
        let word = &seen.standing.word;
        let line = format!(
            "{} {}/{} {word:WORD$} {shown}",
            seconds(options.now),
            snapshot.namespace,
            snapshot.name
        );
        self.said = Some(key);
        self.change = change;
        Some(Line::new().with(seen.standing.icon().paint(), line.trim_end().to_owned()))
    }
}

/// What is under way or wrong, without anything that only time changes.
fn text(seen: &Seen<'_>) -> String {
    let standing = &seen.standing;
    let mut text = String::new();
    if let Some(cause) = &standing.stalled {
        text = join(&cause.word, &cause.message);
    } else if let Some(cause) = &standing.progressing {
        text = match cause.reason {
            Some(ProgressingReason::Rolling) => updated(seen),
            _ => format!("{} {}", cause.word, updated(seen)),
        };
    } else if !standing.is_ready() {
        text.clone_from(&standing.message);
    } else if let Some(running) = seen.running() {
        text = format!("{running} runs");
    }
    for pod in tree::trouble(seen) {
        let words = pod.brief();
        text = if text.is_empty() { words } else { format!("{text}; {words}") };
    }
    text
}

fn join(word: &str, message: &str) -> String {
    if message.is_empty() { word.to_owned() } else { format!("{word}: {message}") }
}

fn updated(seen: &Seen<'_>) -> String {
    let Some(live) = &seen.live else { return String::new() };
    let replicas = live.replicas;
    let updated = if replicas.is_observed { replicas.updated } else { 0 };
    format!("{updated}/{} updated", replicas.wanted)
}

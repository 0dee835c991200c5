//! What runs print, compared: without what differs from run to run.

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};

use crate::run::NOW;

/// The fixed time, and so many seconds before it.
pub(crate) fn ago(seconds: i64) -> Result<String> {
    let now: Timestamp = NOW.parse()?;
    Ok((now - SignedDuration::from_secs(seconds)).to_string())
}

/// An answer without what differs from run to run: the namespace, the hashes in the names of pods,
/// and ages of objects that the API server dates. Columns move with them, so runs of blanks count as
/// two.
pub(crate) fn masked(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, "shop");
    let mut masked = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        let indent = line.len() - line.trim_start().len();
        for word in line.trim_start().split("  ").filter(|word| !word.is_empty()) {
            words.push(mask(word.trim()));
        }
        masked.push_str(&" ".repeat(indent.min(2)));
        masked.push_str(&words.join("  "));
        masked.push('\n');
    }
    masked
}

/// An answer without the namespace. Columns move with it in the lines that have it alone.
pub(crate) fn shown(text: &str, namespace: &str) -> String {
    let line = |line: &str| {
        if line.contains(namespace) { masked(line, namespace) } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

/// A word without the hash of a ReplicaSet and the suffix of a pod.
fn mask(word: &str) -> String {
    let parts: Vec<&str> = word.split('-').collect();
    let is_hash = |part: &&str| {
        (5..=10).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_digit() || "bcdfghjklmnpqrstvwxz".contains(c))
    };
    match parts.as_slice() {
        [rest @ .., hash, suffix] if !rest.is_empty() && is_hash(hash) && is_hash(suffix) => {
            format!("{}-HASH-POD", rest.join("-"))
        }
        _ => word.to_owned(),
    }
}

/// Asserts that a text has each of these words.
pub(crate) fn has(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "there is no {word:?} in:\n{text}");
    }
    Ok(())
}

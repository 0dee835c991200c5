//! `history --diff`: what differs between the pod templates of two Releases. A pod template is that of
//! the ReplicaSet with the Release's images; without one, the images alone are compared.

use std::{ffi::OsString, fs, process::Command};

use belay_api::Release;
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::{
    Error, Exit, Session,
    cli::history::HistoryArgs,
    error::Class,
    facts::history::Entry,
    print::{Line, Paint, object},
    read::Snapshot,
};

/// The label that the Deployment controller gives to each template.
const HASH: &str = "pod-template-hash";

pub(super) fn run(
    pair: &str,
    args: &HistoryArgs,
    snapshot: &Snapshot,
    all: &[Entry],
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let wrong = || Error::usage(format!("--diff {pair:?}: expected two Releases, as in -1,-2"));
    let (one, other) = pair.split_once(',').ok_or_else(wrong)?;
    let (one, other) = (chosen(one.trim(), all)?, chosen(other.trim(), all)?);
    // The older one first, whatever the order of asking: a diff reads from old to new.
    let (new, old) = if one <= other { (one, other) } else { (other, one) };
    let entry = |index: usize| all.get(index).ok_or_else(wrong);
    let (old, new) = (entry(old)?, entry(new)?);
    let (old_text, new_text, is_whole) = texts(snapshot, old, new)?;
    if !is_whole {
        session.out.note(
            "note: not both Releases have a ReplicaSet any more, so their images alone are compared",
        )?;
    }
    let differs = old_text != new_text;
    if let Some(program) = session.out.variable("KUBECTL_EXTERNAL_DIFF").map(str::to_owned) {
        session.out.flush()?;
        external(&program, (&old.name, &old_text), (&new.name, &new_text))?;
    } else if differs {
        print(session, (&old.name, &old_text), (&new.name, &new_text))?;
    } else {
        session.out.note(format!("{} and {} do not differ", old.name, new.name))?;
    }
    Ok(if differs && args.exit_code { Exit::Error } else { Exit::Done })
}

/// Which one a word means: `-1` is the newest.
fn chosen(word: &str, all: &[Entry]) -> Result<usize, Error> {
    if let Some(back) = word.strip_prefix('-').and_then(|back| back.parse::<usize>().ok()) {
        let index = back.checked_sub(1).filter(|index| *index < all.len());
        return index.ok_or_else(|| {
            Error::usage(format!("--diff {word}: there are {} Releases", all.len()))
        });
    }
    let is_it = |entry: &Entry| entry.name == word || entry.tag == word;
    all.iter().position(is_it).ok_or_else(|| {
        Error::new(Class::NotFound, format!("no Release {word:?}")).hint(format!(
            "known: {}",
            all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ")
        ))
    })
}

fn texts(snapshot: &Snapshot, old: &Entry, new: &Entry) -> Result<(String, String, bool), Error> {
    let releases = snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
    let release = |entry: &Entry| {
        let found = releases.iter().find(|one| one.value.name_any() == entry.name);
        found.map(|one| &one.value)
    };
    let sets = snapshot.replica_sets.value().map(Vec::as_slice).unwrap_or_default();
    let template = |entry: &Entry| template(release(entry)?, sets);
    if let (Some(old), Some(new)) = (template(old), template(new)) {
        return Ok((object::yaml(&old)?, object::yaml(&new)?, true));
    }
    let images = |entry: &Entry| {
        let status = release(entry).and_then(|release| release.status.as_ref());
        let images = status.map(|status| status.images.as_slice()).unwrap_or_default();
        object::yaml(&json!({ "images": images }))
    };
    Ok((images(old)?, images(new)?, false))
}

/// The pod template of the newest ReplicaSet that has all images of the Release.
fn template(release: &Release, sets: &[ReplicaSet]) -> Option<Value> {
    let images = &release.status.as_ref()?.images;
    if images.is_empty() {
        return None;
    }
    let has_images = |set: &&ReplicaSet| {
        let pod = set.spec.as_ref().and_then(|spec| spec.template.as_ref()?.spec.as_ref());
        images.iter().all(|image| {
            let (is_init, name) = match image.container.strip_prefix("init:") {
                Some(name) => (true, name),
                None => (false, image.container.as_str()),
            };
            let containers = pod.map(|pod| {
                if is_init {
                    pod.init_containers.as_deref().unwrap_or_default()
                } else {
                    pod.containers.as_slice()
                }
            });
            let wanted = image.stored.as_ref().unwrap_or(&image.asked);
            containers
                .unwrap_or_default()
                .iter()
                .any(|container| container.name == name && container.image.as_ref() == Some(wanted))
        })
    };
    let set = sets.iter().find(has_images)?;
    let mut template = serde_json::to_value(set.spec.as_ref()?.template.as_ref()?).ok()?;
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.shift_remove(HASH);
    }
    Some(json!({ "template": template }))
}

fn print(
    session: &mut Session<'_>,
    (old_name, old): (&str, &str),
    (new_name, new): (&str, &str),
) -> Result<(), Error> {
    session.out.line(Line::new().with(Paint::Bold, format!("--- {old_name}")))?;
    session.out.line(Line::new().with(Paint::Bold, format!("+++ {new_name}")))?;
    let diff = TextDiff::from_lines(old, new);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        session.out.line(Line::new().dim(hunk.header().to_string()))?;
        for change in hunk.iter_changes() {
            let (sign, paint) = match change.tag() {
                ChangeTag::Delete => ('-', Paint::Bad),
                ChangeTag::Insert => ('+', Paint::Good),
                ChangeTag::Equal => (' ', Paint::Plain),
            };
            let text = change.value().trim_end_matches('\n');
            session.out.line(Line::new().with(paint, format!("{sign}{text}")))?;
        }
    }
    Ok(())
}

/// Runs the program of `KUBECTL_EXTERNAL_DIFF` over two files. Its words are split at blanks, as
/// kubectl does; 1 is how such programs say that there is a difference.
fn external(
    program: &str,
    (old_name, old): (&str, &str),
    (new_name, new): (&str, &str),
) -> Result<(), Error> {
    let failed =
        |why: String| Error::other(format!("run KUBECTL_EXTERNAL_DIFF {program:?}: {why}"));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let write = |name: &str, text: &str| -> Result<OsString, Error> {
        let path = folder.path().join(format!("{name}.yaml"));
        fs::write(&path, text).map_err(|error| failed(error.to_string()))?;
        Ok(path.into_os_string())
    };
    let mut words = program.split_whitespace();
    let command = words.next().ok_or_else(|| failed("it is empty".to_owned()))?;
    let files = [write(old_name, old)?, write(new_name, new)?];
    let status = Command::new(command)
        .args(words)
        .args(files)
        .status()
        .map_err(|error| failed(error.to_string()))?;
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(failed(status.to_string())),
    }
}

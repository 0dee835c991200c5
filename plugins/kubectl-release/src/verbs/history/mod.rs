//! `history`: the Releases of a target, newest first.

mod diff;

use belay_api::{Release, Rollback};
use kube::ResourceExt as _;

use crate::{
    Error, Exit, Session,
    cli::history::HistoryArgs,
    facts::{
        age,
        history::{Entry, entries, removed},
    },
    print::{Column, Line, Table, object},
    read::{Parts, Reader, Snapshot},
    verbs::status::seconds,
};

const COLUMNS: [Column; 8] = [
    Column { name: "RELEASE", wide: false },
    Column { name: "IMAGE", wide: false },
    Column { name: "STATUS", wide: false },
    Column { name: "WHEN", wide: false },
    Column { name: "TOOK", wide: false },
    Column { name: "BY", wide: false },
    Column { name: "NOTE", wide: false },
    Column { name: "DIGEST", wide: true },
];

const PARTS: Parts = Parts {
    releases: true,
    rollbacks: true,
    replica_sets: false,
    pods: false,
    helm: false,
    operator: false,
};

/// Runs it.
///
/// # Errors
/// Releases cannot be listed, or the output cannot be written.
pub async fn run(args: &HistoryArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let cluster = session.cluster()?;
    let namespace = cluster.namespace.clone();
    let parts = Parts { replica_sets: args.diff.is_some(), ..PARTS };
    let snapshot = Reader::new(cluster).snapshot(&namespace, &args.name, parts).await;
    let releases = match snapshot.releases.get() {
        Ok(releases) => releases,
        Err(why) => {
            // A cause that explains more.
            snapshot.required_target()?;
            return Err(Error::other(why.words()));
        }
    };
    if releases.is_empty() {
        snapshot.required_target()?;
        let name = &args.name;
        session.out.note(format!("No Releases of {name} found in {namespace} namespace."))?;
        return Ok(Exit::Done);
    }
    let rollbacks = rollbacks(&snapshot);
    let all = story(&snapshot, &rollbacks);
    if let Some(pair) = &args.diff {
        return diff::run(pair, args, &snapshot, &all, session);
    }
    let shown = all.len().min(args.limit.unwrap_or(usize::MAX));
    let all = all.get(..shown).unwrap_or_default();
    if let Some(format) = args.output.for_programs() {
        print_raw(&snapshot, all, format, session)?;
    } else {
        print_table(args, all, session)?;
    }
    if let Some(why) = snapshot.rollbacks.why().filter(|why| why.is_worth_telling()) {
        session.out.note(format!("note: Rollbacks are unknown: {}", why.words()))?;
    }
    for why in &snapshot.unread {
        session.out.note(format!("note: not understood and left out: {why}"))?;
    }
    let count = releases.len();
    if shown < count {
        session.out.note(format!("note: {shown} of {count} Releases (--limit)"))?;
    } else if let Some(name) = removed(&values(&snapshot)) {
        session.out.note(format!("note: older releases were removed: {name} is gone"))?;
    }
    Ok(Exit::Done)
}

fn values(snapshot: &Snapshot) -> Vec<&Release> {
    let all = snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|one| &one.value).collect()
}

fn rollbacks(snapshot: &Snapshot) -> Vec<&Rollback> {
    let all = snapshot.rollbacks.value().map(Vec::as_slice).unwrap_or_default();
    // The newest come first; the story wants the last one that fits.
    all.iter().rev().map(|one| &one.value).collect()
}

fn story(snapshot: &Snapshot, rollbacks: &[&Rollback]) -> Vec<Entry> {
    entries(&values(snapshot), rollbacks)
}

fn print_raw(
    snapshot: &Snapshot,
    all: &[Entry],
    format: &crate::cli::output::Format,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let releases = snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
    let raw = all.iter().filter_map(|entry| {
        let found = releases.iter().find(|one| one.value.name_any() == entry.name)?;
        let mut raw = found.raw.clone();
        object::without_managed_fields(&mut raw);
        Some(raw)
    });
    let raw: Vec<_> = raw.collect();
    let names: Vec<String> = all
        .iter()
        .map(|entry| object::name("belay.dev/v1alpha1", "Release", &entry.name))
        .collect();
    object::print(&object::list(&raw), &names, format, session.out)
}

fn print_table(args: &HistoryArgs, all: &[Entry], session: &mut Session<'_>) -> Result<(), Error> {
    let now = session.out.now();
    let is_absolute = session.global.style.absolute_time;
    let when = |time| if is_absolute { seconds(time) } else { age::between(time, now) };
    let mut table = Table::new(&COLUMNS, args.output.is_wide());
    for entry in all {
        table.row([
            entry.name.clone().into(),
            entry.image.clone().into(),
            Line::new().with(entry.paint(), entry.word.clone()),
            entry.when.map(when).unwrap_or_default().into(),
            entry.took.map(age::human).unwrap_or_default().into(),
            entry.by.clone().unwrap_or_default().into(),
            entry.note.clone().unwrap_or_default().into(),
            entry.digest.clone().unwrap_or_default().into(),
        ]);
    }
    Ok(table.print(session.out, !args.no_headers)?)
}

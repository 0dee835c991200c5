//! The workload, its revisions and their pods, while something is under way or wrong.

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::ResourceExt;

use super::view::{Options, Seen};
use crate::{
    facts::pods::PodLine,
    print::{Icon, Line, Table},
    read::collect::revision,
};

struct Row {
    prefix: &'static str,
    name: String,
    kind: &'static str,
    icon: Icon,
    status: String,
    created: Option<Timestamp>,
    info: String,
}

/// Pods that are in trouble, of those that count for the target's state.
pub(super) fn trouble(seen: &Seen<'_>) -> Vec<PodLine> {
    let pods = seen.snapshot.pods.value().map(Vec::as_slice).unwrap_or_default();
    let newest = newest(seen);
    pods.iter()
        .filter(|pod| newest.is_none_or(|newest| is_of(pod, newest)))
        .map(PodLine::of)
        .filter(PodLine::is_trouble)
        .collect()
}

/// The table; empty where all is well and nothing moves, unless older revisions were asked for.
pub(super) fn lines(seen: &Seen<'_>, options: &Options) -> Vec<Line> {
    let moves = seen.standing.progressing.is_some();
    if seen.live.is_none() || !(moves || options.all_revisions || !trouble(seen).is_empty()) {
        return Vec::new();
    }
    let mut table = Table::of(&["NAME", "KIND", "STATUS", "AGE", "INFO"]);
    for row in rows(seen, options) {
        table.row([
            Line::new().dim(row.prefix).plain(row.name),
            row.kind.into(),
            Line::new().icon(row.icon, &row.status),
            row.created.map(|time| options.age(time)).unwrap_or_default().into(),
            row.info.into(),
        ]);
    }
    table.lines(options.style, &table.widths(options.style), true)
}

fn rows(seen: &Seen<'_>, options: &Options) -> Vec<Row> {
    let Some(live) = &seen.live else { return Vec::new() };
    let standing = &seen.standing;
    let created = seen.snapshot.workload().and_then(ResourceExt::creation_timestamp);
    let mut rows = vec![Row {
        prefix: "",
        name: live.name.clone(),
        kind: kind(&live.kind),
        icon: standing.icon(),
        status: standing.word.clone(),
        created: created.map(|time| time.0),
        info: String::new(),
    }];
    let pods = seen.snapshot.pods.value().map(Vec::as_slice).unwrap_or_default();
    let sets = shown(seen, options);
    if sets.is_empty() {
        let count = pods.len();
        for (index, pod) in sorted(pods.iter()).into_iter().enumerate() {
            rows.push(pod_row(pod, if index + 1 == count { "└─ " } else { "├─ " }));
        }
        return rows;
    }
    for (index, set) in sets.iter().enumerate() {
        let is_last = index + 1 == sets.len();
        let is_new = index == 0;
        rows.push(set_row(set, is_new, is_last));
        if !is_new && !options.all_revisions {
            continue;
        }
        let own = sorted(pods.iter().filter(|pod| is_of(pod, set)));
        let count = own.len();
        for (index, pod) in own.into_iter().enumerate() {
            rows.push(pod_row(
                pod,
                match (is_last, index + 1 == count) {
                    (false, false) => "│  ├─ ",
                    (false, true) => "│  └─ ",
                    (true, false) => "   ├─ ",
                    (true, true) => "   └─ ",
                },
            ));
        }
    }
    rows
}

fn kind(kind: &str) -> &'static str {
    match kind {
        "Deployment" => "Deployment",
        "StatefulSet" => "StatefulSet",
        "DaemonSet" => "DaemonSet",
        _ => "Workload",
    }
}

fn newest<'s>(seen: &Seen<'s>) -> Option<&'s ReplicaSet> {
    seen.snapshot.replica_sets.value()?.first()
}

/// The newest revision and those with pods left; with `--all-revisions` all of them.
fn shown<'s>(seen: &Seen<'s>, options: &Options) -> Vec<&'s ReplicaSet> {
    let all = seen.snapshot.replica_sets.value().map(Vec::as_slice).unwrap_or_default();
    let is_shown = |(index, set): &(usize, &ReplicaSet)| {
        *index == 0 || options.all_revisions || replicas(set).0 > 0
    };
    all.iter().enumerate().filter(is_shown).map(|(_, set)| set).collect()
}

fn is_of(pod: &Pod, set: &ReplicaSet) -> bool {
    let uid = set.uid();
    pod.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref())
}

/// How many there are, are wanted, and are ready.
fn replicas(set: &ReplicaSet) -> (i32, i32, i32) {
    let status = set.status.as_ref();
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let all = status.map_or(0, |status| status.replicas);
    (all, wanted, status.and_then(|status| status.ready_replicas).unwrap_or_default())
}

fn set_row(set: &ReplicaSet, is_new: bool, is_last: bool) -> Row {
    let (all, wanted, ready) = replicas(set);
    let (icon, status, info) = match (is_new, all) {
        (true, _) if wanted > 0 && ready >= wanted => {
            (Icon::Good, format!("{ready}/{wanted} ready"), "new")
        }
        (true, _) => (Icon::Busy, format!("{ready}/{wanted} ready"), "new"),
        (false, 0) => (Icon::None, "no pods".to_owned(), "old"),
        (false, _) => (Icon::Idle, format!("{all} left"), "old"),
    };
    Row {
        prefix: if is_last { "└─ " } else { "├─ " },
        name: match revision(set) {
            Some(revision) => format!("revision {revision}"),
            None => set.name_any(),
        },
        kind: "ReplicaSet",
        icon,
        status,
        created: set.creation_timestamp().map(|time| time.0),
        info: info.to_owned(),
    }
}

fn sorted<'p>(pods: impl Iterator<Item = &'p Pod>) -> Vec<&'p Pod> {
    let mut pods: Vec<&Pod> = pods.collect();
    pods.sort_by(|one, other| {
        let key = |pod: &Pod| (pod.creation_timestamp().map(|time| time.0), pod.name_any());
        key(one).cmp(&key(other))
    });
    pods
}

fn pod_row(pod: &Pod, prefix: &'static str) -> Row {
    let line = PodLine::of(pod);
    Row {
        prefix,
        name: line.name,
        kind: "Pod",
        icon: line.icon,
        status: line.word,
        created: line.created,
        info: line.info,
    }
}

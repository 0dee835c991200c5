//! The fuzz target of this crate: bytes in, a panic if an invariant is broken.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Answer, Element, Entry, FieldPath, Lookup, MAX_ANSWERS, Ownership, Query, Segment, State, Via,
    conflict::ReportedConflict,
};

/// How many paths of an input are looked up again; more would only make it slow.
const MOST_PATHS: usize = 64;

/// Separates `managedFields` from the live object.
const SEPARATOR: &[u8] = b"\n---\n";

/// Drives the crate with an input of three parts: the first line is a query, then the JSON of
/// `managedFields`, then, after a line of `---`, a live object.
///
/// # Panics
/// When an invariant is broken: what is printed is not read back, an owner is in two classes, the
/// order of entries changes an answer, or a field of an entry is not found as its own.
pub fn fuzz(data: &[u8]) {
    let newline = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, rest) = data.split_at(newline);
    let rest = rest.get(1..).unwrap_or_default();
    let separator = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let (entries, live) =
        separator.map_or((rest, &[][..]), |at| (&rest[..at], &rest[at + SEPARATOR.len()..]));
    let line = String::from_utf8_lossy(line);
    let query = check_query(&line);
    let _ = ReportedConflict::of_cause("FieldManagerConflict", &line, "");
    let live: Option<Value> = serde_json::from_slice(live).ok();

    let from_bytes = Ownership::from_json(entries);
    if let (Ok(ownership), Some(query)) = (&from_bytes, &query) {
        check_lookup(ownership, &ownership.lookup(query, live.as_ref()));
    }
    let Ok(value) = serde_json::from_slice::<Value>(entries) else { return };
    let Ok(ownership) = Ownership::from_value(&value) else {
        assert!(from_bytes.is_err(), "bytes are read where the value is not");
        return;
    };
    assert!(from_bytes.is_ok(), "the value is read where bytes are not");
    check_entries(&ownership);
    if let Value::Array(mut entries) = value {
        entries.reverse();
        let reversed = Ownership::from_value(&Value::Array(entries)).ok();
        check_same(&ownership, reversed.as_ref(), query.as_ref(), live.as_ref());
    }
}

fn check_query(line: &str) -> Option<Query> {
    let query: Query = line.parse().ok()?;
    assert!(!query.segments().is_empty(), "an empty query");
    let printed = query.to_string();
    // Printing can make a query longer than what is read.
    if printed.len() <= crate::MAX_PATH_BYTES {
        assert_eq!(printed.parse().as_ref(), Ok(&query), "{printed}");
    }
    Some(query)
}

fn check_lookup(ownership: &Ownership, lookup: &Lookup<'_>) {
    assert!(!lookup.answers.is_empty(), "no answer");
    assert!(lookup.answers.len() <= MAX_ANSWERS, "too many answers");
    let sets: Vec<_> = ownership.entries().map(|entry| (entry, entry.paths())).collect();
    let mut paths = BTreeSet::new();
    for answer in &lookup.answers {
        assert!(paths.insert(&answer.path), "two answers for {}", answer.path);
    }
    for answer in lookup.answers.iter().take(MOST_PATHS) {
        check_answer(answer);
        for (entry, set) in &sets {
            check_claim(answer, *entry, set);
        }
    }
}

/// Compares an answer with what the set of one owner says, path by path.
fn check_claim(answer: &Answer<'_>, entry: Entry<'_>, set: &[FieldPath]) {
    let asked = answer.path.elements();
    let has = |prefix: &[Element]| set.iter().any(|path| path.elements() == prefix);
    let reaches = |prefix: &[Element]| set.iter().any(|path| path.elements().starts_with(prefix));
    let mut depth = asked.len();
    while !reaches(&asked[..depth]) && depth > 0 {
        depth -= 1;
    }
    let owner = answer.owners.iter().find(|owner| owner.entry == entry);
    let via = owner.map(|owner| &owner.via);
    let (parent, below) = (answer.parents.contains(&entry), answer.below.contains(&entry));
    let is_member = depth > 0 && has(&asked[..depth]);
    match (depth == asked.len(), is_member) {
        (true, true) => {
            assert_eq!(via, Some(&Via::Field), "{} is exactly {entry:?}'s", answer.path);
        }
        (true, false) => assert!(below, "{entry:?} has something below {}", answer.path),
        (false, true) => match via {
            Some(Via::Atomic(whole)) => assert_eq!(whole.elements(), &asked[..depth]),
            other => assert!(parent && other.is_none(), "{entry:?} claims above {}", answer.path),
        },
        (false, false) => {
            assert!(via.is_none() && !parent && !below, "{entry:?} has no part in {}", answer.path);
        }
    }
}

fn check_answer(answer: &Answer<'_>) {
    let owners = answer.owners.iter().map(|owner| owner.entry.identity());
    let parents = answer.parents.iter().map(|entry| entry.identity());
    let below = answer.below.iter().map(|entry| entry.identity());
    let mut all: Vec<_> = owners.chain(parents).chain(below).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "one identity in two classes");
    let owned = !answer.owners.is_empty();
    match answer.state {
        State::Owned => assert!(owned, "owned by nobody"),
        State::Unowned | State::NoManagedFields => assert!(!owned, "unowned with owners"),
        State::Untracked => {}
    }
}

fn check_entries(ownership: &Ownership) {
    for entry in ownership.entries() {
        let paths = entry.paths();
        assert_eq!(paths.len(), entry.len(), "the count is not that of the paths");
        assert!(entry.compare(&paths).is_empty(), "an entry differs from itself");
        for path in paths.iter().take(MOST_PATHS) {
            assert!(entry.has(path), "{path} is not in its entry");
            let answer = ownership.at(path);
            check_answer(&answer);
            let found = answer.owners.iter().any(|owner| owner.entry == entry);
            assert!(found, "{path} is not its entry's");
            check_printed(path);
        }
    }
}

fn check_printed(path: &FieldPath) {
    let printed = path.to_string();
    if printed.len() > crate::MAX_PATH_BYTES {
        return;
    }
    let query = Query::from(path);
    let read: Result<Query, _> = printed.parse();
    assert_eq!(read.as_ref(), Ok(&query), "{printed}");
    let same = query.segments().iter().zip(path.elements());
    assert!(same.clone().all(|(one, other)| matches!(one, Segment::One(one) if one == other)));
}

fn check_same(
    ownership: &Ownership,
    reversed: Option<&Ownership>,
    query: Option<&Query>,
    live: Option<&Value>,
) {
    let Some(reversed) = reversed else { panic!("reversed entries are not read") };
    if ownership.undecodable().iter().any(|bad| bad.problem.depends_on_order()) {
        return;
    }
    assert_eq!(ownership.undecodable(), reversed.undecodable(), "the order changes the problems");
    let Some(query) = query else { return };
    let lookup = ownership.lookup(query, live);
    let other = reversed.lookup(query, live);
    // Entries of two objects are equal when their identities are.
    for (one, other) in lookup.answers.iter().zip(&other.answers) {
        assert_eq!(one.path, other.path, "the order changes the paths");
        assert_eq!(one.owners, other.owners, "the order changes the owners of {}", one.path);
        assert_eq!(one.parents, other.parents, "the order changes the claims on {}", one.path);
        assert_eq!(one.below, other.below, "the order changes what is below {}", one.path);
    }
    assert_eq!(lookup.answers.len(), other.answers.len(), "the order changes the answers");
}

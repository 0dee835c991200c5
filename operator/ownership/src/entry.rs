//! What one owner has.

use std::{collections::BTreeSet, fmt};

use k8s_openapi::jiff::Timestamp;

use crate::{FieldPath, Identity, Operation, Ownership, decode::Decoded};

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) identity: Identity,
    api_version: String,
    time: Option<Timestamp>,
}

impl Record {
    pub(crate) fn of(entry: &Decoded) -> Self {
        Self {
            identity: entry.identity.clone(),
            api_version: entry.api_version.clone(),
            time: entry.time,
        }
    }

    pub(crate) fn merge(&mut self, entry: &Decoded) {
        // Of two versions the one that was written last, whichever came first in the list.
        if (entry.time, &entry.api_version) > (self.time, &self.api_version) {
            self.time = entry.time;
            self.api_version.clone_from(&entry.api_version);
        }
    }
}

/// One owner and the fields it has.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    ownership: &'a Ownership,
    index: usize,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(ownership: &'a Ownership, index: usize) -> Self {
        Self { ownership, index }
    }

    fn record(self) -> &'a Record {
        &self.ownership.records[self.index]
    }

    /// Who it is.
    pub fn identity(self) -> &'a Identity {
        &self.record().identity
    }

    /// The manager's name.
    pub fn manager(self) -> &'a str {
        self.identity().manager()
    }

    /// How it writes.
    pub fn operation(self) -> Operation {
        self.identity().operation()
    }

    /// The subresource it writes to; empty for the main resource.
    pub fn subresource(self) -> &'a str {
        self.identity().subresource()
    }

    /// The version the fields are named in.
    pub fn api_version(self) -> &'a str {
        &self.record().api_version
    }

    /// When the manager last added, changed or removed a field; `None` is unknown. Not when others
    /// took fields away, and not when it applied what was there already: the writing is at most as
    /// old as this, never newer.
    pub fn time(self) -> Option<Timestamp> {
        self.record().time
    }

    /// The fields it has, sorted.
    pub fn paths(self) -> Vec<FieldPath> {
        self.ownership.tree.paths_of(self.index)
    }

    /// How many fields it has.
    pub fn len(self) -> usize {
        self.ownership.tree.count_of(self.index)
    }

    /// Whether it has none: an applier of an empty body.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether this field itself is in its set.
    pub fn has(self, path: &FieldPath) -> bool {
        let tree = &self.ownership.tree;
        path.elements()
            .iter()
            .try_fold(0, |node, element| tree.child(node, element))
            .and_then(|node| tree.mark_of(node, self.index))
            .is_some_and(|mark| mark.member)
    }

    /// Compares its fields with those it should have: the check after a write.
    pub fn compare<'p>(self, wanted: impl IntoIterator<Item = &'p FieldPath>) -> Difference {
        let wanted: BTreeSet<&FieldPath> = wanted.into_iter().collect();
        let own = self.paths();
        let missing = wanted.iter().filter(|path| own.binary_search(path).is_err());
        Difference {
            missing: missing.map(|path| (*path).clone()).collect(),
            extra: own.iter().filter(|path| !wanted.contains(path)).cloned().collect(),
        }
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({})", self.identity())
    }
}

/// The same identity; the fields may differ when the two are of different objects.
impl PartialEq for Entry<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

/// How an entry's fields differ from those wanted, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Wanted, not there.
    pub missing: Vec<FieldPath>,
    /// There, not wanted.
    pub extra: Vec<FieldPath>,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty()
    }
}

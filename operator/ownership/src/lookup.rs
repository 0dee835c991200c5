//! Who owns one field.

use std::fmt;

use serde_json::Value;

use crate::{
    Element, Entry, ExpectedOwner, FieldPath, Hint, Identity, Note, Operation, Ownership,
    Structure, schema, tree::NodeId,
};

/// What is known of a field's ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// At least one entry has the field, or a whole that it is part of.
    Owned,
    /// Tracked, and nobody's: a default of the API server, or let go by its last owner.
    Unowned,
    /// A field that the API server never tracks, such as `metadata.name`.
    Untracked,
    /// The object has no `managedFields`.
    NoManagedFields,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owned => "owned",
            Self::Unowned => "unowned",
            Self::Untracked => "untracked",
            Self::NoManagedFields => "no-managed-fields",
        })
    }
}

/// How an owner holds a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// The field itself is in its set.
    Field,
    /// It owns, as a whole, what is at this path above the field.
    Atomic(FieldPath),
}

/// An owner of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner<'a> {
    /// Its entry.
    pub entry: Entry<'a>,
    /// How it holds the field.
    pub via: Via,
    /// What its name says.
    pub note: Option<Note>,
}

/// The answer for one path.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    /// The path.
    pub path: FieldPath,
    /// Its value, where a live object was given and has it.
    pub value: Option<&'a Value>,
    /// What is known.
    pub state: State,
    /// The owners, sorted by identity.
    pub owners: Vec<Owner<'a>>,
    /// Those that claim something above the path (the container, an emptied map) without owning
    /// the field.
    pub parents: Vec<Entry<'a>>,
    /// Those that own something below the path only.
    pub below: Vec<Entry<'a>>,
    /// What to tell the person who asked.
    pub hints: Vec<Hint>,
}

/// Whether the owners of a field are those expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// Exactly these.
    Met,
    /// Others, or none.
    Differs {
        /// Owners that were not expected.
        unexpected: Vec<Identity>,
        /// Whether the expected owner is missing.
        missing: bool,
    },
    /// As expected as far as can be seen, but some entries could not be decoded.
    Undecided {
        /// How many.
        undecodable: usize,
    },
}

impl Answer<'_> {
    /// Checks that the field is owned by `expected` and nobody else.
    pub fn expect(&self, ownership: &Ownership, expected: &ExpectedOwner) -> Expectation {
        let owners = self.owners.iter().map(|owner| owner.entry.identity());
        let (met, unexpected): (Vec<&Identity>, Vec<_>) =
            owners.partition(|owner| expected.is(owner));
        let undecodable = ownership.undecodable().len();
        match (met.is_empty(), unexpected.is_empty()) {
            // A missing owner may be in an entry that could not be read; one too many is certain.
            (_, true) if undecodable > 0 => Expectation::Undecided { undecodable },
            (false, true) => Expectation::Met,
            (missing, _) => Expectation::Differs {
                unexpected: unexpected.into_iter().cloned().collect(),
                missing,
            },
        }
    }
}

impl Ownership {
    /// Who owns the field at exactly this path. [`Self::lookup`] also resolves positions, partial
    /// keys and stars.
    pub fn at(&self, path: &FieldPath) -> Answer<'_> {
        self.answer(path.clone(), None, Vec::new())
    }

    pub(crate) fn answer<'a>(
        &'a self,
        path: FieldPath,
        value: Option<&'a Value>,
        hints: Vec<Hint>,
    ) -> Answer<'a> {
        let mut answer = Answer {
            path,
            value,
            state: State::Unowned,
            owners: Vec::new(),
            parents: Vec::new(),
            below: Vec::new(),
            hints,
        };
        self.find_owners(&mut answer);
        let applied = |owner: &Owner<'_>| owner.entry.operation() == Operation::Apply;
        let co_owned_by_apply = answer.owners.iter().any(applied);
        for owner in &mut answer.owners {
            owner.note = Note::on(owner.entry.identity(), co_owned_by_apply);
        }
        answer.state = if schema::is_untracked(answer.path.elements()) {
            State::Untracked
        } else if !self.has_entries {
            State::NoManagedFields
        } else if answer.owners.is_empty() {
            State::Unowned
        } else {
            State::Owned
        };
        answer
    }

    fn find_owners<'a>(&'a self, answer: &mut Answer<'a>) {
        let elements = answer.path.elements();
        let mut nodes: Vec<NodeId> = Vec::with_capacity(elements.len() + 1);
        let mut node = Some(0);
        for element in elements {
            let Some(parent) = node else { break };
            nodes.push(parent);
            node = self.tree.child(parent, element);
        }
        nodes.extend(node);

        // From the deepest node up: the first mark of an owner is where its own tree ends.
        let mut seen = vec![false; self.records.len()];
        let mut unseen = self.records.len();
        let mut claims: Vec<(usize, Claim)> = Vec::new();
        for (depth, node) in nodes.iter().enumerate().rev() {
            if unseen == 0 {
                break;
            }
            for mark in &self.tree.node(*node).marks {
                if std::mem::replace(&mut seen[mark.owner], true) {
                    continue;
                }
                unseen -= 1;
                let claim = match (depth == elements.len(), mark.member) {
                    (true, true) => Claim::Exact,
                    (true, false) => Claim::Below,
                    (false, true) if self.is_whole(&elements[..depth], *node) => {
                        Claim::Inherited(depth)
                    }
                    (false, true) => Claim::Parent,
                    (false, false) => continue,
                };
                claims.push((mark.owner, claim));
            }
        }
        claims.sort_unstable_by_key(|(owner, _)| *owner);
        for (owner, claim) in claims {
            let entry = Entry::new(self, owner);
            let via = match claim {
                Claim::Exact => Via::Field,
                Claim::Inherited(depth) => {
                    Via::Atomic(FieldPath::new(answer.path.elements()[..depth].to_vec()))
                }
                Claim::Parent => {
                    answer.parents.push(entry);
                    continue;
                }
                Claim::Below => {
                    answer.below.push(entry);
                    continue;
                }
            };
            answer.owners.push(Owner { entry, via, note: None });
        }
    }

    /// Whether who owns this node owns all below it. The schema says so, or, where it is silent,
    /// the fact that nobody owns anything below: what can be owned in parts usually is.
    fn is_whole(&self, path: &[Element], node: NodeId) -> bool {
        match self.schema.structure_at(path) {
            Some(Structure::Atomic) => true,
            Some(Structure::Granular | Structure::Associative(_) | Structure::Set) => false,
            None => self.tree.node(node).children.is_empty(),
        }
    }
}

enum Claim {
    Exact,
    Below,
    /// By the node at this depth.
    Inherited(usize),
    Parent,
}

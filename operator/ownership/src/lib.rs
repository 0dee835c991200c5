//! Field ownership of Kubernetes objects: decodes `metadata.managedFields`, looks a path up, and
//! predicts the conflicts of an apply. Pure: no I/O, no clock.
//!
//! ```
//! use belay_ownership::{Ownership, State};
//! use serde_json::json;
//!
//! let managed_fields = json!([{
//!     "manager": "helm", "operation": "Update", "apiVersion": "apps/v1",
//!     "fieldsType": "FieldsV1",
//!     "fieldsV1": { "f:spec": { "f:template": { "f:spec": { "f:containers": {
//!         "k:{\"name\":\"app\"}": { ".": {}, "f:image": {}, "f:name": {} },
//!     } } } } },
//! }]);
//! let ownership = Ownership::from_value(&managed_fields)?;
//! let query = "spec.template.spec.containers[name=app].image".parse()?;
//! let lookup = ownership.lookup(&query, None);
//! assert_eq!(lookup.answers[0].state, State::Owned);
//! assert_eq!(lookup.answers[0].owners[0].entry.manager(), "helm");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The format is that of structured-merge-diff (`fieldpath/serialize.go`, KEP-555). Rules that are
//! not obvious from it stand where they are implemented. Nothing here panics on input; every size
//! is bounded, see the `MAX_` constants.

pub mod claim;
pub mod conflict;
mod decode;
mod element;
mod entry;
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod literal;
mod lookup;
mod path;
mod problem;
mod resolve;
mod schema;
mod tree;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{decode::Entries, entry::Record, problem::shortened, tree::Tree};
pub use crate::{
    decode::{MAX_DEPTH, MAX_ELEMENTS, MAX_ENTRIES, MAX_JSON_BYTES},
    element::{Element, Key, MAX_KEY_BYTES},
    entry::{Difference, Entry},
    identity::{
        BEFORE_FIRST_APPLY, ExpectedOwner, Identity, NoManager, NotAnOperation, Note, Operation,
        UNKNOWN_MANAGER,
    },
    literal::{Float, Literal},
    lookup::{Answer, Expectation, Owner, State, Via},
    path::{FieldPath, MAX_PATH_BYTES, MAX_SEGMENTS, PathError, PathProblem, Query, Segment},
    problem::{Problem, ReadError, Undecodable},
    resolve::{Hint, Lookup, MAX_ANSWERS},
    schema::{Schema, Structure},
};

impl Default for Ownership {
    /// Of an object without entries.
    fn default() -> Self {
        Self::of(Entries::default())
    }
}

/// As part of an object: the value of `metadata.managedFields`, without a detour over [`Value`].
///
/// # Errors
/// It is no list; what else is wrong is in [`Ownership::undecodable`].
impl<'de> Deserialize<'de> for Ownership {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entries::within(deserializer).map(Self::of)
    }
}

/// Who owns what in one object. Decoded once, asked often.
///
/// The order of the entries does not matter: the API server sorts them its own way, and nothing
/// may depend on it.
#[derive(Debug)]
pub struct Ownership {
    records: Vec<Record>,
    tree: Tree,
    undecodable: Vec<Undecodable>,
    has_entries: bool,
    schema: Schema,
}

impl Ownership {
    /// Decodes the entries of an object. Never fails: see [`Self::undecodable`].
    pub fn decode(entries: &[ManagedFieldsEntry]) -> Self {
        Self::of(Entries::of_typed(entries))
    }

    /// Decodes the value of `metadata.managedFields`; null is no entries.
    ///
    /// # Errors
    /// [`ReadError::NotAList`].
    pub fn from_value(managed_fields: &Value) -> Result<Self, ReadError> {
        Entries::of_value(managed_fields).map(Self::of)
    }

    /// Decodes the JSON text of `metadata.managedFields`. Unlike a reader into [`Value`] it does
    /// not fail when one entry is nested too deep.
    ///
    /// # Errors
    /// The text is too large, no JSON, or no list.
    pub fn from_json(managed_fields: &[u8]) -> Result<Self, ReadError> {
        Entries::of_json(managed_fields).map(Self::of)
    }

    /// The same with another table of the schema; [`Schema::Deployment`] otherwise.
    #[must_use]
    pub fn with_schema(self, schema: Schema) -> Self {
        Self { schema, ..self }
    }

    fn of(entries: Entries) -> Self {
        let Entries { mut decoded, mut undecodable, seen } = entries;
        // Sorted by who, not by place or time, so that an answer depends on nothing else.
        decoded.sort_by(|one, other| one.identity.cmp(&other.identity));
        let mut records: Vec<Record> = Vec::new();
        let mut tree = Tree::new();
        let mut elements = 0;
        for entry in decoded {
            elements += entry.nodes.len();
            if elements > MAX_ELEMENTS {
                elements -= entry.nodes.len();
                undecodable.push(Undecodable {
                    manager: entry.identity.manager().to_owned(),
                    operation: entry.identity.operation().to_string(),
                    subresource: entry.identity.subresource().to_owned(),
                    problem: Problem::TooManyElements,
                });
                continue;
            }
            match records.last_mut() {
                // The API server never writes two entries of one identity; were there two, the
                // identity would own what stands in either.
                Some(last) if last.identity == entry.identity => last.merge(&entry),
                _ => records.push(Record::of(&entry)),
            }
            tree.add(records.len() - 1, entry);
        }
        undecodable.sort();
        Self { records, tree, undecodable, has_entries: seen > 0, schema: Schema::default() }
    }

    /// The owners, one per identity, sorted by manager, operation and subresource.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        (0..self.records.len()).map(|index| Entry::new(self, index))
    }

    /// The entry of one identity.
    pub fn entry(&self, identity: &Identity) -> Option<Entry<'_>> {
        let index = self.records.binary_search_by(|record| record.identity.cmp(identity)).ok()?;
        Some(Entry::new(self, index))
    }

    /// The entries that could not be decoded. While there are any, a field without an owner may
    /// still have one.
    pub fn undecodable(&self) -> &[Undecodable] {
        &self.undecodable
    }

    /// Whether the object has any entries at all. Without them, ownership is not tracked (or was
    /// cut off by `kubectl get` without `--show-managed-fields`).
    pub fn has_entries(&self) -> bool {
        self.has_entries
    }
}

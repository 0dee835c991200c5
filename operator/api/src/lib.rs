//! What users of Belay write and read: the four kinds of the group `belay.dev`, every condition,
//! reason and gate that may stand in them, annotation keys under any prefix, and the names that
//! follow from what they name.
//!
//! Rules that the API server can enforce are part of the CRDs ([`crd::all`]): lengths, patterns,
//! list keys, defaults and CEL. Rules that need more than one object are the operator's.
//!
//! Every closed set of words is an enum made by one macro, so that a `match` without `_` is
//! possible everywhere and a new word does not compile until each reader has a sentence for it.
//! Words in a status may come from a newer operator; there they are [`Open`].

pub mod annotations;
pub mod conditions;
pub mod crd;
pub mod duration;
pub mod events;
pub mod gates;
pub mod limits;
pub mod names;
pub mod policy;
pub mod reasons;
pub mod reference;
pub mod release;
pub mod rollback;
mod schema;
pub mod target;
pub mod values;

pub use crate::{
    annotations::AnnotationPrefix,
    duration::Duration,
    names::{ShortHash, Signature, TargetName},
    policy::AutomatedRollbackPolicy,
    release::Release,
    rollback::Rollback,
    target::ReleaseTarget,
    values::{NamedValue, Open, UnknownValue},
};

/// The API group of all kinds.
pub const GROUP: &str = "belay.dev";

/// The one version that is served.
pub const VERSION: &str = "v1alpha1";

//! Decides what Belay does for one target: from what was observed to at most one step.
//!
//! Everything here is a pure and total function of its arguments, of which time is one: bad input
//! gives a decision that says so, never an error that ends a pass and never a panic. Nothing is
//! remembered between calls; what the next decision needs stands in the objects of the cluster.

pub mod annotations;
pub mod block;
pub mod image;
pub mod judge;
pub mod observed;
pub mod pause;
pub mod plan;

pub mod selection;
pub mod settings;
mod text;
mod time;
pub mod version;

/// A point in time, as Kubernetes' own types hold it.
pub use jiff::Timestamp;

//! Reads. Each one has its own deadline, and what cannot be read is [`Fact::Unknown`] with the
//! reason, never absent.

pub mod api;
pub mod collect;
pub mod fact;
pub mod fleet;
pub mod snapshot;

pub use self::{
    api::Reader,
    fact::{Fact, Why},
    snapshot::{Object, Parts, Snapshot},
};

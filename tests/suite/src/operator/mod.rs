//! The operator in the process of a test, on the real control plane: its world, and words to say what
//! must become of it.

mod bed;
mod policies;
mod running;
pub mod support;
mod views;

pub use self::{
    bed::{Bed, World},
    policies::migrating,
    running::{Running, Wiring},
    views::{active, condition, describe, reason},
};

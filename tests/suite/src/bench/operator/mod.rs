//! The operator's figures: what a thousand targets cost at rest, and how quickly things move.

mod counts;
mod moves;
mod pauses;
mod rest;
mod scene;

pub use self::{
    moves::{fifty_at_once, publish_to_patched, pull_error_to_reverted},
    pauses::{pause_adds, scaled_objects_memory},
    rest::{other_polls, ready, rest_cpu, rest_memory, rest_writes},
};

//! Tests across the parts, against the real control plane; and what runs beside tests: figures,
//! fuzzing, recordings of rollouts, and what is released of the plugin.

pub mod bench;
pub mod crashes;
pub mod demo;
pub mod dist;
pub mod folders;
pub mod fuzz;
pub mod helms;
pub mod keda;
pub mod kills;
pub mod operator;
pub mod programs;
pub mod random;
pub mod rollouts;
mod states;
pub mod terminal;

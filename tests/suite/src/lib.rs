//! Tests across the parts, against the real control plane; and what runs beside tests: figures,
//! fuzzing, and recordings of rollouts.

pub mod bench;
pub mod crashes;
pub mod fuzz;
pub mod operator;
pub mod random;
pub mod rollouts;

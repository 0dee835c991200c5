//! Tests across the parts, against the real control plane; and what runs beside tests: figures and
//! fuzzing.

pub mod bench;
pub mod fuzz;
pub mod random;

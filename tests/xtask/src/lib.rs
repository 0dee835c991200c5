//! What `cargo xtask` decides without running anything: the static checks and the floor of test counts.
//!
//! A library, so that each decision is tested as a function over text that was already read.

pub mod checks;
pub mod floors;

//! Figures with a goal: how they are measured, and what is told about them.

pub mod control_plane;
pub mod figure;
pub mod machine;
pub mod ownership;
pub mod run;
pub mod stats;

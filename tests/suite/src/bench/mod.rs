//! Figures with a goal: how they are measured, and what is told about them.

pub mod control_plane;
pub mod figure;
pub mod machine;
pub mod meter;
pub mod operator;
pub mod ownership;
pub mod plugin;
pub mod post_renderer;
pub mod run;
pub mod stats;

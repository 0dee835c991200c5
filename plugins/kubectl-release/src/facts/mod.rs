//! What follows from what was read. Nothing here asks anybody, and time is an argument.

pub mod age;
pub mod chain;
pub mod doctor;
pub mod helm;
pub mod history;
pub mod live;
pub mod pause;
pub mod plan;
pub mod pods;
pub mod standing;
pub mod version;
pub mod words;

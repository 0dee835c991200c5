//! The operator: follows the GitHub releases of annotated workloads.
//!
//! A pass over one target is observe → plan → act → report, one module each. The plan is the
//! engine's and does no I/O; what is read and written goes through the adapters.

mod act;
pub mod admin;
pub mod cli;
pub mod config;
mod count;
pub mod exit;
pub mod explain;
mod forge;
mod images;
pub mod key;
mod memory;
pub mod metrics;
mod observe;
mod operator;
mod pass;
mod pauses;
pub mod program;
mod queue;
mod release_pauses;
pub mod replay;
mod report;
pub mod run;
mod scaler;
pub mod start;
mod stores;
mod surroundings;
mod unfollowed;
mod watch;

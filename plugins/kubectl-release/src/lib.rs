//! `kubectl release`: shows what image a workload runs, what it should run, who owns the field and
//! why it does not move; rolls back safely.
//!
//! [`read`] asks the API server and decides nothing; [`facts`] decides what follows from it and asks
//! nothing; [`verbs`] put both together and [`print`](mod@print) says it. Everything that a person or a
//! program sees goes through one [`Out`], so that a test runs a verb with a fixed clock and terminal.

pub mod cli;
pub mod connect;
pub mod error;
pub mod exit;
pub mod facts;
pub mod out;
pub mod print;
pub mod read;
pub mod session;
pub mod verbs;

mod run;

pub use crate::{
    error::{Class, Error},
    exit::Exit,
    out::Out,
    run::{main, run},
    session::Session,
};

/// The field manager of everything that the plugin writes. It holds no version: managers are keys.
pub const FIELD_MANAGER: &str = "kubectl-release";

//! The program `belay-operator`: how it starts, what it serves, how it ends.

#![expect(
    clippy::unwrap_used,
    reason = "helpers fail the test they are called from, like the tests themselves"
)]

mod replay;
mod run;

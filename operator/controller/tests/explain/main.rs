//! `belay-operator explain`, the program, against the scripted GitHub.

#![expect(
    clippy::unwrap_used,
    reason = "helpers fail the test they are called from, like the tests themselves"
)]

mod errors;
mod gates;
mod support;

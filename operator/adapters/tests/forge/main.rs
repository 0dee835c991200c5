//! GitHub as the operator asks it, against the scripted one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers fail the test they are called from, like the tests themselves"
)]

mod app;
mod client;
mod hostile;
mod limits;
mod poller;
mod repositories;
mod support;
mod tokens;

//! Registries as the operator asks them: a real one, and scripted ones for what a real one does not
//! do on demand.

#![expect(
    clippy::unwrap_used,
    reason = "helpers fail the test they are called from, like the tests themselves"
)]

mod answers;
mod fake;
mod handshake;
mod hosts;
mod platforms;
mod real;
mod tls;

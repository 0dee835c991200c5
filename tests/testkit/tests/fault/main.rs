//! The fault layer: against a fake service where virtual time helps, and against a real server on
//! loopback where it counts what arrived.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod call_id;
mod crash;
mod kinds;
mod plan;
mod relay;
mod retry;
mod support;
mod trace;

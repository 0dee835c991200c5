//! The two HTTP servers, over real connections.

#![expect(
    clippy::unwrap_used,
    reason = "helpers fail the test they are called from, like the tests themselves"
)]

mod bounds;
mod pages;
mod support;

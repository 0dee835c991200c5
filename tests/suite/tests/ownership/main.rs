//! Field ownership as the real API server keeps it: the transition cases of the specification of
//! `kubectl release`, section E.6, with their names. Every apply on the way is predicted first and
//! compared with the server's own answer.

#![expect(clippy::needless_pass_by_value, reason = "json! literals read better without a &")]

mod containers;
mod scene;
mod sharing;
mod takeover;
mod tracking;

//! The scripted GitHub, asked over HTTP.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod apps;
mod control;
mod deployments;
mod limits;
mod releases;
mod repositories;
mod scripts;
mod support;
mod tags;
mod webhooks;

//! The post-renderer under the real Helm 3 and Helm 4, against the real API server.

mod charts;
mod errors;
mod fake_server;
mod guide;
mod helm_flags;
mod hostile;
mod hostile_input;
mod lifetime;
mod matrix;
mod place;
mod plugin;
mod refusals;
mod runs;
mod schema;
mod waits;

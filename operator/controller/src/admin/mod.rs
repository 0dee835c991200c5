//! Two small HTTP servers: health and metrics for the cluster, debug pages for people.
//!
//! Both answer `GET` alone, read no body, and bound what a client can hold: the size of a request,
//! the time for it and for its answer, and the number of connections, of which the oldest makes room.

mod access;
mod answer;
mod debug;
mod health;
mod server;

use std::{future::Future, sync::Arc};

use serde_json::Value;
use tokio::net::TcpListener;

pub use self::{access::Access, server::Bounds};
use crate::metrics::Metrics;

/// What the servers ask the operator.
pub trait Inspect: Send + Sync {
    /// Whether it does its work, or must be started anew.
    ///
    /// # Errors
    /// Why it does not, in one sentence.
    fn alive(&self) -> Result<(), String>;

    /// Whether it has seen what it needs to act.
    ///
    /// # Errors
    /// What it waits for, in one sentence.
    fn ready(&self) -> Result<(), String>;

    /// What was observed of a target and what follows from it ([`crate::replay::DebugFile`]),
    /// without secrets. `None` for what is not followed, whatever the reason.
    fn debug(&self, namespace: &str, name: &str) -> Option<Value>;
}

/// Serves `/healthz`, `/readyz` and `/metrics` until `stop` ends. Connections are closed then.
pub async fn serve_health(
    listener: TcpListener,
    inspect: Arc<dyn Inspect>,
    metrics: Arc<Metrics>,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    let pages = health::Pages { inspect, metrics };
    server::serve(listener, pages, bounds, stop).await;
}

/// Serves `/debug/targets/NAMESPACE/NAME` until `stop` ends, to those whom `access` lets in.
/// Connections are closed then.
pub async fn serve_admin(
    listener: TcpListener,
    inspect: Arc<dyn Inspect>,
    access: Access,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) {
    server::serve(listener, debug::Pages { inspect, access }, bounds, stop).await;
}

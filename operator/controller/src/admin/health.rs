//! Health and metrics.

use std::sync::Arc;

use http::{StatusCode, request::Parts};

use super::{
    Inspect,
    answer::{self, Sent},
    server,
};
use crate::metrics::Metrics;

pub(super) struct Pages {
    pub(super) inspect: Arc<dyn Inspect>,
    pub(super) metrics: Arc<Metrics>,
}

impl server::Pages for Pages {
    async fn get(&self, request: &Parts) -> Sent {
        match request.uri.path() {
            "/healthz" => verdict(self.inspect.alive()),
            "/readyz" => verdict(self.inspect.ready()),
            "/metrics" => answer::body(StatusCode::OK, Metrics::CONTENT_TYPE, self.metrics.text()),
            _ => answer::missing(),
        }
    }
}

fn verdict(good: Result<(), String>) -> Sent {
    match good {
        Ok(()) => answer::line(StatusCode::OK, "ok"),
        Err(why) => answer::line(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

//! Debug pages: what was observed of a target, and what follows from it.

use std::sync::Arc;

use http::{StatusCode, header, request::Parts};

use super::{
    Inspect,
    access::{Access, Denied},
    answer::{self, Sent},
    server,
};

const TARGETS: &str = "/debug/targets/";

pub(super) struct Pages {
    pub(super) inspect: Arc<dyn Inspect>,
    pub(super) access: Access,
}

impl server::Pages for Pages {
    async fn get(&self, request: &Parts) -> Sent {
        // Before anything else: who is not let in learns not even which pages there are.
        match self.access.check(&request.headers).await {
            Ok(()) => {}
            Err(Denied::Token) => {
                let refused = answer::line(StatusCode::UNAUTHORIZED, "a valid token is needed");
                return answer::with(refused, header::WWW_AUTHENTICATE, "Bearer");
            }
            Err(Denied::Unreadable) => {
                let why = "the file of --admin-token-file cannot be used; the log says why";
                return answer::line(StatusCode::SERVICE_UNAVAILABLE, why);
            }
        }
        let target = request.uri.path().strip_prefix(TARGETS).and_then(|rest| rest.split_once('/'));
        let found = target.and_then(|(namespace, name)| self.inspect.debug(namespace, name));
        match found.map(|value| serde_json::to_vec_pretty(&value)) {
            Some(Ok(mut json)) => {
                json.push(b'\n');
                answer::body(StatusCode::OK, "application/json", json)
            }
            Some(Err(error)) => {
                tracing::error!(%error, "print a debug page");
                answer::line(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be printed")
            }
            None => answer::missing(),
        }
    }
}

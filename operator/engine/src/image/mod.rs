//! Image references: repository, tag and digest.
//!
//! What is written into a workload is spelled as its owner spelled it; only comparisons use normal
//! forms. `nginx:1.27` stays without host, and is nevertheless known to be of the same repository
//! as `docker.io/library/nginx:1.28`.

mod reference;
mod repository;

pub use self::{
    reference::ImageRef,
    repository::{Repository, is_tag},
};

/// Text that is no image reference, or no part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as {what}: {problem}")]
pub struct InvalidImage {
    what: &'static str,
    text: String,
    problem: &'static str,
}

impl InvalidImage {
    fn new(what: &'static str, text: &str, problem: &'static str) -> Self {
        Self { what, text: belay_api::limits::clip(text, 100), problem }
    }

    /// What is wrong, without the text.
    pub fn problem(&self) -> &'static str {
        self.problem
    }
}

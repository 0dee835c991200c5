//! The objects of GitHub's REST API as JSON, complete as far as its published schema requires.

mod account;
mod app;
mod deployment;
mod release;
mod repository;

pub(crate) use self::{
    account::account,
    app::{app, installation, installation_token},
    deployment::{deployment, deployment_status},
    release::release,
    repository::{full_repository, repository},
};

/// Where pages for people are; nothing listens there.
pub(crate) const HTML: &str = "https://github.com";

/// The addresses that answers contain.
#[derive(Debug, Clone)]
pub(crate) struct Urls {
    /// The base of the API as the client called it, without a slash at the end.
    pub(crate) api: String,
}

impl Urls {
    pub(crate) fn repository(&self, full_name: &str) -> String {
        format!("{}/repos/{full_name}", self.api)
    }
}

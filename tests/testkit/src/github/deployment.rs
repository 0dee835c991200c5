//! Deployments and their statuses.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a deployment status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentState {
    /// It could not be done.
    Error,
    /// It was tried and failed.
    Failure,
    /// A later one took its place.
    Inactive,
    /// It runs.
    InProgress,
    /// It waits for its turn.
    Queued,
    /// It waits.
    Pending,
    /// It is there.
    Success,
}

impl DeploymentState {
    /// In the order in which GitHub's message on a wrong one names them.
    pub const ALL: [Self; 7] = [
        Self::Error,
        Self::Failure,
        Self::Inactive,
        Self::InProgress,
        Self::Queued,
        Self::Pending,
        Self::Success,
    ];

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Failure => "failure",
            Self::Inactive => "inactive",
            Self::InProgress => "in_progress",
            Self::Queued => "queued",
            Self::Pending => "pending",
            Self::Success => "success",
        }
    }
}

/// A deployment.
#[derive(Debug, Clone)]
pub(crate) struct Deployment {
    pub(crate) id: u64,
    pub(crate) sha: String,
    pub(crate) reference: String,
    pub(crate) task: String,
    pub(crate) payload: Value,
    pub(crate) environment: String,
    pub(crate) original_environment: String,
    pub(crate) description: Option<String>,
    pub(crate) creator: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) transient: bool,
    pub(crate) production: bool,
    /// Oldest first.
    pub(crate) statuses: Vec<DeploymentStatus>,
}

impl Deployment {
    /// Whether a later success in the same environment makes it inactive: it must be neither
    /// transient nor production and its last word must be success.
    pub(crate) fn is_superseded_in(&self, environment: &str) -> bool {
        !self.transient
            && !self.production
            && self.environment == environment
            && self.statuses.last().is_some_and(|last| last.state == DeploymentState::Success)
    }
}

/// One word on how a deployment goes.
#[derive(Debug, Clone)]
pub(crate) struct DeploymentStatus {
    pub(crate) id: u64,
    pub(crate) state: DeploymentState,
    pub(crate) creator: String,
    pub(crate) description: String,
    pub(crate) environment: String,
    pub(crate) environment_url: String,
    pub(crate) log_url: String,
    pub(crate) created_at: Timestamp,
}

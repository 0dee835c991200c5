//! What is seen of a rollout.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::annotations::ContainerName;

/// A Deployment's spec and status, as far as a rollout is judged by them. Absent numbers are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// Whether the template's images are those that were stored.
    pub images_are_stored: bool,
    /// `spec.paused`.
    pub paused: bool,
    /// `spec.replicas`: how many are wanted.
    pub wanted: i32,
    /// `status.replicas`: how many there are, old ones included.
    pub replicas: i32,
    /// `status.updatedReplicas`: how many are of the current template.
    pub updated: i32,
    /// `status.availableReplicas`, old ones included.
    pub available: i32,
    /// The condition `Progressing`.
    pub progressing: Option<ProgressingFacts>,
    /// `spec.progressDeadlineSeconds`.
    pub progress_deadline: Option<i32>,
    /// The condition `ReplicaFailure`, while it is True.
    pub replica_failure: Option<ReplicaFailure>,
    /// The pods; `None` if they are not known.
    pub pods: Option<Vec<PodFacts>>,
}

/// A Deployment's condition `Progressing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressingFacts {
    /// Its reason.
    pub reason: String,
    /// Its `lastUpdateTime`.
    pub last_update: Option<Timestamp>,
}

/// Why pods cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaFailure {
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Whether it is of the current template.
    pub is_new: bool,
    /// When it was created.
    pub created: Timestamp,
    /// When the kubelet took it; absent if that has not happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// Whether it was evicted or preempted, or its node is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disrupted: bool,
    /// Why the scheduler finds no node for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unschedulable: Option<String>,
    /// Its containers, init containers included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerFacts>,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerFacts {
    /// Which one.
    pub name: ContainerName,
    /// Why it waits: `ImagePullBackOff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// More about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How often it was restarted.
    #[serde(default)]
    pub restarts: i32,
    /// Whether its image has been pulled.
    #[serde(default)]
    pub pulled: bool,
}

//! Everything about one Target, read at once.

use belay_api::{AnnotationPrefix, Release, ReleaseTarget, Rollback, annotations::DEFAULT_PREFIX};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Pod, Secret},
};
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use super::fact::{Fact, Why};
use crate::error::{Class, Error};

/// An object, as this version understands it and as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<T> {
    /// As this version understands it.
    pub value: T,
    /// As it was read, with fields that only another version knows.
    pub raw: Value,
}

/// Which reads of a [`Snapshot`] are wanted beside the ReleaseTarget and the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// The Releases of the target.
    pub releases: bool,
    /// The Rollbacks of the target.
    pub rollbacks: bool,
    /// Its ReplicaSets, of a Deployment.
    pub replica_sets: bool,
    /// Its pods.
    pub pods: bool,
    /// Helm's release Secrets of the release that the workload is part of.
    pub helm: bool,
    /// The operator's Deployments.
    pub operator: bool,
}

/// Everything about one Target.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The namespace.
    pub namespace: String,
    /// The targetName.
    pub name: String,
    /// The ReleaseTarget; `None` if there is none.
    pub target: Fact<Option<Object<ReleaseTarget>>>,
    /// The workload, with managedFields; `None` if there is none.
    pub workload: Fact<Option<DynamicObject>>,
    /// The workload's resource, once it is known.
    pub resource: Option<ApiResource>,
    /// Its Releases, the newest first.
    pub releases: Fact<Vec<Object<Release>>>,
    /// Its Rollbacks, the newest first.
    pub rollbacks: Fact<Vec<Object<Rollback>>>,
    /// Its ReplicaSets, the newest revision first.
    pub replica_sets: Fact<Vec<ReplicaSet>>,
    /// Its pods.
    pub pods: Fact<Vec<Pod>>,
    /// Helm's release Secrets, the newest revision first.
    pub helm: Fact<Vec<Secret>>,
    /// The operator's Deployments of all namespaces, or of this one where those may not be listed.
    pub operator: Fact<Vec<Deployment>>,
    /// Objects that were listed and that this version does not understand, and why.
    pub unread: Vec<String>,
}

impl Snapshot {
    /// The ReleaseTarget, if it was read and is there.
    pub fn target(&self) -> Option<&ReleaseTarget> {
        Some(&self.target.value()?.as_ref()?.value)
    }

    /// The ReleaseTarget.
    ///
    /// # Errors
    /// It could not be read, is not there, or Belay is not installed.
    pub fn required_target(&self) -> Result<&ReleaseTarget, Error> {
        match &self.target {
            Fact::Known(Some(target)) => Ok(&target.value),
            Fact::Known(None) => Err(self.no_target()),
            Fact::Unknown(Why::NotServed(words)) => Err(not_installed(words)),
            Fact::Unknown(why) => Err(match why {
                Why::Forbidden(words) => {
                    Error::new(Class::Forbidden, words.as_str()).reason("Forbidden")
                }
                Why::Unreachable(error) => error.clone(),
                _ => Error::other(why.words()),
            }),
        }
    }

    fn no_target(&self) -> Error {
        let (name, namespace) = (&self.name, &self.namespace);
        let error = Error::new(
            Class::NotFound,
            format!("releasetargets.belay.dev \"{name}\" not found in namespace {namespace}"),
        )
        .reason("NotFound");
        match &self.workload {
            Fact::Known(Some(_)) => error
                .cause(format!("Belay does not follow the Deployment {name} yet"))
                .hint(format!(
                    "kubectl annotate deployment {name} -n {namespace} \
                     {DEFAULT_PREFIX}/repo=OWNER/NAME"
                )),
            Fact::Known(None) | Fact::Unknown(_) => error.hint("kubectl release status -A"),
        }
    }

    /// The workload, if it was read and is there.
    pub fn workload(&self) -> Option<&DynamicObject> {
        self.workload.value()?.as_ref()
    }

    /// The prefix of Belay's annotations: the one that was asked for, else what the ReleaseTarget
    /// says, else the default.
    pub fn prefix(&self, asked: Option<&AnnotationPrefix>) -> AnnotationPrefix {
        let told =
            self.target().and_then(|target| target.status.as_ref()?.annotation_prefix.clone());
        asked.cloned().or_else(|| told?.parse().ok()).unwrap_or_default()
    }
}

/// The error of a list of Belay's objects: where their kind is not served, Belay is not installed.
pub fn installed(error: Error) -> Error {
    match error.reason.as_deref() {
        Some("NotServed") => not_installed(&error.message),
        _ => error,
    }
}

fn not_installed(words: &str) -> Error {
    Error::new(Class::NotFound, "Belay is not installed in this cluster")
        .cause(words)
        .hint("helm install belay charts/belay")
}

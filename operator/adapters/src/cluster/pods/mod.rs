//! The pods of one workload, watched while a rollout is under way.

mod follow;
mod sets;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use belay_engine::{
    judge::PodFacts,
    observed::{Fact, WorkloadFacts},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::{Api, Client, core::Selector};
use tokio::task::JoinHandle;

use self::{follow::follow, view::View};
use crate::clock::Clock;

/// Whose pods are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsOf {
    namespace: String,
    uid: String,
    selector: String,
}

/// A workload whose selector cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("watch the pods of Deployment {namespace}/{name}: {problem}")]
pub struct NoSelector {
    namespace: String,
    name: String,
    problem: String,
}

impl PodsOf {
    /// The pods of a Deployment.
    ///
    /// # Errors
    /// [`NoSelector`], for an object that the API server would not accept either.
    pub fn of(deployment: &Deployment) -> Result<Self, NoSelector> {
        let metadata = &deployment.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let problem = |problem: String| NoSelector {
            namespace: namespace.clone(),
            name: metadata.name.clone().unwrap_or_default(),
            problem,
        };
        let selector = deployment.spec.as_ref().map(|spec| spec.selector.clone());
        let selector = Selector::try_from(selector.unwrap_or_default())
            .map_err(|error| problem(error.to_string()))?
            .to_string();
        // An empty one would stand for every pod of the namespace.
        if selector.is_empty() {
            return Err(problem("its selector is empty".to_owned()));
        }
        let uid = metadata.uid.clone().unwrap_or_default();
        Ok(Self { namespace, uid, selector })
    }
}

/// A watch of the pods and ReplicaSets of one Deployment. Dropping it ends it.
#[derive(Debug)]
pub struct PodWatch {
    view: Arc<View>,
    task: JoinHandle<()>,
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PodWatch {
    /// Begins to watch. `changed` is called after each change of what [`PodWatch::facts`] says, from
    /// a task of the current runtime; it must not block.
    ///
    /// Where the right to watch is missing, it lists every 10 s instead and says so
    /// ([`PodWatch::handicap`]).
    pub fn open(
        client: &Client,
        clock: Clock,
        of: &PodsOf,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let view = Arc::new(View::new(clock, &of.uid, changed));
        let pods: Api<Pod> = Api::namespaced(client.clone(), &of.namespace);
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), &of.namespace);
        let (selector, shared) = (of.selector.clone(), Arc::clone(&view));
        let task = tokio::spawn(async move {
            futures::join!(follow(pods, &selector, &shared), follow(sets, &selector, &shared));
        });
        Self { view, task }
    }

    /// The pods as they are known now, by name. Not known while they have not been listed, or a list
    /// failed.
    ///
    /// New are those whose ReplicaSet has the images of `workload`'s template; of several such
    /// ReplicaSets, the one of the highest revision. While there is none, no pod is new: the
    /// Deployment's controller has not made it yet.
    pub fn facts(&self, workload: &WorkloadFacts) -> Fact<Vec<PodFacts>> {
        self.view.facts(workload)
    }

    /// Why the pods are listed from time to time instead of watched, in words for people.
    pub fn handicap(&self) -> Option<String> {
        self.view.handicap()
    }
}

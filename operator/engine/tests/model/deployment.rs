//! A Deployment, its controller in its real sub-steps, and the kubelet.

use std::collections::{BTreeMap, BTreeSet};

use belay_engine::{
    annotations::ContainerName,
    judge::{ContainerFacts, Facts, PodFacts, ProgressingFacts},
    observed::{ContainerState, WorkloadFacts},
};

use crate::world::{World, at, held, live, origin};

/// A pod, of the template that it was made from.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    images: Vec<String>,
    env: u32,
    created: i64,
    pub(crate) ready: bool,
    waiting: Option<&'static str>,
    restarts: i32,
}

/// A container of the template, with who owns its image since when.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: ContainerName,
    pub(crate) image: String,
    pub(crate) owners: BTreeMap<String, i64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Deployment {
    pub(crate) uid: u32,
    pub(crate) version: u64,
    pub(crate) created: i64,
    pub(crate) generation: i64,
    pub(crate) containers: Vec<Part>,
    /// Everything else in the template.
    pub(crate) env: u32,
    pub(crate) release: Option<String>,
    pub(crate) release_by: BTreeSet<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) wanted: i32,
    pub(crate) paused: bool,
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i32,
    pub(crate) updated: i32,
    pub(crate) available: i32,
    reason: &'static str,
    last_update: i64,
    pub(crate) pods: Vec<Pod>,
}

fn count(pods: &[Pod], holds: impl Fn(&Pod) -> bool) -> i32 {
    i32::try_from(pods.iter().filter(|pod| holds(pod)).count()).unwrap()
}

impl Deployment {
    /// One that came with Helm.
    pub(crate) fn of(containers: &[(&str, &str)], created: i64) -> Self {
        let part = |(name, image): &(&str, &str)| Part {
            name: name.parse().unwrap(),
            image: (*image).to_owned(),
            owners: BTreeMap::from([("helm".to_owned(), created)]),
        };
        let annotations = BTreeMap::from([
            ("belay.dev/repo".to_owned(), "acme/web".to_owned()),
            ("belay.dev/bake".to_owned(), "60s".to_owned()),
        ]);
        Self {
            uid: 1,
            version: 1,
            created,
            generation: 1,
            containers: containers.iter().map(part).collect(),
            env: 0,
            release: None,
            release_by: BTreeSet::new(),
            annotations,
            wanted: 2,
            paused: false,
            observed_generation: 0,
            replicas: 0,
            updated: 0,
            available: 0,
            reason: "NewReplicaSetCreated",
            last_update: created,
            pods: Vec::new(),
        }
    }

    pub(crate) fn is_new(&self, pod: &Pod) -> bool {
        pod.env == self.env
            && pod.images.len() == self.containers.len()
            && pod.images.iter().zip(&self.containers).all(|(one, part)| *one == part.image)
    }

    fn numbers(&self) -> (i32, i32, i32) {
        let all = count(&self.pods, |_| true);
        (all, count(&self.pods, |pod| self.is_new(pod)), count(&self.pods, |pod| pod.ready))
    }

    /// What an image does: its patch number says it.
    fn behaviour(image: &str) -> Option<&'static str> {
        match image.rsplit('.').next()?.parse::<u32>().ok()? % 10 {
            3 => Some("ImagePullBackOff"),
            5 => Some("CrashLoopBackOff"),
            7 => Some("Pending"),
            _ => None,
        }
    }

    pub(crate) fn facts(&self) -> WorkloadFacts {
        let mut annotations = self.annotations.clone();
        if let Some(release) = &self.release {
            annotations.insert("belay.dev/release".to_owned(), release.clone());
        }
        let state = |part: &Part| ContainerState {
            live: live(&part.name, &part.image),
            held_by: part.owners.iter().map(|(manager, time)| held(manager, *time)).collect(),
        };
        WorkloadFacts {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            uid: self.uid.to_string(),
            resource_version: self.version.to_string(),
            created: at(self.created),
            deleting: false,
            annotations,
            annotation_held_by: self.release_by.iter().map(|manager| held(manager, 0)).collect(),
            containers: self.containers.iter().map(state).collect(),
            rollout: Facts {
                generation: self.generation,
                observed_generation: self.observed_generation,
                images_are_stored: false,
                paused: self.paused,
                wanted: self.wanted,
                replicas: self.replicas,
                updated: self.updated,
                available: self.available,
                progressing: Some(ProgressingFacts {
                    reason: self.reason.to_owned(),
                    last_update: Some(at(self.last_update)),
                }),
                progress_deadline: Some(600),
                replica_failure: None,
                pods: None,
            },
        }
    }

    pub(crate) fn pod_facts(&self) -> Vec<PodFacts> {
        let facts = |pod: &Pod| PodFacts {
            name: pod.name.clone(),
            is_new: self.is_new(pod),
            created: at(pod.created),
            started: Some(at(pod.created)),
            ready: pod.ready,
            deleting: false,
            disrupted: false,
            unschedulable: None,
            containers: vec![ContainerFacts {
                name: self.containers[0].name.clone(),
                waiting: pod.waiting.map(ToOwned::to_owned),
                message: pod.waiting.map(|_| "manifest unknown".to_owned()),
                restarts: pod.restarts,
                pulled: pod.ready,
            }],
        };
        self.pods.iter().map(facts).collect()
    }
}

impl World {
    /// The Deployment controller sees the present generation.
    pub(crate) fn controller_observes(&mut self) -> bool {
        let deployment = &mut self.deployment;
        if deployment.observed_generation >= deployment.generation {
            return false;
        }
        deployment.observed_generation = deployment.generation;
        self.count();
        self.touch(false);
        true
    }

    /// Its status is written.
    pub(crate) fn count(&mut self) -> bool {
        let (replicas, updated, available) = self.deployment.numbers();
        let deployment = &mut self.deployment;
        let old = (deployment.replicas, deployment.updated, deployment.available);
        let has_changed = old != (replicas, updated, available);
        // A finished rollout stays one while it is only scaled.
        let is_scaled =
            deployment.reason == "NewReplicaSetAvailable" && replicas == updated && updated > 0;
        if has_changed && !is_scaled {
            deployment.last_update = self.now;
            deployment.reason = "ReplicaSetUpdated";
        }
        (deployment.replicas, deployment.updated, deployment.available) =
            (replicas, updated, available);
        if updated == deployment.wanted && replicas == updated && available == updated {
            deployment.reason = "NewReplicaSetAvailable";
        } else if self.now >= deployment.last_update + 600
            && deployment.reason == "ReplicaSetUpdated"
        {
            deployment.reason = "ProgressDeadlineExceeded";
            deployment.last_update = self.now;
        }
        has_changed
    }

    /// It makes or removes one pod; surge 1, none unavailable.
    pub(crate) fn controller_acts(&mut self) -> bool {
        let (replicas, updated, available) = self.deployment.numbers();
        let deployment = &self.deployment;
        let wanted = deployment.wanted;
        let surplus = if replicas > wanted || deployment.paused {
            let find = |holds: &dyn Fn(&Pod) -> bool| deployment.pods.iter().position(holds);
            let old_unready = find(&|pod| !deployment.is_new(pod) && !pod.ready);
            let old = find(&|pod| !deployment.is_new(pod) && available > wanted);
            let any =
                deployment.pods.iter().rposition(|pod| updated > wanted && deployment.is_new(pod));
            old_unready.or(old).or(any).filter(|_| !deployment.paused || replicas > wanted)
        } else {
            None
        };
        let surplus = surplus.or_else(|| (wanted == 0 && replicas > 0).then_some(0));
        if let Some(index) = surplus {
            self.deployment.pods.remove(index);
        } else if !deployment.paused && updated < wanted && replicas < wanted + 1 {
            self.next += 1;
            let deployment = &mut self.deployment;
            deployment.pods.push(Pod {
                name: format!("web-{}", self.next),
                images: deployment.containers.iter().map(|part| part.image.clone()).collect(),
                env: deployment.env,
                created: self.now,
                ready: false,
                waiting: None,
                restarts: 0,
            });
        } else {
            return false;
        }
        true
    }

    /// The kubelet brings one pod as far as it will get.
    pub(crate) fn kubelet(&mut self) -> bool {
        let registry = &self.registry;
        let fate = |image: &String| {
            // A pinned or mirrored reference is as good as its tag.
            let image = origin(image);
            let exists = registry.contains(&image);
            if exists { Deployment::behaviour(&image) } else { Some("ImagePullBackOff") }
        };
        for pod in &mut self.deployment.pods {
            if pod.ready || pod.waiting.is_some() {
                continue;
            }
            match pod.images.iter().find_map(fate) {
                None => {
                    pod.ready = true;
                    return true;
                }
                Some("Pending") => {}
                Some(reason) => {
                    pod.waiting = Some(reason);
                    pod.restarts = 4;
                    return true;
                }
            }
        }
        false
    }

    /// One pod breaks, or is made well again.
    pub(crate) fn pod_changes(&mut self) {
        if self.deployment.pods.is_empty() {
            return;
        }
        let index = self.dice.roll(self.deployment.pods.len());
        let pod = &mut self.deployment.pods[index];
        if pod.ready {
            pod.ready = false;
        } else {
            (pod.waiting, pod.restarts) = (None, 0);
        }
        self.touch(false);
    }

    /// Everything that is not the operator moves until it stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let mut moved = self.controller_observes();
            moved |= self.controller_acts();
            moved |= self.kubelet();
            moved |= self.count();
            let keda_moved = self.keda_acts();
            if keda_moved && !moved {
                continue;
            }
            if !moved {
                return;
            }
            self.touch(false);
        }
    }
}

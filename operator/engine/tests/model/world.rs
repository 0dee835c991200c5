//! The world: what exists, and how controllers move it.

use std::collections::{BTreeMap, BTreeSet};

use belay_api::{AnnotationPrefix, Release, Rollback};
use belay_engine::{
    Timestamp,
    annotations::LiveContainer,
    judge::{ContainerFacts, Facts, PodFacts, ProgressingFacts},
    observed::{
        ContainerState, HeldBy, ImageAnswer, Refusal, Refused, TargetRecord, WorkloadFacts,
    },
    selection::GithubRelease,
    settings::Settings,
};

pub(crate) const REPOSITORY: &str = "ghcr.io/acme/web";
const MIRROR: &str = "mirror.local/acme/web";

/// An image as it is called at its origin, without digest.
pub(crate) fn origin(image: &str) -> String {
    let image = image.split('@').next().unwrap_or_default();
    image.replace(MIRROR, REPOSITORY)
}

pub(crate) fn mirrored(image: &str) -> String {
    image.replace(REPOSITORY, MIRROR)
}

/// Numbers that look random, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) created: i64,
    pub(crate) ready: bool,
    pub(crate) waiting: Option<&'static str>,
    pub(crate) restarts: i32,
}

#[derive(Debug, Clone)]
pub(crate) struct Deployment {
    pub(crate) uid: u32,
    pub(crate) version: u64,
    pub(crate) created: i64,
    pub(crate) generation: i64,
    pub(crate) image: String,
    pub(crate) image_by: BTreeMap<String, i64>,
    pub(crate) release: Option<String>,
    pub(crate) release_by: BTreeSet<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) wanted: i32,
    pub(crate) paused: bool,
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i32,
    pub(crate) updated: i32,
    pub(crate) available: i32,
    pub(crate) reason: &'static str,
    pub(crate) last_update: i64,
    pub(crate) pods: Vec<Pod>,
}

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) is_shown: bool,
    pub(crate) now: i64,
    pub(crate) version: u64,
    pub(crate) settings: Settings,
    pub(crate) deployment: Deployment,
    pub(crate) target: Option<TargetRecord>,
    pub(crate) releases: BTreeMap<String, Release>,
    pub(crate) rollbacks: BTreeMap<String, Rollback>,
    pub(crate) github: Vec<GithubRelease>,
    pub(crate) registry: BTreeSet<String>,
    /// Answers of the registry that the operator has in memory.
    pub(crate) answers: BTreeMap<String, (i64, Option<ImageAnswer>)>,
    /// Tags that name another image than before.
    pub(crate) moved: BTreeSet<String>,
    /// Whether admission puts a mirror's host into images.
    pub(crate) mirrors: bool,
    /// How the next applies end.
    pub(crate) trouble: Vec<Refusal>,
    pub(crate) refused: Option<Refused>,
    pub(crate) forge_is_down: bool,
    pub(crate) registry_is_down: bool,
    /// How the last change of the image by a person was made.
    pub(crate) by_person: Option<Person>,
    pub(crate) next: u32,
    pub(crate) passes: u32,
    /// What was seen, to know that the world gets everywhere.
    pub(crate) seen: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Edit,
    Undo,
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl World {
    pub(crate) fn new(seed: u64, is_shown: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..5 {
            dice.roll(2);
        }
        let now = 1_800_000_000;
        let annotations = BTreeMap::from([
            ("belay.dev/repo".to_owned(), "acme/web".to_owned()),
            ("belay.dev/bake".to_owned(), "60s".to_owned()),
        ]);
        let mut world = Self {
            dice,
            is_shown,
            now,
            version: 1,
            settings: Settings::default(),
            deployment: Deployment {
                uid: 1,
                version: 1,
                created: now - 1000,
                generation: 1,
                image: format!("{REPOSITORY}:1.0.0"),
                image_by: BTreeMap::from([("helm".to_owned(), now - 1000)]),
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
                last_update: now - 1000,
                pods: Vec::new(),
            },
            target: None,
            releases: BTreeMap::new(),
            rollbacks: BTreeMap::new(),
            github: Vec::new(),
            registry: BTreeSet::new(),
            answers: BTreeMap::new(),
            moved: BTreeSet::new(),
            mirrors: false,
            trouble: Vec::new(),
            refused: None,
            forge_is_down: false,
            registry_is_down: false,
            by_person: None,
            next: 1,
            passes: 0,
            seen: BTreeMap::new(),
        };
        world.publish("1.0.0", true);
        if world.dice.roll(3) == 0 {
            world.annotate("range", Some("^1"));
        }
        world.mirrors = world.dice.roll(8) == 0;
        if world.dice.roll(6) == 0 {
            world.annotate("on-failure", Some("stop"));
        }
        world
    }

    pub(crate) fn show(&self, what: impl FnOnce() -> String) {
        if self.is_shown {
            println!("{:>7} {}", self.now - 1_800_000_000, what());
        }
    }

    pub(crate) fn publish(&mut self, version: &str, has_image: bool) {
        let tag = format!("v{version}");
        if self.github.iter().any(|release| release.tag == tag) {
            return;
        }
        self.github.push(GithubRelease {
            tag,
            draft: false,
            prerelease: false,
            published: Some(at(self.now)),
            author: None,
            url: None,
        });
        if has_image {
            self.registry.insert(format!("{REPOSITORY}:{version}"));
        }
    }

    pub(crate) fn annotate(&mut self, name: &str, value: Option<&str>) {
        let key = AnnotationPrefix::default()
            .key(name.parse::<belay_api::annotations::TargetAnnotation>().unwrap());
        match value {
            Some(value) => self.deployment.annotations.insert(key, value.to_owned()),
            None => self.deployment.annotations.remove(&key),
        };
        // Measured: annotations move a Deployment's generation.
        self.touch(true);
    }

    pub(crate) fn touch(&mut self, is_spec: bool) {
        self.version += 1;
        self.deployment.version = self.version;
        self.deployment.generation += i64::from(is_spec);
    }

    /// Somebody writes the image, by update: he owns it alone.
    pub(crate) fn write_image(&mut self, manager: &str, image: &str) {
        if self.deployment.image == image {
            return;
        }
        image.clone_into(&mut self.deployment.image);
        self.deployment.image_by = BTreeMap::from([(manager.to_owned(), self.now)]);
        self.touch(true);
    }

    /// What an image does: its patch number says it.
    pub(crate) fn behaviour(image: &str) -> Option<&'static str> {
        match image.rsplit('.').next()?.parse::<u32>().ok()? % 10 {
            3 => Some("ImagePullBackOff"),
            5 => Some("CrashLoopBackOff"),
            7 => Some("Pending"),
            _ => None,
        }
    }

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

    fn numbers(&self) -> (i32, i32, i32) {
        let deployment = &self.deployment;
        let count = |holds: &dyn Fn(&Pod) -> bool| {
            i32::try_from(deployment.pods.iter().filter(|pod| holds(pod)).count()).unwrap()
        };
        let is_new = |pod: &Pod| pod.image == deployment.image;
        (count(&|_| true), count(&is_new), count(&|pod| pod.ready))
    }

    /// Its status is written.
    pub(crate) fn count(&mut self) -> bool {
        let (replicas, updated, available) = self.numbers();
        let deployment = &mut self.deployment;
        let old = (deployment.replicas, deployment.updated, deployment.available);
        if old != (replicas, updated, available) {
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
        old != (replicas, updated, available)
    }

    /// It makes or removes one pod; surge 1, none unavailable.
    pub(crate) fn controller_acts(&mut self) -> bool {
        let (replicas, updated, available) = self.numbers();
        let deployment = &mut self.deployment;
        let image = deployment.image.clone();
        let wanted = deployment.wanted;
        let is_new = |pod: &Pod| pod.image == image;
        let surplus = if replicas > wanted || deployment.paused {
            let old_unready = deployment.pods.iter().position(|pod| !is_new(pod) && !pod.ready);
            let old = deployment.pods.iter().position(|pod| !is_new(pod) && available > wanted);
            let any = deployment.pods.iter().rposition(|pod| updated > wanted && is_new(pod));
            old_unready.or(old).or(any).filter(|_| !deployment.paused || replicas > wanted)
        } else {
            None
        };
        let surplus = surplus.or_else(|| (wanted == 0 && replicas > 0).then_some(0));
        if let Some(index) = surplus {
            deployment.pods.remove(index);
        } else if !deployment.paused && updated < wanted && replicas < wanted + 1 {
            self.next += 1;
            let name = format!("web-{}", self.next);
            let created = self.now;
            deployment.pods.push(Pod {
                name,
                image,
                created,
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
        for pod in &mut self.deployment.pods {
            // A pinned or mirrored reference is as good as its tag.
            let image = origin(&pod.image);
            let exists = registry.contains(&image);
            let fate = if exists { Self::behaviour(&image) } else { Some("ImagePullBackOff") };
            match fate {
                None if !pod.ready => {
                    pod.ready = true;
                    pod.waiting = None;
                    return true;
                }
                Some("Pending") | None => {}
                Some(reason) if pod.waiting.is_none() => {
                    pod.waiting = Some(reason);
                    pod.restarts = 4;
                    return true;
                }
                Some(_) => {}
            }
        }
        false
    }

    /// Everything that is not the operator moves until it stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let mut moved = self.controller_observes();
            moved |= self.controller_acts();
            moved |= self.kubelet();
            moved |= self.count();
            if !moved {
                return;
            }
            self.touch(false);
        }
    }

    pub(crate) fn workload(&self) -> WorkloadFacts {
        let deployment = &self.deployment;
        let held = |(manager, time): (&String, &i64)| HeldBy {
            manager: manager.clone(),
            applies: manager == "belay-operator",
            time: Some(at(*time)),
        };
        let mut annotations = deployment.annotations.clone();
        if let Some(release) = &deployment.release {
            annotations.insert("belay.dev/release".to_owned(), release.clone());
        }
        WorkloadFacts {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            uid: deployment.uid.to_string(),
            resource_version: deployment.version.to_string(),
            created: at(deployment.created),
            deleting: false,
            annotations,
            annotation_held_by: deployment
                .release_by
                .iter()
                .map(|manager| held((manager, &0)))
                .collect(),
            containers: vec![ContainerState {
                live: LiveContainer {
                    name: "app".parse().unwrap(),
                    image: deployment.image.clone(),
                },
                held_by: deployment.image_by.iter().map(held).collect(),
            }],
            rollout: Facts {
                generation: deployment.generation,
                observed_generation: deployment.observed_generation,
                images_are_stored: false,
                paused: deployment.paused,
                wanted: deployment.wanted,
                replicas: deployment.replicas,
                updated: deployment.updated,
                available: deployment.available,
                progressing: Some(ProgressingFacts {
                    reason: deployment.reason.to_owned(),
                    last_update: Some(at(deployment.last_update)),
                }),
                progress_deadline: Some(600),
                replica_failure: None,
                pods: None,
            },
        }
    }

    pub(crate) fn pods(&self) -> Vec<PodFacts> {
        let is_new = |pod: &Pod| pod.image == self.deployment.image;
        self.deployment
            .pods
            .iter()
            .map(|pod| PodFacts {
                name: pod.name.clone(),
                is_new: is_new(pod),
                created: at(pod.created),
                started: Some(at(pod.created)),
                ready: pod.ready,
                deleting: false,
                disrupted: false,
                unschedulable: None,
                containers: vec![ContainerFacts {
                    name: "app".parse().unwrap(),
                    waiting: pod.waiting.map(ToOwned::to_owned),
                    message: pod.waiting.map(|_| "manifest unknown".to_owned()),
                    restarts: pod.restarts,
                    pulled: pod.ready,
                }],
            })
            .collect()
    }
}

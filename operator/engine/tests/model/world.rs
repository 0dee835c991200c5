//! The world: what exists. Everything that the operator can see stands in one `Observed`, which is
//! changed in place: a pass must cost no copy of the world.

use std::collections::{BTreeMap, BTreeSet};

use belay_api::{AnnotationPrefix, Release, Rollback};
use belay_engine::{
    Timestamp,
    annotations::{ContainerName, LiveContainer},
    observed::{Fact, Forge, Handicaps, HeldBy, Observed, Refusal, Surroundings, TargetRecord},
    selection::{GithubRelease, GithubReleases},
    settings::Settings,
};

use crate::{
    deployment::Deployment,
    keda::{Keda, ScaledObject},
};

pub(crate) const REPOSITORY: &str = "ghcr.io/acme/web";
pub(crate) const US: &str = "belay-operator";
pub(crate) const START: i64 = 1_800_000_000;
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

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) is_shown: bool,
    pub(crate) now: i64,
    pub(crate) version: u64,
    pub(crate) settings: Settings,
    pub(crate) deployment: Deployment,
    pub(crate) keda: Keda,
    /// What the operator sees, and what it remembers: registry answers and the last refusal.
    pub(crate) seen: Observed,
    /// The version of the workload that was shown last.
    shown: u64,
    pub(crate) github: Vec<GithubRelease>,
    pub(crate) registry: BTreeSet<String>,
    /// Tags that name another image than before.
    pub(crate) moved: BTreeSet<String>,
    /// Whether admission puts a mirror's host into images.
    pub(crate) mirrors: bool,
    /// How the next applies end.
    pub(crate) trouble: Vec<Refusal>,
    pub(crate) forge_is_down: bool,
    pub(crate) registry_is_down: bool,
    /// Whether the operator watches pods: the last plan asked for it.
    pub(crate) watches_pods: bool,
    /// How the last change of the image by a person was made.
    pub(crate) by_person: Option<Person>,
    pub(crate) next: u32,
    pub(crate) passes: u32,
    /// What happened, to know that the world gets everywhere.
    pub(crate) met: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Edit,
    Undo,
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn known<T>(value: T) -> Fact<T> {
    Fact::known(value, at(START))
}

impl World {
    pub(crate) fn new(seed: u64, is_shown: bool) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..5 {
            dice.roll(2);
        }
        let deployment = Deployment::of(&[("app", &format!("{REPOSITORY}:1.0.0"))], START - 1000);
        let forge = Forge::Found {
            repository_id: 7,
            releases: GithubReleases::default(),
            is_anonymous: false,
            is_low: false,
        };
        let seen = Observed {
            namespace: "shop".to_owned(),
            workload: known(None),
            target: known(None),
            releases: known(Vec::new()),
            rollbacks: known(Vec::new()),
            forge: known(forge),
            images: BTreeMap::new(),
            pods: known(Vec::new()),
            surroundings: known(Surroundings::default()),
            refused: None,
            pause_refused: None,
            scaler: None,
            claims: Vec::new(),
            handicaps: Handicaps::default(),
        };
        let mut world = Self {
            dice,
            is_shown,
            now: START,
            version: 1,
            settings: Settings::default(),
            deployment,
            keda: Keda::default(),
            seen,
            shown: 0,
            github: Vec::new(),
            registry: BTreeSet::new(),
            moved: BTreeSet::new(),
            mirrors: false,
            trouble: Vec::new(),
            forge_is_down: false,
            registry_is_down: false,
            watches_pods: false,
            by_person: None,
            next: 1,
            passes: 0,
            met: BTreeMap::new(),
        };
        world.publish("1.0.0", true);
        if world.dice.roll(3) == 0 {
            world.annotate("range", Some("^1"));
        }
        world.mirrors = world.dice.roll(8) == 0;
        if world.dice.roll(6) == 0 {
            world.annotate("on-failure", Some("stop"));
        }
        if world.dice.roll(8) == 0 {
            world.annotate("digest", Some("true"));
        }
        if world.dice.roll(2) == 0 {
            world.scale();
        }
        match world.dice.roll(6) {
            0 => world.add_container("worker"),
            1 => world.add_container("init:migrate"),
            _ => {}
        }
        world
    }

    /// KEDA scales the workload.
    pub(crate) fn scale(&mut self) {
        self.settings.scaled_objects = true;
        self.keda.objects = vec![ScaledObject::new("web", 1)];
        self.keda.is_old = self.dice.roll(8) == 0;
        self.annotate("scaledobject", Some("web"));
        if self.dice.roll(3) == 0 {
            let mode = *self.dice.pick(&["scale-in", "full"]);
            self.annotate("pause", Some(mode));
        }
    }

    /// A second container of the same image, that is followed too.
    pub(crate) fn add_container(&mut self, name: &str) {
        let second = self.deployment.containers[0].clone();
        self.deployment
            .containers
            .push(crate::deployment::Part { name: name.parse().unwrap(), ..second });
        self.annotate("container", Some(&format!("app,{name}")));
    }

    pub(crate) fn show(&self, what: impl FnOnce() -> String) {
        if self.is_shown {
            println!("{:>7} {}", self.now - START, what());
        }
    }

    pub(crate) fn meet(&mut self, what: &str) {
        if let Some(count) = self.met.get_mut(what) {
            *count += 1;
        } else {
            self.met.insert(what.to_owned(), 1);
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
        self.show_forge();
    }

    /// GitHub's answer, as it would be now.
    pub(crate) fn show_forge(&mut self) {
        let read = at(self.now);
        if self.forge_is_down {
            let why = "GitHub cannot be reached".to_owned();
            self.seen.forge = Fact::Unknown { why, read };
            return;
        }
        let latest = self.github.iter().max_by_key(|release| release.published);
        let releases = GithubReleases {
            items: self.github.clone(),
            latest: latest.map(|release| release.tag.clone()),
            truncated: false,
        };
        let found = Forge::Found { repository_id: 7, releases, is_anonymous: false, is_low: false };
        self.seen.forge = Fact::known(found, read);
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

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.deployment.annotations.get(&format!("belay.dev/{name}")).map(String::as_str)
    }

    pub(crate) fn touch(&mut self, is_spec: bool) {
        self.version += 1;
        self.deployment.version = self.version;
        self.deployment.generation += i64::from(is_spec);
    }

    /// Somebody writes the image of all containers, by update: he owns them alone.
    pub(crate) fn write_image(&mut self, manager: &str, image: &str) {
        self.write_some(manager, image, |_| true);
    }

    /// Somebody writes the image of some containers.
    pub(crate) fn write_some(&mut self, manager: &str, image: &str, which: fn(usize) -> bool) {
        let now = self.now;
        let mut changed = false;
        for (index, part) in self.deployment.containers.iter_mut().enumerate() {
            if which(index) && part.image != image {
                image.clone_into(&mut part.image);
                part.owners = BTreeMap::from([(manager.to_owned(), now)]);
                changed = true;
            }
        }
        if changed {
            self.touch(true);
        }
    }

    /// The image of the first container.
    pub(crate) fn image(&self) -> &str {
        &self.deployment.containers[0].image
    }

    pub(crate) fn releases(&self) -> &[Release] {
        self.seen.releases.value().unwrap()
    }

    pub(crate) fn rollbacks(&self) -> &[Rollback] {
        self.seen.rollbacks.value().unwrap()
    }

    pub(crate) fn target(&self) -> Option<&TargetRecord> {
        self.seen.target.value().unwrap().as_ref()
    }

    pub(crate) fn release(&self, name: &str) -> Option<&Release> {
        self.releases().iter().find(|one| one.metadata.name.as_deref() == Some(name))
    }

    pub(crate) fn rollback(&self, name: &str) -> Option<&Rollback> {
        self.rollbacks().iter().find(|one| one.metadata.name.as_deref() == Some(name))
    }

    /// The operator's stores catch up with the workload.
    pub(crate) fn show_workload(&mut self) {
        if self.shown != self.deployment.version {
            self.shown = self.deployment.version;
            let workload = self.deployment.facts();
            self.seen.workload = Fact::known(Some(workload), at(self.now));
        }
        self.seen.pods = if self.watches_pods {
            Fact::known(self.deployment.pod_facts(), at(self.now))
        } else {
            Fact::Unknown { why: String::new(), read: at(self.now) }
        };
    }
}

pub(crate) fn value_mut<T>(fact: &mut Fact<T>) -> &mut T {
    match fact {
        Fact::Known { value, .. } => value,
        Fact::Unknown { why, .. } => panic!("not known: {why}"),
    }
}

pub(crate) fn held(manager: &str, time: i64) -> HeldBy {
    HeldBy { manager: manager.to_owned(), applies: manager == US, time: Some(at(time)) }
}

pub(crate) fn live(name: &ContainerName, image: &str) -> LiveContainer {
    LiveContainer { name: name.clone(), image: image.to_owned() }
}

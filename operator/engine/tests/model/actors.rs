//! Everybody else, and time.

use belay_api::{
    Rollback,
    rollback::{Driver, Initiator, InitiatorType, RollbackSpec, ToReleaseRef},
};
use belay_engine::observed::Refusal;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::{
    operator::{Crash, Did},
    world::{Person, REPOSITORY, World, at, value_mut},
};

const VERSIONS: [&str; 12] = [
    "1.0.1", "1.1.0", "1.1.3", "1.2.0", "1.2.5", "1.3.0", "1.4.7", "1.5.0", "1.6.3", "1.7.0",
    "2.0.0", "2.0.5",
];

impl World {
    pub(crate) fn random_move(&mut self) -> Result<(), String> {
        match self.dice.roll(51) {
            0..=7 => self.passes()?,
            8..=11 => self.work()?,
            12 => self.crash(Crash::BeforeTheStep)?,
            13 | 14 => self.crash(Crash::AfterTheStep)?,
            15 => _ = self.controller_observes(),
            16 => _ = self.controller_acts(),
            17 => {
                self.kubelet();
                self.touch(false);
            }
            18 => {
                self.count();
                self.touch(false);
            }
            19..=21 => self.settle(),
            22..=24 => {
                let seconds =
                    *self.dice.pick(&[1, 5, 29, 31, 60, 61, 120, 600, 601, 3_600, 90_000]);
                self.now += seconds;
                self.show(|| format!("time passes: {seconds} s"));
            }
            25..=27 => {
                let version = (*self.dice.pick(&VERSIONS)).to_owned();
                let has_image = self.dice.roll(4) > 0;
                self.show(|| format!("GitHub publishes {version}, image: {has_image}"));
                self.publish(&version, has_image);
            }
            28 => {
                let tags: Vec<_> = self.github.iter().map(|one| one.tag.clone()).collect();
                let tag = self.dice.pick(&tags).trim_start_matches('v').to_owned();
                self.registry.insert(format!("{REPOSITORY}:{tag}"));
            }
            29 => self.person_edits(),
            30 => self.person_undoes(),
            31 | 32 => self.helm(),
            33 => self.person_rolls_back(),
            34 => self.person_annotates(),
            35 => {
                let wanted = *self.dice.pick(&[0, 1, 2, 3]);
                self.show(|| format!("scaled to {wanted}"));
                self.deployment.wanted = wanted;
                self.touch(true);
            }
            36 => {
                self.deployment.paused = !self.deployment.paused;
                self.show(|| format!("paused: {}", self.deployment.paused));
                self.touch(true);
            }
            37 => match self.dice.roll(9) {
                0 => self.made_anew(),
                8 => self.twin(),
                1 => self.argocd(),
                2 => {
                    let images: Vec<_> = self.registry.iter().cloned().collect();
                    let image = self.dice.pick(&images).clone();
                    self.show(|| format!("{image} is another image now"));
                    self.moved.insert(image);
                }
                3 => self.mirrors = !self.mirrors,
                4 => self.fight()?,
                _ => self.applies_fail(),
            },
            38 => {
                self.forge_is_down = !self.forge_is_down;
                self.show_forge();
            }
            39 | 40 => {
                self.show(|| "somebody changes the rest of the template".to_owned());
                self.deployment.env = (self.deployment.env + 1) % 3;
                self.touch(true);
            }
            41 => self.pod_changes(),
            43 | 44 => {
                self.keda_acts();
            }
            45..=50 => self.keda_moves(),
            _ => self.registry_is_down = !self.registry_is_down,
        }
        Ok(())
    }

    fn passes(&mut self) -> Result<(), String> {
        for _ in 0..=self.dice.roll(6) {
            self.pass(Crash::Never)?;
        }
        Ok(())
    }

    /// The operator and Kubernetes get as far as they can within two minutes.
    fn work(&mut self) -> Result<(), String> {
        let end = self.now + 120;
        for _ in 0..60 {
            self.settle();
            let (did, plan) = self.pass(Crash::Never)?;
            let wake = plan.wake.map_or(end, |wake| wake.as_second().max(self.now + 1));
            if did == Did::default() {
                if wake > end {
                    return Ok(());
                }
                self.now = wake;
            }
        }
        Ok(())
    }

    fn crash(&mut self, crash: Crash) -> Result<(), String> {
        self.show(|| format!("crash {crash:?}"));
        self.pass(crash).map(|_| ())
    }

    fn person_edits(&mut self) {
        let version =
            (*self.dice.pick(&["1.0.0", "1.1.0", "1.2.0", "3.0.0", "1.2.5", "main"])).to_owned();
        let image = format!("{REPOSITORY}:{version}");
        self.show(|| format!("a person sets {image}"));
        self.registry.insert(image.clone());
        if self.image() != image {
            match self.dice.roll(3) {
                0 => self.write_some("kubectl-edit", &image, |index| index == 0),
                _ => self.write_image("kubectl-edit", &image),
            }
            self.by_person = Some(if self.is_as_annotated() { Person::Undo } else { Person::Edit });
        }
    }

    /// Whether image and annotation name one of our Releases, however that came about.
    fn is_as_annotated(&self) -> bool {
        let named = self.deployment.release.as_ref().and_then(|name| self.release(name));
        let images = named.and_then(|release| release.status.as_ref()).map(|one| &one.images);
        self.deployment.containers.iter().all(|part| {
            let name = part.name.to_string();
            images.into_iter().flatten().any(|image| {
                image.container == name
                    && (image.stored.as_ref() == Some(&part.image) || image.asked == part.image)
            })
        })
    }

    fn person_undoes(&mut self) {
        let known: Vec<_> = self
            .releases()
            .iter()
            .filter_map(|release| {
                let image = release.status.as_ref()?.images.first()?;
                Some((release.metadata.name.clone()?, image.stored.clone()?))
            })
            .collect();
        if known.is_empty() {
            return;
        }
        let (name, image) = self.dice.pick(&known).clone();
        self.show(|| format!("a person undoes to {image}"));
        if self.image() != image {
            self.write_image("kubectl", &image);
            self.deployment.release = Some(name);
            self.deployment.release_by = ["kubectl".to_owned()].into();
            self.by_person = Some(Person::Undo);
        }
    }

    /// `helm upgrade` puts the chart's image back, or `helm rollback` an earlier one.
    fn helm(&mut self) {
        let version = (*self.dice.pick(&["1.0.0", "1.0.0", "1.1.0", "1.2.0", "2.0.0"])).to_owned();
        let image = format!("{REPOSITORY}:{version}");
        self.show(|| format!("helm sets {image}"));
        if self.image() != image {
            self.write_image("helm", &image);
            self.by_person = None;
        }
    }

    /// Helm puts its image back whenever it is changed.
    fn fight(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            self.helm();
            for _ in 0..3 {
                self.work()?;
                self.now += 100;
            }
        }
        Ok(())
    }

    fn applies_fail(&mut self) {
        let message = "because".to_owned();
        let cause = match self.dice.roll(3) {
            0 => Refusal::Denied { message },
            _ => Refusal::Failed { message },
        };
        let times = 1 + self.dice.roll(4);
        self.show(|| format!("{times} applies fail: {cause:?}"));
        self.trouble = vec![cause; times];
    }

    fn argocd(&mut self) {
        self.show(|| "argocd sets its image".to_owned());
        self.write_image("argocd-controller", &format!("{REPOSITORY}:1.0.0"));
        self.by_person = None;
    }

    fn person_rolls_back(&mut self) {
        let names: Vec<_> =
            self.releases().iter().filter_map(|release| release.metadata.name.clone()).collect();
        let name = if self.dice.roll(2) == 0 || names.is_empty() {
            String::new()
        } else {
            self.dice.pick(&names).clone()
        };
        self.next += 1;
        let own = format!("web-by-hand-{}", self.next);
        let force = self.dice.roll(3) == 0;
        self.ask_back(&own, name, force);
    }

    /// A person creates a Rollback; to the latest healthy Release without a name.
    pub(crate) fn ask_back(&mut self, own: &str, name: String, force: bool) {
        let own = own.to_owned();
        self.show(|| format!("a person creates the Rollback {own} to {name:?}"));
        let spec = RollbackSpec {
            to_release_ref: ToReleaseRef { target: "web".to_owned(), name },
            reason: "because".to_owned(),
            initiated_by: Initiator { principal: "alice".to_owned(), type_: InitiatorType::User },
            driver: Driver::Native,
            deployment_options: std::collections::BTreeMap::new(),
            force,
            timeout: belay_api::rollback::DEFAULT_TIMEOUT,
        };
        let metadata = ObjectMeta {
            name: Some(own.clone()),
            uid: Some(own),
            resource_version: Some("0".to_owned()),
            creation_timestamp: Some(Time(at(self.now))),
            ..ObjectMeta::default()
        };
        value_mut(&mut self.seen.rollbacks).push(Rollback { metadata, spec, status: None });
    }

    fn person_annotates(&mut self) {
        match self.dice.roll(6) {
            0 => self.annotate("hold", Some("true")),
            1 | 2 => self.annotate("hold", None),
            3 => {
                let tags: Vec<_> = self.github.iter().map(|one| one.tag.clone()).collect();
                let tag = self.dice.pick(&tags).clone();
                self.show(|| format!("allow {tag}"));
                self.annotate("allow", Some(&tag));
            }
            4 => self.annotate("hold", Some("1.0.0")),
            _ => {
                let owners = &self.deployment.containers[0].owners;
                let Some(manager) = owners.keys().next() else { return };
                let value = format!("{manager}={}", self.image());
                self.show(|| format!("adopt {value}"));
                self.annotate("adopt", Some(&value));
            }
        }
    }

    /// The older of two workloads goes, and the younger one, which was there for long, takes the
    /// target and its record over.
    fn twin(&mut self) {
        let record = self.target().cloned();
        self.made_anew();
        self.show(|| "it is a twin".to_owned());
        *value_mut(&mut self.seen.target) = record;
        self.deployment.created -= 1_000;
    }

    /// `helm uninstall` and `helm install`.
    pub(crate) fn made_anew(&mut self) {
        self.show(|| "the workload is made anew".to_owned());
        self.now += 1;
        *value_mut(&mut self.seen.target) = None;
        let now = self.now;
        let deployment = &mut self.deployment;
        deployment.uid += 1;
        deployment.created = now;
        deployment.generation = 1;
        deployment.observed_generation = 0;
        for part in &mut deployment.containers {
            part.image = format!("{REPOSITORY}:1.0.0");
            part.owners = [("helm".to_owned(), now)].into();
        }
        deployment.release = None;
        deployment.release_by.clear();
        deployment.pods.clear();
        (deployment.replicas, deployment.updated, deployment.available) = (0, 0, 0);
        self.by_person = None;
        self.touch(false);
    }

    /// Nobody but the operator and Kubernetes does anything any more.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), String> {
        self.show(|| "now the world is left alone".to_owned());
        self.forge_is_down = false;
        self.show_forge();
        self.registry_is_down = false;
        self.keda.is_down = false;
        self.keda.is_unreadable = false;
        // Longer than all that the operator waits for, one after the other: a day after a tug of war,
        // and an hour for each image that is missing.
        let end = self.now + 48 * 3_600;
        let mut in_vain = 0;
        for _ in 0..2_000 {
            self.settle();
            let (did, plan) = self.pass(Crash::Never)?;
            if did.wrote && self.now > end - 3_600 {
                return Err(format!("it still writes: {:?} {:?}", plan.step, plan.status));
            }
            if did != Did::default() {
                in_vain = if did.wrote { 0 } else { in_vain + 1 };
                continue;
            }
            let ahead = plan.wake.map(|wake| wake.as_second().max(self.now + 1));
            let Some(wake) = ahead.filter(|wake| *wake <= end) else {
                self.check_rest().map_err(|error| format!("{error}; {plan:?}"))?;
                return self.stay_at_rest();
            };
            // What was asked for in vain ten times over will not be answered any more.
            self.now = if in_vain > 10 { wake.max(self.now + 3_601) } else { wake };
        }
        Err("it does not come to rest".to_owned())
    }

    fn stay_at_rest(&mut self) -> Result<(), String> {
        for pass in 0..50 {
            let (did, plan) = self.pass(Crash::Never)?;
            if did.wrote {
                return Err(format!("quiet pass {pass} wrote: {:?} {:?}", plan.step, plan.status));
            }
            self.now += 1;
        }
        Ok(())
    }
}

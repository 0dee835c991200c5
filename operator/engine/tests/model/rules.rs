//! What must never happen.

use belay_api::{
    Release, Rollback,
    gates::Verdict,
    release::{Activation, ReleaseStatus},
    rollback::{InitiatorType, RollbackStatus},
    target::TargetStatus,
};
use belay_engine::{
    block::Block,
    plan::{Intent, Plan, Step},
    version::{Rank, TagPattern, Version, parse_version},
};

use crate::world::{Person, REPOSITORY, World, origin};

fn version_of(image: &str) -> Option<Version> {
    parse_version(origin(image).strip_prefix(REPOSITORY)?.strip_prefix(':')?)
}

fn last(release: &Release) -> Option<&Activation> {
    release.status.as_ref()?.activations.last()
}

fn verdict(activation: Option<&Activation>) -> Option<Verdict> {
    activation?.verdict.as_ref()?.known()
}

fn tag(release: &Release) -> &str {
    &release.config().revisions[0].id
}

fn block(release: &Release) -> Option<Block> {
    let annotations = release.metadata.annotations.as_ref()?;
    annotations.get("belay.dev/blocked").and_then(|text| Block::parse(text).ok())
}

impl World {
    pub(crate) fn check_step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Apply(intent) => {
                self.check_pause(intent)?;
                self.check_apply(intent)
            }
            Step::CreateRollback(rollback) => self.check_system_rollback(rollback),
            _ => Ok(()),
        }
    }

    /// Exactly the followed containers, each to what an accepted Release names.
    fn check_images(&self, intent: &Intent) -> Result<&Release, &'static str> {
        let deployment = &self.deployment;
        let named: Vec<_> = intent.images.iter().map(|one| &one.container).collect();
        let all: Vec<_> = deployment.containers.iter().map(|part| &part.name).collect();
        if named != all {
            return Err("not exactly the followed containers");
        }
        let release = self.release(&intent.release).ok_or("an image without a Release")?;
        let images = release.status.as_ref().map(|status| status.images.as_slice());
        let images = images.unwrap_or_default();
        let is_asked = |one: &belay_engine::plan::IntendedImage| {
            let container = one.container.to_string();
            let known = images.iter().find(|known| known.container == container);
            let known = known.or(images.first());
            known.is_some_and(|known| {
                // By digest only where the tag names another image now.
                let pinned = known.digest.as_ref().map(|digest| format!("{REPOSITORY}@{digest}"));
                known.asked == one.image || pinned.as_ref() == Some(&one.image)
            })
        };
        if !intent.images.iter().all(is_asked) {
            return Err("an image that its Release does not name");
        }
        Ok(release)
    }

    fn check_apply(&self, intent: &Intent) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {intent:?}"));
        let release = match self.check_images(intent) {
            Ok(release) => release,
            Err(what) => return wrong(what),
        };
        let deployment = &self.deployment;
        let owners = || deployment.containers.iter().flat_map(|part| part.owners.keys());
        if owners().any(|one| one.starts_with("argocd")) {
            return wrong("a GitOps controller owns the image");
        }
        let rollback = self.rollbacks().iter().find(|rollback| {
            rollback.status.as_ref().is_some_and(|status| {
                !status.is_terminal()
                    && status.attempt_count == intent.attempt
                    && status.to_release_ref.as_ref().is_some_and(|to| to.name == intent.release)
            })
        });
        if let Some(attempt) = intent.attempt {
            if rollback.is_none() || !(1..=3).contains(&attempt) {
                return wrong("an attempt that was not counted");
            }
        } else {
            self.check_forward(intent, release)?;
        }
        if intent.force && self.by_person == Some(Person::Edit) {
            let by_user = rollback
                .is_some_and(|rollback| rollback.spec.initiated_by.type_ == InitiatorType::User);
            if !by_user && self.annotation("adopt").is_none() {
                return wrong("force against a person");
            }
        }
        Ok(())
    }

    /// A move that no Rollback asks for.
    fn check_forward(&self, intent: &Intent, release: &Release) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {intent:?}"));
        let deployment = &self.deployment;
        let image = intent.images[0].image.as_str();
        let is_lower = |part: &crate::deployment::Part| {
            let live = version_of(&part.image);
            // Away from what is refused there is no other way.
            live.as_ref().zip(version_of(image)).is_some_and(|(live, new)| {
                new < *live && !self.is_refused(&format!("v{live}"), Some(live))
            })
        };
        if deployment.containers.iter().all(is_lower) {
            return wrong("a lower version without a Rollback");
        }
        if deployment.paused {
            return wrong("a move of a paused workload");
        }
        let is_new = last(release).is_none();
        if is_new && self.annotation("hold").is_some() {
            return wrong("a forward move of a held target");
        }
        let bare = image.split('@').next().unwrap_or_default();
        if is_new && !self.registry.contains(bare) && !self.seen.images.contains_key(bare) {
            return wrong("an image that the registry was not asked for");
        }
        let is_rolling = deployment.observed_generation >= deployment.generation
            && deployment.replicas != deployment.updated
            && self.is_healthy_target();
        if is_new && is_rolling && self.now < self.last_move() + 600 {
            return wrong("a move in the middle of a rollout of others");
        }
        self.check_blocks(intent, release)
    }

    /// Whether what is active was judged healthy: whatever rolls now is others' doing.
    fn is_healthy_target(&self) -> bool {
        let open = self
            .releases()
            .iter()
            .filter_map(last)
            .find(|activation| activation.end_time.is_none());
        verdict(open) == Some(Verdict::Healthy)
    }

    /// When Kubernetes last saw a rollout move.
    fn last_move(&self) -> i64 {
        let workload = self.seen.workload.value().and_then(Option::as_ref);
        let progressing = workload.and_then(|workload| workload.rollout.progressing.as_ref());
        progressing
            .filter(|one| one.reason == "ReplicaSetUpdated")
            .and_then(|one| one.last_update)
            .map_or(i64::MIN / 2, belay_engine::Timestamp::as_second)
    }

    fn is_refused(&self, tag: &str, version: Option<&Version>) -> bool {
        let pattern = TagPattern::default();
        let published = self.github.iter().find(|one| one.tag == tag).and_then(|one| one.published);
        let rank = Rank { version: version.cloned(), published };
        self.releases().iter().filter_map(block).any(|block| {
            block.until.is_none_or(|until| until.as_second() > self.now)
                && block.covers(tag, &rank, &pattern)
        })
    }

    /// No Release that was left is gone to forwards, unless `allow` names it.
    fn check_blocks(&self, intent: &Intent, release: &Release) -> Result<(), String> {
        let tag = tag(release);
        if self.annotation("allow") == Some(tag) {
            return Ok(());
        }
        let pattern = TagPattern::default();
        let version = pattern.version_of(tag).and_then(parse_version);
        if self.is_refused(tag, version.as_ref()) {
            return Err(format!("a blocked Release: {intent:?}"));
        }
        let is_over = block(release).is_some_and(|block| block.until.is_some());
        if verdict(last(release)) == Some(Verdict::Failed) && !is_over {
            return Err(format!("a Release that failed and is not blocked: {intent:?}"));
        }
        Ok(())
    }

    fn check_system_rollback(&self, rollback: &Rollback) -> Result<(), String> {
        let name = rollback.metadata.name.as_deref().unwrap_or_default();
        if self.rollback(name).is_some() {
            return Err(format!("a second Rollback for one activation: {name}"));
        }
        Ok(())
    }

    /// What the API server's rules would refuse, and what a verdict needs.
    pub(crate) fn check_release(
        &self,
        new: &ReleaseStatus,
        old: Option<&ReleaseStatus>,
    ) -> Result<(), String> {
        let none = ReleaseStatus::default();
        let old = old.unwrap_or(&none);
        self.check_bake(new, old)?;
        if old.previous_release.is_some() && old.previous_release != new.previous_release {
            return Err("previousRelease changed".to_owned());
        }
        for one in &old.activations {
            let Some(now) = new.activations.iter().find(|now| now.ordinal == one.ordinal) else {
                return Err("an activation was lost".to_owned());
            };
            if one.verdict.is_some() && one.verdict != now.verdict {
                return Err("a verdict changed".to_owned());
            }
            if one.end_time.is_some() && one.end_time != now.end_time {
                return Err("an activation ended twice".to_owned());
            }
        }
        let healthy = Some(Verdict::Healthy);
        if verdict(new.activations.last()) == healthy && verdict(old.activations.last()) != healthy
        {
            let deployment = &self.deployment;
            let is_live = deployment.containers.iter().all(|part| {
                let name = part.name.to_string();
                let image = new.images.iter().find(|image| image.container == name);
                image.is_some_and(|image| image.stored.as_ref() == Some(&part.image))
            });
            if !is_live
                || deployment.observed_generation < deployment.generation
                || deployment.replicas != deployment.updated
                || deployment.available == 0
            {
                return Err("healthy without evidence".to_owned());
            }
        }
        Ok(())
    }

    pub(crate) fn check_rollback(
        &self,
        new: &RollbackStatus,
        old: &Rollback,
    ) -> Result<(), String> {
        let is_system = old.spec.initiated_by.type_ == InitiatorType::System;
        let none = RollbackStatus::default();
        let old = old.status.as_ref().unwrap_or(&none);
        if old.is_terminal() && new != old {
            return Err("an ended Rollback changed".to_owned());
        }
        if new.attempt_count.is_some_and(|count| !(1..=3).contains(&count)) {
            return Err("too many attempts".to_owned());
        }
        if is_system && old.start_time.is_none() && new.start_time.is_some() {
            let to = new.to_release_ref.as_ref().and_then(|to| self.release(&to.name));
            if verdict(to.and_then(last)) != Some(Verdict::Healthy) {
                return Err("an automatic Rollback to what is not known to be healthy".to_owned());
            }
        }
        if old.to_release_ref.is_some() && new.to_release_ref != old.to_release_ref {
            return Err("a Rollback changed its aim".to_owned());
        }
        Ok(())
    }

    /// What a status must not say.
    pub(crate) fn check_status(&self, status: &TargetStatus, plan: &Plan) -> Result<(), String> {
        let active = status.active.as_ref().and_then(|name| self.release(name));
        let open = active.and_then(last).filter(|last| last.end_time.is_none());
        let is_judged = open.is_none_or(|open| open.verdict.is_some());
        let is_followed = self.annotation("mode").is_none() && plan.look.is_empty();
        if !is_judged && is_followed && self.deployment.wanted > 0 && !plan.pods {
            return Err("a rollout is judged without its pods".to_owned());
        }
        if status.instance.as_ref() != Some(&self.settings.instance) {
            return Err("a status without its operator".to_owned());
        }
        Ok(())
    }

    pub(crate) fn check_world(&self) -> Result<(), String> {
        let is_open =
            |release: &&Release| last(release).is_some_and(|last| last.end_time.is_none());
        let mut open = self.releases().iter().filter(is_open);
        match (open.next(), open.next()) {
            (Some(one), Some(other)) => {
                let names = [&one.metadata.name, &other.metadata.name];
                Err(format!("two active Releases: {names:?}"))
            }
            _ => Ok(()),
        }
    }
}

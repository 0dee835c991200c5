//! What must never happen.

use belay_api::{Release, Rollback, gates::Verdict, release::Activation, rollback::InitiatorType};
use belay_engine::{
    block::Block,
    plan::{Intent, Step},
    version::{Rank, TagPattern, Version, parse_version},
};

use crate::world::{Person, REPOSITORY, World, origin};

fn version_of(image: &str) -> Option<Version> {
    parse_version(origin(image).strip_prefix(REPOSITORY)?.strip_prefix(':')?)
}

fn last(release: &Release) -> Option<&Activation> {
    release.status.as_ref()?.activations.last()
}

impl World {
    pub(crate) fn check_step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Apply(intent) => self.check_apply(intent),
            Step::CreateRollback(rollback) => self.check_system_rollback(rollback),
            _ => Ok(()),
        }
    }

    fn check_apply(&self, intent: &Intent) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {intent:?}"));
        let [image] = intent.images.as_slice() else { return wrong("not exactly one container") };
        let image = image.image.as_str();
        let Some(release) = self.releases.get(&intent.release) else {
            return wrong("an image without a Release");
        };
        let status = release.status.clone().unwrap_or_default();
        if status.images.first().is_none_or(|one| one.asked != image.split('@').next().unwrap()) {
            return wrong("an image that its Release does not name");
        }
        let deployment = &self.deployment;
        if deployment.image_by.keys().any(|one| one.starts_with("argocd")) {
            return wrong("a GitOps controller owns the image");
        }
        let by_tool = deployment.image_by.keys().all(|one| one == "helm");
        let rollback = self.rollbacks.values().find(|rollback| {
            let status = rollback.status.clone().unwrap_or_default();
            !status.is_terminal()
                && status.attempt_count == intent.attempt
                && status.to_release_ref.is_some_and(|to| to.name == intent.release)
        });
        if let Some(attempt) = intent.attempt {
            if rollback.is_none() || !(1..=3).contains(&attempt) {
                return wrong("an attempt that was not counted");
            }
        } else {
            let is_lower = version_of(image)
                .zip(version_of(&deployment.image))
                .is_some_and(|(new, live)| new < live);
            if is_lower && !by_tool {
                return wrong("a lower version without a Rollback");
            }
            if deployment.paused {
                return wrong("a move of a paused workload");
            }
            let is_new = last(release).is_none();
            if is_new && deployment.annotations.contains_key("belay.dev/hold") {
                return wrong("a forward move of a held target");
            }
            if is_new && !self.registry.contains(image) && !self.answers.contains_key(image) {
                return wrong("an image that the registry was not asked for");
            }
            self.check_blocks(intent, release)?;
        }
        if intent.force && self.by_person == Some(Person::Edit) {
            let by_user = rollback
                .is_some_and(|rollback| rollback.spec.initiated_by.type_ == InitiatorType::User);
            let adopts = deployment.annotations.contains_key("belay.dev/adopt");
            if !by_user && !adopts {
                return wrong("force against a person");
            }
        }
        Ok(())
    }

    /// No Release that was left is gone to forwards, unless `allow` names it.
    fn check_blocks(&self, intent: &Intent, release: &Release) -> Result<(), String> {
        let tag = &release.config().revisions[0].id;
        let is_allowed =
            self.deployment.annotations.get("belay.dev/allow").is_some_and(|allow| allow == tag);
        let has_failed = last(release).is_some_and(|last| {
            last.verdict.as_ref().and_then(belay_api::Open::known) == Some(Verdict::Failed)
        });
        let pattern = TagPattern::default();
        let rank = Rank {
            version: pattern.version_of(tag).and_then(parse_version),
            published: self.github.iter().find(|one| one.tag == *tag).and_then(|one| one.published),
        };
        let counts = self.releases.values().any(|other| {
            let annotations = other.metadata.annotations.as_ref();
            annotations
                .and_then(|all| all.get("belay.dev/blocked"))
                .and_then(|text| Block::parse(text).ok())
                .is_some_and(|block| {
                    block.until.is_none_or(|until| until.as_second() > self.now)
                        && block.covers(tag, &rank, &pattern)
                })
        });
        if counts && !is_allowed {
            return Err(format!("a blocked Release: {intent:?}"));
        }
        if has_failed && !counts && !is_allowed {
            return Err(format!("a Release that failed and is not blocked: {intent:?}"));
        }
        Ok(())
    }

    fn check_system_rollback(&self, rollback: &Rollback) -> Result<(), String> {
        let name = rollback.metadata.name.clone().unwrap_or_default();
        if self.rollbacks.contains_key(&name) {
            return Err(format!("a second Rollback for one activation: {name}"));
        }
        Ok(())
    }

    /// What the API server's rules would refuse, and what a verdict needs.
    pub(crate) fn check_release(&self, new: &Release, old: &Release) -> Result<(), String> {
        let (new_status, old_status) =
            (new.status.clone().unwrap_or_default(), old.status.clone().unwrap_or_default());
        if old_status.previous_release.is_some()
            && old_status.previous_release != new_status.previous_release
        {
            return Err("previousRelease changed".to_owned());
        }
        for one in &old_status.activations {
            let Some(now) = new_status.activations.iter().find(|now| now.ordinal == one.ordinal)
            else {
                return Err("an activation was lost".to_owned());
            };
            if one.verdict.is_some() && one.verdict != now.verdict {
                return Err("a verdict changed".to_owned());
            }
            if one.end_time.is_some() && one.end_time != now.end_time {
                return Err("an activation ended twice".to_owned());
            }
        }
        let verdict = |status: &belay_api::release::ReleaseStatus| {
            status.activations.last().and_then(|last| last.verdict.as_ref()?.known())
        };
        if verdict(&new_status) == Some(Verdict::Healthy)
            && verdict(&old_status) != Some(Verdict::Healthy)
        {
            let deployment = &self.deployment;
            let is_live = new_status
                .images
                .first()
                .is_some_and(|image| image.stored.as_ref() == Some(&deployment.image));
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

    pub(crate) fn check_rollback(&self, new: &Rollback, old: &Rollback) -> Result<(), String> {
        let is_system = new.spec.initiated_by.type_ == InitiatorType::System;
        let (new, old) =
            (new.status.clone().unwrap_or_default(), old.status.clone().unwrap_or_default());
        if old.is_terminal() && new != old {
            return Err("an ended Rollback changed".to_owned());
        }
        if new.attempt_count.is_some_and(|count| !(1..=3).contains(&count)) {
            return Err("too many attempts".to_owned());
        }
        if is_system && old.start_time.is_none() && new.start_time.is_some() {
            let to = new.to_release_ref.as_ref().and_then(|to| self.releases.get(&to.name));
            let verdict = to.and_then(last).and_then(|last| last.verdict.as_ref()?.known());
            if verdict != Some(Verdict::Healthy) {
                return Err("an automatic Rollback to what is not known to be healthy".to_owned());
            }
        }
        if old.to_release_ref.is_some() && new.to_release_ref != old.to_release_ref {
            return Err("a Rollback changed its aim".to_owned());
        }
        Ok(())
    }

    pub(crate) fn check_world(&self) -> Result<(), String> {
        let open: Vec<_> = self
            .releases
            .iter()
            .filter(|(_, release)| last(release).is_some_and(|last| last.end_time.is_none()))
            .map(|(name, _)| name.as_str())
            .collect();
        if open.len() > 1 {
            return Err(format!("two active Releases: {open:?}"));
        }
        Ok(())
    }
}

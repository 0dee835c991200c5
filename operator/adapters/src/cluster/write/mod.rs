//! Writes: one mutation for each step of a plan, each with a precondition.

mod apply;
mod pause;
#[cfg(test)]
mod pause_tests;
mod records;
mod target;
#[cfg(test)]
mod tests;

use std::time::Duration;

use belay_api::{AnnotationPrefix, Release, Rollback, names};
use belay_engine::{
    observed::{Refusal, WorkloadFacts},
    plan::Step,
    settings::Settings,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;

use super::{PauseKeys, ScaledObject, WriteError, send::Sender};
use crate::clock::Clock;

/// Who writes, and under which keys.
#[derive(Debug, Clone)]
pub struct WriterSettings {
    /// The prefix of annotations.
    pub prefix: AnnotationPrefix,
    /// The field manager of images and of the `release` annotation.
    pub field_manager: String,
    /// By which keys and field manager pauses are written.
    pub pause: PauseKeys,
    /// The field manager of Belay's own kinds.
    pub status_manager: String,
    /// How long one call may take. The API server cuts its own work on a mutation after 34 s.
    pub patience: Duration,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self {
            prefix: AnnotationPrefix::default(),
            field_manager: names::IMAGE_FIELD_MANAGER.to_owned(),
            pause: PauseKeys::of(&Settings::default()),
            status_manager: names::STATUS_FIELD_MANAGER.to_owned(),
            patience: Duration::from_secs(40),
        }
    }
}

/// Where a step belongs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The target name, which is the name of the ReleaseTarget.
    pub target: &'a str,
    /// The workload, unless it is gone. [`Step::Apply`] and [`Writer::write_target`] need it.
    pub workload: Option<&'a WorkloadFacts>,
}

/// What became of a step. Objects are as the API server answered, for the caller's store.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// A Release was created or changed.
    Release(Box<Release>),
    /// A Rollback was created or changed.
    Rollback(Box<Rollback>),
    /// What was to be created exists already; whether it is the same is for the next pass.
    Exists,
    /// Images and annotation were applied.
    Applied {
        /// The workload.
        workload: Box<Deployment>,
        /// How the fields that our manager owns now differ from those that were applied, in words;
        /// absent if they do not.
        surprise: Option<String>,
    },
    /// The pause of a ScaledObject was claimed, dropped or removed.
    Paused(Box<ScaledObject>),
    /// The apply was refused for a reason that the next decision depends on.
    Refused(Refusal),
    /// It is gone, or was before.
    Deleted,
}

/// Carries out the steps of plans.
#[derive(Debug, Clone)]
pub struct Writer {
    sender: Sender,
    settings: WriterSettings,
}

impl Writer {
    /// A writer. `clock` tells the API server's time, from which on a throttled caller waits.
    pub fn new(client: Client, clock: Clock, settings: WriterSettings) -> Self {
        Self { sender: Sender::new(client, clock, settings.patience), settings }
    }

    /// Carries out one step: exactly one request, never repeated.
    ///
    /// # Errors
    /// [`WriteError`], whose [`Class`](super::Class) says what may follow. After
    /// [`Class::Transient`](super::Class::Transient) the step may have been carried out.
    pub async fn act(&self, place: Place<'_>, step: &Step) -> Result<Done, WriteError> {
        match step {
            Step::CreateRelease(release) => {
                let created = self.create(place, &**release).await?;
                Ok(created.map_or(Done::Exists, |it| Done::Release(Box::new(it))))
            }
            Step::CreateRollback(rollback) => {
                let created = self.create(place, &**rollback).await?;
                Ok(created.map_or(Done::Exists, |it| Done::Rollback(Box::new(it))))
            }
            Step::ReleaseStatus { name, from, status } => {
                let written = self.write_status::<Release, _>(place, name, from, &**status).await?;
                Ok(Done::Release(Box::new(written)))
            }
            Step::RollbackStatus { name, from, status } => {
                let written =
                    self.write_status::<Rollback, _>(place, name, from, &**status).await?;
                Ok(Done::Rollback(Box::new(written)))
            }
            Step::BlockRelease { name, from, value } => {
                let written = self.block_release(place, name, from, value).await?;
                Ok(Done::Release(Box::new(written)))
            }
            Step::Apply(intent) => self.apply(place, intent).await,
            Step::ClaimPause(intent) => self.claim_pause(place, intent).await,
            Step::DropPause { scaled_object, from } => {
                self.drop_pause(place, scaled_object, from).await
            }
            Step::RemovePause { scaled_object, from, marks } => {
                self.remove_pause(place, scaled_object, from, marks).await
            }
            Step::DeleteRelease { name, from } => {
                self.delete::<Release>(place, name, &from.uid, Some(&from.resource_version)).await
            }
            Step::DeleteRollback { name, from } => {
                self.delete::<Rollback>(place, name, &from.uid, Some(&from.resource_version)).await
            }
            Step::DeleteTarget { uid } => {
                self.delete::<belay_api::ReleaseTarget>(place, place.target, uid, None).await
            }
        }
    }
}

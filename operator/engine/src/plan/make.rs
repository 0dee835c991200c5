//! Objects and conditions, made.

use belay_api::{
    Release, Rollback, Signature,
    conditions::{ConditionStatus, ReleaseState, State, find},
    events::EventReason,
    limits,
    names::{ShortHash, release_name, rollback_name},
    reasons::{HealthyReason, ReleaseReadyReason},
    release::{
        ReleaseConfig, ReleaseFields, ReleaseStatus, Revision, RevisionMetadata, WorkloadRef,
    },
    rollback::{Driver, Initiator, InitiatorType, RollbackSpec, ToReleaseRef},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};

use crate::image::ImageRef;

use super::{
    Step,
    view::{APPLICATION, Pass, name, precondition},
};

/// Replaces the condition of this type; its transition time stays if its status does.
pub(super) fn put<S: State>(
    conditions: &mut Vec<Condition>,
    state: S,
    status: ConditionStatus,
    message: &str,
    now: Timestamp,
) {
    let mut new = state.condition(status, message, None, Time(now));
    if let Some(old) = find(conditions, &new.type_)
        && old.status == new.status
    {
        new.last_transition_time = old.last_transition_time.clone();
    }
    match conditions.iter_mut().find(|one| one.type_ == new.type_) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// The status of a Release's conditions that hang together.
pub(super) struct Health<'m> {
    pub(super) healthy: (ConditionStatus, HealthyReason),
    pub(super) ready: ReleaseReadyReason,
    pub(super) message: &'m str,
}

pub(super) fn put_health(status: &mut ReleaseStatus, health: &Health<'_>, now: Timestamp) {
    let (healthy, reason) = health.healthy;
    put(&mut status.conditions, ReleaseState::from(reason), healthy, health.message, now);
    let ready = match health.ready {
        ReleaseReadyReason::Healthy => ConditionStatus::True,
        ReleaseReadyReason::Failed
        | ReleaseReadyReason::RolledBack
        | ReleaseReadyReason::Superseded
        | ReleaseReadyReason::Blocked => ConditionStatus::False,
        ReleaseReadyReason::Pausing
        | ReleaseReadyReason::Rolling
        | ReleaseReadyReason::Baking
        | ReleaseReadyReason::ScaledToZero => ConditionStatus::Unknown,
    };
    put(&mut status.conditions, ReleaseState::from(health.ready), ready, health.message, now);
}

/// What a new Release is of.
pub(super) struct Origin<'o> {
    /// The release tag, or the image tag where no release is known.
    pub(super) id: &'o str,
    /// Where it comes from.
    pub(super) source: &'o str,
    /// Its type.
    pub(super) kind: &'static str,
}

impl Pass<'_> {
    pub(super) fn signature(&self, id: &str) -> Signature {
        Signature::of(self.wants.target.as_str(), [(APPLICATION, id)])
    }

    pub(super) fn release_name(&self, id: &str) -> String {
        release_name(&self.wants.target, &self.signature(id))
    }

    pub(super) fn new_release(&mut self, origin: &Origin<'_>) -> Step {
        self.tell_of_mirror();
        let github = self.github_release(origin.id);
        let metadata = github.map(|release| RevisionMetadata {
            author: release.author.as_deref().map(|text| limits::clip(text, limits::PRINCIPAL)),
            url: release.url.clone().filter(|url| url.len() <= limits::URL),
            ..RevisionMetadata::default()
        });
        let config = ReleaseConfig {
            target_name: self.wants.target.as_str().to_owned(),
            revisions: vec![Revision {
                name: APPLICATION.to_owned(),
                id: limits::clip(origin.id, limits::REVISION_ID),
                source: Some(limits::clip(origin.source, limits::URL)),
                type_: Some(origin.kind.to_owned()),
                metadata: metadata.filter(|one| *one != RevisionMetadata::default()),
            }],
            workload_ref: Some(WorkloadRef {
                kind: self.workload.kind.clone(),
                name: self.workload.name.clone(),
                container: self.wants.containers.first().map(ToString::to_string),
            }),
        };
        Step::CreateRelease(Box::new(Release {
            metadata: ObjectMeta {
                name: Some(self.release_name(origin.id)),
                namespace: Some(self.observed.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: ReleaseFields { config },
            status: None,
        }))
    }

    /// A live image on another host than the one asked for is accepted, and said so with each
    /// Release that is made.
    fn tell_of_mirror(&mut self) {
        let live = self.live_image();
        let Ok(parsed) = live.parse::<ImageRef>() else { return };
        if let Ok(wanted) = self.repository()
            && wanted.host() != parsed.repository().host()
        {
            let message =
                format!("{live} is live, on another host than {wanted}: taken as a mirror");
            self.draft.tell(EventReason::MirrorHost, message);
        }
    }

    /// The Rollback that answers the failure of an activation: its name follows from both, so that
    /// one activation has at most one.
    pub(super) fn new_rollback(&self, from: &Release, ordinal: i64, reason: &str) -> Step {
        let spec = RollbackSpec {
            to_release_ref: ToReleaseRef {
                target: self.wants.target.as_str().to_owned(),
                name: String::new(),
            },
            reason: limits::clip(reason, limits::ROLLBACK_REASON),
            initiated_by: Initiator {
                principal: self.settings.field_manager.clone(),
                type_: InitiatorType::System,
            },
            driver: Driver::Native,
            deployment_options: std::collections::BTreeMap::new(),
            force: false,
            timeout: belay_api::rollback::DEFAULT_TIMEOUT,
        };
        Step::CreateRollback(Box::new(Rollback {
            metadata: ObjectMeta {
                name: Some(self.system_rollback_name(from, ordinal)),
                namespace: Some(self.observed.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }))
    }

    pub(super) fn system_rollback_name(&self, from: &Release, ordinal: i64) -> String {
        let target = &self.wants.target;
        let hash = ShortHash::of_release(target, name(from))
            .unwrap_or_else(|_| self.signature(super::view::tag(from)).short());
        // Both kinds of Rollback begin alike: with the target, cut where it is too long.
        let of_a_person = rollback_name(target, &hash, &hash, None);
        let head = of_a_person.strip_suffix(&format!("-to-{hash}")).unwrap_or(&of_a_person);
        format!("{head}-failed-{ordinal}")
    }
}

pub(super) fn write_release(release: &Release, status: ReleaseStatus) -> Step {
    Step::ReleaseStatus {
        name: name(release).to_owned(),
        from: precondition(&release.metadata),
        status: Box::new(status),
    }
}

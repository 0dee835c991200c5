//! Applying images: whom it may be forced against, and what a refusal means (the operator
//! specification, section 6).

use belay_api::{
    Duration,
    gates::WaitReason,
    reasons::{ProgressingReason, StalledReason},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Flow, IntendedImage, Intent, Precondition, Step,
    view::{NOBODY, Pass},
};
use crate::{
    annotations::{Adopt, ContainerName, is_gitops},
    observed::{HeldBy, Refusal, Refused},
    time,
};

/// How soon an apply that failed is tried again; doubles each time.
const RETRY: Duration = Duration::from_secs(15);
/// How soon an apply that was refused is tried again, if nothing changes.
const RETRY_REFUSED: SignedDuration = SignedDuration::from_mins(5);

/// Why images are not applied now.
pub(super) enum NotNow {
    /// A GitOps controller holds them.
    GitOps(String),
    /// They are not of the target's repository, whoever wrote them into a Release.
    Repository(String),
    /// Somebody else holds them.
    Conflict(Vec<String>),
    /// The API server or admission says no.
    Denied { message: String, again: Timestamp },
    /// The last try failed.
    Failed { message: String, again: Timestamp },
}

impl<'a> Pass<'a> {
    /// The step that applies `images` under `release`, unless something speaks against it.
    pub(super) fn apply(
        &self,
        release: &str,
        images: Vec<IntendedImage>,
        attempt: Option<i32>,
        also_against: &dyn Fn(&str) -> bool,
    ) -> Result<Step, NotNow> {
        if let Some(manager) = self.gitops() {
            return Err(NotNow::GitOps(manager));
        }
        if let Some(other) = images.iter().find(|one| !self.is_of_repository(&one.image)) {
            let message = format!("{} is not of the target's repository", other.image);
            return Err(NotNow::Repository(message));
        }
        let intend = |force| {
            Step::Apply(Intent {
                from: Precondition {
                    uid: self.workload.uid.clone(),
                    resource_version: self.workload.resource_version.clone(),
                },
                generation: self.workload.rollout.generation,
                images,
                release: release.to_owned(),
                force,
                attempt,
            })
        };
        let Some(refused) = self.refused(release, attempt) else { return Ok(intend(false)) };
        match &refused.cause {
            Refusal::Conflict { managers } => {
                let may = |manager: &String| {
                    !is_gitops(manager)
                        && (self.is_taken_over_by_name(manager)
                            || self.leave.contains(manager)
                            || also_against(manager))
                };
                if !managers.is_empty() && managers.iter().all(may) {
                    Ok(intend(true))
                } else {
                    Err(NotNow::Conflict(managers.clone()))
                }
            }
            Refusal::Denied { message } => {
                let again = time::plus(refused.at, RETRY_REFUSED);
                if attempt.is_none() && self.now >= again {
                    return Ok(intend(false));
                }
                Err(NotNow::Denied { message: message.clone(), again })
            }
            Refusal::Failed { message } => {
                let doublings = refused.times.saturating_sub(1).min(5);
                let wait = RETRY.as_secs().saturating_mul(1 << doublings).min(300);
                let again = time::after(refused.at, Duration::from_secs(wait));
                if attempt.is_none() && self.now >= again {
                    return Ok(intend(false));
                }
                Err(NotNow::Failed { message: message.clone(), again })
            }
        }
    }

    /// Why a forward move to a Release would not be applied now, by the last answer.
    pub(super) fn still_refused(&self, release: &str) -> Option<NotNow> {
        self.refused(release, None)?;
        self.apply(release, Vec::new(), None, &|_| false).err()
    }

    pub(super) fn refused(&self, release: &str, attempt: Option<i32>) -> Option<&'a Refused> {
        self.observed.refused.as_ref().filter(|refused| {
            refused.release == release
                && refused.attempt == attempt
                && refused.generation == self.workload.rollout.generation
        })
    }

    /// Says why a forward move or a re-assert waits.
    pub(super) fn explain(&mut self, why: NotNow) -> Flow {
        match why {
            NotNow::GitOps(manager) => self.draft.stall(
                StalledReason::ManagedByGitOps,
                format!("{manager} owns the image and would put its own back"),
            ),
            NotNow::Repository(message) => {
                self.draft.stall(StalledReason::RepositoryDiffers, message)
            }
            NotNow::Conflict(managers) => {
                let managers = managers.join(", ");
                let target = &self.wants.target;
                self.draft.stall(
                    StalledReason::FieldConflict,
                    format!(
                        "{managers} owns the image; to take it over: kubectl release adopt {target}"
                    ),
                )
            }
            NotNow::Denied { message, again } => {
                self.draft.wake(again);
                self.draft.stall(StalledReason::ApplyRefused, message)
            }
            NotNow::Failed { message, again } => {
                self.draft.progressing.get_or_insert((ProgressingReason::Rolling, message));
                // It is tried again soon, and the pause with it.
                self.draft.keeps_pause = true;
                self.draft.wait(WaitReason::ApiBackoff, again);
                Flow::Break(())
            }
        }
    }

    /// While a refused apply is tried again, the status goes on saying that it was refused.
    pub(super) fn keep_refusal(&mut self, release: &str) {
        match self.refused(release, None).map(|refused| &refused.cause) {
            Some(Refusal::Denied { message }) => {
                self.draft.stalled = Some((StalledReason::ApplyRefused, message.clone()));
            }
            Some(Refusal::Failed { message }) => {
                let busy = (ProgressingReason::Rolling, message.clone());
                self.draft.progressing.get_or_insert(busy);
            }
            Some(Refusal::Conflict { .. }) | None => {}
        }
    }

    /// What a GitOps controller owns stays, whether or not there is something to be done.
    pub(super) fn mind_gitops(&mut self) {
        let Some(manager) = self.gitops() else { return };
        self.frozen = true;
        let message = format!("{manager} owns the image and would put its own back");
        self.draft.stalled.get_or_insert((StalledReason::ManagedByGitOps, message));
    }

    /// The GitOps controller that owns an image, if one does.
    pub(super) fn gitops(&self) -> Option<String> {
        let others = self.others();
        others.iter().find(|one| is_gitops(&one.manager)).map(|one| one.manager.clone())
    }

    /// Whether a manager's image may be replaced without asking.
    pub(super) fn is_taken_over(&self, owner: &HeldBy) -> bool {
        let manager = owner.manager.as_str();
        manager == "helm"
            // Who applies server-side under this name is somebody else.
            || (manager == "kubectl-client-side-apply" && !owner.applies)
            || self.settings.migrate_from.as_deref() == Some(manager)
            || self.wants.take_over.iter().any(|one| one == manager)
    }

    /// The same of a manager that a conflict names, whatever it owns.
    fn is_taken_over_by_name(&self, manager: &str) -> bool {
        let owners = self.others().into_iter().chain(&self.workload.annotation_held_by);
        let mut named = owners.filter(|owner| owner.manager == manager).peekable();
        named.peek().is_some() && named.all(|owner| self.is_taken_over(owner))
    }

    /// A person's leave to take over once counts while that manager holds that value.
    pub(super) fn adopt(&mut self) {
        let Some(Adopt::Image { manager, value }) = &self.wants.adopt else { return };
        let others = self.others();
        let holds = others.iter().any(|one| one.manager == *manager)
            || (others.is_empty() && !self.is_ours() && manager == NOBODY);
        let is_holder = |name: &&ContainerName| {
            let owners = self.workload.container(name).map(|one| one.held_by.as_slice());
            let owners = owners.unwrap_or_default();
            owners.is_empty() || owners.iter().any(|one| one.manager == *manager)
        };
        let mut held = self.wants.containers.iter().filter(is_holder);
        let has_value = held.all(|one| self.live(one) == value);
        if holds && has_value && !is_gitops(manager) {
            self.leave.push(manager.clone());
        }
    }

    /// Whether a person gave leave to take over what is live now.
    pub(super) fn is_adopted(&self) -> bool {
        matches!(&self.wants.adopt, Some(Adopt::Image { manager, .. }) if self.leave.contains(manager))
    }
}

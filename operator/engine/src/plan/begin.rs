//! The first questions, who may act at all, and the order of the others.

use belay_api::{
    Release, Rollback,
    annotations::{Mode, TargetAnnotation},
    events::EventReason,
    reasons::{Note, StalledReason},
    target::TargetStatus,
};
use jiff::Timestamp;

use super::{
    Flow, Plan, Step, pause, pods, status,
    view::{Draft, Pass, name},
};
use crate::{
    annotations::{Adopt, Reading, TargetSettings, nearest},
    observed::{Observed, Surroundings, TargetRecord, WorkloadFacts},
    settings::Settings,
};

pub(super) fn begin(observed: &Observed, settings: &Settings, now: Timestamp) -> Plan {
    // Without the workload or our own record nothing can be said anywhere.
    let (Some(workload), Some(record)) = (observed.workload.value(), observed.target.value())
    else {
        return Plan::default();
    };
    let Some(workload) = workload.as_ref().filter(|workload| !workload.deleting) else {
        // Gone: the garbage collector removes what it owned.
        return Plan::default();
    };
    let inputs = Inputs { observed, settings, now, workload, record: record.as_ref() };
    match workload.reading(settings) {
        Reading::NotFollowed => {
            // Another workload may follow under this name.
            let record = record.as_ref().filter(|record| is_about(record, workload));
            let step = record.map(|record| Step::DeleteTarget { uid: record.uid.clone() });
            Plan { step, ..Plan::default() }
        }
        Reading::Problems(problems) => {
            let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
            inputs.invalid(texts.join("; "))
        }
        Reading::Followed { settings: wants, unknown } => inputs.followed(&wants, &unknown),
    }
}

/// Answers a question of somebody who does not act, from the same facts as a pass.
pub(super) fn with_pass<T>(
    observed: &Observed,
    settings: &Settings,
    now: Timestamp,
    ask: impl FnOnce(&Pass<'_>) -> T,
) -> Result<T, String> {
    let workload = observed.workload.get().map_err(ToOwned::to_owned)?;
    let record = observed.target.get().map_err(ToOwned::to_owned)?;
    let releases = observed.releases.get().map_err(ToOwned::to_owned)?;
    let rollbacks = observed.rollbacks.get().map_err(ToOwned::to_owned)?;
    let surroundings = observed.surroundings.get().map_err(ToOwned::to_owned)?;
    let Some(workload) = workload.as_ref() else { return Err("the workload is gone".to_owned()) };
    let inputs = Inputs { observed, settings, now, workload, record: record.as_ref() };
    let wants = match workload.reading(settings) {
        Reading::NotFollowed => return Err("Belay does not follow the workload".to_owned()),
        Reading::Problems(problems) => {
            let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
            return Err(texts.join("; "));
        }
        Reading::Followed { settings: wants, .. } => wants,
    };
    let mut pass = inputs.pass(&wants, releases, rollbacks, surroundings);
    pass.active = pass.find_active();
    Ok(ask(&pass))
}

/// Whether a record is about this workload, and not about another one of the same target.
fn is_about(record: &TargetRecord, workload: &WorkloadFacts) -> bool {
    record.status.workload.as_ref().is_none_or(|one| one.uid == workload.uid)
}

struct Inputs<'a> {
    observed: &'a Observed,
    settings: &'a Settings,
    now: Timestamp,
    workload: &'a WorkloadFacts,
    record: Option<&'a TargetRecord>,
}

impl<'a> Inputs<'a> {
    fn old(&self) -> Option<&'a TargetStatus> {
        self.record.map(|record| &record.status)
    }

    fn invalid(&self, problems: String) -> Plan {
        let is_anothers = match self.observed.surroundings.value() {
            Some(surroundings) => {
                surroundings.duplicate_of.is_some()
                    || other_operator(self.record, surroundings, self.settings).is_some()
            }
            None => self.record.is_some_and(|record| {
                let is_ours = record.status.instance.as_ref() == Some(&self.settings.instance);
                !is_ours || !is_about(record, self.workload)
            }),
        };
        if is_anothers {
            // There is no record of its own to say it in.
            let mut draft = Draft::default();
            let _ = draft.refuse(StalledReason::InvalidConfig, problems);
            return Plan { notices: draft.notices, ..Plan::default() };
        }
        let (observed, settings, now) = (self.observed, self.settings, self.now);
        if let Some(step) = pause::drop_all(observed, self.record, settings, now) {
            // Nothing is judged any more, so no pause is live.
            return Plan { step: Some(step), ..Plan::default() };
        }
        let status = status::invalid(problems, self.workload, settings, self.old(), now);
        Plan { status: Some(Box::new(status)), ..Plan::default() }
    }

    fn followed(self, wants: &TargetSettings, unknown: &[String]) -> Plan {
        let observed = self.observed;
        let facts = (|| {
            let releases = observed.releases.get()?;
            let rollbacks = observed.rollbacks.get()?;
            let surroundings = observed.surroundings.get()?;
            Ok::<_, &str>((releases, rollbacks, surroundings))
        })();
        let (releases, rollbacks, surroundings) = match facts {
            Ok(facts) => facts,
            Err(why) => {
                let old = self.old();
                let status = status::unknown(why, self.workload, self.settings, old, self.now);
                // What was being watched stays watched until more is known.
                let pods = old.is_some_and(pods::were_watched);
                let is_ours = self.record.is_none_or(|record| {
                    let is_ours = record.status.instance.as_ref() == Some(&self.settings.instance);
                    is_ours && is_about(record, self.workload)
                });
                let status = is_ours.then(|| Box::new(status));
                return Plan { status, pods, ..Plan::default() };
            }
        };
        let mut pass = self.pass(wants, releases, rollbacks, surroundings);
        if let Some(message) = unknown_annotations(unknown, self.settings) {
            pass.draft.note(Note::UnknownAnnotation, message);
        }
        let _ = pass.run();
        pass.end_pause();
        let status = pass.target_status();
        let pods = pass.needs_pods();
        let Draft { step, wake, look, notices, is_undecided, is_anothers, .. } = pass.draft;
        let has_status = !is_undecided && !is_anothers;
        let status: Option<Box<TargetStatus>> = has_status.then(|| Box::new(status));
        Plan { step, status, wake, look, notices, pods }
    }

    fn pass<'b>(
        &self,
        wants: &'b TargetSettings,
        releases: &'b [Release],
        rollbacks: &'b [Rollback],
        surroundings: &'b Surroundings,
    ) -> Pass<'b>
    where
        'a: 'b,
    {
        let target = wants.target.as_str();
        let mut releases: Vec<_> =
            releases.iter().filter(|one| one.config().target_name == target).collect();
        releases.sort_by_key(|release| name(release).to_owned());
        let mut rollbacks: Vec<_> =
            rollbacks.iter().filter(|one| one.spec.to_release_ref.target == target).collect();
        rollbacks.sort_by_key(|rollback| {
            let created = rollback.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (created, rollback.metadata.name.clone())
        });
        Pass {
            observed: self.observed,
            settings: self.settings,
            now: self.now,
            workload: self.workload,
            wants,
            record: self.record,
            surroundings,
            releases,
            rollbacks,
            active: None,
            state: None,
            leave: Vec::new(),
            frozen: false,
            draft: Draft::default(),
        }
    }
}

impl Pass<'_> {
    /// All questions, the most urgent first; the first one with a step ends the pass.
    fn run(&mut self) -> Flow {
        self.who_may_act()?;
        self.active = self.find_active();
        self.hold();
        self.adopt();
        self.whose_scaled_object()?;
        if self.wants.mode == Mode::Observe {
            return self.only_report();
        }
        self.record_activity()?;
        self.judge_active()?;
        self.mind_pause()?;
        self.block_failure()?;
        self.mirror_blocks()?;
        self.answer_change()?;
        self.roll_back()?;
        self.answer_failure()?;
        self.mind_failed_rollback();
        self.first_sight()?;
        self.restore()?;
        self.mind_gitops();
        self.wait_for_others();
        self.move_forward()?;
        self.cull()
    }

    fn who_may_act(&mut self) -> Flow {
        let is_adopted = |other: &str| matches!(&self.wants.adopt, Some(Adopt::Instance { lease }) if lease == other);
        // Where the record is another's, only an event can say so: two that write one status
        // would never come to rest.
        let other = other_operator(self.record, self.surroundings, self.settings);
        if let Some(other) = other.filter(|other| !is_adopted(other)) {
            self.draft.is_anothers = true;
            let target = &self.wants.target;
            let key = self.settings.prefix.key(TargetAnnotation::Adopt);
            let message = format!(
                "the operator {other} follows the target {target}; to take it over: {key}: \
                 instance={other}"
            );
            return self.draft.refuse(StalledReason::AnotherOperator, message);
        }
        if let Some(older) = &self.surroundings.duplicate_of {
            self.draft.is_anothers = true;
            let key = self.settings.prefix.key(TargetAnnotation::Target);
            let message = format!(
                "{older} has the target {} and is older; to follow this one too: another {key}",
                self.wants.target
            );
            return self.draft.refuse(StalledReason::DuplicateTarget, message);
        }
        let instance = self.record.and_then(|record| record.status.instance.as_ref());
        if instance != Some(&self.settings.instance) {
            if let Some(other) = instance {
                let message = format!("taken over from the operator {other}");
                self.draft.tell(EventReason::TakenOver, message);
            }
            // Nothing is done before it is written down whose target this is.
            self.draft.claims = true;
            self.draft.wake_soon(self.now);
            return Flow::Break(());
        }
        Flow::Continue(())
    }

    /// Two targets that pause one ScaledObject would resume it for each other.
    fn whose_scaled_object(&mut self) -> Flow {
        let (Some(older), Some(name)) =
            (&self.surroundings.scaled_object_of, &self.wants.scaled_object)
        else {
            return Flow::Continue(());
        };
        let key = self.settings.prefix.key(TargetAnnotation::ScaledObject);
        let message = format!(
            "{older} has the ScaledObject {name} and is older; to follow this one too: another {key}"
        );
        self.draft.stall(StalledReason::DuplicateTarget, message)
    }
}

/// The other operator that follows this target and is alive.
fn other_operator<'a>(
    record: Option<&'a TargetRecord>,
    surroundings: &Surroundings,
    settings: &Settings,
) -> Option<&'a str> {
    let other = record?.status.instance.as_deref()?;
    let is_held = surroundings.held_leases.iter().any(|lease| lease == other);
    (other != settings.instance && is_held).then_some(other)
}

/// Says which annotations under the prefix mean nothing, and which ones may be meant.
fn unknown_annotations(names: &[String], settings: &Settings) -> Option<String> {
    let say = |name: &String| {
        let key = format!("{}/{name}", settings.prefix);
        match nearest(name) {
            Some(known) => {
                format!("{key} is no annotation of Belay; is {} meant?", settings.prefix.key(known))
            }
            None => format!("{key} is no annotation of Belay"),
        }
    };
    let texts: Vec<_> = names.iter().map(say).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

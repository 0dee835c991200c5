//! The first questions, who may act at all, and the order of the others.

use belay_api::{
    Release, Rollback, annotations::Mode, reasons::StalledReason, target::TargetStatus,
};
use jiff::Timestamp;

use super::{
    Flow, Plan, Step, status,
    view::{Draft, Pass, name},
};
use crate::{
    annotations::{Adopt, Reading, Subject, Support, TargetSettings, read},
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
    let live: Vec<_> = workload.containers.iter().map(|one| one.live.clone()).collect();
    let subject = Subject {
        kind: &workload.kind,
        name: &workload.name,
        annotations: &workload.annotations,
        containers: &live,
        progress_deadline: workload.rollout.progress_deadline,
    };
    let support = Support {
        scaled_objects: settings.scaled_objects,
        image_check_skip: settings.image_check_skip,
    };
    let old = record.as_ref().map(|record| &record.status);
    match read(&settings.prefix, subject, support) {
        Reading::NotFollowed => {
            let step = record.as_ref().map(|record| Step::DeleteTarget { uid: record.uid.clone() });
            Plan { step, ..Plan::default() }
        }
        Reading::Problems(problems) => {
            let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let mut draft = Draft::default();
            let _ = draft.stall(StalledReason::InvalidConfig, texts.join("; "));
            let status = status::without_settings(&draft, workload, settings, old, now);
            Plan { status: Some(Box::new(status)), ..Plan::default() }
        }
        Reading::Followed { settings: wants, .. } => {
            let inputs = Inputs { observed, settings, now, workload, record: record.as_ref() };
            inputs.followed(&wants)
        }
    }
}

struct Inputs<'a> {
    observed: &'a Observed,
    settings: &'a Settings,
    now: Timestamp,
    workload: &'a WorkloadFacts,
    record: Option<&'a TargetRecord>,
}

impl<'a> Inputs<'a> {
    fn followed(self, wants: &TargetSettings) -> Plan {
        let observed = self.observed;
        let facts = (|| {
            let releases = observed.releases.get()?;
            let rollbacks = observed.rollbacks.get()?;
            let surroundings = observed.surroundings.get()?;
            Ok::<_, &str>((releases, rollbacks, surroundings))
        })();
        let old = self.record.map(|record| &record.status);
        let (releases, rollbacks, surroundings) = match facts {
            Ok(facts) => facts,
            Err(why) => {
                let draft = Draft { unknown: Some(why.to_owned()), ..Draft::default() };
                let (workload, settings) = (self.workload, self.settings);
                let status = status::without_settings(&draft, workload, settings, old, self.now);
                return Plan { status: Some(Box::new(status)), ..Plan::default() };
            }
        };
        let mut pass = self.pass(wants, releases, rollbacks, surroundings);
        let _ = pass.run();
        let status = pass.target_status();
        let Draft { step, wake, look, notices, is_undecided, .. } = pass.draft;
        let status: Option<Box<TargetStatus>> = (!is_undecided).then(|| Box::new(status));
        Plan { step, status, wake, look, notices }
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
        if self.wants.mode == Mode::Observe {
            return self.only_report();
        }
        self.record_activity()?;
        self.judge_active()?;
        self.block_failure()?;
        self.mirror_blocks()?;
        self.answer_change()?;
        self.roll_back()?;
        self.answer_failure()?;
        self.first_sight()?;
        self.restore()?;
        self.move_forward()?;
        self.cull()
    }

    fn who_may_act(&mut self) -> Flow {
        let other = self.record.and_then(|record| record.status.instance.as_deref());
        if let Some(other) = other.filter(|other| *other != self.settings.instance) {
            let is_held = self.surroundings.held_leases.iter().any(|lease| lease == other);
            let is_adopted = matches!(
                &self.wants.adopt,
                Some(Adopt::Instance { lease }) if lease == other
            );
            if is_held && !is_adopted {
                let message = format!("the operator {other} follows this target");
                return self.draft.stall(StalledReason::AnotherOperator, message);
            }
            self.draft.tell(false, "TakenOver", format!("taken over from the operator {other}"));
        }
        if let Some(older) = &self.surroundings.duplicate_of {
            let message = format!("{older} has the target {} and is older", self.wants.target);
            return self.draft.stall(StalledReason::DuplicateTarget, message);
        }
        Flow::Continue(())
    }
}

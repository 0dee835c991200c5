//! The checks of one target.

use belay_api::{
    AnnotationPrefix, NamedValue as _,
    annotations::TargetAnnotation,
    conditions::find,
    reasons::{Note, TargetReadyReason},
    target::TargetStatus,
};
use belay_engine::annotations::is_gitops;
use belay_ownership::{FieldPath, Operation, Ownership};
use jiff::Timestamp;
use kube::{ResourceExt as _, api::DynamicObject};

use super::{Check, Finding, Level};
use crate::{
    facts::{
        helm::{Forecast, MANAGER, Outcome, Source},
        live::{Live, LiveContainer, owner},
        plan::followed,
        standing::Standing,
        words::Explain as _,
    },
    read::{Fact, Snapshot},
};

/// A target and how it is called.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// What was read: the ReleaseTarget, the workload and Helm's records.
    pub snapshot: &'a Snapshot,
    /// The prefix of annotations.
    pub prefix: &'a AnnotationPrefix,
    /// The namespace, where commands must say it.
    pub namespace: Option<&'a str>,
}

impl Examined<'_> {
    fn object(&self) -> String {
        format!("{}/{}", self.snapshot.namespace, self.snapshot.name)
    }

    /// A command about the target.
    fn command(&self, verb: &str, rest: &str) -> String {
        let place = self.namespace.map(|space| format!(" -n {space}")).unwrap_or_default();
        format!("kubectl release {verb} {}{place}{rest}", self.snapshot.name)
    }

    fn finding(&self, check: Check, level: Level, message: impl Into<String>) -> Finding {
        Finding::new(check, level, self.object(), message)
    }
}

/// All findings about a target.
pub fn examine(target: &Examined<'_>, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let status = target.snapshot.target().and_then(|one| one.status.clone()).unwrap_or_default();
    findings.push(standing(target, &status));
    findings.extend(notes(target, &status));
    findings.extend(pause(target, &status, now));
    let workload = match &target.snapshot.workload {
        Fact::Known(Some(workload)) => workload,
        Fact::Known(None) => {
            let message = "its workload is gone";
            findings.push(target.finding(Check::Workload, Level::Error, message));
            return findings;
        }
        Fact::Unknown(why) => {
            let message = format!("its workload cannot be read: {}", why.words());
            findings.push(target.finding(Check::Workload, Level::Warning, message));
            return findings;
        }
    };
    let live = Live::of(workload, target.prefix);
    let containers = followed(target.snapshot, &live, target.prefix);
    if !live.has_owners {
        let message = "has no managedFields (they were cleared): ownership is unknown until the \
                       next server-side apply";
        findings.push(target.finding(Check::Tracking, Level::Warning, message));
    }
    let source = Source::of(&live, &target.snapshot.helm);
    for container in containers {
        findings.extend(owners(target, &live, container));
        findings.extend(overwritten(target, &live, workload, container));
        findings.extend(helm(target, &source, &live, container));
    }
    findings
}

fn standing(target: &Examined<'_>, status: &TargetStatus) -> Finding {
    let standing = Standing::of(Some(status));
    let level = match standing.reason {
        Some(
            TargetReadyReason::Ready | TargetReadyReason::Progressing | TargetReadyReason::Held,
        ) => Level::Ok,
        Some(TargetReadyReason::Stalled | TargetReadyReason::Failed) => Level::Error,
        Some(TargetReadyReason::RolledBack | TargetReadyReason::Unknown) | None => Level::Warning,
    };
    let (word, message) = match &standing.stalled {
        Some(cause) => (format!("{} ({})", standing.word, cause.word), cause.message.as_str()),
        None => (standing.word.clone(), standing.message.as_str()),
    };
    let message = if message.is_empty() { word } else { format!("{word}: {message}") };
    let finding = target.finding(Check::Standing, level, message);
    if level == Level::Ok { finding } else { finding.fix(target.command("why", "")) }
}

fn notes(target: &Examined<'_>, status: &TargetStatus) -> Vec<Finding> {
    let about = |note: &Note| {
        let condition =
            find(&status.conditions, note.as_str()).filter(|one| one.status == "True")?;
        let words = note.words();
        let message = match condition.message.as_str() {
            "" => words.why,
            message => message,
        };
        let level = match note {
            Note::ChangedByAdmission | Note::PlatformsNotChecked => Level::Ok,
            Note::Unauthenticated
            | Note::ListTruncated
            | Note::TagMoved
            | Note::ContainerLeftOut
            | Note::RolledUnpaused
            | Note::ResumeUnproven
            | Note::PauseOverdue
            | Note::PodsListed
            | Note::ReleaseLimitInvalid
            | Note::UnknownAnnotation => Level::Warning,
        };
        let finding = target.finding(Check::Notes, level, format!("{note}: {message}"));
        Some(match words.commands(&target.snapshot.name, target.namespace).first() {
            Some(next) => finding.fix(next),
            None => finding,
        })
    };
    Note::ALL.iter().filter_map(about).collect()
}

fn pause(target: &Examined<'_>, status: &TargetStatus, now: Timestamp) -> Option<Finding> {
    let pause = status.pause.as_ref()?;
    let name = &pause.scaled_object;
    let until = pause.expires.0;
    Some(if until < now {
        let message = format!("its pause of the ScaledObject {name} expired at {until}");
        target
            .finding(Check::Pause, Level::Error, message)
            .fix("see whether the operator runs; it drops the pause")
    } else {
        let message = format!("its pause of the ScaledObject {name} ends by itself at {until}");
        target.finding(Check::Pause, Level::Ok, message)
    })
}

/// Who owns an image, and what the operator's next roll meets.
fn owners(target: &Examined<'_>, live: &Live, container: &LiveContainer) -> Option<Finding> {
    if !live.has_owners {
        return None;
    }
    let field = format!("{}.image", container.name);
    let operator = &live.operator;
    let owners: Vec<String> = container.owners.iter().map(owner).collect();
    let others: Vec<_> =
        container.owners.iter().filter(|one| one.manager() != operator.as_str()).collect();
    if let Some(gitops) = others.iter().find(|one| is_gitops(one.manager())) {
        let message = format!(
            "{} owns {field}: Belay will not fight it, and its next roll does not happen",
            owner(gitops)
        );
        return Some(
            target.finding(Check::GitOps, Level::Error, message).fix(target.command("why", "")),
        );
    }
    let take_over = live.annotation(target.prefix, TargetAnnotation::TakeOver).unwrap_or_default();
    let is_taken = |manager: &str, operation| {
        manager == MANAGER
            || (manager == "kubectl-client-side-apply" && operation == Operation::Update)
            || take_over.split(',').any(|one| one.trim() == manager)
    };
    let person = others.iter().find(|one| !is_taken(one.manager(), one.operation()));
    let is_ours = container.is_owned_by(operator);
    Some(match (person, others.first()) {
        (Some(person), _) => {
            let message = format!("{} owns {field}: the next roll is refused", owner(person));
            target.finding(Check::Owner, Level::Error, message).fix(target.command("adopt", ""))
        }
        (None, Some(other)) if is_ours => {
            let message = format!(
                "{} co-owns {field}: the next roll takes it whole, and a Helm upgrade that changes \
                 it may take it over",
                owner(other)
            );
            target
                .finding(Check::Owner, Level::Warning, message)
                .fix("run Helm with --post-renderer belay")
        }
        (None, Some(_)) => {
            let message =
                format!("{} owns {field}: the next roll takes it over", owners.join(", "));
            target.finding(Check::Owner, Level::Ok, message)
        }
        (None, None) if is_ours => {
            let message = format!("{field} owned by {operator}: the next roll meets no conflict");
            target.finding(Check::Owner, Level::Ok, message)
        }
        (None, None) => {
            let message = format!("nobody owns {field}: the next roll meets no conflict");
            target.finding(Check::Owner, Level::Ok, message)
        }
    })
}

/// The operator's entry holds the container and not its image: somebody took that away.
fn overwritten(
    target: &Examined<'_>,
    live: &Live,
    workload: &DynamicObject,
    container: &LiveContainer,
) -> Option<Finding> {
    let ownership = Ownership::decode(workload.managed_fields());
    let list = container.name.list();
    let path = FieldPath::container(list, &container.name.name);
    let holds = |path: &FieldPath| {
        ownership.at(path).owners.iter().any(|one| {
            one.entry.manager() == live.operator && one.entry.operation() == Operation::Apply
        })
    };
    let is_lost = holds(&path) && !holds(&FieldPath::image(list, &container.name.name));
    is_lost.then(|| {
        let owners: Vec<String> = container.owners.iter().map(owner).collect();
        let by = if owners.is_empty() { "somebody".to_owned() } else { owners.join(", ") };
        let message =
            format!("{by} has overwritten {}.image, now {}", container.name, container.image);
        let is_helm = container.owners.iter().any(|one| one.manager() == MANAGER);
        let fix = if is_helm {
            "run Helm with --post-renderer belay".to_owned()
        } else {
            target.command("why", "")
        };
        target.finding(Check::Overwritten, Level::Warning, message).fix(fix)
    })
}

/// What the next `helm upgrade` does.
fn helm(
    target: &Examined<'_>,
    source: &Source,
    live: &Live,
    container: &LiveContainer,
) -> Option<Finding> {
    let forecast = Forecast::of(source, live, container, target.prefix)?;
    let plain = [&forecast.three, &forecast.four];
    let rendered = [&forecast.three_rendered, &forecast.four_rendered];
    let is_unknown = |outcome: &&&Outcome| matches!(outcome, Outcome::Unknown(_));
    let level = if rendered.iter().any(|one| !one.is_good() && !is_unknown(&one)) {
        Level::Error
    } else if plain.iter().chain(&rendered).all(|one| one.is_good()) {
        Level::Ok
    } else {
        Level::Warning
    };
    let words = forecast.lines().join("; ");
    let message = format!("{}.image: {words}", container.name);
    let mut finding = target.finding(Check::Helm, level, message);
    if level == Level::Warning && rendered.iter().all(|one| one.is_good()) {
        finding = finding.fix("run Helm with --post-renderer belay");
    }
    finding.forecast = Some(forecast);
    Some(finding)
}

#[cfg(test)]
mod tests {
    use belay_api::{
        ReleaseTarget,
        conditions::{ConditionStatus, State as _, TargetState},
        reasons::StalledReason,
        target::PauseStatus,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::read::{Object, Why};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:template": { "f:spec": {
                    "f:containers": { "k:{\"name\":\"app\"}": fields } } } } } })
    }

    fn image() -> Value {
        json!({ ".": {}, "f:name": {}, "f:image": {} })
    }

    fn snapshot(entries: &[Value], status: TargetStatus) -> Snapshot {
        let workload = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "managedFields": entries,
                          "annotations": { "belay.dev/repo": "acme/web" } },
            "spec": { "template": { "spec": { "containers": [
                { "name": "app", "image": "acme/web:1.1.0" }] } } },
        });
        let mut target = ReleaseTarget::new("web", belay_api::target::TargetFields {});
        target.status = Some(status);
        Snapshot {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            target: Fact::Known(Some(Object { value: target, raw: Value::Null })),
            workload: Fact::Known(Some(serde_json::from_value(workload).unwrap())),
            ..Snapshot::default()
        }
    }

    fn of(snapshot: &Snapshot, check: Check) -> Option<Level> {
        let prefix = AnnotationPrefix::default();
        let target = Examined { snapshot, prefix: &prefix, namespace: None };
        let found = examine(&target, at(100));
        found.iter().find(|one| one.check == check).map(|one| one.level)
    }

    #[rstest]
    #[case::ours(&[("belay-operator", "Apply")], Check::Owner, Level::Ok)]
    #[case::helms(&[("helm", "Update")], Check::Owner, Level::Ok)]
    #[case::shared(&[("belay-operator", "Apply"), ("helm", "Apply")], Check::Owner, Level::Warning)]
    #[case::a_persons(&[("kubectl-edit", "Update")], Check::Owner, Level::Error)]
    #[case::a_client(&[("kubectl-client-side-apply", "Update")], Check::Owner, Level::Ok)]
    #[case::gitops(&[("argocd-controller", "Apply")], Check::GitOps, Level::Error)]
    #[case::nobodys(&[("x", "")], Check::Owner, Level::Ok)]
    fn owners_say_what_the_next_roll_meets(
        #[case] owners: &[(&str, &str)],
        #[case] check: Check,
        #[case] level: Level,
    ) {
        let entries: Vec<Value> = owners
            .iter()
            .map(|(manager, operation)| match *operation {
                "" => entry(manager, "Update", &json!({ "f:args": {} })),
                operation => entry(manager, operation, &image()),
            })
            .collect();
        assert_eq!(of(&snapshot(&entries, TargetStatus::default()), check), Some(level));
    }

    #[test]
    fn a_lost_fight_leaves_a_trace() {
        let trace = entry("belay-operator", "Apply", &json!({ ".": {}, "f:name": {} }));
        let entries = [trace, entry("helm", "Update", &image())];
        let lost = snapshot(&entries, TargetStatus::default());
        assert_eq!(of(&lost, Check::Overwritten), Some(Level::Warning));
        let kept = snapshot(&[entry("belay-operator", "Apply", &image())], TargetStatus::default());
        assert_eq!(of(&kept, Check::Overwritten), None);
    }

    #[test]
    fn without_managed_fields_nothing_is_claimed() {
        let cleared = snapshot(&[], TargetStatus::default());
        assert_eq!(of(&cleared, Check::Tracking), Some(Level::Warning));
        assert_eq!(of(&cleared, Check::Owner), None);
    }

    #[rstest]
    #[case(TargetReadyReason::Ready, Level::Ok)]
    #[case(TargetReadyReason::Held, Level::Ok)]
    #[case(TargetReadyReason::Stalled, Level::Error)]
    #[case(TargetReadyReason::RolledBack, Level::Warning)]
    fn the_standing_is_a_level(#[case] reason: TargetReadyReason, #[case] level: Level) {
        let status = ConditionStatus::True;
        let ready = TargetState::from(reason).condition(status, "", None, Time(at(0)));
        let stalled =
            TargetState::from(StalledReason::Broken).condition(status, "", None, Time(at(0)));
        let mut conditions = vec![ready];
        if reason == TargetReadyReason::Stalled {
            conditions.push(stalled);
        }
        let status = TargetStatus { conditions, ..TargetStatus::default() };
        assert_eq!(of(&snapshot(&[], status), Check::Standing), Some(level));
    }

    #[rstest]
    #[case(99, Level::Error)]
    #[case(101, Level::Ok)]
    fn a_pause_has_an_end(#[case] until: i64, #[case] level: Level) {
        let pause = PauseStatus {
            scaled_object: "web".to_owned(),
            mode: belay_api::annotations::PauseMode::ScaleIn.into(),
            release: "web-1234567".to_owned(),
            expires: Time(at(until)),
        };
        let status = TargetStatus { pause: Some(pause), ..TargetStatus::default() };
        assert_eq!(of(&snapshot(&[], status), Check::Pause), Some(level));
    }

    #[test]
    fn what_cannot_be_read_is_a_warning_and_no_error() {
        let mut blind = snapshot(&[], TargetStatus::default());
        blind.workload = Fact::Unknown(Why::Forbidden("no".to_owned()));
        assert_eq!(of(&blind, Check::Workload), Some(Level::Warning));
        blind.workload = Fact::Known(None);
        assert_eq!(of(&blind, Check::Workload), Some(Level::Error));
    }
}

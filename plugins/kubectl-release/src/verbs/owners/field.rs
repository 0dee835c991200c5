//! The owners of one field, or of several that a path stands for.

use belay_api::{
    annotations::{OwnAnnotation, TargetAnnotation},
    names::IMAGE_FIELD_MANAGER,
};
use belay_engine::annotations::is_gitops;
use belay_ownership::{
    Answer, Element, Entry, Expectation, ExpectedOwner, Operation, Owner, Query, State, Via,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{REPORT_VERSION, Subject};
use crate::{
    Error, Session,
    facts::{age, helm},
    print::{Line, Paint, Table},
};

/// Where pod specs are, by kind.
fn pod_spec(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some("spec"),
        "CronJob" => Some("spec.jobTemplate.spec.template.spec"),
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "Job"
        | "ReplicationController"
        | "Rollout" => Some("spec.template.spec"),
        _ => None,
    }
}

/// The answers for a path; `image` is that of the containers that Belay follows, else of all.
pub(super) fn answers<'s>(subject: &'s Subject, path: &str) -> Result<Vec<Answer<'s>>, Error> {
    let mut answers = Vec::new();
    for path in expand(subject, path)? {
        let query: Query = path.parse().map_err(|error: belay_ownership::PathError| {
            Error::usage(format!("read the path {path:?}: {error}"))
                .hint("a path looks like .spec.template.spec.containers[name=\"app\"].image")
        })?;
        answers.extend(subject.ownership.lookup(&query, Some(&subject.value)).answers);
    }
    Ok(answers)
}

fn expand(subject: &Subject, path: &str) -> Result<Vec<String>, Error> {
    if path != "image" {
        return Ok(vec![path.to_owned()]);
    }
    let Some(spec) = pod_spec(subject.text("/kind")) else {
        return Err(Error::usage(format!("{} has no containers", subject.name()))
            .hint("name the field with its whole path"));
    };
    let Some(named) = subject.annotation(TargetAnnotation::Container) else {
        return Ok(vec![format!("{spec}.containers[*].image")]);
    };
    let one = |name: &str| match name.split_once(':') {
        Some(("init", name)) => format!("{spec}.initContainers[name={name:?}].image"),
        _ => format!("{spec}.containers[name={name:?}].image"),
    };
    Ok(named.split(',').map(str::trim).map(one).collect())
}

/// For people.
pub(super) fn print(
    subject: &Subject,
    answers: &[Answer<'_>],
    headers: bool,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let now = session.out.now();
    let absolute = session.global.style.absolute_time;
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            session.out.line("")?;
        }
        let path = answer.path.to_string();
        let path = path.strip_prefix('.').unwrap_or(&path).to_owned();
        let value = answer.value.map(|value| format!(" = {}", shown(value)));
        let line = Line::from((Paint::Bold, subject.name().as_str()));
        session.out.line(line.plain(format!("  {path}{}", value.unwrap_or_default())))?;
        for hint in &answer.hints {
            session.out.note(format!("hint: {hint}"))?;
        }
        session.out.line("")?;
        match answer.state {
            State::Owned => {
                let mut table =
                    Table::of(&["OWNER", "OPERATION", "SUBRESOURCE", "ENTRY WRITTEN", "NOTE"]);
                for owner in &answer.owners {
                    table.row([
                        Line::new()
                            .with(Paint::manager(owner.entry.manager()), owner.entry.manager()),
                        owner.entry.operation().as_str().into(),
                        owner.entry.subresource().into(),
                        written(owner.entry.time(), now, absolute).into(),
                        note(subject, answer, owner).into(),
                    ]);
                }
                table.print(session.out, headers)?;
            }
            State::Unowned => session.out.line(unowned(subject))?,
            State::Untracked => session.out.line("The API server does not track this field.")?,
            State::NoManagedFields => {
                session.out.line("Nobody is known to own it: the object has no managedFields.")?;
            }
        }
        claims("Also claim what holds it, not this field", &answer.parents, session)?;
        claims("Own something inside it only", &answer.below, session)?;
    }
    Ok(())
}

fn unowned(subject: &Subject) -> &'static str {
    if subject.ownership.undecodable().is_empty() {
        "Nobody owns it: a default of the API server, or let go by its last owner."
    } else {
        "Nobody is known to own it; entries that cannot be decoded may."
    }
}

fn claims(what: &str, entries: &[Entry<'_>], session: &mut Session<'_>) -> Result<(), Error> {
    if entries.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = entries.iter().map(|entry| entry.identity().to_string()).collect();
    session.out.line("")?;
    Ok(session.out.line(format!("{what}: {}", names.join(", ")))?)
}

/// A value in one line.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// When an entry was written: the field is at most as new.
pub(super) fn written(time: Option<Timestamp>, now: Timestamp, absolute: bool) -> String {
    match time {
        None => "unknown".to_owned(),
        Some(time) if absolute => format!("≤ {time}"),
        Some(time) => {
            let day = time.strftime("%Y-%m-%d");
            format!("≤ {} ({day})", age::between(time, now))
        }
    }
}

/// What to know about an owner.
fn note(subject: &Subject, answer: &Answer<'_>, owner: &Owner<'_>) -> String {
    if let Some(note) = &owner.note {
        return note.to_string();
    }
    if let Via::Atomic(whole) = &owner.via {
        return format!("owns {whole} as a whole");
    }
    let entry = owner.entry;
    let co = if answer.owners.len() > 1 { "co-owner: " } else { "" };
    let is_image = answer.path.elements().last() == Some(&Element::field("image"));
    let is_followed = subject.annotation(TargetAnnotation::Repo).is_some();
    let has_release = subject.annotation(OwnAnnotation::Release).is_some();
    match (entry.manager(), entry.operation()) {
        (IMAGE_FIELD_MANAGER, Operation::Apply) if is_followed => "expected".to_owned(),
        (IMAGE_FIELD_MANAGER, _) if has_release && !is_followed => {
            "Belay does not follow the object any more".to_owned()
        }
        (helm::MANAGER, Operation::Update) if is_image => {
            format!("{co}next Helm 3 upgrade that changes the image takes it")
        }
        (helm::MANAGER, Operation::Apply) if !co.is_empty() => {
            format!("{co}Helm 4 conflicts once the others change it")
        }
        (manager, _) if is_gitops(manager) => "GitOps: puts its own value back".to_owned(),
        _ => co.trim_end_matches(": ").to_owned(),
    }
}

/// For programs.
pub(super) fn report(subject: &Subject, answers: &[Answer<'_>]) -> Value {
    let owner = |owner: &Owner<'_>| {
        let via = match &owner.via {
            Via::Field => "field".to_owned(),
            Via::Atomic(whole) => format!("atomic {whole}"),
        };
        json!({
            "manager": owner.entry.manager(),
            "operation": owner.entry.operation().as_str(),
            "subresource": owner.entry.subresource(),
            "apiVersion": owner.entry.api_version(),
            "time": owner.entry.time().map(|time| time.to_string()),
            "via": via,
        })
    };
    let claim = |entry: &Entry<'_>| json!({ "manager": entry.manager(), "operation": entry.operation().as_str() });
    let field = |answer: &Answer<'_>| {
        json!({
            "path": answer.path.to_string(),
            "value": answer.value,
            "state": answer.state.to_string(),
            "owners": answer.owners.iter().map(owner).collect::<Vec<_>>(),
            "parentClaims": answer.parents.iter().map(claim).collect::<Vec<_>>(),
            "claimsBelow": answer.below.iter().map(claim).collect::<Vec<_>>(),
        })
    };
    json!({
        "apiVersion": REPORT_VERSION,
        "kind": "FieldOwnership",
        "object": subject.reference(),
        "fields": answers.iter().map(field).collect::<Vec<_>>(),
        "undecodable": subject.undecodable(),
    })
}

/// Whether all fields are owned as expected; says on standard error where not.
pub(super) fn expect(
    subject: &Subject,
    answers: &[Answer<'_>],
    expected: &ExpectedOwner,
    session: &mut Session<'_>,
) -> Result<bool, Error> {
    let mut met = true;
    for answer in answers {
        let path = &answer.path;
        let line = match answer.expect(&subject.ownership, expected) {
            Expectation::Met => continue,
            Expectation::Differs { unexpected, .. } if unexpected.is_empty() => {
                format!("{path}: expected {expected}, found no owner")
            }
            Expectation::Differs { unexpected, missing } => {
                let names: Vec<String> = unexpected.iter().map(ToString::to_string).collect();
                let also = if missing { "found" } else { "found also" };
                format!("{path}: expected {expected}, {also} {}", names.join(", "))
            }
            Expectation::Undecided { undecodable } => {
                format!("{path}: {undecodable} entries cannot be decoded, so nobody knows")
            }
        };
        met = false;
        session.out.note(line)?;
    }
    Ok(met)
}

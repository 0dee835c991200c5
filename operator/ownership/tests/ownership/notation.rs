//! A short notation for entries, and answers as one line each.

use belay_ownership::{Answer, Entry, Lookup, Ownership, Via};
use serde_json::{Map, Value, json};

/// The container `app` of a pod template, the P of the specification's cases.
pub(crate) const APP: &str = "spec.template.spec.containers[name=app]";

/// Its image.
pub(crate) const IMG: &str = "spec.template.spec.containers[name=app].image";

/// An entry: `who` is `manager/A`, `manager/U` or `manager/U/subresource`.
pub(crate) fn entry(who: &str, fields: Value) -> Value {
    let mut parts = who.split('/');
    let mut part = || parts.next().unwrap_or_default();
    let (manager, operation, subresource) = (part(), part(), part());
    let operation = if operation == "A" { "Apply" } else { "Update" };
    let mut entry = json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1",
        "time": "2026-11-27T02:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    if !subresource.is_empty() {
        entry["subresource"] = json!(subresource);
    }
    entry
}

/// Wraps fields in the fields above them: `under("spec template", …)`.
pub(crate) fn under(path: &str, fields: Value) -> Value {
    path.split(' ').rev().fold(fields, |fields, name| {
        let key = if name.starts_with("k:") { name.to_owned() } else { format!("f:{name}") };
        Value::Object(Map::from_iter([(key, fields)]))
    })
}

/// `{…}` of names: `.` the member itself, a name its field.
pub(crate) fn leaves(names: &str) -> Value {
    names
        .split_whitespace()
        .map(|name| (if name == "." { name.to_owned() } else { format!("f:{name}") }, json!({})))
        .collect::<Map<_, _>>()
        .into()
}

/// `C{…}`: the container `app` with these fields.
pub(crate) fn c(fields: Value) -> Value {
    under(r#"spec template spec containers k:{"name":"app"}"#, fields)
}

/// Adds a field that holds others.
pub(crate) fn with(mut fields: Value, name: &str, below: Value) -> Value {
    fields[name] = below;
    fields
}

pub(crate) fn owned(entries: &Value) -> Ownership {
    Ownership::from_value(entries).unwrap()
}

/// Who an entry is, as in [`entry`].
pub(crate) fn who(entry: Entry<'_>) -> String {
    let operation = &entry.operation().as_str()[..1];
    match entry.subresource() {
        "" => format!("{}/{operation}", entry.manager()),
        subresource => format!("{}/{operation}/{subresource}", entry.manager()),
    }
}

/// `owned: exact a/A + via P.args b/U (note); parent c/U; below d/U; hint`, with IMG and P short.
pub(crate) fn line(answer: &Answer<'_>) -> String {
    let owner = |owner: &belay_ownership::Owner<'_>| {
        let via = match &owner.via {
            Via::Field => "exact".to_owned(),
            Via::Atomic(path) => format!("via {}", short(&path.to_string())),
        };
        let note = owner.note.map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{via} {}{note}", who(owner.entry))
    };
    let mut line = answer.state.to_string();
    let owners: Vec<_> = answer.owners.iter().map(owner).collect();
    if !owners.is_empty() {
        line = format!("{line}: {}", owners.join(" + "));
    }
    for entry in &answer.parents {
        line = format!("{line}; parent {}", who(*entry));
    }
    for entry in &answer.below {
        line = format!("{line}; below {}", who(*entry));
    }
    for hint in &answer.hints {
        line = format!("{line}; hint: {hint}");
    }
    line
}

/// One line per path, after the path.
pub(crate) fn lines(lookup: &Lookup<'_>) -> Vec<String> {
    let line =
        |answer: &Answer<'_>| format!("{} {}", short(&answer.path.to_string()), line(answer));
    lookup.answers.iter().map(line).collect()
}

fn short(path: &str) -> String {
    path.replace(".spec.template.spec.containers[name=\"app\"]", "P")
}

/// The answers to a query.
pub(crate) fn ask(entries: &Value, query: &str, live: Option<&Value>) -> Vec<String> {
    lines(&owned(entries).lookup(&query.parse().unwrap(), live))
}

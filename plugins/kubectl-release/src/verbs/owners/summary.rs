//! What each manager of an object owns, in a line each.

use std::collections::BTreeMap;

use belay_api::names::{IMAGE_FIELD_MANAGER, PLUGIN_FIELD_MANAGER};
use belay_engine::annotations::is_gitops;
use belay_ownership::{Element, Entry, FieldPath, Operation};
use serde_json::{Value, json};

use super::{REPORT_VERSION, Subject};
use crate::{
    Error, Session,
    facts::age,
    print::{Line, Paint, Table},
};

/// The most words of the column WRITES.
const MAX_WORDS: usize = 4;

/// The most fields of one container that are named.
const MAX_FIELDS: usize = 3;

/// For people.
pub(super) fn print(
    subject: &Subject,
    headers: bool,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    if !subject.ownership.has_entries() {
        return Ok(());
    }
    let now = session.out.now();
    let absolute = session.global.style.absolute_time;
    let columns = ["MANAGER", "OP", "SUB", "FIELDS", "WRITES", "LAST ENTRY", "LOOKS LIKE"];
    let mut table = Table::of(&columns);
    for entry in subject.ownership.entries() {
        let time = match entry.time() {
            None => String::new(),
            Some(time) if absolute => time.to_string(),
            Some(time) => age::between(time, now),
        };
        table.row([
            Line::new().with(Paint::manager(entry.manager()), entry.manager()),
            entry.operation().as_str().into(),
            entry.subresource().into(),
            entry.len().to_string().into(),
            writes(&entry.paths()).into(),
            time.into(),
            looks_like(&entry).into(),
        ]);
    }
    Ok(table.print(session.out, headers)?)
}

/// For programs.
pub(super) fn report(subject: &Subject) -> Value {
    let manager = |entry: Entry<'_>| {
        json!({
            "manager": entry.manager(),
            "operation": entry.operation().as_str(),
            "subresource": entry.subresource(),
            "apiVersion": entry.api_version(),
            "time": entry.time().map(|time| time.to_string()),
            "fields": entry.paths().iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    json!({
        "apiVersion": REPORT_VERSION,
        "kind": "OwnershipSummary",
        "object": subject.reference(),
        "managers": subject.ownership.entries().map(manager).collect::<Vec<_>>(),
        "undecodable": subject.undecodable(),
    })
}

/// What a manager writes, in a few words.
fn writes(paths: &[FieldPath]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for path in paths {
        let (group, field) = place(path.elements());
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, fields)) if !fields.contains(&field) => fields.push(field),
            Some(_) => {}
            None => groups.push((group, vec![field])),
        }
    }
    let mut words: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, (group, fields)) in groups.into_iter().enumerate() {
        let is_container = group.ends_with('.');
        words.insert(
            index,
            match fields.as_slice() {
                // The item itself and its key say nothing of what is written in it.
                fields if is_container => {
                    let named: Vec<_> = fields
                        .iter()
                        .filter(|field| !matches!(field.as_str(), "" | "name"))
                        .collect();
                    match named.len() {
                        0 => vec![group.trim_end_matches('.').to_owned()],
                        1..=MAX_FIELDS => {
                            named.iter().map(|field| format!("{group}{field}")).collect()
                        }
                        _ => vec![format!("{group}*")],
                    }
                }
                [only] if !only.is_empty() => vec![only.clone()],
                _ => vec![group],
            },
        );
    }
    let words: Vec<String> = words.into_values().flatten().collect();
    let more = words.len().saturating_sub(MAX_WORDS);
    let text = words.into_iter().take(MAX_WORDS).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text}, +{more}") } else { text }
}

/// The group that a field counts to, and its name there; a container's group ends with a dot.
fn place(elements: &[Element]) -> (String, String) {
    let name = |element: &Element| match element {
        Element::Field(name) => name.to_string(),
        other => FieldPath::new(vec![other.clone()]).to_string(),
    };
    let is_list = |element: &Element| {
        matches!(element, Element::Field(name)
            if matches!(name.as_ref(), "containers" | "initContainers" | "ephemeralContainers"))
    };
    if let Some(at) = elements.iter().position(is_list)
        && let Some(Element::Key(key)) = elements.get(at + 1)
        && let Some(belay_ownership::Literal::Text(container)) = key.get("name")
    {
        let field = elements.get(at + 2).map(name).unwrap_or_default();
        return (format!("{container}."), field);
    }
    let names: Vec<String> = elements.iter().map(name).collect();
    if let Some(at) = names.iter().position(|name| name == "annotations" || name == "labels") {
        let last = names
            .get(at + 1)
            .map(|key| key.rsplit('/').next().map(ToOwned::to_owned).unwrap_or_default());
        return (names[at].clone(), last.unwrap_or_default());
    }
    let group = names.first().cloned().unwrap_or_default();
    let last = match names.len() {
        0 | 1 => String::new(),
        2 => names[1].clone(),
        _ => names[1..].join("."),
    };
    (group, last)
}

/// Who a manager probably is. A name is only a name: anybody can use any.
fn looks_like(entry: &Entry<'_>) -> &'static str {
    let applies = entry.operation() == Operation::Apply;
    match (entry.manager(), entry.subresource()) {
        ("helm", _) if applies => "Helm 4 (server-side)",
        ("helm", _) => "Helm (client-side)",
        (IMAGE_FIELD_MANAGER, _) => "Belay's operator",
        (PLUGIN_FIELD_MANAGER, _) => "kubectl release",
        ("kube-controller-manager", "scale") => "autoscaler (HPA)",
        ("kube-controller-manager", "status") => "workload controller",
        ("kube-controller-manager", _) => "controller of Kubernetes",
        ("kubectl", "scale") => "kubectl scale",
        ("kubectl", _) if applies => "kubectl apply --server-side",
        ("kubectl", _) => "kubectl",
        ("kubectl-client-side-apply", _) => "kubectl apply",
        ("kubectl-rollout", _) => "kubectl rollout restart",
        ("kubectl-edit", _) => "kubectl edit",
        ("kubectl-set", _) => "kubectl set",
        ("kubectl-patch", _) => "kubectl patch",
        ("kubectl-create", _) => "kubectl create",
        ("kubectl-replace", _) => "kubectl replace",
        ("kubectl-annotate", _) => "kubectl annotate",
        ("kubectl-label", _) => "kubectl label",
        ("kubectl-last-applied", _) => "kubectl apply --server-side",
        ("before-first-apply", _) => "everybody before server-side apply began",
        ("ancient-changes", _) => "older writers, merged",
        ("unknown", _) => "a writer without a name",
        (manager, _) if is_gitops(manager) => "GitOps controller",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use belay_ownership::Query;
    use rstest::rstest;

    use super::*;

    fn paths(texts: &[&str]) -> Vec<FieldPath> {
        let read = |text: &&str| {
            let query: Query = text.parse().unwrap();
            let elements = query.segments().iter().map(|segment| match segment {
                belay_ownership::Segment::One(element) => element.clone(),
                belay_ownership::Segment::All => panic!("no star here"),
            });
            FieldPath::new(elements.collect())
        };
        texts.iter().map(read).collect()
    }

    const APP: &str = "spec.template.spec.containers[name=app]";

    #[rstest]
    #[case::one_image(&[APP, "spec.template.spec.containers[name=app].image",
        "spec.template.spec.containers[name=app].name"], "app.image")]
    #[case::many(&["spec.template.spec.containers[name=app].image",
        "spec.template.spec.containers[name=app].args",
        "spec.template.spec.containers[name=app].env",
        "spec.template.spec.containers[name=app].ports"], "app.*")]
    #[case::the_item_alone(&[APP], "app")]
    #[case::restart(&["spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt']"],
        "restartedAt")]
    #[case::labels(&["metadata.labels.a", "metadata.labels.b"], "labels")]
    #[case::replicas(&["spec.replicas"], "replicas")]
    #[case::several(&["spec.replicas", "spec.paused"], "spec")]
    #[case::too_many(&["a", "b", "c", "d", "e", "f"], "a, b, c, d, +2")]
    #[case::none(&[], "")]
    fn writes_are_told_in_few_words(#[case] texts: &[&str], #[case] expected: &str) {
        assert_eq!(writes(&paths(texts)), expected);
    }
}

//! What a run leaves behind: its objects, and how often each was written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;
use belay_testkit::fault::{Call, Outcome};
use kube::{ResourceExt as _, api::ListParams};
use serde_json::{Map, Value, json};

use super::{
    calls::Mark,
    plain::Names,
    scene::Scene,
    timeline::{Kind, version},
};

/// The objects of a namespace, without what differs from run to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ends(BTreeMap<String, Value>);

/// Which objects there are, and in which state.
pub(super) type Versions = Vec<(Kind, String, u64)>;

impl Ends {
    /// Those of a run, now.
    ///
    /// # Errors
    /// What the API server says.
    pub(super) async fn of(scene: &Scene) -> Result<(Self, Versions)> {
        let names = scene.names();
        let mut ends = BTreeMap::new();
        let mut versions = Vec::new();
        for kind in Kind::ALL {
            let api = kind.api(scene.bed.client.clone(), &scene.bed.namespace);
            for object in api.list(&ListParams::default()).await? {
                versions.push((kind, object.name_any(), version(&object)?));
                let key = format!("{}/{}", kind.plural(), object.name_any());
                ends.insert(key, plain(kind, &serde_json::to_value(&object)?, names));
            }
        }
        Ok((Self(ends), versions))
    }

    /// How these differ from those that are expected, a line for each difference; empty if they don't.
    pub(super) fn differences(&self, expected: &Self) -> String {
        let mut lines = String::new();
        let keys = self.0.keys().chain(expected.0.keys().filter(|key| !self.0.contains_key(*key)));
        for key in keys {
            let missing = Value::Null;
            let found = self.0.get(key).unwrap_or(&missing);
            let wanted = expected.0.get(key).unwrap_or(&missing);
            compare(&mut lines, key, found, wanted);
        }
        lines
    }
}

fn compare(lines: &mut String, path: &str, found: &Value, wanted: &Value) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let keys = found.keys().chain(wanted.keys().filter(|key| !found.contains_key(*key)));
            for key in keys {
                let part = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                compare(lines, &format!("{path}.{key}"), &part(found), &part(wanted));
            }
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                compare(lines, &format!("{path}[{at}]"), found, wanted);
            }
        }
        _ if found == wanted => {}
        _ => {
            let _ = writeln!(lines, "  {path}: {found}, not {wanted}");
        }
    }
}

fn plain(kind: Kind, object: &Value, names: &Names) -> Value {
    let metadata = &object["metadata"];
    let mut plain = Map::new();
    for field in ["annotations", "labels", "finalizers"] {
        plain.insert(field.to_owned(), names.value(&metadata[field]));
    }
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    plain.insert("owners".to_owned(), owners.map(|one| names.value(one)).collect());
    plain.insert("managers".to_owned(), managers(metadata));
    for field in ["config", "spec", "status"] {
        // How the controllers of others word a status is not ours.
        if field != "status" || !matches!(kind, Kind::Deployment | Kind::ScaledObject) {
            let mut value = names.value(&object[field]);
            if let Some(conditions) = value["conditions"].as_array_mut() {
                conditions.sort_by_key(|one| one["type"].as_str().map(ToOwned::to_owned));
            }
            plain.insert(field.to_owned(), value);
        }
    }
    Value::Object(plain)
}

/// Who owns fields; of an apply also which.
fn managers(metadata: &Value) -> Value {
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    let entries = entries.map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let who = format!("{}/{}/{}", text("manager"), text("operation"), text("subresource"));
        let fields =
            if text("operation") == "Apply" { entry["fieldsV1"].clone() } else { json!({}) };
        (who, fields)
    });
    let entries: BTreeMap<String, Value> = entries.collect();
    json!(entries)
}

/// What was written to each object, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Writes(BTreeMap<String, Vec<String>>);

impl Writes {
    /// The writes that the API server took, by object. Events are left out: they are messages. So are
    /// writes that tell how far a rollout got, or of the deadline that moves with it, and nothing else:
    /// how many there are depends on how events of pods fall together. The same is true of a status of
    /// a ReleaseTarget that names a phase of the run for the first time, or the phase of the one before
    /// in other words: which of them are seen, and what KEDA has done by then, is chance. One that goes
    /// back to an earlier phase counts, as does one that says what the one before said.
    pub(super) fn of(calls: &[Call], names: &Names) -> Self {
        let mut writes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut last: BTreeMap<String, (Mark, Option<(Value, Value)>)> = BTreeMap::new();
        let mut phases: BTreeSet<(String, String)> = BTreeSet::new();
        for call in calls.iter().filter(|call| call.id.is_write()) {
            let Some(resource) = call.id.resource().filter(|one| one.resource != "events") else {
                continue;
            };
            if !matches!(call.outcome, Outcome::Status(status) if status.is_success()) {
                continue;
            }
            let key = format!("{}/{}", resource.resource, call.object_name().unwrap_or_default());
            let body = call.body.as_ref().and_then(|body| serde_json::from_slice(body).ok());
            let progress = body.map(|body: Value| {
                let status = &body["status"];
                (status["progress"].clone(), status["waiting"]["until"].clone())
            });
            let mark = Mark::of(&call.id, call.body.as_deref(), names);
            let is_target = resource.resource == "releasetargets";
            let is_new = is_target && phases.insert((key.clone(), mark.phase().to_owned()));
            let is_told = last.get(&key).is_some_and(|(before, progress_before)| {
                let is_same = *before == mark;
                let is_reworded = is_target && !is_same && before.phase() == mark.phase();
                is_reworded || (is_same && *progress_before != progress)
            });
            let line = format!("process {}: {mark}", call.process);
            last.insert(key.clone(), (mark, progress));
            if !is_new && !is_told {
                writes.entry(key).or_default().push(line);
            }
        }
        Self(writes)
    }

    /// Of each object the longer list.
    #[must_use]
    pub(super) fn most(mut self, other: Self) -> Self {
        for (key, lines) in other.0 {
            let most = self.0.entry(key).or_default();
            if lines.len() > most.len() {
                *most = lines;
            }
        }
        self
    }

    /// Objects that were written more often than in `reference` and once more, with their writes.
    pub(super) fn excess(&self, reference: &Self) -> String {
        let mut text = String::new();
        for (key, lines) in &self.0 {
            let expected = reference.0.get(key).map(Vec::as_slice).unwrap_or_default();
            if lines.len() > expected.len() + 1 {
                let (many, few) = (lines.len(), expected.len());
                let _ = writeln!(text, "  {key}: {many} writes, {few} without a crash");
                for line in lines {
                    let _ = writeln!(text, "    {line}");
                }
                let _ = writeln!(text, "  without a crash:");
                for line in expected {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use belay_testkit::fault::CallId;
    use http::{Request, StatusCode};
    use rstest::rstest;

    use super::*;

    /// Statuses of an object that were written one after the other: reason, the rest, progress.
    fn written(plural: &str, statuses: &[(&str, &str, u32)]) -> usize {
        let calls: Vec<_> = statuses.iter().map(|status| write(plural, *status)).collect();
        let Writes(writes) = Writes::of(&calls, &Names::default());
        writes.values().map(Vec::len).sum()
    }

    fn write(plural: &str, (reason, rest, updated): (&str, &str, u32)) -> Call {
        let path = format!("/apis/belay.dev/v1alpha1/namespaces/ns/{plural}/web/status");
        let request = Request::put(path).body(()).unwrap();
        let conditions = [json!({ "type": "Progressing", "status": "True", "reason": reason })];
        let progress = json!({ "updated": updated });
        let status = json!({ "conditions": conditions, "rest": rest, "progress": progress });
        Call {
            id: CallId::kubernetes(&request, ""),
            process: 1,
            query: Vec::new(),
            body: Some(json!({ "status": status }).to_string().into()),
            fault: None,
            outcome: Outcome::Status(StatusCode::OK),
        }
    }

    #[rstest]
    #[case::the_same_twice("releasetargets", &[("Rolling", "", 1), ("Rolling", "", 1)], 1)]
    #[case::further("releasetargets", &[("Rolling", "", 1), ("Rolling", "", 2)], 0)]
    #[case::in_other_words("releasetargets", &[("Rolling", "a", 1), ("Rolling", "b", 1)], 0)]
    #[case::another_phase("releasetargets", &[("Rolling", "", 1), ("Baking", "", 1)], 0)]
    #[case::back_again(
        "releasetargets",
        &[("Rolling", "", 1), ("Baking", "", 1), ("Rolling", "", 1)],
        1
    )]
    #[case::of_a_release_all_count("releases", &[("Rolling", "a", 1), ("Baking", "b", 1)], 2)]
    #[case::but_how_far_it_got("releases", &[("Rolling", "", 1), ("Rolling", "", 2)], 1)]
    fn what_counts_as_a_further_write(
        #[case] plural: &str,
        #[case] statuses: &[(&str, &str, u32)],
        #[case] expected: usize,
    ) {
        assert_eq!(written(plural, statuses), expected);
    }

    #[test]
    fn one_more_than_without_a_crash_is_no_excess() {
        let writes = |count: usize| {
            Writes([("releases/web".to_owned(), vec!["process 1".to_owned(); count])].into())
        };
        assert_eq!(writes(3).excess(&writes(2)), "");
        assert!(writes(4).excess(&writes(2)).contains("4 writes, 2 without a crash"));
        assert!(writes(2).excess(&Writes::default()).contains("0 without a crash"));
    }
}

//! From what the watches saw to a recording: only what judging needs, under constant names and times.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::{Map, Value};

use super::recording::{Applied, Change, Head, Moment, Recording, What};

/// The second in which every recording begins.
pub const BEGINNING: i64 = 946_684_800;
/// What every namespace is called.
const NAMESPACE: &str = "shop";

const HASH: &str = "pod-template-hash";

/// Something the recorder saw or did.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When.
    pub at: Timestamp,
    /// The resourceVersion that it made, or that was the last seen before it.
    pub version: u64,
    /// What.
    pub what: Raw,
}

/// What the recorder sees and does.
#[derive(Debug, Clone)]
pub enum Raw {
    /// An image was written.
    Applied(Applied),
    /// Something else was done.
    Did(String),
    /// An event of an object.
    Object {
        /// Which kind of object.
        kind: Kind,
        /// Its name.
        name: String,
        /// Whether it is gone.
        gone: bool,
        /// All of it.
        object: Value,
    },
}

/// The kinds of objects that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet.
    ReplicaSet,
    /// A pod.
    Pod,
}

/// Which fields are kept; of lists, those of every element.
enum Keep {
    All,
    Fields(&'static [(&'static str, Self)]),
}

const CONTAINERS: Keep = Keep::Fields(&[("name", Keep::All), ("image", Keep::All)]);
const TEMPLATE: Keep = Keep::Fields(&[
    ("metadata", Keep::Fields(&[("annotations", Keep::All)])),
    ("spec", Keep::Fields(&[("initContainers", CONTAINERS), ("containers", CONTAINERS)])),
]);
const HASH_LABEL: Keep = Keep::Fields(&[(HASH, Keep::All)]);
const CONDITIONS: Keep = Keep::Fields(&[
    ("type", Keep::All),
    ("status", Keep::All),
    ("reason", Keep::All),
    ("message", Keep::All),
    ("lastTransitionTime", Keep::All),
]);
const STATUSES: Keep = Keep::Fields(&[
    ("name", Keep::All),
    ("imageID", Keep::All),
    ("ready", Keep::All),
    ("restartCount", Keep::All),
    ("state", Keep::All),
    ("lastState", Keep::All),
]);
const DEPLOYMENT: Keep = Keep::Fields(&[
    (
        "metadata",
        Keep::Fields(&[
            ("generation", Keep::All),
            ("creationTimestamp", Keep::All),
            ("annotations", Keep::All),
        ]),
    ),
    (
        "spec",
        Keep::Fields(&[
            ("replicas", Keep::All),
            ("paused", Keep::All),
            ("minReadySeconds", Keep::All),
            ("progressDeadlineSeconds", Keep::All),
            ("strategy", Keep::All),
            ("template", TEMPLATE),
        ]),
    ),
    ("status", Keep::All),
]);
const REPLICA_SET: Keep = Keep::Fields(&[
    ("metadata", Keep::Fields(&[("labels", HASH_LABEL)])),
    ("spec", Keep::Fields(&[("replicas", Keep::All), ("template", TEMPLATE)])),
    ("status", Keep::All),
]);
const POD: Keep = Keep::Fields(&[
    (
        "metadata",
        Keep::Fields(&[
            ("labels", HASH_LABEL),
            ("creationTimestamp", Keep::All),
            ("deletionTimestamp", Keep::All),
        ]),
    ),
    ("spec", Keep::Fields(&[("initContainers", CONTAINERS), ("containers", CONTAINERS)])),
    (
        "status",
        Keep::Fields(&[
            ("phase", Keep::All),
            ("reason", Keep::All),
            ("message", Keep::All),
            ("startTime", Keep::All),
            ("conditions", CONDITIONS),
            ("initContainerStatuses", STATUSES),
            ("containerStatuses", STATUSES),
        ]),
    ),
]);

impl Kind {
    fn keep(self) -> &'static Keep {
        match self {
            Self::Deployment => &DEPLOYMENT,
            Self::ReplicaSet => &REPLICA_SET,
            Self::Pod => &POD,
        }
    }

    fn moment(self, change: Change) -> What {
        match self {
            Self::Deployment => What::Deployment(change),
            Self::ReplicaSet => What::ReplicaSet(change),
            Self::Pod => What::Pod(change),
        }
    }
}

impl Keep {
    /// The kept part, without what is null or empty then.
    fn of(&self, value: &Value) -> Option<Value> {
        let kept = match (self, value) {
            (_, Value::Null) => return None,
            (Self::All, value) => value.clone(),
            (Self::Fields(_), Value::Array(items)) => {
                Value::Array(items.iter().filter_map(|item| self.of(item)).collect())
            }
            (Self::Fields(fields), Value::Object(object)) => Value::Object(
                fields
                    .iter()
                    .filter_map(|(name, keep)| {
                        Some(((*name).to_owned(), keep.of(object.get(*name)?)?))
                    })
                    .collect(),
            ),
            (Self::Fields(_), _) => return None,
        };
        let is_empty = match &kept {
            Value::Array(items) => items.is_empty(),
            Value::Object(object) => object.is_empty(),
            _ => false,
        };
        (!is_empty).then_some(kept)
    }
}

/// Makes a recording of what was seen in a namespace.
///
/// # Errors
/// When no Deployment was seen.
pub fn trim(head: Head, namespace: &str, mut seen: Vec<Seen>) -> Result<Recording> {
    // Watches of different kinds reorder what happened by some milliseconds; versions do not. What
    // was done stands before the event that it caused, what made no version after the last one.
    seen.sort_by_key(|one| {
        let rank = match one.what {
            Raw::Applied(_) => 0,
            Raw::Object { .. } => 1,
            Raw::Did(_) => 2,
        };
        (one.version, rank)
    });
    let mut latest = Timestamp::MAX;
    for one in seen.iter_mut().rev() {
        latest = latest.min(one.at);
        one.at = latest;
    }
    let first = seen.first().context("nothing was seen")?.version;
    let constants = Constants::of(namespace, &seen)?;
    let mut last: HashMap<(Kind, String), Map<String, Value>> = HashMap::new();
    let mut moments = Vec::new();
    for one in seen {
        let what = match one.what {
            Raw::Applied(applied) => {
                What::Applied(Applied { time: constants.time(applied.time), ..applied })
            }
            Raw::Did(what) => What::Did(constants.text(&what)),
            Raw::Object { kind, name, gone, object } => {
                let mut kept = match kind.keep().of(&object) {
                    Some(Value::Object(kept)) => kept,
                    _ => Map::new(),
                };
                kept.values_mut().for_each(|value| constants.apply(value));
                let before = last.insert((kind, name.clone()), kept.clone()).unwrap_or_default();
                kept.retain(|section, value| before.get(section) != Some(value));
                let name = constants.text(&name);
                let version = one.version - first;
                kind.moment(Change { name, version, gone, sections: kept })
            }
        };
        let at = constants.time(one.at).round(Unit::Millisecond).context("round a time")?;
        moments.push(Moment { at, what });
    }
    Ok(Recording { head, moments })
}

/// Names and times that differ from run to run, and what is written instead.
struct Constants {
    shift: SignedDuration,
    words: Vec<(String, String)>,
}

impl Constants {
    fn of(namespace: &str, seen: &[Seen]) -> Result<Self> {
        let mut created = None;
        let mut sets: BTreeMap<String, (String, usize)> = BTreeMap::new();
        let (mut pods, mut owners) = (Vec::new(), Vec::new());
        for one in seen {
            let Raw::Object { kind, name, object, .. } = &one.what else { continue };
            let hash = object["metadata"]["labels"][HASH].as_str().unwrap_or_default();
            match kind {
                Kind::Deployment if created.is_none() => {
                    created = object["metadata"]["creationTimestamp"]
                        .as_str()
                        .and_then(|text| text.parse::<Timestamp>().ok());
                }
                Kind::ReplicaSet if !sets.contains_key(hash) => {
                    let letter = letter(sets.len());
                    owners.push((name.clone(), name.replace(hash, &letter)));
                    owners.push((hash.to_owned(), letter.clone()));
                    sets.insert(hash.to_owned(), (letter, 0));
                }
                Kind::Pod if !pods.iter().any(|(known, _)| known == name) => {
                    if let Some((letter, count)) = sets.get_mut(hash) {
                        *count += 1;
                        pods.push((name.clone(), format!("web-{letter}-{count}")));
                    }
                }
                _ => {}
            }
        }
        let created = created.context("no Deployment was seen")?;
        let beginning = Timestamp::from_second(BEGINNING).context("the constant beginning")?;
        // Longer names first: those of pods begin with those of ReplicaSets.
        let mut words = pods;
        words.extend(owners);
        words.push((namespace.to_owned(), NAMESPACE.to_owned()));
        Ok(Self { shift: beginning.duration_since(created), words })
    }

    fn time(&self, time: Timestamp) -> Timestamp {
        time.saturating_add(self.shift).unwrap_or(Timestamp::MAX)
    }

    fn text(&self, text: &str) -> String {
        self.words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn apply(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                *text = match text.parse::<Timestamp>() {
                    Ok(time) => self.time(time).to_string(),
                    Err(_) => self.text(text),
                };
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::Object(object) => object.values_mut().for_each(|value| self.apply(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// a, b, c and on.
fn letter(number: usize) -> String {
    let offset = u8::try_from(number % 26).unwrap_or_default();
    char::from(b'a' + offset).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(version: u64, kind: Kind, object: Value) -> Seen {
        let at = Timestamp::from_second(2_000_000_000 + i64::try_from(version).unwrap()).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        Seen { at, version, what: Raw::Object { kind, name, gone: false, object } }
    }

    #[test]
    fn names_and_times_are_constant_and_only_what_changed_is_said() {
        let deployment = |ready: u32| {
            json!({
                "metadata": { "name": "web", "generation": 1, "uid": "u",
                    "creationTimestamp": "2033-05-18T03:33:20Z" },
                "spec": { "replicas": 1 },
                "status": { "replicas": ready },
            })
        };
        let set = json!({ "metadata": { "name": "web-5f7", "labels": { HASH: "5f7" } } });
        let pod = json!({
            "metadata": { "name": "web-5f7-x2x", "labels": { HASH: "5f7" } },
            "status": { "message": "web-5f7-x2x in ns-17", "startTime": "2033-05-18T03:33:22Z" },
        });
        let seen = vec![
            event(9, Kind::Deployment, deployment(1)),
            event(5, Kind::Deployment, deployment(0)),
            event(7, Kind::Pod, pod),
            event(6, Kind::ReplicaSet, set),
        ];
        let head =
            Head { scenario: "a".to_owned(), about: String::new(), kubernetes: "v1".to_owned() };
        let recording = trim(head, "ns-17", seen).unwrap();
        let lines: Vec<Value> = recording
            .print()
            .unwrap()
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["at"], "2000-01-01T00:00:05Z");
        assert_eq!(
            lines[0]["deployment"]["metadata"],
            json!({
                "generation": 1, "creationTimestamp": "2000-01-01T00:00:00Z",
            })
        );
        assert_eq!(lines[1]["replicaSet"]["name"], "web-a");
        assert_eq!(lines[2]["pod"]["name"], "web-a-1");
        assert_eq!(
            lines[2]["pod"]["status"],
            json!({
                "message": "web-a-1 in shop", "startTime": "2000-01-01T00:00:02Z",
            })
        );
        assert_eq!(
            lines[3]["deployment"],
            json!({
                "name": "web", "version": 4, "status": { "replicas": 1 },
            })
        );
    }
}

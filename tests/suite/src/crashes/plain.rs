//! Objects without what differs from run to run.

use serde_json::{Map, Value};

/// Fields that hold times, identities and counts that the API server or the clock makes.
const BY_CHANCE: [&str; 17] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "observedGeneration",
    "generateName",
    "lastTransitionTime",
    "startTime",
    "endTime",
    "completionTime",
    "nextAttemptTime",
    "transitionTime",
    "time",
    "since",
    "until",
    "attemptCount",
    "deployment.kubernetes.io/revision",
];

/// Names that differ from run to run, each with the one that it gets instead.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(pub(super) Vec<(String, &'static str)>);

impl Names {
    /// The text with the constant names, without digests and times.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (real, shown) in &self.0 {
            if text.contains(real.as_str()) {
                text = text.replace(real.as_str(), shown);
            }
        }
        without_times_and_pods(&without_digests(&text))
    }

    /// The value in the same way, without the fields that are made by chance. JSON within a string is
    /// treated as what it is.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(key, _)| !BY_CHANCE.contains(&key.as_str()));
                Value::Object(
                    kept.map(|(key, value)| (key.clone(), self.value(value)))
                        .collect::<Map<_, _>>(),
                )
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect())
            }
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                    Value::String(self.value(&inner).to_string())
                }
                _ => Value::String(self.text(text)),
            },
            other => other.clone(),
        }
    }
}

/// Images hold the name of the namespace, and so their digests differ.
fn without_digests(text: &str) -> String {
    const SIGN: &str = "sha256:";
    let mut parts = text.split(SIGN);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(SIGN);
        plain.push_str(part.trim_start_matches(|one: char| one.is_ascii_hexdigit()));
    }
    plain
}

fn without_times_and_pods(text: &str) -> String {
    let word = |word: &str| -> String {
        let bare = word.trim_matches(|one: char| !one.is_ascii_alphanumeric());
        if bare.len() > 10 && bare.parse::<jiff::Timestamp>().is_ok() {
            return word.replace(bare, "TIME");
        }
        match bare.strip_prefix("web-").and_then(|rest| rest.split_once('-')) {
            Some((set, pod)) if pod.len() == 5 && is_by_chance(set) && is_by_chance(pod) => {
                word.replace(bare, "POD")
            }
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a part of a pod's name is one that controllers make: they use no vowels, and no digits that
/// look like one.
fn is_by_chance(part: &str) -> bool {
    part.bytes().all(|one| b"bcdfghjklmnpqrstvwxz2456789".contains(&one))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_taken_out() {
        let names =
            Names(vec![("127.0.0.1:41".to_owned(), "registry"), ("run-7".to_owned(), "ns")]);
        let block = json!({"from": {"tag": "v2"}, "until": "2026-01-01T00:00:00Z"}).to_string();
        let found = names.value(&json!({
            "metadata": {"uid": "1", "name": "web", "annotations": {"belay.dev/blocked": block}},
            "image": "127.0.0.1:41/run-7/web:1@sha256:0a1f",
            "message": "waits until 2026-01-01T00:00:00Z for web-54d75bd5f9-lz6sc of web-61f6f02",
        }));
        let expected = json!({
            "metadata": {
                "name": "web",
                "annotations": {"belay.dev/blocked": json!({"from": {"tag": "v2"}}).to_string()},
            },
            "image": "registry/ns/web:1@sha256:",
            "message": "waits until TIME for POD of web-61f6f02",
        });
        assert_eq!(found, expected);
    }
}

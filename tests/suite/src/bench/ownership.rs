//! Look-ups in `managedFields`: a Deployment with 20 managers of 300 fields.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use belay_ownership::{Ownership, Query};
use serde_json::{Map, Value, json};

/// Measured runs.
const RUNS: usize = 60;

/// Runs before them, to warm caches.
const WARM_UP: usize = 5;

const MANAGERS: usize = 20;
const LOOKUPS: usize = 1_000;

/// 3 containers of 3 fields, the item as such being one, each with 32 variables of 3 fields, and 3
/// labels: 300 fields for each manager.
const CONTAINERS: usize = 3;
const VARIABLES: usize = 32;
const LABELS: usize = 3;

/// Times of 1,000 look-ups, the queries being read each time, in what was decoded before.
pub fn lookup_samples() -> Vec<Duration> {
    let ownership = decoded(&managed_fields());
    let queries = queries();
    samples(|| {
        for query in &queries {
            let query: Query = parsed(query);
            black_box(ownership.lookup(black_box(&query), None));
        }
    })
}

/// Times of decoding the Deployment's `managedFields` from a JSON value, as a client has it.
pub fn decode_samples() -> Vec<Duration> {
    let entries = managed_fields();
    samples(|| {
        black_box(decoded(black_box(&entries)));
    })
}

fn samples(mut run: impl FnMut()) -> Vec<Duration> {
    let mut once = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..WARM_UP + RUNS).map(|_| once()).skip(WARM_UP).collect()
}

fn leaves(names: impl IntoIterator<Item = String>) -> Value {
    Value::Object(names.into_iter().map(|name| (name, json!({}))).collect())
}

/// Half the variables are everybody's, half the manager's own.
fn variable(manager: usize, index: usize) -> String {
    if index.is_multiple_of(2) {
        format!("SHARED_{index}")
    } else {
        format!("VAR_{manager}_{index}")
    }
}

fn fields(manager: usize) -> Value {
    let own = [".", "f:name", "f:value"].map(str::to_owned);
    let env: Map<_, _> = (0..VARIABLES)
        .map(|index| {
            let name = variable(manager, index);
            (format!("k:{{\"name\":\"{name}\"}}"), leaves(own.clone()))
        })
        .collect();
    let containers: Map<_, _> = (0..CONTAINERS)
        .map(|index| {
            let fields = json!({ ".": {}, "f:image": {}, "f:name": {}, "f:env": env });
            (format!("k:{{\"name\":\"app-{index}\"}}"), fields)
        })
        .collect();
    let labels = leaves((0..LABELS).map(|index| format!("f:app.kubernetes.io/label-{index}")));
    json!({
        "f:metadata": { "f:labels": labels },
        "f:spec": { "f:template": { "f:spec": { "f:containers": containers } } },
    })
}

fn managed_fields() -> Value {
    (0..MANAGERS)
        .map(|manager| {
            json!({
                "manager": format!("manager-{manager}"),
                "operation": if manager.is_multiple_of(2) { "Apply" } else { "Update" },
                "apiVersion": "apps/v1",
                "time": "2026-11-27T02:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": fields(manager),
            })
        })
        .collect()
}

/// Images, variables with and without owner, labels, and what is in no entry.
fn queries() -> Vec<String> {
    (0..LOOKUPS)
        .map(|index| {
            let container =
                format!("spec.template.spec.containers[name=app-{}]", index % CONTAINERS);
            match index % 5 {
                0 => format!("{container}.image"),
                1 => {
                    let name = variable(index % MANAGERS, index % VARIABLES);
                    format!("{container}.env[name={name}].value")
                }
                2 => format!("{container}.imagePullPolicy"),
                3 => format!("metadata.labels['app.kubernetes.io/label-{}']", index % LABELS),
                _ => format!("{container}.env[name=MISSING_{index}].value"),
            }
        })
        .collect()
}

#[expect(clippy::expect_used, reason = "built above, and a test reads it")]
fn decoded(entries: &Value) -> Ownership {
    Ownership::from_value(entries).expect("a list of entries")
}

#[expect(clippy::expect_used, reason = "built above, and a test reads it")]
fn parsed(query: &str) -> Query {
    query.parse().expect("a query")
}

#[cfg(test)]
mod tests {
    use belay_ownership::State;

    use super::*;

    #[test]
    fn twenty_managers_have_three_hundred_fields_each() {
        let ownership = decoded(&managed_fields());
        let counts: Vec<_> = ownership.entries().map(belay_ownership::Entry::len).collect();
        assert_eq!(counts, [300; 20]);
        assert_eq!(ownership.undecodable(), []);
    }

    #[test]
    fn a_thousand_queries_have_owners_and_none() {
        let ownership = decoded(&managed_fields());
        let queries = queries();
        let lookups = queries.iter().map(|query| ownership.lookup(&parsed(query), None));
        let states: Vec<_> = lookups.map(|lookup| lookup.answers[0].state).collect();
        let owned = states.iter().filter(|state| **state == State::Owned).count();
        assert_eq!((states.len(), owned), (LOOKUPS, 600));
    }

    #[test]
    fn there_are_enough_samples_for_a_median() {
        const { assert!(RUNS >= 40) };
        assert_eq!(samples(|| ()).len(), RUNS);
    }
}

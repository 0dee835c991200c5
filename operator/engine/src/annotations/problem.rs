//! What is wrong with an annotation.

use std::fmt;

use belay_api::limits;
use serde::{Deserialize, Serialize};

/// The longest value that a problem repeats.
const MAX_VALUE: usize = 100;

/// An annotation that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The whole key, prefix included.
    pub key: String,
    /// The value, clipped; absent where the annotation is missing.
    pub value: Option<String>,
    /// What is wrong with it.
    pub problem: String,
}

impl Problem {
    /// A problem with the annotation `key`, whose value is `value`.
    pub fn new(key: String, value: Option<&str>, problem: impl Into<String>) -> Self {
        let value = value.map(|value| limits::clip(value, MAX_VALUE));
        Self { key, value, problem: problem.into() }
    }
}

/// Prints `belay.dev/bake: "5 minutes": expected …`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}: {value:?}: {}", self.key, self.problem),
            None => write!(f, "{}: {}", self.key, self.problem),
        }
    }
}

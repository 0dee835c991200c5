//! Versions: which release tags count, what their version is, which image tag belongs to them, and
//! which of two is higher (the operator specification, sections 2 and 3.2).

mod order;
mod pattern;
mod range;
mod template;

pub use semver::Version;

pub use self::{
    order::{Rank, parse_version},
    pattern::TagPattern,
    range::Range,
    template::{TagTemplate, possible_tags},
};

/// Text that is no pattern, template or range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as {what}: {problem}")]
pub struct InvalidRule {
    what: &'static str,
    text: String,
    problem: String,
}

impl InvalidRule {
    fn new(what: &'static str, text: &str, problem: impl Into<String>) -> Self {
        Self { what, text: belay_api::limits::clip(text, 100), problem: problem.into() }
    }

    /// What is wrong, without the text.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

/// The longest pattern, template or range that is read.
const MAX_RULE: usize = 200;

/// Reads and prints a rule as the string it was made from.
macro_rules! text_rule {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.text)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

use text_rule;

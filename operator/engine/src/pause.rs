//! The claim of a pause: what the annotation `pause-owner` on a ScaledObject says (the operator
//! specification, sections 2 and 5).
//!
//! A claim names whose it is and for which Release, so that it can be found, renewed and dropped from
//! the ScaledObject alone, whatever has become of the workload's annotations since.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The longest annotation that is read.
const MAX_LENGTH: usize = 2048;

/// Who claims the pause of a ScaledObject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The operator: its Lease, `NAMESPACE/NAME`.
    pub instance: String,
    /// The target.
    pub target: String,
    /// The Release that is rolled out meanwhile.
    pub release: String,
    /// When it was claimed first.
    pub since: Timestamp,
}

/// An annotation that cannot be read as a claim.
#[derive(Debug, thiserror::Error)]
#[error("read the annotation of a paused ScaledObject")]
pub struct InvalidClaim(#[source] Option<serde_json::Error>);

impl Claim {
    /// Reads the annotation.
    ///
    /// # Errors
    /// [`InvalidClaim`].
    pub fn parse(text: &str) -> Result<Self, InvalidClaim> {
        if text.len() > MAX_LENGTH {
            return Err(InvalidClaim(None));
        }
        serde_json::from_str(text).map_err(|error| InvalidClaim(Some(error)))
    }

    /// The annotation's value.
    pub fn to_annotation(&self) -> String {
        // A struct of strings and a time always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

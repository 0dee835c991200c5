//! Debug files: what a target's debug page answers, and the plan computed from it anew.
//!
//! A plan is a pure function of what was observed, the settings and the time. A file that holds
//! these is a whole bug report.

use belay_engine::{
    Timestamp,
    observed::Observed,
    plan::{Plan, plan},
    settings::Settings,
};
use serde::{Deserialize, Serialize};

/// What `GET /debug/targets/NAMESPACE/NAME` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DebugFile {
    /// What was observed.
    pub observed: Observed,
    /// The operator's configuration, as far as decisions depend on it.
    pub settings: Settings,
    /// When.
    pub now: Timestamp,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

/// Text that is no debug file.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is no JSON, or not of the fields that this version writes.
    #[error("read the debug file")]
    Read(#[source] serde_json::Error),
    /// A plan cannot be printed.
    #[error("print the plan")]
    Print(#[source] serde_json::Error),
}

/// A plan that was computed anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// What this version decides.
    pub computed: serde_json::Value,
    /// Whether that is what was recorded.
    pub agreement: Agreement,
}

/// How a computed plan compares with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The same.
    Same,
    /// Another one.
    Different,
    /// None was recorded.
    NothingRecorded,
}

impl DebugFile {
    /// What was observed, and the plan that follows.
    pub fn of(observed: Observed, settings: Settings, now: Timestamp) -> Self {
        let plan = Some(plan(&observed, &settings, now));
        Self { observed, settings, now, plan }
    }
}

/// Computes the plan of a debug file.
///
/// # Errors
/// [`ReplayError`], when the text is no debug file of this version.
pub fn replay(text: &str) -> Result<Replayed, ReplayError> {
    let file: DebugFile = serde_json::from_str(text).map_err(ReplayError::Read)?;
    let DebugFile { observed, settings, now, plan: recorded } = file;
    // Both as they print: an empty map and one that is absent are the same there.
    let printed = |plan: &Plan| serde_json::to_value(plan).map_err(ReplayError::Print);
    let computed = printed(&plan(&observed, &settings, now))?;
    let agreement = match recorded.as_ref().map(printed).transpose()? {
        None => Agreement::NothingRecorded,
        Some(recorded) if recorded == computed => Agreement::Same,
        Some(_) => Agreement::Different,
    };
    Ok(Replayed { computed, agreement })
}

#[cfg(test)]
mod tests;

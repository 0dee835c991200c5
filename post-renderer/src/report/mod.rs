//! What a run tells: where it looked, how Helm applies, one line per decision, and how it ended.

pub mod file;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    decide::{Decision, Verdict},
    locate::Told,
    splice::Outcome,
};

/// The report of one run: what `--report json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of belay.
    pub version: &'static str,
    /// Whether the manifests were, or would have been, written.
    pub succeeded: bool,
    /// Why not, with what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What came in.
    pub input: Input,
    /// The API server that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Fact>,
    /// The context of the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Fact>,
    /// The namespace for documents that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Fact>,
    /// The Helm release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Fact>,
    /// How Helm will apply: `client-side`, `server-side` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<Fact>,
    /// One for each container of each workload, in their order.
    pub decisions: Vec<Line>,
    /// What a person should know besides.
    pub notes: Vec<String>,
}

/// What came in.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Bytes.
    pub bytes: usize,
    /// Documents that hold more than comments.
    pub documents: usize,
    /// Workloads: Deployments, StatefulSets and DaemonSets of `apps/v1`.
    pub workloads: usize,
}

/// A value with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// The value.
    pub value: String,
    /// Where it comes from.
    pub from: String,
}

impl Fact {
    /// A value of that source.
    pub fn new(value: impl Into<String>, from: impl Into<String>) -> Self {
        Self { value: value.into(), from: from.into() }
    }
}

impl From<&Told<String>> for Fact {
    fn from(told: &Told<String>) -> Self {
        Self::new(&told.value, told.from.to_string())
    }
}

/// What was decided about one container.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The decision.
    pub decision: Word,
    /// The kind of the workload.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The container.
    pub container: String,
    /// `containers` or `initContainers`.
    pub list: &'static str,
    /// The image in the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_image: Option<String>,
    /// The live image that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_image: Option<String>,
    /// The whole line, as in the text report.
    pub sentence: String,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// The live image is written into the manifest.
    Preserve,
    /// The image is taken out of the manifest.
    Strip,
    /// The manifest stays as it is.
    Pass,
    /// The run ends.
    Fail,
}

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            succeeded: false,
            error: None,
            input: Input::default(),
            server: None,
            context: None,
            namespace: None,
            release: None,
            apply: None,
            decisions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The text report: facts, decisions, notes, the error; one line each.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// The JSON report, in one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| {
            // Strings and numbers alone: it cannot happen.
            serde_json::json!({ "succeeded": false, "error": error.to_string() }).to_string()
        }) + "\n"
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&Decision> for Word {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Preserve { .. } => Self::Preserve,
            Decision::Strip { .. } => Self::Strip,
            Decision::Pass { .. } => Self::Pass,
            Decision::Fail { .. } => Self::Fail,
        }
    }
}

/// What became of a decision that the splice could not carry out as it was meant.
pub fn outcome_note(verdict: &Verdict, outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::PreservedInstead(why) => {
            Some(format!("{}: preserved instead of stripped, since {why}", verdict.sentence))
        }
        Outcome::Preserved | Outcome::Stripped | Outcome::Unchanged => None,
    }
}

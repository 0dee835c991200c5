//! A decision, and the line of the report that states it.

use crate::decide::{LiveContainer, Question};

/// What is done with the image of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Write the live image into the manifest.
    Preserve {
        /// The live image.
        image: String,
    },
    /// Take the image out of the manifest.
    Strip {
        /// The live image, for where it cannot be taken out cleanly.
        image: String,
    },
    /// Leave the manifest as it is.
    Pass {
        /// What the user should know.
        warning: Option<String>,
    },
    /// End the run.
    Fail {
        /// Why.
        why: String,
    },
}

impl Decision {
    /// Pass without a warning.
    pub const PASS: Self = Self::Pass { warning: None };

    /// The word for it in the report.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Preserve { .. } => "preserve",
            Self::Strip { .. } => "strip",
            Self::Pass { .. } => "pass",
            Self::Fail { .. } => "fail",
        }
    }
}

/// A decision with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The one line of the report about this container:
    /// `preserve Deployment shop/web app ghcr.io/acme/web:1.0.0 -> ghcr.io/acme/web:1.4.2
    /// (belay-operator, Apply)`.
    pub sentence: String,
    /// Lines for the log besides: an overridden version, a warning about a preserved image.
    pub notes: Vec<String>,
}

impl Verdict {
    pub(super) fn new(
        question: &Question<'_>,
        decision: Decision,
        reason: &str,
        live: Option<&LiveContainer>,
        notes: Vec<String>,
    ) -> Self {
        let Question { kind, namespace, name, container, .. } = question;
        let chart = question.chart_image.map_or("(no image)", str::trim);
        let arrow = match (&decision, live) {
            (Decision::Preserve { image } | Decision::Strip { image }, _) => {
                format!(" -> {image}")
            }
            _ => String::new(),
        };
        let word = decision.word();
        // Nothing tells it where no cluster is asked.
        let slash = if namespace.is_empty() { "" } else { "/" };
        let warning = match &decision {
            Decision::Pass { warning: Some(warning) } if warning != reason => {
                format!("; warning: {warning}")
            }
            _ => String::new(),
        };
        let sentence = format!(
            "{word} {kind} {namespace}{slash}{name} {container} {chart}{arrow} ({reason}{warning})"
        );
        Self { decision, sentence: one_line(&sentence), notes }
    }
}

/// A value of a manifest or a server must not make a second line, or move a terminal's cursor.
pub(crate) fn one_line(words: &str) -> String {
    // Nearly all words are, and to look at bytes is quicker.
    if words.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return words.to_owned();
    }
    words.replace(char::is_control, "\u{fffd}")
}

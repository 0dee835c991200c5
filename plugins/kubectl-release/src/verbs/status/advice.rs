//! What stands in the way, what to do about it, and what else is worth a look.

use belay_api::{
    reasons::{Note, ProgressingReason, TargetReadyReason},
    values::parse,
};

use super::view::{Options, Seen, unknown};
use crate::{
    facts::words::{Explain, explain},
    print::{Line, Paint},
};

impl Seen<'_> {
    /// Cause and next commands.
    pub(super) fn advice(&self, options: &Options) -> Vec<Line> {
        let standing = &self.standing;
        let namespace = options.namespace.as_deref();
        let name = &self.snapshot.name;
        let mut lines = Vec::new();
        let mut say = |label: &str, text: &str| {
            if !text.is_empty() {
                lines.push(options.line(label, text.into(), Line::new()));
            }
        };
        let words = match (&standing.stalled, standing.reason) {
            (Some(cause), _) => {
                say("Cause", &cause.message);
                let words = cause.reason.map(Explain::words);
                say("", words.map(|words| sentence(words.why)).unwrap_or_default().as_str());
                words
            }
            (
                None,
                Some(
                    reason @ (TargetReadyReason::Failed
                    | TargetReadyReason::RolledBack
                    | TargetReadyReason::Held
                    | TargetReadyReason::Unknown),
                ),
            ) => {
                let is_back = reason == TargetReadyReason::RolledBack;
                let fallen = self.fallen().filter(|_| is_back);
                say("Cause", fallen.as_ref().unwrap_or(&standing.message));
                Some(reason.words())
            }
            (None, Some(TargetReadyReason::Progressing)) => {
                let cause = standing.progressing.as_ref();
                let trouble =
                    cause.and_then(|cause| cause.reason).filter(|reason| is_trouble(*reason));
                if trouble.is_some() {
                    say("Cause", cause.map(|cause| cause.message.as_str()).unwrap_or_default());
                }
                trouble.map(Explain::words)
            }
            (None, Some(TargetReadyReason::Ready | TargetReadyReason::Stalled) | None) => None,
        };
        let target = match namespace {
            Some(namespace) => format!("{name} -n {namespace}"),
            None => name.clone(),
        };
        let mut commands = words.map(|words| words.commands(name, namespace)).unwrap_or_default();
        // Whoever reads this has run it.
        let own = format!("kubectl release status {target}");
        commands.retain(|command| *command != own);
        let mut label = "Fix";
        for command in commands.iter().take(3) {
            say(label, command);
            label = "";
        }
        if standing.is_bad() {
            let owners = format!("kubectl release owners {target} --path image");
            let why = format!("kubectl release why {target}");
            let more: Vec<String> =
                [owners, why].into_iter().filter(|one| !commands.contains(one)).collect();
            say("See", &more.join("        "));
        }
        lines
    }

    pub(super) fn notes(&self, options: &Options) -> Vec<Line> {
        let mut lines = Vec::new();
        for condition in self.status.conditions.iter().filter(|one| one.status == "True") {
            let is_note = parse::<Note>(&condition.type_).is_ok();
            if !is_note {
                continue;
            }
            let words = explain::<Note>(&condition.type_).map(|words| words.why);
            let message = match (condition.message.as_str(), words) {
                ("", words) => words.unwrap_or_default(),
                (message, _) => message,
            };
            let text = format!("{}: {message}", condition.type_);
            lines.push(options.line("Note", Line::new().with(Paint::Warn, text), Line::new()));
        }
        lines
            .extend(self.behind().map(|text| {
                options.line("Note", Line::new().with(Paint::Warn, text), Line::new())
            }));
        for (what, why) in [
            ("Releases", self.snapshot.releases.why()),
            ("pods", self.snapshot.pods.why()),
            ("ReplicaSets", self.snapshot.replica_sets.why()),
        ] {
            if let Some(why) = why.filter(|why| why.is_worth_telling()) {
                let text = format!("{what}: ");
                lines.push(options.line(
                    "Note",
                    Line::from(text).and(unknown(why.words())),
                    Line::new(),
                ));
            }
        }
        lines
    }

    /// What the ReleaseTarget does not know yet. Until it does, what it says is about something else.
    pub(super) fn behind(&self) -> Option<String> {
        let told = self.status.current.as_ref()?.image.as_deref()?;
        let container = self.followed().into_iter().next()?;
        (container.image != told).then(|| {
            format!("the operator last saw {told}; it has not answered to {} yet", container.image)
        })
    }
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}

fn is_trouble(reason: ProgressingReason) -> bool {
    match reason {
        ProgressingReason::CouldNotFreeze
        | ProgressingReason::TargetPaused
        | ProgressingReason::ImagePullFailed
        | ProgressingReason::Unschedulable
        | ProgressingReason::QuotaExceeded
        | ProgressingReason::AdmissionDenied
        | ProgressingReason::ImageReverted => true,
        ProgressingReason::Idle
        | ProgressingReason::FirstSight
        | ProgressingReason::Pausing
        | ProgressingReason::Rolling
        | ProgressingReason::Resuming
        | ProgressingReason::Baking
        | ProgressingReason::RollingBack
        | ProgressingReason::Restoring => false,
    }
}

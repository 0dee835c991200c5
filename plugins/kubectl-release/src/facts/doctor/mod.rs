//! The checks of `doctor`, each under an id that never changes, and what each of them found.

mod target;

use serde_json::{Value, json};

pub use self::target::{Examined, examine};
use super::helm::Forecast;
use crate::print::Icon;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth a look, or not known.
    Warning,
    /// Somebody must act.
    Error,
}

impl Level {
    /// The word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The sign for people.
    pub const fn icon(self) -> Icon {
        match self {
            Self::Ok => Icon::Good,
            Self::Warning => Icon::Warn,
            Self::Error => Icon::Bad,
        }
    }
}

macro_rules! checks {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal,)+) => {
        /// What is checked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Check {
            $($(#[doc = $doc])+ $name,)+
        }

        /// All checks, for `--help`.
        pub const HELP: &str = concat!("Checks:", $("\n  ", $id, " ", $($doc),+),+);

        impl Check {
            /// All, by id.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its id.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// What is checked, in a sentence.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

checks! {
    /// The API server serves Belay's kinds in the version of this plugin.
    Served = "RL001",
    /// The CRDs have the schema that this version of Belay needs.
    Schema = "RL002",
    /// The operator runs.
    Operator = "RL003",
    /// Plugin and operator are of the same minor version.
    Skew = "RL004",
    /// You may do what the plugin's verbs do.
    Rights = "RL005",
    /// The operator says that the target is as it should be.
    Standing = "RL101",
    /// The target's workload is there and can be read.
    Workload = "RL102",
    /// The workload says who wrote its fields.
    Tracking = "RL103",
    /// No GitOps controller owns a followed image.
    GitOps = "RL104",
    /// Only the operator owns a followed image, so that its next roll meets no conflict.
    Owner = "RL105",
    /// No other manager has taken the image from the operator.
    Overwritten = "RL106",
    /// The next `helm upgrade` leaves a followed image as it is.
    Helm = "RL110",
    /// The operator has no remark about the target.
    Notes = "RL111",
    /// No pause of a ScaledObject is older than it may be.
    Pause = "RL112",
    /// Every workload that asks to be followed is followed.
    Unfollowed = "RL201",
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which check.
    pub check: Check,
    /// How bad it is.
    pub level: Level,
    /// What it is about: `NAMESPACE/NAME`; empty for the installation.
    pub object: String,
    /// The fact and its reason.
    pub message: String,
    /// What to do, if anything.
    pub fix: Option<String>,
    /// What Helm will do, in findings about that.
    pub forecast: Option<Forecast>,
}

impl Finding {
    /// A finding.
    pub fn new(
        check: Check,
        level: Level,
        object: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level,
            object: object.into(),
            message: message.into(),
            fix: None,
            forecast: None,
        }
    }

    /// With what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// For programs.
    pub fn report(&self) -> Value {
        let mut value = json!({
            "id": self.check.id(),
            "level": self.level.word(),
            "object": self.object,
            "message": self.message,
            "fix": self.fix,
        });
        if let (Some(forecast), Some(fields)) = (&self.forecast, value.as_object_mut()) {
            let one = |outcome: &super::helm::Outcome| json!({ "outcome": outcome.word(), "message": outcome.words(&forecast.live) });
            let told = json!({
                "container": forecast.container,
                "image": forecast.live,
                "helm3": one(&forecast.three),
                "helm4": one(&forecast.four),
                "helm3PostRenderer": one(&forecast.three_rendered),
                "helm4PostRenderer": one(&forecast.four_rendered),
            });
            fields.insert("forecast".to_owned(), told);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_stable_and_differ() {
        let ids: Vec<_> = Check::ALL.iter().map(|check| check.id()).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        assert_eq!(
            ids,
            [
                "RL001", "RL002", "RL003", "RL004", "RL005", "RL101", "RL102", "RL103", "RL104",
                "RL105", "RL106", "RL110", "RL111", "RL112", "RL201"
            ]
        );
        for check in Check::ALL {
            assert!(check.describe().ends_with('.'), "{}", check.id());
        }
    }
}

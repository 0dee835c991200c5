//! One setting out of up to three sources.

use std::path::PathBuf;

use crate::{
    helm::{Invocation, Secret},
    locate::{LocateError, Source, Told},
};

/// What the sources say of one setting.
pub(super) struct Settle<T> {
    /// The setting, in words.
    pub(super) what: &'static str,
    /// belay's own option.
    pub(super) belay: Option<Told<T>>,
    /// The variable that Helm reads, with its name.
    pub(super) variable: Option<(T, &'static str)>,
    /// Helm's own flag.
    pub(super) helm: Helms<T>,
}

/// What Helm's command line says of a setting.
pub(super) enum Helms<T> {
    /// No Helm is our parent, as far as can be seen.
    Unseen,
    /// The flag is not there.
    Silent,
    /// It is there with an empty value: it says nothing, but hides the variable.
    Empty,
    /// Its value.
    Says(T),
}

impl<T> Helms<T> {
    /// What `helm` says by `flag`.
    pub(super) fn of(
        helm: Option<&Invocation>,
        flag: &str,
        value: impl FnOnce(&Invocation) -> Option<T>,
    ) -> Self {
        let Some(helm) = helm else { return Self::Unseen };
        match value(helm) {
            Some(value) => Self::Says(value),
            None if helm.given.contains(&flag) => Self::Empty,
            None => Self::Silent,
        }
    }
}

impl Settle<String> {
    pub(super) fn text(self) -> Result<Option<Told<String>>, LocateError> {
        self.settle(|value| format!("{value:?}"))
    }
}

impl Settle<PathBuf> {
    pub(super) fn path(self) -> Result<Option<Told<PathBuf>>, LocateError> {
        self.settle(|value| format!("{}", value.display()))
    }
}

impl Settle<Secret> {
    pub(super) fn secret(self) -> Result<Option<Told<Secret>>, LocateError> {
        self.settle(|_| "[redacted]".to_owned())
    }
}

impl Settle<Vec<String>> {
    pub(super) fn list(self) -> Result<Option<Told<Vec<String>>>, LocateError> {
        self.settle(|value| value.join(","))
    }
}

impl<T: Clone + PartialEq> Settle<T> {
    fn settle(self, show: impl Fn(&T) -> String) -> Result<Option<Told<T>>, LocateError> {
        let variable =
            self.variable.map(|(value, name)| Told::new(value, Source::HelmVariable(name)));
        let flag = match self.helm {
            // Helm itself is not seen: an option of belay's is the last word.
            Helms::Unseen => return Ok(self.belay.or(variable)),
            Helms::Silent => None,
            Helms::Empty => match variable {
                None => None,
                Some(variable) => {
                    return Err(LocateError::Contradiction {
                        what: self.what,
                        one: variable.from,
                        one_value: show(&variable.value),
                        other: Source::HelmCommandLine,
                        other_value: "that it is not set".to_owned(),
                    });
                }
            },
            Helms::Says(value) => Some(Told::new(value, Source::HelmCommandLine)),
        };
        let differs = |one: &Told<T>, other: &Told<T>| {
            Err(LocateError::Contradiction {
                what: self.what,
                one: one.from,
                one_value: show(&one.value),
                other: other.from,
                other_value: show(&other.value),
            })
        };
        // What Helm itself uses: its flag, else the variable. Neither may be contradicted.
        if let (Some(flag), Some(variable)) = (&flag, &variable)
            && flag.value != variable.value
        {
            return differs(variable, flag);
        }
        let helms = flag.or(variable);
        match (self.belay, helms) {
            (Some(ours), Some(helms)) if ours.value != helms.value => differs(&ours, &helms),
            (_, Some(helms)) => Ok(Some(helms)),
            (ours, None) => Ok(ours),
        }
    }
}

//! What each word of a status means to the person who reads it, and what to do next.
//!
//! Every `match` here names all words, so that a new one does not compile without a sentence and a
//! decision about the next command. Words of a newer operator that this version does not know are
//! shown as they are.

mod gates;
mod release;
mod rollback;
mod target;

use belay_api::{
    NamedValue,
    conditions::{PolicyState, ReleaseState, RollbackState, TargetState},
    values::parse,
};

/// What a word means and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// One sentence without a full stop: the fact.
    pub why: &'static str,
    /// What to do, each a command or a short sentence, the likeliest first; empty where nothing need
    /// be done. `{t}` stands for the target.
    pub next: &'static [&'static str],
}

const fn words(why: &'static str, next: &'static [&'static str]) -> Words {
    Words { why, next }
}

/// What has words.
pub trait Explain: Copy {
    /// Its words.
    fn words(self) -> Words;
}

/// The words of a value that may be of a newer operator.
pub fn explain<T: NamedValue + Explain>(text: &str) -> Option<Words> {
    parse::<T>(text).ok().map(Explain::words)
}

impl Words {
    /// What to do about the target `name`; `namespace` where it must be said.
    pub fn commands(&self, name: &str, namespace: Option<&str>) -> Vec<String> {
        let target = match namespace {
            Some(namespace) => format!("{name} -n {namespace}"),
            None => name.to_owned(),
        };
        self.next.iter().map(|next| next.replace("{t}", &target)).collect()
    }
}

impl Explain for TargetState {
    fn words(self) -> Words {
        match self {
            Self::Ready(reason) => reason.words(),
            Self::Progressing(reason) => reason.words(),
            Self::Stalled(reason) => reason.words(),
            Self::Held(reason) => reason.words(),
        }
    }
}

impl Explain for ReleaseState {
    fn words(self) -> Words {
        match self {
            Self::Active(reason) => reason.words(),
            Self::Healthy(reason) => reason.words(),
            Self::RollbackRequired(reason) => reason.words(),
            Self::Blocked(reason) => reason.words(),
            Self::AnnotationsValid(reason) => reason.words(),
            Self::Ready(reason) => reason.words(),
        }
    }
}

impl Explain for RollbackState {
    fn words(self) -> Words {
        match self {
            Self::InProgress(reason) => reason.words(),
            Self::Succeeded(reason) => reason.words(),
        }
    }
}

impl Explain for PolicyState {
    fn words(self) -> Words {
        match self {
            Self::Automated(reason) => reason.words(),
            Self::RollbackBlocked(reason) => reason.words(),
        }
    }
}

#[cfg(test)]
mod tests {
    use belay_api::{
        conditions::State,
        gates::{ForgeBudget, Gate, Verdict, WaitReason},
        reasons::{Note, Rejection},
    };

    use super::*;

    fn check(what: &str, words: Words) {
        assert!(words.why.len() > 10 && !words.why.ends_with('.'), "{what}: {:?}", words.why);
        assert!(!words.why.starts_with("True") && !words.why.contains("  "), "{what}");
        for next in words.next {
            assert!(!next.ends_with('.') && !next.is_empty(), "{what}: {next}");
            let rest = next.replace("{t}", "");
            assert!(!rest.contains(['{', '}']), "{what}: {next}");
            if let Some(command) = next.strip_prefix("kubectl release ") {
                let verb = command.split(' ').next().unwrap();
                let verbs = <crate::cli::Cli as clap::CommandFactory>::command();
                assert!(verbs.find_subcommand(verb).is_some(), "{what}: no verb {verb}");
            }
        }
    }

    fn states<S: State + Explain>() {
        for state in S::all() {
            check(&format!("{}/{}", state.condition_type(), state.reason()), state.words());
        }
    }

    fn named<T: NamedValue + Explain>() {
        for value in T::ALL {
            check(value.as_str(), value.words());
            assert_eq!(explain::<T>(value.as_str()), Some(value.words()));
        }
        assert_eq!(explain::<T>("OfANewerOperator"), None);
    }

    #[test]
    fn every_word_has_a_sentence_and_commands_that_exist() {
        states::<TargetState>();
        states::<ReleaseState>();
        states::<RollbackState>();
        states::<PolicyState>();
        named::<Note>();
        named::<Rejection>();
        named::<Gate>();
        named::<WaitReason>();
        named::<ForgeBudget>();
        named::<Verdict>();
    }

    #[test]
    fn all_that_stalls_has_a_next_step() {
        for reason in belay_api::reasons::StalledReason::ALL {
            assert!(!reason.words().next.is_empty(), "{reason}");
        }
        for reason in Rejection::ALL {
            assert!(!reason.words().next.is_empty(), "{reason}");
        }
    }

    #[test]
    fn commands_name_the_target() {
        let hold = words("x", &["kubectl release hold {t}", "wait"]);
        assert_eq!(hold.commands("web", None), ["kubectl release hold web", "wait"]);
        assert_eq!(hold.commands("web", Some("pay"))[0], "kubectl release hold web -n pay");
    }
}

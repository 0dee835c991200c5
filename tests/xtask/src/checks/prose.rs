//! The vocabulary of docs/architecture.md, in the names of types and modules of the three programs.
//!
//! Only words that can mean nothing else there: "state", "provider" or "lock" have other meanings too.

use std::collections::BTreeMap;

use super::{Finding, source};

const CHECK: &str = "vocabulary";

/// Folders of the programs; the test bed speaks of processes and may.
const PROGRAMS: [&str; 3] = ["operator/", "plugins/", "post-renderer/"];

/// A word within a type's name, with the word to use.
const TYPES: [(&str, &str); 3] = [("Backend", "Driver"), ("Ctx", "Observed"), ("Freeze", "Hold")];

/// A module's name, with the words to use.
const MODULES: [(&str, &str); 3] = [
    ("handle", "observe, plan, act or report"),
    ("manage", "observe, plan, act or report"),
    ("process", "observe, plan, act or report"),
];

/// Checks all Rust sources, by path.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let programs =
        sources.iter().filter(|(path, _)| PROGRAMS.iter().any(|folder| path.starts_with(folder)));
    for (path, text) in programs {
        let code = source::code_only(text);
        for (keyword, at, name) in definitions(&code) {
            let instead = if keyword == "mod" {
                MODULES.iter().find(|(word, _)| *word == name)
            } else {
                TYPES.iter().find(|(word, _)| name.contains(word))
            };
            if let Some((word, instead)) = instead {
                findings.push(Finding::new(
                    CHECK,
                    format!("{path}:{}: {keyword} {name} says {word}", source::line(&code, at)),
                    format!("say {instead}"),
                ));
            }
        }
    }
    findings
}

/// Keyword, place and name of each definition of a type or module.
fn definitions(code: &str) -> impl Iterator<Item = (&'static str, usize, &str)> {
    ["struct", "enum", "trait", "type", "mod"].into_iter().flat_map(move |keyword| {
        source::words(code, keyword).filter_map(move |at| {
            let name = code[at + keyword.len()..].trim_start();
            let end = name.find(|next: char| !next.is_alphanumeric() && next != '_');
            let name = &name[..end.unwrap_or(name.len())];
            (!name.is_empty()).then_some((keyword, at, name))
        })
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("operator/engine/src/a.rs", "pub struct PassCtx;", "struct PassCtx says Ctx")]
    #[case("operator/engine/src/a.rs", "trait Backend {}", "trait Backend says Backend")]
    #[case("plugins/kubectl-release/src/a.rs", "enum Freeze {}", "enum Freeze says Freeze")]
    #[case("operator/controller/src/lib.rs", "mod process;", "mod process says process")]
    fn a_word_that_has_a_better_one_is_a_finding(
        #[case] path: &str,
        #[case] text: &str,
        #[case] what: &str,
    ) {
        let found = check(&BTreeMap::from([(path.to_owned(), text.to_owned())]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, format!("{path}:1: {what}"));
    }

    #[rstest]
    #[case("operator/engine/src/a.rs", "// struct PassCtx\nstruct Observed; let process = 1;")]
    #[case("operator/engine/src/a.rs", "struct ProcessId; use tokio::process; mod observe;")]
    #[case("tests/testkit/src/lib.rs", "mod process;")]
    fn other_uses_are_no_finding(#[case] path: &str, #[case] text: &str) {
        assert_eq!(check(&BTreeMap::from([(path.to_owned(), text.to_owned())])), []);
    }
}

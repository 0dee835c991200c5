//! Tests that do not do what their name says: ignored, left early, waiting blindly, unable to fail.

use std::collections::BTreeMap;

use super::{
    Finding,
    source::{self, Test, closing, next_byte, words},
};

const CHECK: &str = "tests";

/// Calls that let time pass without looking at anything.
const SLEEPS: [&str; 5] = ["park_timeout", "sleep", "sleep_for", "sleep_ms", "sleep_until"];

/// Files that may sleep, with the reason.
const MAY_SLEEP: [(&str, &str); 6] = [
    ("operator/adapters/src/cluster/pods/follow.rs", "the wait after a watch that failed"),
    ("operator/controller/src/pauses.rs", "the wait for a kind that the cluster does not have"),
    ("operator/controller/src/release_pauses.rs", "the wait between two rounds over all claims"),
    ("operator/controller/src/scaler.rs", "the wait between two readings of a ScaledObject"),
    ("plugins/kubectl-release/src/verbs/status/pulse.rs", "the pace of what a terminal shows"),
    ("tests/testkit/src/wait.rs", "the pause between two looks at a condition with a deadline"),
];

/// Checks all Rust sources, by path.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    check_with(sources, &MAY_SLEEP)
}

fn check_with(sources: &BTreeMap<String, String>, may_sleep: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut slept = Vec::new();
    for (path, text) in sources {
        let code = source::code_only(text);
        let file = File { path, text, code: &code };
        file.hidden_tests(&mut findings);
        file.hidden_examples(&mut findings);
        for test in source::tests(&code) {
            file.early_returns(&test, &mut findings);
            file.talk_of_skipping(&test, &mut findings);
        }
        file.empty_assertions(&mut findings);
        let mut sleeps = Vec::new();
        file.sleeps(&mut sleeps);
        if may_sleep.iter().any(|(allowed, _)| allowed == path) && !sleeps.is_empty() {
            slept.push(path.as_str());
        } else {
            findings.extend(sleeps);
        }
    }
    for (path, reason) in may_sleep.iter().filter(|(path, _)| !slept.contains(path)) {
        findings.push(Finding::new(
            CHECK,
            format!("{path} may sleep ({reason}), but does not"),
            "remove it from tests/xtask/src/checks/tests_honest.rs",
        ));
    }
    findings
}

struct File<'a> {
    path: &'a str,
    text: &'a str,
    code: &'a str,
}

impl File<'_> {
    fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path, source::line(self.code, offset))
    }

    /// `ignore`, also behind `cfg_attr`, and conditions that are never true.
    fn hidden_tests(&self, findings: &mut Vec<Finding>) {
        for (at, attribute) in source::attributes(self.code) {
            let path = source::attribute_path(attribute);
            let ignored = path == "ignore"
                || path == "cfg_attr" && words(attribute, "ignore").next().is_some();
            let bare: String = attribute.split_whitespace().collect();
            let never = matches!(bare.as_str(), "cfg(any())" | "cfg(false)" | "cfg(not(all()))");
            if ignored || never {
                let written = &self.text[at..(closing(self.code, at) + 1).min(self.text.len())];
                findings.push(Finding::new(
                    CHECK,
                    format!("{}: {written} keeps code from ever being run", self.place(at)),
                    "make it run, or remove it",
                ));
            }
        }
    }

    /// A documentation example marked `ignore` is neither compiled nor run.
    fn hidden_examples(&self, findings: &mut Vec<Finding>) {
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim_start();
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let fence = doc.and_then(|doc| doc.trim_start().strip_prefix("```"));
            if fence.is_some_and(|info| words(info, "ignore").next().is_some()) {
                findings.push(Finding::new(
                    CHECK,
                    format!("{}:{}: an ignored example", self.path, number + 1),
                    "make it compile (`no_run` if it must not run), or mark it `text`",
                ));
            }
        }
    }

    /// A test that returns from its middle passes without having asked its question.
    ///
    /// Returns of closures, nested functions and spawned tasks are theirs, not the test's; a block that
    /// `block_on` runs is the test's own.
    fn early_returns(&self, test: &Test<'_>, findings: &mut Vec<Finding>) {
        for at in words(&self.code[test.body.clone()], "return") {
            let at = test.body.start + at;
            if returns_nothing(self.code, at + "return".len()) && !self.is_nested(test, at) {
                findings.push(Finding::new(
                    CHECK,
                    format!("{}: the test {} returns early", self.place(at), test.name),
                    "let it fail when something is missing",
                ));
            }
        }
    }

    /// Whether a closure, a function or a task inside the test is what encloses the offset.
    fn is_nested(&self, test: &Test<'_>, offset: usize) -> bool {
        let inner = &self.code[test.body.start + 1..offset];
        inner.match_indices('{').any(|(at, _)| {
            let open = test.body.start + 1 + at;
            closing(self.code, open) > offset
                && opens_own_body(&self.code[test.body.start + 1..open])
        })
    }

    fn talk_of_skipping(&self, test: &Test<'_>, findings: &mut Vec<Finding>) {
        for print in ["print", "println", "eprint", "eprintln"] {
            for at in words(&self.code[test.body.clone()], print) {
                let at = test.body.start + at;
                let Some((bang, b'!')) = next_byte(self.code, at + print.len()) else { continue };
                let Some((open, b'(' | b'[' | b'{')) = next_byte(self.code, bang + 1) else {
                    continue;
                };
                let said = self.text[open..closing(self.code, open)].to_ascii_lowercase();
                if said.contains("skip") {
                    findings.push(Finding::new(
                        CHECK,
                        format!("{}: the test {} says that it skips", self.place(at), test.name),
                        "let it fail when something is missing",
                    ));
                }
            }
        }
    }

    fn empty_assertions(&self, findings: &mut Vec<Finding>) {
        for name in ["assert", "debug_assert"] {
            for at in words(self.code, name) {
                let after: String = self.code[at + name.len()..]
                    .chars()
                    .filter(|char| !char.is_whitespace())
                    .take("!(true,".len())
                    .collect();
                if after.starts_with("!(true)") || after.starts_with("!(true,") {
                    findings.push(Finding::new(
                        CHECK,
                        format!("{}: an assertion that cannot fail", self.place(at)),
                        "assert what the test is about",
                    ));
                }
            }
        }
    }

    fn sleeps(&self, findings: &mut Vec<Finding>) {
        for name in SLEEPS {
            for at in words(self.code, name) {
                let called = matches!(next_byte(self.code, at + name.len()), Some((_, b'(')));
                let defined = self.code[..at].trim_end().ends_with("fn");
                if called && !defined {
                    findings.push(Finding::new(
                        CHECK,
                        format!("{}: {name}() waits without looking", self.place(at)),
                        "wait for a condition with a deadline (belay_testkit::wait), or be woken",
                    ));
                }
            }
        }
    }
}

/// Whether what follows `return` is nothing, or a success without content.
fn returns_nothing(code: &str, after: usize) -> bool {
    let rest: String = code[after..].chars().filter(|char| !char.is_whitespace()).take(9).collect();
    rest.starts_with([';', '}', ',']) || rest.starts_with("Ok(())") || rest.starts_with("().")
}

/// Whether a `{` after `before` opens the body of a closure, a function, or a task of its own.
fn opens_own_body(before: &str) -> bool {
    let before = before.trim_end();
    let statement = before.rsplit([';', '{', '}']).next().unwrap_or(before);
    let head = match statement.rsplit_once("->") {
        Some((head, _)) => head.trim_end(),
        None => statement.trim_end(),
    };
    if head.ends_with('|') || words(statement, "fn").next().is_some() {
        return true;
    }
    let task = head.strip_suffix("move").map_or(head, str::trim_end);
    match task.strip_suffix("async") {
        Some(outside) => !outside.trim_end().trim_end_matches('(').trim_end().ends_with("block_on"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn whats(text: &str) -> Vec<String> {
        let sources = BTreeMap::from([("a.rs".to_owned(), text.to_owned())]);
        check_with(&sources, &[]).into_iter().map(|finding| finding.what).collect()
    }

    #[rstest]
    #[case::plain("#[test] #[ignore] fn t() {}", "a.rs:1: #[ignore] keeps")]
    #[case::with_a_reason(
        "#[test]\n#[ignore = \"slow\"] fn t() {}",
        "a.rs:2: #[ignore = \"slow\"] keeps"
    )]
    #[case::behind_a_condition(
        "#[cfg_attr(not(ci), ignore)] fn t() {}",
        "cfg_attr(not(ci), ignore)"
    )]
    #[case::never_compiled("#[cfg(any())]\nmod tests {}", "#[cfg(any())] keeps")]
    #[case::false_condition("#![cfg(false)]", "#![cfg(false)] keeps")]
    #[case::example("/// ```ignore\n/// x\n/// ```\nfn f() {}", "a.rs:1: an ignored example")]
    #[case::example_with_words("//! ```rust,ignore\n//! ```", "a.rs:1: an ignored example")]
    #[case::early("#[test] fn t() {\n if x { return; }\n y }", "a.rs:2: the test t returns early")]
    #[case::early_ok("#[test] fn t() -> R { if x { return Ok(()); } y }", "returns early")]
    #[case::early_tail("#[test] fn t() { let Some(x) = y else { return }; z }", "returns early")]
    #[case::early_arm("#[rstest] fn t() { match x { A => b, _ => return, } }", "returns early")]
    #[case::early_async("#[tokio::test] async fn t() { if x { return; } }", "returns early")]
    #[case::early_in_block_on(
        "#[test] fn t() { r.block_on(async { if x { return; } }) }",
        "returns early"
    )]
    #[case::early_beside_a_closure(
        "#[test] fn t() { f(|| { g() }); if x { return; } }",
        "returns early"
    )]
    #[case::says_so("#[test] fn t() { eprintln!(\"Skipping: no go\"); }", "says that it skips")]
    #[case::true_assertion("#[test] fn t() { assert!( true ); }", "cannot fail")]
    #[case::true_with_text("#[test] fn t() { assert!(true, \"x\"); }", "cannot fail")]
    #[case::sleeping("fn f() { std::thread::sleep(d) }", "a.rs:1: sleep() waits")]
    #[case::sleeping_until("async fn f() { sleep_until (d).await }", "sleep_until() waits")]
    fn a_dishonest_test_is_one_finding(#[case] text: &str, #[case] what: &str) {
        let found = whats(text);
        assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
    }

    #[rstest]
    #[case::in_a_string("fn f() { g(\"#[ignore] sleep(1) assert!(true)\") }")]
    #[case::in_a_comment("// sleep(1) #[ignore]\nfn f() {}")]
    #[case::not_a_test("fn f() { if x { return; } y }")]
    #[case::of_a_closure("#[test] fn t() { f(|x| { if x { return; } y }) }")]
    #[case::of_a_typed_closure("#[test] fn t() { f(|x| -> R { if x { return Ok(()); } y }) }")]
    #[case::of_a_nested_function("#[test] fn t() { fn g() { if x { return; } } g() }")]
    #[case::of_a_task("#[test] fn t() { spawn(async move { loop { return; } }) }")]
    #[case::of_a_value("#[test] fn t() { let f = |x| return x; }")]
    #[case::another_word("fn f() { asleep(1); returned; assert!(truely) }")]
    #[case::a_definition("fn sleep(x: u8) {}")]
    #[case::a_true_condition("#[test] fn t() { assert!(true_enough(x)); }")]
    #[case::an_example("/// ```no_run\n/// x\n/// ```\nfn f() {}")]
    #[case::says_something_else("#[test] fn t() { println!(\"{x}\"); let skip = 1; }")]
    fn an_honest_source_is_no_finding(#[case] text: &str) {
        assert_eq!(whats(text), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_may_sleep_is_told_when_it_no_longer_does() {
        let allowed = [("a.rs", "it is the wait")];
        let of = |text: &str| {
            check_with(&BTreeMap::from([("a.rs".to_owned(), text.to_owned())]), &allowed)
        };
        assert_eq!(of("fn f() { sleep(d) }"), []);
        assert!(of("fn f() {}")[0].what.contains("but does not"));
    }
}

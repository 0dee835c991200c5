//! The report as lines of text.

use std::fmt::Write as _;

use crate::{
    decide::one_line,
    report::{Fact, Report},
};

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", one_line(words));
    };
    let facts = [
        ("server", &report.server),
        ("context", &report.context),
        ("namespace", &report.namespace),
        ("release", &report.release),
        ("apply", &report.apply),
    ];
    for (name, fact) in facts {
        if let Some(Fact { value, from }) = fact {
            line(&format!("{name}: {value} (from: {from})"));
        }
    }
    for decision in &report.decisions {
        line(&decision.sentence);
    }
    for note in &report.notes {
        line(&format!("note: {note}"));
    }
    if report.succeeded && report.decisions.is_empty() {
        line("no workload in the manifests: nothing to decide");
    }
    if let Some(error) = &report.error {
        line(&format!("error: {error}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Line, Word};

    fn decision(sentence: &str) -> Line {
        Line {
            decision: Word::Pass,
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            container: "app".to_owned(),
            list: "containers",
            chart_image: None,
            live_image: None,
            sentence: sentence.to_owned(),
        }
    }

    #[test]
    fn facts_decisions_notes_and_the_error_are_one_line_each() {
        let report = Report {
            server: Some(Fact::new("https://cluster", "helm default")),
            decisions: vec![decision("pass Deployment shop/web app a:1 (--offline)")],
            notes: vec!["two\nlines".to_owned()],
            error: Some("it failed".to_owned()),
            ..Report::new()
        };
        assert_eq!(
            report.text(),
            "server: https://cluster (from: helm default)\n\
             pass Deployment shop/web app a:1 (--offline)\n\
             note: two\u{fffd}lines\n\
             error: it failed\n"
        );
    }

    #[test]
    fn a_run_without_workloads_says_so() {
        let report = Report { succeeded: true, ..Report::new() };
        assert_eq!(report.text(), "no workload in the manifests: nothing to decide\n");
    }
}

//! What an enumeration came to.

use std::{fmt, time::Duration};

use anyhow::{Result, ensure};

/// Findings that are printed with their traces; of the others only what they are.
const SHOWN: usize = 5;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Its name.
    pub scenario: &'static str,
    /// Calls that are cut.
    pub calls: usize,
    /// Plans: each call and each way of cutting it.
    pub plans: usize,
    /// Runs, repetitions and references included.
    pub runs: usize,
    /// Plans whose call did not come.
    pub unmet: Vec<Unmet>,
    /// What was breached.
    pub findings: Vec<Finding>,
    /// How long all of it took.
    pub took: Duration,
}

/// A plan whose call did not come.
#[derive(Debug, Clone)]
pub struct Unmet {
    /// The plan.
    pub cut: String,
    /// Whether every reference run made the call, and not only some.
    pub is_always: bool,
}

/// A plan that breached something.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The plan.
    pub cut: String,
    /// Whether its call came.
    pub was_cut: bool,
    /// What was breached.
    pub what: Breach,
    /// In words, with the trace.
    pub text: String,
}

/// What was breached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    /// The run did not come to the scenario's end.
    End,
    /// It came to other objects.
    Objects,
    /// It wrote an object too often.
    Writes,
    /// A rule did not hold on the way.
    Rule,
}

impl Report {
    /// Whether every plan ran, and nothing was breached.
    ///
    /// # Errors
    /// All of it.
    pub fn check(&self) -> Result<()> {
        let is_met = self.unmet.iter().all(|one| !one.is_always);
        ensure!(self.findings.is_empty() && is_met, "{self}");
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, calls, plans, runs, unmet, findings, took } = self;
        write!(
            f,
            "{scenario}: {calls} calls, {plans} plans, {runs} runs in {} s, {} findings",
            took.as_secs(),
            findings.len(),
        )?;
        for Unmet { cut, is_always } in unmet {
            let when = if *is_always { "always" } else { "by chance" };
            write!(f, "\nnever met ({when} made without a cut): {cut}")?;
        }
        for (at, Finding { cut, was_cut, what, text }) in findings.iter().enumerate() {
            let when = if *was_cut { "after" } else { "without" };
            write!(f, "\n{what:?} {when} {cut}")?;
            if at < SHOWN {
                write!(f, "\n{text}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmet(is_always: bool) -> Report {
        let unmet = vec![Unmet { cut: "crash after: [published] GET a".to_owned(), is_always }];
        Report { unmet, ..Report::default() }
    }

    #[test]
    fn a_plan_that_did_not_run_fails_unless_its_call_is_made_by_chance() {
        unmet(false).check().unwrap();
        let error = unmet(true).check().unwrap_err().to_string();
        assert!(error.ends_with("(always made without a cut): crash after: [published] GET a"));
    }

    #[test]
    fn a_breach_fails() {
        let finding = Finding {
            cut: "crash before: [published] GET a".to_owned(),
            was_cut: true,
            what: Breach::Objects,
            text: "spec.image: 2, not 1".to_owned(),
        };
        let report = Report { findings: vec![finding], ..Report::default() };
        let error = report.check().unwrap_err().to_string();
        let expected = "Objects after crash before: [published] GET a\nspec.image: 2, not 1";
        assert!(error.ends_with(expected), "{error}");
    }
}

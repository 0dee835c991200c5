//! Every situation under every way to run Helm.
//!
//! A part of it, while looking for an error: `BELAY_MATRIX=co-owned` or `BELAY_MATRIX=helm3`. The
//! test then fails for the cells that did not run.

mod cell;
mod data;
mod look;

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{cell::Outcome, data::Matrix};

/// How many cells run side by side.
const AT_ONCE: usize = 6;

fn read() -> Result<Matrix> {
    let path = belay_suite::helms::suite("matrix/post-renderer.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Matrix::read(&text)
}

/// Names of a mode and a situation.
type Id = (String, String);

#[tokio::test(flavor = "multi_thread")]
async fn every_cell_is_as_the_matrix_says() -> Result<()> {
    let matrix = Arc::new(read()?);
    let part = std::env::var("BELAY_MATRIX").unwrap_or_default();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    for mode in &matrix.modes {
        println!("{:<16} {}", mode.name, mode.about);
    }
    let mut cells = JoinSet::new();
    let mut declared: BTreeSet<Id> = BTreeSet::new();
    for situation in 0..matrix.situations.len() {
        for mode in 0..matrix.modes.len() {
            let name = &matrix.situations[situation].name;
            let id = (matrix.modes[mode].name.clone(), name.clone());
            declared.insert(id.clone());
            if !part.is_empty() && id.0 != part && id.1 != part {
                continue;
            }
            let (matrix, permits) = (Arc::clone(&matrix), Arc::clone(&permits));
            cells.spawn(async move {
                let _permit = permits.acquire().await;
                let (mode, situation) = (&matrix.modes[mode], &matrix.situations[situation]);
                let outcome = cell::run(&matrix, mode, situation).await;
                (id, outcome)
            });
        }
    }
    let mut ran = BTreeSet::new();
    let mut failed = Vec::new();
    while let Some(cell) = cells.join_next().await {
        let (id, outcome) = cell.context("a cell panicked")?;
        let (line, good) = line(&id, &outcome);
        println!("{line}");
        if !good {
            failed.push(line);
        }
        ran.insert(id);
    }
    let missing: Vec<_> = declared.difference(&ran).collect();
    println!("{} cells ran, {} failed", ran.len(), failed.len());
    ensure!(failed.is_empty(), "{} cells:\n{}", failed.len(), failed.join("\n"));
    ensure!(missing.is_empty(), "{} cells did not run: {missing:?}", missing.len());
    Ok(())
}

/// `ok  helm4-ssa  co-owned  pass, strip  image 1.0.0 kept`, and whether it is one of the good.
fn line((mode, situation): &Id, outcome: &Result<Outcome>) -> (String, bool) {
    let line = |word: &str, rest: &str| {
        format!("{word:<5} {mode:<16} {situation:<28} {rest}").trim_end().to_owned()
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return (line("FAIL", &format!("{error:#}")), false),
    };
    if !outcome.problems.is_empty() {
        return (line("FAIL", &outcome.problems.join("\n  ")), false);
    }
    if let Some(reason) = &outcome.not_offered {
        return (line("n/a", reason), true);
    }
    let decisions = outcome.decisions.join(", ");
    let mut rest = vec![format!("{decisions:<28} {}", outcome.image)];
    rest.extend(outcome.guides.iter().map(|guide| format!(" (guide: {guide})")));
    (line("ok", &rest.join(" ")), true)
}

#[test]
fn the_guide_has_every_heading_that_the_matrix_names() -> Result<()> {
    let path = belay_suite::helms::suite("../../docs/guide/post-renderer.md");
    let guide = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let anchor = |heading: &str| -> String {
        let words = heading.trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    let headings = guide.lines().filter(|line| line.starts_with('#'));
    let headings: BTreeSet<_> = headings.map(|line| anchor(line.trim_start_matches('#'))).collect();
    let mut named = BTreeSet::new();
    for situation in &read()?.situations {
        let expectations = situation.steps.iter().flat_map(|step| step.expect.values());
        named.extend(expectations.filter_map(|expected| expected.guide.clone()));
    }
    let missing: Vec<_> = named.difference(&headings).collect();
    ensure!(missing.is_empty(), "{} has no heading for {missing:?}", path.display());
    Ok(())
}

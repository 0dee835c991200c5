//! The operator dies at every possible moment: before and after each of its calls to the API server, to
//! GitHub and to the registry. The next one, which knows nothing, must come to the same objects with at
//! most one more write to each, and on the way no rule may be broken.

use std::io::Write as _;

use anyhow::{Result, ensure};
use belay_engine::settings::Settings;
use belay_suite::{
    crashes::{
        Breach, CHANGED, Enumeration, FIRST_SIGHT, KEDA_ROLL, KEDA_STUCK, KEDA_UNDONE, LATE_IMAGE,
        REWRITTEN, ROLL, ROLLBACK, Report, STUCK, Scenario,
    },
    operator::Wiring,
};
use rstest::rstest;

/// On the terminal even where a test's output is kept back: how many plans there were is part of the
/// result.
fn show(report: &Report) -> Result<()> {
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

/// The operator has KEDA's objects followed in every run.
fn settings() -> Settings {
    Settings { scaled_objects: true, ..Wiring::default().settings }
}

#[rstest]
#[case::first_sight(&FIRST_SIGHT)]
#[case::roll(&ROLL)]
#[case::stuck_and_rolled_back(&STUCK)]
#[case::rolled_back_by_hand(&ROLLBACK)]
#[case::image_not_there_yet(&LATE_IMAGE)]
#[case::changed_by_a_person_in_mid_rollout(&CHANGED)]
#[case::rewritten_by_admission(&REWRITTEN)]
#[case::roll_with_keda(&KEDA_ROLL)]
#[case::stuck_and_rolled_back_with_keda(&KEDA_STUCK)]
#[case::undone_in_mid_rollout_with_keda(&KEDA_UNDONE)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_every_crash_it_comes_to_the_same_end(
    #[case] scenario: &'static Scenario,
) -> Result<()> {
    let report = Enumeration::of(scenario, settings()).run().await?;
    show(&report)?;
    report.check()
}

/// That the enumeration can fail: an operator that applies an image before there is a Release of it
/// knows the release only in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_records_the_intent_last_is_found_out() -> Result<()> {
    let settings = settings();
    let late = Settings { intent_first: false, ..settings.clone() };
    let wanted = &[Breach::Objects, Breach::End];
    let all = Enumeration { cut_settings: late, wanted, ..Enumeration::of(&ROLL, settings) };
    let report = all.run().await?;
    let found = |breach| report.findings.iter().filter(|one| one.what == breach).count();
    let ends = found(Breach::Objects) + found(Breach::End);
    let rules = found(Breach::Rule);
    writeln!(
        std::io::stdout(),
        "with the intent last: {} runs, {rules} breaches of rules, {ends} other ends",
        report.runs
    )?;
    ensure!(rules > 0, "an image was applied that no Release names, and nobody saw it\n{report}");
    ensure!(ends > 0, "every crash was made up for\n{report}");
    Ok(())
}

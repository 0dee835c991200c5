//! The operator's judgement, on rollouts as real controllers did them (`cargo xtask record-rollouts`).
//!
//! What is expected stands in a table that was written by hand; whether a success is one is asked
//! of the pods, not of the Deployment's status.

mod expected;
mod looks;

use std::{collections::BTreeSet, sync::LazyLock};

use anyhow::{Context as _, Result};
use belay_components::{Component, Components};
use belay_engine::judge::RolloutState;
use belay_suite::rollouts::{
    recording::{MAX_BYTES, Recording, folder},
    replay::{LAG, Rollout, Truth, rollouts},
    scenarios::{self, Scenario},
    traps::{Claim, Naive, Trap},
};

use expected::EXPECTED;
use looks::{Look, Patience, View, looks, words};

/// A scenario and what was recorded of it.
struct Recorded {
    scenario: &'static Scenario,
    recording: Recording,
    rollouts: Vec<Rollout>,
}

/// All recordings, read once.
fn recorded() -> Result<&'static [Recorded]> {
    static RECORDED: LazyLock<Result<Vec<Recorded>>> = LazyLock::new(|| {
        let read = |scenario: &'static Scenario| {
            let recording = Recording::read(&folder(), scenario.name)?;
            let rollouts = rollouts(&recording)?;
            Ok(Recorded { scenario, recording, rollouts })
        };
        scenarios::all().map(read).collect()
    });
    let all = RECORDED.as_ref();
    Ok(all.map_err(|error| anyhow::anyhow!("{error:#}; `cargo xtask record-rollouts` writes it"))?)
}

/// Every rollout of every recording, with its name.
fn all() -> Result<Vec<(String, &'static Rollout)>> {
    let of = |one: &'static Recorded| {
        let rollouts = one.rollouts.iter().enumerate();
        rollouts.map(|(number, rollout)| (format!("{} {number}", one.scenario.name), rollout))
    };
    Ok(recorded()?.iter().flat_map(of).collect())
}

#[test]
fn every_scenario_has_a_recording_that_shows_what_it_must() -> Result<()> {
    let names: BTreeSet<_> = scenarios::all().map(|one| one.name.to_owned()).collect();
    let files: BTreeSet<_> = Recording::scenarios(&folder())?.into_iter().collect();
    assert_eq!(files, names, "`cargo xtask record-rollouts` writes them");
    for Recorded { scenario, recording, .. } in recorded()? {
        scenario.check(recording).with_context(|| scenario.name)?;
    }
    Ok(())
}

#[test]
fn the_recordings_are_of_the_pinned_kubernetes_and_small() -> Result<()> {
    let version = Components::from_env()?.version(Component::Kubernetes)?;
    let mut bytes = 0;
    for Recorded { scenario, recording, .. } in recorded()? {
        let name = scenario.name;
        assert_eq!(recording.head.kubernetes, version, "{name}: `cargo xtask record-rollouts`");
        assert_eq!(recording.head.about, scenario.about, "{name}");
        bytes += Recording::file(&folder(), name).metadata()?.len();
    }
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    Ok(())
}

#[test]
fn every_predicate_that_looks_right_is_wrong_in_some_recording() {
    let shown: BTreeSet<_> = scenarios::all()
        .flat_map(|scenario| scenario.traps)
        .filter_map(|(_, trap)| match trap {
            Trap::Wrong(naive) | Trap::WrongForLong(naive) => Some(*naive),
            Trap::NeverGivesUp | Trap::ReplicaFailure | Trap::OldStillEnding => None,
        })
        .collect();
    assert_eq!(shown, BTreeSet::from(Naive::ALL));
}

#[test]
fn verdicts_are_as_written_down() -> Result<()> {
    let mut wrong = Vec::new();
    let mut rows = BTreeSet::new();
    for Recorded { scenario, rollouts, .. } in recorded()? {
        let row = EXPECTED.iter().find(|(name, _)| *name == scenario.name);
        let (name, row) = row.with_context(|| format!("no row of {}", scenario.name))?;
        rows.insert(*name);
        assert_eq!(rollouts.len(), row.len(), "rollouts of {name}");
        for (number, (rollout, expected)) in rollouts.iter().zip(*row).enumerate() {
            for (patience, expected) in
                [(Patience::OfKubernetes, expected.own), (Patience::Long, expected.patient)]
            {
                let found = words(&looks(rollout, patience, View::Everything));
                if found != expected {
                    wrong.push(format!("{name} {number} {patience:?}:\n  {expected}\n  {found}"));
                }
            }
        }
    }
    assert_eq!(rows.len(), EXPECTED.len(), "a row without a scenario");
    assert!(wrong.is_empty(), "expected, found:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn no_success_is_false_whatever_is_seen_of_it() -> Result<()> {
    for (name, rollout) in all()? {
        for (patience, view) in everywhere() {
            let looks = looks(rollout, patience, view);
            let first = looks.iter().position(|look| is_success(&look.state));
            let ends = looks.last().filter(|last| last.state == RolloutState::Healthy);
            for look in first.map(|at| &looks[at]).into_iter().chain(ends) {
                assert!(
                    rollout.was(look.sample, Truth::has_succeeded),
                    "{name}, {patience:?}, {view:?}: {} at {}, {:?}",
                    look.word(),
                    look.at,
                    rollout.samples[look.sample].truth
                );
            }
            for look in looks.iter().filter(|look| look.state == RolloutState::ScaledToZero) {
                // Pods that are still there only wait for their end.
                let is_zero = rollout.was(look.sample, |truth| truth.wanted == 0);
                assert!(is_zero, "{name}, {patience:?}, {view:?}: zero at {}", look.at);
            }
        }
    }
    Ok(())
}

/// An operator that has not noticed yet that somebody else's image is there.
#[test]
fn no_success_is_that_of_another_image() -> Result<()> {
    let mut left_unfinished = 0;
    for Recorded { scenario, rollouts, .. } in recorded()? {
        for (number, pair) in rollouts.windows(2).enumerate() {
            let [left, next] = pair else { continue };
            if left.samples.iter().any(|sample| sample.truth.has_succeeded()) {
                continue;
            }
            left_unfinished += 1;
            let mut both = left.clone();
            both.samples.extend(next.samples.iter().cloned().map(|mut sample| {
                sample.facts.images_are_stored = next.applied.image == left.applied.image;
                sample
            }));
            for look in looks(&both, Patience::Long, View::WithoutPods) {
                let word = look.word();
                assert!(!is_success(&look.state), "{} {number}: {word}", scenario.name);
            }
        }
    }
    assert!(left_unfinished >= 5, "only {left_unfinished} rollouts are left unfinished");
    Ok(())
}

#[test]
fn no_failure_is_false_or_early_whatever_is_seen_of_it() -> Result<()> {
    for (name, rollout) in all()? {
        for (patience, view) in everywhere() {
            let looks = looks(rollout, patience, view);
            let failed = looks.last().map(|last| (last, &last.state));
            let Some((last, RolloutState::Failed(failure))) = failed else { continue };
            let context = format!("{name}, {patience:?}, {view:?}: {failure:?} at {}", last.at);
            assert!(!rollout.ends_well(), "{context}");
            // Nothing of it had moved for as long as the cause must stand.
            let moved = looks::moved(rollout, last);
            let stood = last.at.duration_since(moved);
            assert!(stood + LAG >= patience.window(failure), "{context}, moved at {moved}");
        }
    }
    Ok(())
}

#[test]
fn verdicts_come_in_time() -> Result<()> {
    for (name, rollout) in all()? {
        for patience in Patience::ALL {
            let looks = looks(rollout, patience, View::Everything);
            let late = LAG + LAG;
            if let Some(true_since) = looks::lasting_success(rollout) {
                let said = looks.iter().find(|look| is_success(&look.state));
                let said = said.with_context(|| format!("{name}, {patience:?}: no success"))?;
                let waited = said.at.duration_since(true_since);
                assert!(waited <= late, "{name}, {patience:?}: success after {waited}");
            }
            let Some(last) = looks.last() else { continue };
            if let RolloutState::Failed(failure) = &last.state {
                let stood = last.at.duration_since(looks::moved(rollout, last));
                let longest = patience.window(failure) + late;
                assert!(stood <= longest, "{name}, {patience:?}: {failure:?} after {stood}");
            }
        }
    }
    Ok(())
}

#[test]
fn whatever_is_seen_of_it_the_end_is_the_same() -> Result<()> {
    for (name, rollout) in all()? {
        for (patience, view) in everywhere() {
            if view == View::WithoutPods {
                continue;
            }
            // The cause that is named may differ: who sees a pod late does not know why it waits.
            let end = |view| {
                let word = looks(rollout, patience, view).last().map(Look::word)?;
                word.split(' ').next().map(str::to_owned)
            };
            assert_eq!(end(view), end(View::Everything), "{name}, {patience:?}, {view:?}");
        }
    }
    Ok(())
}

/// Without pods there is no fast failure and no cause, and all that was so is found all the same.
#[test]
fn without_pods_the_deadline_decides() -> Result<()> {
    let mut failed = 0;
    for (name, rollout) in all()? {
        let end = |view| looks(rollout, Patience::OfKubernetes, view).last().cloned();
        let (blind, seeing) = (end(View::WithoutPods), end(View::Everything));
        let (blind, seeing) = (blind.context("no look")?, seeing.context("no look")?);
        match (&blind.state, &seeing.state) {
            (RolloutState::Failed(one), RolloutState::Failed(other)) => {
                failed += 1;
                let is_refusal = ["QuotaExceeded", "AdmissionDenied", "BakeUnstable"];
                let reason = one.reason.to_string();
                let is_known = is_refusal.contains(&reason.as_str());
                assert!(is_known || reason == "DeadlineExceeded", "{name}: {reason} {other:?}");
            }
            _ => assert_eq!(blind.word(), seeing.word(), "{name}"),
        }
    }
    assert!(failed >= 8, "only {failed} rollouts fail");
    Ok(())
}

/// Where others are wrong, we are right: at the very samples.
#[test]
fn we_do_not_say_what_is_wrong_of_the_naive_predicates() -> Result<()> {
    for Recorded { scenario, rollouts, .. } in recorded()? {
        for (number, trap) in scenario.traps {
            let (Trap::Wrong(naive) | Trap::WrongForLong(naive)) = trap else { continue };
            let name = scenario.name;
            let rollout = rollouts.get(*number).context("no such rollout")?;
            let looks = looks(rollout, Patience::OfKubernetes, View::Everything);
            let mut compared = 0;
            for sample in naive.is_wrong_at(rollout) {
                let look = looks.iter().find(|look| look.sample == sample && !look.is_wake);
                // After a verdict nothing is judged any more.
                let Some(look) = look else { continue };
                compared += 1;
                let says_so = match naive.claim() {
                    Claim::Failure => matches!(look.state, RolloutState::Failed(_)),
                    Claim::Success => is_success(&look.state),
                };
                assert!(!says_so, "{name} {number}: {} at {}, {naive:?}", look.word(), look.at);
            }
            assert!(compared > 0, "{name} {number}: {naive:?} is wrong after our verdict alone");
        }
    }
    Ok(())
}

fn is_success(state: &RolloutState) -> bool {
    matches!(state, RolloutState::Baking { until: Some(_) } | RolloutState::Healthy)
}

fn everywhere() -> impl Iterator<Item = (Patience, View)> {
    Patience::ALL.into_iter().flat_map(|patience| View::ALL.map(move |view| (patience, view)))
}

/// The table itself: a rollout that is left alone ends in a verdict or waits for somebody.
#[test]
fn the_last_rollout_of_every_row_ends() {
    for (name, row) in EXPECTED {
        let ends = row.last().map(|last| last.own.rsplit(" > ").next().unwrap_or_default());
        let is_end = ends
            .is_some_and(|word| word == "healthy" || word == "zero" || word.starts_with("failed "));
        assert!(is_end, "{name}: {ends:?}");
    }
}

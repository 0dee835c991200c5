//! All crashes of a scenario.

use std::{collections::HashSet, sync::Arc, time::Duration, time::Instant};

use anyhow::{Context as _, Result, ensure};
use belay_engine::settings::Settings;
use belay_testkit::fault::Fault;
use kube::api::DeleteParams;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    calls::{Cut, PhaseCall},
    ends::{Ends, Writes},
    report::{Breach, Finding, Report, Unmet},
    rules::{Terms, breaches},
    scenarios::Scenario,
    scene::Scene,
};

/// Namespaces at once, over all scenarios of this process. A run waits most of its time.
static ROOM: Semaphore = Semaphore::const_new(12);
/// Runs without a cut. What they have in common is what can be asked of a run with one.
const REFERENCES: usize = 3;
/// With fewer calls than this a trace is not what it is taken for.
const FEWEST_CALLS: usize = 10;
/// How often a run is played that does not make the call that is to be cut, where every reference run
/// made it.
const TRIES: usize = 8;
/// The same where only some did.
const TRIES_BY_CHANCE: usize = 3;
/// How long an operator may rest on objects that are not the expected ones before that counts. Longer
/// than every window and every interval of a run.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is enumerated, and with which settings.
#[derive(Clone)]
pub struct Enumeration {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// What the operator decides by in the reference runs.
    pub settings: Settings,
    /// What it decides by in the runs that are cut.
    pub cut_settings: Settings,
    /// Breaches that are looked for: with the first of them after a crash it ends.
    pub wanted: &'static [Breach],
}

/// An undisturbed run.
struct Reference {
    calls: Vec<PhaseCall>,
    ends: Ends,
    writes: Writes,
}

/// What undisturbed runs have in common.
struct Expected {
    /// Calls, and whether every run made them.
    calls: Vec<(PhaseCall, bool)>,
    ends: Ends,
    writes: Writes,
}

/// A plan, and how it was played.
struct Played {
    cut: Cut,
    /// Whether every run without a cut makes the call.
    is_always: bool,
    runs: usize,
}

/// What a run came to.
struct Outcome {
    was_cut: bool,
    findings: Vec<(Breach, String)>,
    reference: Reference,
    trace: String,
}

impl Enumeration {
    /// Of a scenario, with the same settings for all runs.
    pub fn of(scenario: &'static Scenario, settings: Settings) -> Self {
        Self { scenario, cut_settings: settings.clone(), settings, wanted: &[] }
    }

    /// Plays all runs.
    ///
    /// # Errors
    /// When there is no reference to compare with, or the test bed fails.
    pub async fn run(self) -> Result<Report> {
        let begin = Instant::now();
        let mut report = Report { scenario: self.scenario.name, ..Report::default() };
        let expected = Arc::new(self.expected().await?);
        report.runs += REFERENCES;
        report.calls = expected.calls.len();
        let mut plans = JoinSet::new();
        for (call, is_always) in expected.calls.clone() {
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                let cut = Cut { call: call.clone(), fault };
                let (this, expected) = (self.clone(), expected.clone());
                report.plans += 1;
                plans.spawn(async move {
                    let mut played = Played { cut, is_always, runs: 0 };
                    let outcome = this.repeat(&mut played, &expected).await;
                    (played, outcome)
                });
            }
        }
        while let Some(ended) = plans.join_next().await {
            let (Played { cut, is_always, runs }, outcome) = ended?;
            let cut = cut.to_string();
            report.runs += runs;
            let Outcome { was_cut, findings, .. } =
                outcome.with_context(|| format!("play {cut}"))?;
            if !was_cut {
                report.unmet.push(Unmet { cut: cut.clone(), is_always });
            }
            let is_found = findings.iter().any(|(what, _)| self.wanted.contains(what));
            report.findings.extend(findings.into_iter().map(|(what, text)| Finding {
                cut: cut.clone(),
                was_cut,
                what,
                text,
            }));
            if is_found && was_cut {
                break;
            }
        }
        report.took = begin.elapsed();
        Ok(report)
    }

    async fn expected(&self) -> Result<Expected> {
        let mut runs = JoinSet::new();
        for _ in 0..REFERENCES {
            let this = self.clone();
            runs.spawn(async move { this.play(None, None).await });
        }
        let mut references = Vec::new();
        while let Some(ended) = runs.join_next().await {
            let Outcome { findings, reference, .. } = ended??;
            ensure!(findings.is_empty(), "without a crash: {findings:#?}");
            references.push(reference);
        }
        common(references).with_context(|| format!("the reference runs of {}", self.scenario.name))
    }

    /// Plays until the call comes. One that every reference run made and that does not come is made
    /// by chance all the same if a run without a cut does not make it either by now: how busy the
    /// machine is decides, too, which states of a rollout are seen.
    async fn repeat(&self, played: &mut Played, expected: &Expected) -> Result<Outcome> {
        let tries = if played.is_always { TRIES } else { TRIES_BY_CHANCE };
        let outcome = loop {
            played.runs += 1;
            let mut outcome = self.play(Some(&played.cut), Some(expected)).await?;
            if let Some(excess) = self.excess(&outcome, expected, &mut played.runs).await? {
                outcome.findings.push((Breach::Writes, format!("{excess}\n{}", outcome.trace)));
            }
            if outcome.was_cut || !outcome.findings.is_empty() {
                return Ok(outcome);
            }
            if played.runs >= tries {
                break outcome;
            }
        };
        if played.is_always {
            played.runs += 1;
            let now = self.play(None, Some(expected)).await?;
            played.is_always = now.reference.calls.contains(&played.cut.call);
        }
        Ok(outcome)
    }

    /// Writes beyond one more for each object. The reference is asked for again before that is said of a
    /// run: on a busy machine more states of a rollout are seen, hence written, without a crash too.
    async fn excess(
        &self,
        outcome: &Outcome,
        expected: &Expected,
        runs: &mut usize,
    ) -> Result<Option<String>> {
        let mut reference = expected.writes.clone();
        let mut excess = outcome.reference.writes.excess(&reference);
        for _ in 0..REFERENCES {
            if excess.is_empty() {
                return Ok(None);
            }
            *runs += 1;
            reference = reference.most(self.play(None, Some(expected)).await?.reference.writes);
            excess = outcome.reference.writes.excess(&reference);
        }
        Ok(Some(excess).filter(|excess| !excess.is_empty()))
    }

    /// One run.
    async fn play(&self, cut: Option<&Cut>, expected: Option<&Expected>) -> Result<Outcome> {
        let _room = ROOM.acquire().await?;
        let settings = if cut.is_some() { &self.cut_settings } else { &self.settings };
        let scene = Scene::open(self.scenario, settings, cut.cloned()).await?;
        let names = scene.names();
        let mut findings = Vec::new();
        let play = async {
            (self.scenario.play)(&scene).await.map_err(|error| (Breach::End, error))?;
            let same = || async {
                let Some(expected) = expected else { return Ok(()) };
                let (ends, _) = Ends::of(&scene).await?;
                let differences = ends.differences(&expected.ends);
                ensure!(differences.is_empty(), "{differences}");
                Ok(())
            };
            scene.rest_on(PATIENCE, same).await.map_err(|error| (Breach::Objects, error))
        };
        if let Err((breach, error)) = scene.run(play, |error| (Breach::End, error)).await {
            findings.push((breach, format!("{error:#}")));
        }
        let (ends, versions) = Ends::of(&scene).await?;
        let history = scene.timeline().close(&scene.bed.namespace, &versions).await?;
        let terms = Terms { foreign: scene.foreign(), admission: self.scenario.admission };
        findings.extend(breaches(&history, &terms).into_iter().map(|text| (Breach::Rule, text)));
        let phases = scene.phases();
        let (writes, calls) = scene.plan.look(|calls| {
            (Writes::of(phases.since_the_first(calls), names), phases.calls(calls, names))
        });
        let trace = scene.plan.trace().to_string();
        for (_, text) in &mut findings {
            *text = format!("{text}\n{trace}");
        }
        // Its pods would be in the way of the others.
        scene.bed.deployments().delete("web", &DeleteParams::background()).await?;
        let reference = Reference { calls, ends, writes };
        Ok(Outcome { was_cut: scene.was_cut(), findings, reference, trace })
    }
}

/// What these runs have in common; what not each of them made is made by chance.
fn common(references: Vec<Reference>) -> Result<Expected> {
    let made: Vec<HashSet<_>> =
        references.iter().map(|one| one.calls.iter().cloned().collect()).collect();
    let mut calls: Vec<(PhaseCall, bool)> = Vec::new();
    let mut known = HashSet::new();
    for call in references.iter().flat_map(|one| &one.calls) {
        if known.insert(call.clone()) {
            let is_always = made.iter().all(|made| made.contains(call));
            calls.push((call.clone(), is_always && !call.is_by_chance()));
        }
    }
    let always = calls.iter().filter(|(_, is_always)| *is_always).count();
    ensure!(always >= FEWEST_CALLS, "{always} calls, fewer than {FEWEST_CALLS}");
    let mut references = references.into_iter();
    let Reference { ends, mut writes, .. } = references.next().context("there are none")?;
    for other in references {
        let differences = other.ends.differences(&ends);
        ensure!(differences.is_empty(), "they come to different ends:\n{differences}");
        writes = writes.most(other.writes);
    }
    Ok(Expected { calls, ends, writes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that makes these calls.
    fn reference(calls: std::ops::Range<u32>) -> Reference {
        let calls = calls.map(|nth| PhaseCall::of_path("published", &format!("/{nth}")));
        Reference { calls: calls.collect(), ends: Ends::default(), writes: Writes::default() }
    }

    #[test]
    fn what_each_run_makes_is_told_from_what_some_make() {
        let expected = common(vec![reference(0..12), reference(1..13)]).unwrap();
        let by_chance = expected.calls.iter().filter(|(_, is_always)| !is_always);
        let by_chance: Vec<_> = by_chance.map(|(call, _)| call.to_string()).collect();
        assert_eq!(expected.calls.len(), 13);
        assert_eq!(by_chance, ["[published] GET /0", "[published] GET /12"]);
    }

    #[test]
    fn fewer_than_ten_calls_are_refused() {
        common(vec![reference(0..10)]).unwrap();
        let error = common(vec![reference(0..9)]).err().unwrap();
        assert_eq!(error.to_string(), "9 calls, fewer than 10");
        assert!(common(Vec::new()).is_err());
    }
}

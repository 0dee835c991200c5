//! Ten thousand sets of annotations on the real API server: every bad one is called invalid, by the
//! keys that are wrong and within two seconds, no good one ever is, and ten neighbours keep rolling
//! meanwhile.
//!
//! What is measured: a batch of a hundred Deployments is created at once, each by a request of its
//! own. The time of a bad set begins when the answer to its create is there, and ends when a watch
//! shows its ReleaseTarget with `Stalled/InvalidConfig`; the monotonic clock of this process counts.
//! One set of a batch that takes longer than [`DEADLINE`] fails the test, with one exception: the
//! machine had no time for the operator. That is measured in the same seconds, by what is not the
//! operator's: the part of the CPU time that processes of others had ([`STRANGERS`]), and a plain
//! write and its event through the same API server ([`BUSY`]). Such a batch says nothing; it is
//! shown again, the same sets under other names, at most [`TRIES`] times. Whether the right keys are
//! named is checked each time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use belay_operator::{admin::Inspect as _, metrics::Metrics};
use belay_suite::operator::{Bed, Running, Wiring};
use belay_testkit::github::NewRelease;
use tokio::sync::watch;

use crate::{
    batch::{Batch, SIZE},
    control::Control,
    generator::Terms,
    neighbours::Neighbours,
    panics,
    pods::Repositories,
    strangers::Usage,
    targets::Targets,
    turn,
};

/// Namespaces, each with an operator and neighbours of its own, one after the other. Nothing is
/// deleted in between, which would be as much work again.
const FIELDS: usize = 10;
/// Batches of a field.
const BATCHES: usize = 10;
/// Passes at a time, as the program has them.
const PASSES: usize = 16;
/// A set needs some four: its own, and those that the writes of its record and the Deployment
/// controller ask for. An operator that looks at something again and again needs more.
const PASSES_PER_SET: usize = 12;
/// The deadline for a bad set.
const DEADLINE: Duration = Duration::from_secs(2);
/// With more of the CPU time than this for others, the machine had no time for the operator.
const STRANGERS: f64 = 0.05;
/// The same for the longest round of [`Control`]: the operator needs about two of them for a set.
const BUSY: Duration = Duration::from_millis(500);
/// How often a batch is shown at most.
const TRIES: usize = 5;
const NEIGHBOURS: usize = 10;
/// How often GitHub is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// A namespace, and what looks at it.
struct Field {
    bed: Bed,
    targets: Targets,
    terms: Terms,
    control: Control,
    /// Whether all batches have been shown.
    is_over: watch::Sender<bool>,
}

/// What the batches came to.
#[derive(Default)]
struct Tally {
    /// What each batch's slowest set took.
    slowest: Vec<Duration>,
    /// How often a batch had to be shown again.
    again: usize,
    /// How often a neighbour was rolled.
    rolls: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_set_of_annotations_is_named_and_no_good_one() -> Result<()> {
    let _turn = turn::alone().await;
    panics::watch();
    let begun = Instant::now();
    let mut tally = Tally::default();
    for number in 0..FIELDS {
        play(number, &mut tally).await?;
    }
    let Tally { mut slowest, again, rolls } = tally;
    slowest.sort();
    println!(
        "{} sets in {:.0?}; the slowest of a batch took {:.2?} (median) and {:.2?} (longest); {again} \
         batches were shown again; neighbours were rolled {rolls} times",
        slowest.len() * SIZE,
        begun.elapsed(),
        slowest[slowest.len() / 2],
        slowest[slowest.len() - 1],
    );
    panics::none()
}

/// Shows the batches of one field.
async fn play(number: usize, tally: &mut Tally) -> Result<()> {
    let permits_skip = number % 2 == 1;
    let (field, neighbours) = Field::new(permits_skip).await?;
    let field = Arc::new(field);
    let mut wiring = Wiring { at_once: PASSES, interval: INTERVAL, ..Wiring::default() };
    wiring.settings.image_check_skip = permits_skip;
    let metrics = wiring.metrics.clone();
    let operator = Running::start(&field.bed, wiring)?;
    operator.ready().await?;
    neighbours.ready(&field.targets).await?;
    let rolling = tokio::spawn(keep_rolling(neighbours, field.clone()));
    let (mut shown, again): (Vec<Batch>, _) = (Vec::new(), tally.again);
    for batch in 0..BATCHES {
        shown.push(field.show(number * BATCHES + batch, tally).await?);
    }
    field.is_over.send_replace(true);
    tally.rolls += rolling.await??;
    // What was said at first is still said, and all of what goes is forgotten.
    shown.iter().try_for_each(|batch| batch.check(&field.targets))?;
    if number + 1 == FIELDS {
        let last = shown.last().context("no batch")?;
        last.delete(&field.bed, &field.targets).await?;
        for set in &last.sets {
            let known = operator.handle.debug(&field.bed.namespace, &set.name);
            ensure!(known.is_none(), "{} is remembered: {known:?}", set.name);
        }
    }
    let (passes, sets) = (passes(&metrics)?, (BATCHES + tally.again - again) * SIZE);
    ensure!(passes >= sets / 2, "{passes} passes over {sets} sets are not all that there were");
    ensure!(passes <= sets * PASSES_PER_SET, "{passes} passes over {sets} sets");
    operator.handle.ready().map_err(anyhow::Error::msg)?;
    operator.stop().await
}

/// Publishes a release for each neighbour, and the next as soon as all of them are healthy, until the
/// batches are over; says how many there were.
async fn keep_rolling(mut neighbours: Neighbours, field: Arc<Field>) -> Result<usize> {
    let is_over = field.is_over.subscribe();
    let mut rolls = 0;
    while !*is_over.borrow() {
        neighbours.roll(&field.bed, &field.targets).await?;
        rolls += NEIGHBOURS;
    }
    Ok(rolls)
}

impl Field {
    async fn new(permits_skip: bool) -> Result<(Self, Neighbours)> {
        let bed = Bed::new("sets").await?;
        bed.github.create_repository("acme/sets")?;
        bed.github.create_repository("acme/empty")?;
        bed.github.publish("acme/sets", NewRelease::new("v1.0.0"))?;
        let repository = format!("{}/sets", bed.namespace);
        for tag in ["0.9.0", "1.0.0"] {
            bed.world.registry.push(&repository, tag).await?;
        }
        let host = bed.world.registry.host();
        let repositories = Repositories {
            own: format!("{host}/{repository}"),
            foreign: format!("{host}/{}/proxy", bed.namespace),
        };
        let targets = Targets::watch(&bed);
        let control = Control::start(&bed)?;
        let neighbours = Neighbours::new(&bed, NEIGHBOURS).await?;
        let terms = Terms { repositories, permits_skip };
        let is_over = watch::Sender::new(false);
        Ok((Self { bed, targets, terms, control, is_over }, neighbours))
    }

    /// Shows a batch until it says something of the operator.
    async fn show(&self, number: usize, tally: &mut Tally) -> Result<Batch> {
        let mut late = Vec::new();
        loop {
            let before = Usage::now()?;
            let which = (number, late.len());
            let batch = Batch::show(&self.bed, &self.targets, &self.terms, which).await?;
            let strangers = Usage::now()?.strangers_since(&before);
            let round = self.control.longest(batch.begun)?;
            let (took, name) = batch.took.first().context("no set of a batch is bad")?;
            if *took <= DEADLINE {
                tally.slowest.push(*took);
                return Ok(batch);
            }
            let words = format!(
                "{name} of batch {number} was called invalid after {took:.2?}, while others had {:.0} % \
                 of the machine and a plain write took {round:.2?}",
                strangers * 100.0,
            );
            println!("{words}");
            ensure!(strangers > STRANGERS || round > BUSY, "{words}: it was the operator's fault");
            late.push(words);
            ensure!(late.len() < TRIES, "the machine has no time:\n{}", late.join("\n"));
            tally.again += 1;
            self.control.calm().await?;
        }
    }
}

/// Passes that have ended so far.
fn passes(metrics: &Metrics) -> Result<usize> {
    let text = metrics.text();
    let counts = text.lines().filter(|line| line.starts_with("belay_reconcile_total{"));
    let counts = counts.filter_map(|line| line.rsplit(' ').next());
    counts.map(|count| count.parse::<usize>().context("a count")).sum()
}

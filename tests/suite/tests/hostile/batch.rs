//! A hundred sets at once, and what the operator says of each.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_suite::operator::Bed;
use belay_testkit::wait;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, PostParams};
use tokio::task::JoinSet;

use crate::{
    generator::{BATCH, KEYS, Label, Set, Terms},
    targets::Targets,
};

/// Sets of a batch.
pub(crate) const SIZE: usize = 100;
/// Another one gives other sets.
const SEED: u64 = 5;

/// A batch that was created, and of which the right things were said.
pub(crate) struct Batch {
    number: usize,
    pub(crate) sets: Vec<Set>,
    /// When the first create was sent.
    pub(crate) begun: Instant,
    /// Each bad set, and how long it took to call it bad: from the moment at which the answer to its
    /// create was there until the watch showed the word. The longest first.
    pub(crate) took: Vec<(Duration, String)>,
}

impl Batch {
    /// Creates all Deployments of a batch at once, and waits for a word about each.
    ///
    /// Another `attempt` gives the same sets under other names.
    ///
    /// # Errors
    /// What was said of a set that is not right.
    pub(crate) async fn show(
        bed: &Bed,
        targets: &Targets,
        terms: &Terms,
        (number, attempt): (usize, usize),
    ) -> Result<Self> {
        let sets = (0..SIZE).map(|one| Set::new(SEED, number * SIZE + one, attempt, terms));
        let sets: Vec<_> = sets.collect();
        let objects = sets.iter().map(|set| serde_json::from_value(set.workload(number)));
        let objects: Vec<Deployment> = objects.collect::<Result<_, _>>()?;
        let begun = Instant::now();
        let mut creates = JoinSet::new();
        for (at, object) in objects.into_iter().enumerate() {
            let api = bed.deployments();
            creates.spawn(async move {
                let manager = Some("helm".to_owned());
                let as_helm = PostParams { field_manager: manager, ..PostParams::default() };
                (at, api.create(&as_helm, &object).await, Instant::now())
            });
        }
        let mut created = vec![begun; SIZE];
        while let Some(answer) = creates.join_next().await {
            let (at, made, answered) = answer?;
            made.with_context(|| format!("create {}", sets[at].describe()))?;
            created[at] = answered;
        }
        await_words(targets, &sets).await?;
        let mut took = Vec::new();
        for (set, created) in sets.iter().zip(created) {
            let seen = check(targets, set).with_context(|| set.describe())?;
            let time = seen.map(|seen| seen.saturating_duration_since(created));
            took.extend(time.map(|time| (time, set.name.clone())));
        }
        took.sort_by(|one, other| other.cmp(one));
        Ok(Self { number, sets, begun, took })
    }

    /// Whether the right thing is still said of each set.
    ///
    /// # Errors
    /// What is said instead.
    pub(crate) fn check(&self, targets: &Targets) -> Result<()> {
        for set in &self.sets {
            check(targets, set).with_context(|| set.describe())?;
        }
        Ok(())
    }

    /// Deletes its Deployments, and waits until their records are gone.
    pub(crate) async fn delete(&self, bed: &Bed, targets: &Targets) -> Result<()> {
        let of_batch = ListParams::default().labels(&format!("{BATCH}={}", self.number));
        bed.deployments().delete_collection(&DeleteParams::background(), &of_batch).await?;
        wait::until("the records of a batch to be gone", wait::SOON, || {
            let left = self.sets.iter().find(|set| targets.says(&set.shown_as, |_| true));
            std::future::ready(left.map_or(Ok(()), |set| Err(set.describe())))
        })
        .await?;
        Ok(())
    }
}

/// Waits until the operator has come to a conclusion about each set that is followed: of a bad one
/// that it is invalid, of a good one any.
async fn await_words(targets: &Targets, sets: &[Set]) -> Result<()> {
    let mut open: Vec<_> = sets.iter().filter(|set| set.label != Label::NotFollowed).collect();
    wait::until("a word about each set", wait::SOON, || {
        open.retain(|set| {
            let is_bad = matches!(set.label, Label::Bad(_));
            !targets.says(&set.shown_as, |told| {
                told.invalid.is_some() || !is_bad && !told.status.conditions.is_empty()
            })
        });
        let left = open.first().map(|set| format!("{} are left: {}", open.len(), set.describe()));
        std::future::ready(left.map_or(Ok(()), Err))
    })
    .await?;
    Ok(())
}

/// Whether the right thing is said of a set; returns when a bad one was first called so.
fn check(targets: &Targets, set: &Set) -> Result<Option<Instant>> {
    let told = targets.of(&set.shown_as);
    match (&set.label, told) {
        (Label::NotFollowed, None) => Ok(None),
        (Label::NotFollowed, Some(told)) => bail!("it is followed: {:?}", told.status),
        (_, None) => bail!("nothing is said of it"),
        (Label::Valid, Some(told)) => match told.invalid {
            None => Ok(None),
            Some(invalid) => bail!("it is valid: {}", invalid.message),
        },
        (Label::Bad(groups), Some(told)) => {
            let invalid = told.invalid;
            let invalid = invalid.with_context(|| format!("it is bad: {:?}", told.status))?;
            check_blame(groups, &invalid.message)?;
            Ok(Some(invalid.seen))
        }
    }
}

/// Each group is blamed, and nothing else.
fn check_blame(groups: &BTreeSet<Vec<&str>>, message: &str) -> Result<()> {
    let is_blamed = |key: &str| {
        let word = format!("belay.dev/{key}: ");
        message.starts_with(&word) || message.contains(&format!("; {word}"))
    };
    for group in groups {
        ensure!(group.iter().any(|key| is_blamed(key)), "{group:?} is not named in {message:?}");
    }
    for key in KEYS.iter().filter(|key| is_blamed(key)) {
        ensure!(groups.iter().flatten().any(|bad| bad == key), "{key} is blamed in {message:?}");
    }
    Ok(())
}

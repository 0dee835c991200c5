//! The targets: each follows a repository of its own, and rolls one release after the other.

use anyhow::{Context as _, Result, ensure};
use belay_api::gates::Verdict;
use belay_testkit::{
    github::NewRelease,
    objects::{ScaledObject, Workload},
    wait,
};
use kube::{ResourceExt as _, api::DeleteParams};

use super::eyes::{Eyes, is_true, verdict};
use crate::{keda, operator::Bed, random::SplitMix64};

/// How long one release may take, with an operator that is killed meanwhile.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(5);
/// The container that is moved.
const CONTAINER: &str = "app";
/// One of so many releases in turn cannot be pulled: which of them is left to chance.
const BAD_ONE_OF: usize = 5;

/// A target.
pub(super) struct Target<'b> {
    pub(super) bed: &'b Bed,
    pub(super) eyes: &'b Eyes,
    pub(super) name: String,
}

impl Target<'_> {
    /// Its repository on GitHub.
    pub(super) fn repo(name: &str) -> String {
        format!("acme/{name}")
    }

    fn image(&self, tag: &str) -> String {
        let host = self.bed.world.registry.host();
        format!("{host}/{}/{}:{tag}", self.bed.namespace, self.name)
    }

    async fn release(&self, tag: &str) -> Result<()> {
        let repository = format!("{}/{}", self.bed.namespace, self.name);
        let image_tag = tag.trim_start_matches('v').replace('+', "_");
        self.bed.world.registry.push(&repository, &image_tag).await?;
        self.bed.github.publish(&Self::repo(&self.name), NewRelease::new(tag))?;
        Ok(())
    }

    /// Creates the workload and its ScaledObject, which KEDA has taken when this returns.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) async fn create(&self) -> Result<()> {
        self.release("v1.0.0").await?;
        let workload = Workload::deployment(&self.name)
            .replicas(1)
            .image(CONTAINER, &self.image("1.0.0"))
            .annotation("belay.dev/repo", &Self::repo(&self.name))
            .annotation("belay.dev/scaledobject", &self.name)
            .annotation("belay.dev/bake", "1s")
            // Nothing here fails for want of time, however busy the machine is.
            .annotation("belay.dev/deadline", "2m");
        self.bed.create(&workload, "helm").await?;
        let object = ScaledObject::of(&self.name);
        keda::settle(&self.bed.client, &self.bed.namespace, &object).await
    }

    /// Publishes so many releases, each when the one before has come to its end; then compares what
    /// ran with what was to run. Returns how many of them were bad.
    ///
    /// # Errors
    /// What was lost, doubled or wrong.
    pub(super) async fn roll(&self, releases: usize, mut random: SplitMix64) -> Result<usize> {
        self.until("v1.0.0 to be healthy", |this| this.is_healthy("v1.0.0")).await?;
        let mut images = vec![self.image("1.0.0")];
        let mut good = "v1.0.0".to_owned();
        let (mut bad, mut bad_in_turn) = (0, 0);
        for minor in 1..=releases {
            let turn = (minor - 1) % BAD_ONE_OF;
            if turn == 0 {
                bad_in_turn = random.below(BAD_ONE_OF);
            }
            if turn != bad_in_turn {
                let tag = format!("v1.{minor}.0");
                self.release(&tag).await?;
                self.until(&format!("{tag} to be healthy"), |this| this.is_healthy(&tag)).await?;
                images.push(self.image(&format!("1.{minor}.0")));
                good = tag;
                continue;
            }
            bad += 1;
            let tag = format!("v1.{minor}.0+no-pull");
            self.release(&tag).await?;
            let what = format!("{tag} to be taken back");
            let rollback = self.until(&what, |this| this.taken_back(&tag)).await?;
            self.until(&format!("{good} to be healthy again"), |this| this.is_healthy(&good))
                .await?;
            images.push(self.image(&format!("1.{minor}.0_no-pull")));
            images.push(images[images.len() - 2].clone());
            // Two within a day would keep back what follows: that is not what this is about.
            self.bed.rollbacks().delete(&rollback, &DeleteParams::default()).await?;
        }
        self.compare(&images)?;
        Ok(bad)
    }

    fn is_healthy(&self, tag: &str) -> Result<(), String> {
        let seen = self.eyes.lock();
        let release = seen.release(&self.name, tag).ok_or("there is no such Release")?;
        let conditions = release.status.clone().unwrap_or_default().conditions;
        match verdict(release) {
            Some(Verdict::Healthy) if is_true(&conditions, "Active") => Ok(()),
            other => Err(format!("{other:?} {conditions:?}")),
        }
    }

    /// The Rollback that answered the failure of a release.
    fn taken_back(&self, tag: &str) -> Result<String, String> {
        let seen = self.eyes.lock();
        let release = seen.release(&self.name, tag).ok_or("there is no such Release")?;
        if verdict(release) != Some(Verdict::Failed) {
            return Err(format!("{:?}", release.status));
        }
        let from = release.name_any();
        let mut answers = seen.rollbacks.values().filter(|one| {
            let status = one.status.as_ref();
            let left = status.and_then(|status| status.from_release_ref.as_ref());
            left.is_some_and(|left| left.name == from)
        });
        let answer = answers.next().ok_or("there is no Rollback")?;
        if let Some(second) = answers.next() {
            return Err(format!("{} and {} answer it", answer.name_any(), second.name_any()));
        }
        let conditions = answer.status.clone().unwrap_or_default().conditions;
        if is_true(&conditions, "Succeeded") {
            Ok(answer.name_any())
        } else {
            Err(format!("{conditions:?}"))
        }
    }

    /// Every image that ran was to run, in this order, and no other did.
    fn compare(&self, images: &[String]) -> Result<()> {
        let seen = self.eyes.lock();
        let ran = seen.images.get(&self.name).context("it was never seen")?;
        ensure!(ran == images, "{} ran {ran:#?}, not {images:#?}", self.name);
        let mut undecided = seen.undecided.iter();
        let own = undecided.find(|name| name.starts_with(&format!("{}-", self.name)));
        ensure!(own.is_none(), "the Release {own:?} failed, and was healthy then");
        Ok(())
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Result<T, String>) -> Result<T> {
        let what = format!("{}: {what}", self.name);
        Ok(wait::until(&what, PATIENCE, || std::future::ready(look(self))).await?)
    }
}

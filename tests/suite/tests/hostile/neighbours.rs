//! Healthy targets that must go on, whatever stands beside them.

use anyhow::Result;
use belay_suite::operator::Bed;
use belay_testkit::{github::NewRelease, objects::Workload};

use crate::targets::Targets;

/// Targets `neighbour-0` and on, each with a repository and an image of its own.
pub(crate) struct Neighbours {
    names: Vec<String>,
    /// Of each, how many releases it has been rolled on to.
    releases: Vec<u32>,
}

impl Neighbours {
    /// Makes them, with a release that runs.
    pub(crate) async fn new(bed: &Bed, count: usize) -> Result<Self> {
        let names: Vec<_> = (0..count).map(|number| format!("neighbour-{number}")).collect();
        for name in &names {
            bed.github.create_repository(&repo(name))?;
            publish(bed, name, 0).await?;
            let workload = Workload::deployment(name)
                .replicas(1)
                .image("app", &image(bed, name, 0))
                .annotation("belay.dev/repo", &repo(name))
                .annotation("belay.dev/bake", "1s")
                .annotation("belay.dev/deadline", "60s");
            bed.create(&workload, "helm").await?;
        }
        Ok(Self { names, releases: vec![0; count] })
    }

    /// Waits until what each has been rolled on to is healthy.
    pub(crate) async fn ready(&self, targets: &Targets) -> Result<()> {
        for (name, release) in self.names.iter().zip(&self.releases) {
            targets.healthy(name, &tag(*release)).await?;
        }
        Ok(())
    }

    /// Publishes a release for each, and waits until all of them are healthy.
    pub(crate) async fn roll(&mut self, bed: &Bed, targets: &Targets) -> Result<()> {
        for which in 0..self.names.len() {
            self.publish_for(which, bed).await?;
        }
        self.ready(targets).await
    }

    async fn publish_for(&mut self, which: usize, bed: &Bed) -> Result<()> {
        self.releases[which] += 1;
        publish(bed, &self.names[which], self.releases[which]).await
    }
}

async fn publish(bed: &Bed, name: &str, release: u32) -> Result<()> {
    bed.world.registry.push(&format!("{}/{name}", bed.namespace), &tag(release)).await?;
    bed.github.publish(&repo(name), NewRelease::new(format!("v{}", tag(release))))?;
    Ok(())
}

fn repo(name: &str) -> String {
    format!("acme/{name}")
}

fn tag(release: u32) -> String {
    format!("1.{release}.0")
}

fn image(bed: &Bed, name: &str, release: u32) -> String {
    format!("{}/{}/{name}:{}", bed.world.registry.host(), bed.namespace, tag(release))
}

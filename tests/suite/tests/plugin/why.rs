//! `why` finds the first broken link on the real control plane.

use anyhow::{Result, ensure};
use belay_suite::operator::{Bed, Wiring};
use serde_json::Value;

use crate::{run::Cli, shown::has};

fn cli(bed: &Bed, words: &[&str]) -> Cli {
    Cli::new(bed.world.cluster, &bed.namespace, words)
}

fn broken(report: &Value) -> Option<(String, String)> {
    let links = report["links"].as_array()?;
    let link = links.iter().find(|link| link["state"] != "good")?;
    Some((link["name"].as_str()?.to_owned(), link["state"].as_str()?.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_broken_link_is_named_with_its_cause_and_the_next_command() -> Result<()> {
    let bed = Bed::new("why").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.wait_for_condition("web", "Ready", "Ready").await?;
    let well = cli(&bed, &["why", "web"]).run().await.ok()?;
    has(&well, &["web runs 1.0.0, as it should", "policy", "GitHub acme/web", "health"])?;

    // A release whose image is not there yet.
    bed.publish("v1.1.0")?;
    bed.wait("the image to be missed", || async {
        let report = cli(&bed, &["why", "web", "-o", "json"]).run().await.json()?;
        let found = broken(&report);
        ensure!(found == Some(("image".to_owned(), "broken".to_owned())), "{report:#}");
        Ok(())
    })
    .await?;
    let waits = cli(&bed, &["why", "web"]).run().await.ok()?;
    has(&waits, &["has not moved to v1.1.0", "WaitingForImage", "check that the build pushed"])?;

    // A release whose pods crash, rolled back by the operator.
    bed.push("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    let missing = cli(&bed, &["why", "other"]).run().await;
    ensure!(missing.exit == kubectl_release::Exit::Error, "{missing:?}");
    has(&missing.stderr, &["releasetargets.belay.dev \"other\" not found"])?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_cannot_be_followed_breaks_the_policy() -> Result<()> {
    let bed = Bed::new("why-config").await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/range", "not a range"), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_condition("web", "Stalled", "InvalidConfig").await?;
    let report = cli(&bed, &["why", "web", "-o", "json"]).run().await.json()?;
    ensure!(broken(&report) == Some(("policy".to_owned(), "broken".to_owned())), "{report:#}");
    let why = cli(&bed, &["why", "web"]).run().await.ok()?;
    has(&why, &["InvalidConfig", "belay.dev/range", "correct what the message names"])?;
    operator.stop().await
}

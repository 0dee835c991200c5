//! From a release on GitHub to a healthy rollout, and back.

use anyhow::Result;
use belay_suite::operator::{Bed, Wiring, condition};
use kube::api::ListParams;

#[tokio::test]
async fn a_release_becomes_a_healthy_rollout() -> Result<()> {
    let bed = Bed::new("roll").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let release = bed.wait_for_healthy("web", "v1.1.0").await?;
    let status = release.status.unwrap_or_default();
    assert_eq!(
        condition(&status.conditions, "Active").map(|one| one.status.as_str()),
        Some("True")
    );
    operator.stop().await
}

#[tokio::test]
async fn a_release_that_cannot_be_pulled_is_taken_back() -> Result<()> {
    let bed = Bed::new("back").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0+no-pull").await?;
    bed.wait("a Rollback that succeeded", || async {
        let all = bed.rollbacks().list(&ListParams::default()).await?;
        let done = all.items.iter().any(|rollback| {
            let status = rollback.status.clone().unwrap_or_default();
            condition(&status.conditions, "Succeeded").is_some_and(|one| one.status == "True")
        });
        anyhow::ensure!(done, "{} Rollbacks", all.items.len());
        Ok(())
    })
    .await?;
    bed.wait_for_image("web", &bed.image("1.0.0")).await?;
    operator.stop().await
}

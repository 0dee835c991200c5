//! `hold`, `resume` and `adopt` with the real operator.

use anyhow::{Result, ensure};
use belay_suite::operator::{Bed, Wiring};
use kubectl_release::Exit;

use crate::{run::Cli, shown::has};

fn cli(bed: &Bed, words: &[&str]) -> Cli {
    Cli::new(bed.world.cluster, &bed.namespace, words)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_keeps_the_next_release_until_resume() -> Result<()> {
    let bed = Bed::new("hold").await?;
    let operator = bed.following(Wiring::default()).await?;
    let said = cli(&bed, &["hold", "web"]).run().await.ok()?;
    has(&said, &["deployment.apps/web held"])?;
    bed.wait_for_condition("web", "Held", "OnHold").await?;
    let again = cli(&bed, &["hold", "web"]).run().await;
    has(&again.stderr, &["unchanged: web is held"])?;
    bed.release("v1.1.0").await?;
    bed.wait("the candidate to wait for the hold", || async {
        let status = bed.targets().get("web").await?.status.unwrap_or_default();
        let gate = status.candidates.iter().find(|one| one.tag == "v1.1.0");
        let gate = gate.and_then(|one| one.gate.as_ref().map(|gate| gate.as_str().to_owned()));
        ensure!(gate.as_deref() == Some("Hold"), "{gate:?}");
        Ok(())
    })
    .await?;
    let why = cli(&bed, &["why", "web"]).run().await.ok()?;
    has(&why, &["has not moved to v1.1.0", "OnHold", "kubectl release resume web"])?;
    let dry = cli(&bed, &["resume", "web", "--dry-run"]).run().await.ok()?;
    has(&dry, &["true is removed", "v1.1.0 will be applied", "resumed (dry run)"])?;
    cli(&bed, &["resume", "web"]).run().await.ok()?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_at_another_tag_says_how_to_get_there() -> Result<()> {
    let bed = Bed::new("hold-tag").await?;
    let operator = bed.following(Wiring::default()).await?;
    let held = cli(&bed, &["hold", "web", "0.9.0"]).run().await;
    ensure!(held.exit == Exit::Done, "{held:?}");
    has(&held.stderr, &["web runs 1.0.0", "kubectl release rollback web -n ", " --to 0.9.0"])?;
    bed.wait_for_condition("web", "Held", "Mismatch").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_person_changed_the_image_resume_takes_it_over() -> Result<()> {
    let bed = Bed::new("hold-person").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    bed.push("v0.9.0").await?;
    bed.set_image("web", &bed.image("0.9.0"), "kubectl-edit").await?;
    bed.wait_for_condition("web", "Stalled", "ChangedByPerson").await?;
    let why = cli(&bed, &["why", "web"]).run().await.ok()?;
    has(
        &why,
        &[
            "apply",
            "ChangedByPerson",
            "kubectl-edit",
            "kubectl release resume web -n ",
            " --dry-run",
        ],
    )?;
    let refused = cli(&bed, &["resume", "web"]).run().await;
    ensure!(refused.exit == Exit::Usage, "{refused:?}");
    has(&refused.stdout, &["takes over", "kubectl-edit (Update)"])?;
    bed.release("v1.2.0").await?;
    cli(&bed, &["resume", "web"]).typing("yes\n").run().await.ok()?;
    bed.wait_for_image("web", &bed.image("1.2.0")).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_release_is_allowed_once_more_and_again() -> Result<()> {
    let bed = Bed::new("allow").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    for round in ["first", "second"] {
        let words = ["rollback", "web", "--yes", "--to", "v1.0.0", "--wait=60s"];
        cli(&bed, &words).run().await.ok()?;
        ensure!(bed.live("web").await? == bed.image("1.0.0"), "{round}");
        // The Rollback ends before the ReleaseTarget says so.
        bed.wait("why to name the block", || async {
            let why = cli(&bed, &["why", "web"]).run().await.ok()?;
            has(&why, &["Blocked", "kubectl release resume web -n ", " --allow v1.1.0"])
        })
        .await?;
        let said = cli(&bed, &["resume", "web", "--allow", "v1.1.0"]).run().await.ok()?;
        has(&said, &["v1.1.0 once more", "v1.1.0 will be applied", "resumed"])?;
        bed.wait_for_image("web", &bed.image("1.1.0")).await?;
        bed.wait_for_healthy("web", "v1.1.0").await?;
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_asks_and_names_the_manager_and_its_value() -> Result<()> {
    let bed = Bed::new("adopt").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.set_image("web", &bed.image("0.9.0"), "spinnaker").await?;
    bed.wait_for_condition("web", "Stalled", "ChangedByPerson").await?;
    let refused = cli(&bed, &["adopt", "web"]).run().await;
    ensure!(refused.exit == Exit::Usage, "{refused:?}");
    has(&refused.stdout, &["held by", "spinnaker (Update)"])?;
    cli(&bed, &["adopt", "web", "--yes"]).run().await.ok()?;
    let live = bed.deployments().get("web").await?;
    let annotation = live.metadata.annotations.and_then(|all| all.get("belay.dev/adopt").cloned());
    ensure!(annotation == Some(format!("spinnaker={}", bed.image("0.9.0"))), "{annotation:?}");
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let unchanged = cli(&bed, &["adopt", "web", "--yes"]).run().await;
    has(&unchanged.stderr, &["belay-operator owns the image of web alone"])?;
    operator.stop().await
}

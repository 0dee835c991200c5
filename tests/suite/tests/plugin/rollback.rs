//! `rollback` with the real operator: the plan, the write, and two people at once.

use anyhow::{Context as _, Result, ensure};
use belay_suite::operator::{Bed, Running, Wiring};
use kube::{ResourceExt as _, api::ListParams};
use kubectl_release::Exit;
use serde_json::Value;

use crate::{run::Cli, shown::has};

/// An operator that has moved `web` from v1.0.0 to v1.1.0.
async fn moved(bed: &Bed) -> Result<Running> {
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    Ok(operator)
}

fn cli(bed: &Bed, words: &[&str]) -> Cli {
    Cli::new(bed.world.cluster, &bed.namespace, words)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_names_every_consequence_and_nothing_happens_without_a_yes() -> Result<()> {
    let bed = Bed::new("undo-plan").await?;
    let operator = moved(&bed).await?;
    let words = [
        "Roll back",
        "container app",
        "1.1.0  →  1.0.0",
        "last healthy",
        "only image",
        "releases above v1.0.0 up to v1.1.0 are blocked",
        "--hold to stay",
        "image owned by belay-operator (Apply): no conflict expected",
        "Helm did not install this workload",
    ];
    let refused = cli(&bed, &["rollback", "web"]).run().await;
    ensure!(refused.exit == Exit::Usage, "{refused:?}");
    has(&refused.stdout, &words)?;
    has(&refused.stderr, &["refusing to roll back without confirmation; pass --yes"])?;
    // A pipe that says yes is no confirmation.
    let piped = cli(&bed, &["rollback", "web"]).stdin("y\n").run().await;
    ensure!(piped.exit == Exit::Usage, "{piped:?}");
    let no = cli(&bed, &["undo", "web"]).typing("\n").run().await;
    ensure!(no.exit == Exit::Done, "{no:?}");
    has(&no.stderr, &["Proceed? [y/N]", "nothing was changed"])?;

    let client = cli(&bed, &["rollback", "web", "--dry-run=client"]).run().await.ok()?;
    has(&client, &["created (dry run)"])?;
    let server = cli(&bed, &["rollback", "web", "--dry-run=server"]).run().await.ok()?;
    has(&server, &["created (server dry run)"])?;
    let words = ["rollback", "web", "--dry-run=client", "-o", "json", "--reason", "errors"];
    let object: Value = cli(&bed, &words).run().await.json()?;
    ensure!(object["kind"] == "Rollback" && object["spec"]["reason"] == "errors", "{object:#}");
    ensure!(object["spec"]["initiatedBy"]["type"] == "user", "{object:#}");

    let same = cli(&bed, &["rollback", "web", "--to", "1.1.0", "--yes"]).run().await.ok()?;
    has(&same, &["unchanged: web already runs 1.1.0"])?;
    let unknown = cli(&bed, &["rollback", "web", "--to", "9.9.9", "--yes"]).run().await;
    ensure!(unknown.exit == Exit::Error, "{unknown:?}");
    has(&unknown.stderr, &["the Release does not exist", "kubectl release history web"])?;
    let too_far = cli(&bed, &["rollback", "web", "--to", "-2", "--yes"]).run().await;
    has(&too_far.stderr, &["only 1 can be gone to"])?;
    ensure!(bed.rollbacks().list(&ListParams::default()).await?.items.is_empty());
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_followed_to_its_end_and_stays() -> Result<()> {
    let bed = Bed::new("undo-wait").await?;
    let operator = moved(&bed).await?;
    let words =
        ["rollback", "web", "--yes", "--hold", "--reason", "errors at checkout", "--wait=60s"];
    let said = cli(&bed, &words).user("alice").run().await.ok()?;
    has(&said, &["rollback.belay.dev/web-", " created", "held at 1.0.0", "DeploymentSucceeded"])?;
    ensure!(bed.live("web").await? == bed.image("1.0.0"));
    let all = bed.rollbacks().list(&ListParams::default()).await?;
    let only = all.items.first().context("no Rollback")?;
    ensure!(all.items.len() == 1 && only.spec.initiated_by.principal == "alice", "{only:?}");
    ensure!(only.spec.reason == "errors at checkout" && only.name_any().contains("-to-"));
    let wrote =
        only.managed_fields().iter().any(|one| one.manager.as_deref() == Some("kubectl-release"));
    ensure!(wrote, "{:?}", only.managed_fields());
    bed.wait_for_condition("web", "Held", "OnHold").await?;
    // Undo twice does not toggle back: what was left is blocked.
    let again = cli(&bed, &["rollback", "web", "--yes"]).run().await;
    ensure!(again.exit == Exit::Error, "{again:?}");
    has(&again.stderr, &["no earlier Release of the target can be gone to"])?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_at_once_make_one_rollback() -> Result<()> {
    let bed = Bed::new("undo-two").await?;
    let operator = moved(&bed).await?;
    // Without an operator neither can end before the other one comes.
    operator.stop().await?;
    let words = ["rollback", "web", "--yes"];
    let (one, other) =
        tokio::join!(cli(&bed, &words).user("alice").run(), cli(&bed, &words).user("bob").run(),);
    ensure!(one.exit == Exit::Done && other.exit == Exit::Done, "{one:?} {other:?}");
    let all = bed.rollbacks().list(&ListParams::default()).await?;
    let only = all.items.first().context("no Rollback")?;
    ensure!(all.items.len() == 1, "{:?}", all.items);
    let (first, second) = match only.spec.initiated_by.principal.as_str() {
        "alice" => (&one, &other),
        _ => (&other, &one),
    };
    has(&first.stdout, &[" created"])?;
    has(&second.stdout, &[" joined"])?;
    let by = format!("{} began it", only.spec.initiated_by.principal);
    has(&second.stderr, &[&by])?;
    let operator = bed.operator()?;
    bed.wait_for_image("web", &bed.image("1.0.0")).await?;
    operator.stop().await
}

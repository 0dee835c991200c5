//! At rest nothing is written: neither after what happened, nor after a restart (design section 3.5).

use anyhow::{Result, ensure};
use belay_api::{
    gates::Gate,
    reasons::{HeldReason, StalledReason},
};
use belay_suite::operator::{Bed, Running, condition};
use belay_testkit::{
    fault::FaultPlan,
    github::{Matching, Reply, Times},
};
use rstest::rstest;
use serde_json::json;

use crate::support::{
    REPO, ask_for, ended, gated, kubectl, polls, roll, rollback, scale, stalled, traced,
    wait_for_activation, wait_for_release, wait_for_target, wired, writes,
};

/// How often GitHub says that nothing is new before it counts as quiet.
const QUIET: usize = 12;

/// What happened before it became quiet.
#[derive(Debug, Clone, Copy)]
enum After {
    FirstSight,
    Rolled,
    Failed,
    LeftBroken,
    RolledBack,
    Rejected,
    TakenBackByHelm,
    TugOfWar,
    ChangedByPerson,
    GitOps,
    Conflict,
    NoImage,
    Held,
    HeldElsewhere,
    Zero,
    Paused,
    Observed,
    Invalid,
    Breaker,
    GithubFails,
    NoRepository,
    OthersBroken,
}

/// Brings `web`, which runs v1.0.0, there.
async fn come_to(bed: &Bed, after: After) -> Result<()> {
    match after {
        After::FirstSight => {}
        After::Rolled => drop(roll(bed, "v1.1.0").await?),
        After::Failed => failed(bed, "v1.1.0+no-pull", 2).await?,
        After::LeftBroken => {
            bed.annotate("web", "on-failure", json!("stop")).await?;
            bed.release("v1.1.0+no-pull").await?;
            stalled(bed, "web", StalledReason::Broken).await?;
        }
        After::RolledBack => {
            roll(bed, "v1.1.0").await?;
            ask_for(bed, rollback("web-back", ""), |_| {}).await?;
            ended(bed, "web-back", "DeploymentSucceeded").await?;
        }
        After::Rejected => {
            ask_for(bed, rollback("web-back", "web-0000000"), |_| {}).await?;
            ended(bed, "web-back", "Rejected").await?;
        }
        After::TakenBackByHelm => {
            roll(bed, "v1.1.0").await?;
            bed.set_image("web", &bed.image("1.0.0"), "helm").await?;
            wait_for_activation(bed, "web", "v1.0.0", 2).await?;
            wait_for_release(bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
        }
        After::TugOfWar => {
            for time in 1..=4 {
                bed.set_image("web", &bed.image("0.9.0"), "helm").await?;
                if time < 4 {
                    wait_for_activation(bed, "web", "v1.0.0", time + 1).await?;
                }
            }
            stalled(bed, "web", StalledReason::TugOfWar).await?;
        }
        After::ChangedByPerson => {
            let image = format!("app={}", bed.image("0.9.0"));
            kubectl(bed, &["set", "image", "deployment/web", &image]).await?;
            stalled(bed, "web", StalledReason::ChangedByPerson).await?;
        }
        After::GitOps => {
            bed.set_image("web", &bed.image("0.9.0"), "argocd-controller").await?;
            stalled(bed, "web", StalledReason::ManagedByGitOps).await?;
        }
        After::Conflict => {
            // It owns what is live beside the operator, and so is in the way of the next one.
            roll(bed, "v1.1.0").await?;
            let image = bed.image("1.1.0");
            let body = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "spec": { "template": { "spec": { "containers": [
                    { "name": "app", "image": image },
                ]}}},
            });
            let params = kube::api::PatchParams::apply("terraform");
            let patch = kube::api::Patch::Apply(&body);
            bed.deployments().patch("web", &params, &patch).await?;
            bed.release("v1.2.0").await?;
            stalled(bed, "web", StalledReason::FieldConflict).await?;
        }
        After::NoImage => {
            bed.publish("v1.1.0")?;
            gated(bed, "web", "v1.1.0", Gate::WaitingForImage).await?;
        }
        After::Held => {
            bed.annotate("web", "hold", json!("true")).await?;
            bed.release("v1.1.0").await?;
            gated(bed, "web", "v1.1.0", Gate::Hold).await?;
        }
        After::HeldElsewhere => {
            bed.annotate("web", "hold", json!("0.1.0")).await?;
            wait_for_target(bed, "web", "held", |status| {
                let held = condition(&status.conditions, "Held")?;
                let wanted = belay_api::NamedValue::as_str(HeldReason::Mismatch);
                (held.reason == wanted).then_some(())
            })
            .await?;
        }
        After::Zero => {
            scale(bed, "web", 0).await?;
            bed.release("v1.1.0").await?;
            wait_for_release(bed, "web", "v1.1.0", ("Ready", "Unknown", "ScaledToZero")).await?;
        }
        After::Paused => {
            bed.patch("web", "kubectl", &json!({ "spec": { "paused": true } })).await?;
            bed.release("v1.1.0").await?;
            gated(bed, "web", "v1.1.0", Gate::InFlight).await?;
        }
        After::Observed => {
            bed.annotate("web", "mode", json!("observe")).await?;
            bed.release("v1.1.0").await?;
            gated(bed, "web", "v1.1.0", None).await?;
        }
        After::Invalid => {
            // Somebody must follow the repository, or GitHub is not asked at all.
            let held = bed.workload("api", "1.0.0").annotation("belay.dev/hold", "true");
            bed.create(&held, "helm").await?;
            bed.wait_for_healthy("api", "v1.0.0").await?;
            bed.annotate("web", "range", json!("not a range")).await?;
            stalled(bed, "web", StalledReason::InvalidConfig).await?;
        }
        After::Breaker => {
            failed(bed, "v1.1.0+no-pull", 2).await?;
            failed(bed, "v1.2.0+no-pull", 3).await?;
            bed.release("v1.3.0").await?;
            stalled(bed, "web", StalledReason::BreakerOpen).await?;
        }
        After::GithubFails => {
            let reply = Reply::Answer { status: 502, headers: Vec::new(), body: "no".to_owned() };
            bed.github.script(Matching::path("/repos/*"), Times::Next(1), reply)?;
            polls(bed, 4).await?;
        }
        After::NoRepository => {
            bed.github.delete_repository(REPO)?;
            stalled(bed, "web", StalledReason::RepositoryNotFound).await?;
        }
        After::OthersBroken => {
            bed.annotate("web", "deadline", json!("2s")).await?;
            let bad = json!({ "spec": { "template": { "spec": { "containers": [
                { "name": "sidecar", "image": "sidecar.example/proxy:never-ready" },
            ]}}}});
            bed.annotate("web", "container", json!("app")).await?;
            bed.patch("web", "helm", &bad).await?;
            stalled(bed, "web", StalledReason::Broken).await?;
        }
    }
    Ok(())
}

async fn failed(bed: &Bed, tag: &str, round: i64) -> Result<()> {
    bed.release(tag).await?;
    wait_for_activation(bed, "web", "v1.0.0", round).await?;
    wait_for_release(bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    Ok(())
}

/// Waits until GitHub was asked so often, and had nothing new to say, with nothing written meanwhile.
async fn quiet(bed: &Bed, plan: &FaultPlan) -> Result<()> {
    bed.wait("nothing to be written any more", || async {
        let before = writes(plan).calls().len();
        let mark = bed.github.mark();
        bed.wait("GitHub to be asked", || async {
            let log = bed.github.log().since(mark);
            let nothing_new = log.count(|one| one.not_modified() || one.status == Some(404));
            ensure!(nothing_new >= QUIET, "{nothing_new}");
            Ok(())
        })
        .await?;
        let all = writes(plan);
        let new: Vec<String> = all.calls().iter().skip(before).map(ToString::to_string).collect();
        ensure!(new.is_empty(), "{}", new.join("\n"));
        Ok(())
    })
    .await
}

#[rstest]
#[tokio::test]
async fn at_rest_nothing_is_written_and_after_a_restart_neither(
    #[values(
        After::FirstSight,
        After::Rolled,
        After::Failed,
        After::LeftBroken,
        After::RolledBack,
        After::Rejected,
        After::TakenBackByHelm,
        After::TugOfWar,
        After::ChangedByPerson,
        After::GitOps,
        After::Conflict,
        After::NoImage,
        After::Held,
        After::HeldElsewhere,
        After::Zero,
        After::Paused,
        After::Observed,
        After::Invalid,
        After::Breaker,
        After::GithubFails,
        After::NoRepository,
        After::OthersBroken
    )]
    after: After,
) -> Result<()> {
    let bed = Bed::new("quiet").await?;
    let plan = FaultPlan::new();
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let start = || {
        let mut wiring = wired(|_| {});
        wiring.client = Some(traced(&bed, &plan)?);
        Running::start(&bed, wiring)
    };
    let operator = start()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    come_to(&bed, after).await?;
    quiet(&bed, &plan).await?;
    let before = everything(&bed).await?;
    operator.stop().await?;
    // Its memory is gone, and with it what GitHub and the registry have said.
    let first = writes(&plan).calls().len();
    let operator = start()?;
    operator.ready().await?;
    let mark = bed.github.mark();
    bed.wait("GitHub to be asked", || async {
        let log = bed.github.log().since(mark);
        ensure!(log.len() >= QUIET, "{}", log.len());
        Ok(())
    })
    .await?;
    // What was refused before may be tried once more, and is refused again.
    let all = writes(&plan);
    let granted =
        all.calls().iter().skip(first).filter(|call| {
            call.answered().is_none_or(|status| status != http::StatusCode::CONFLICT)
        });
    let new: Vec<String> = granted.map(ToString::to_string).collect();
    assert_eq!(new, [""; 0], "after {after:?}");
    assert_eq!(everything(&bed).await?, before);
    operator.stop().await
}

/// All objects, as they are.
async fn everything(bed: &Bed) -> Result<Vec<serde_json::Value>> {
    let all = kube::api::ListParams::default();
    let mut objects = Vec::new();
    for one in bed.targets().list(&all).await?.items {
        objects.push(serde_json::to_value(one)?);
    }
    for one in bed.releases().list(&all).await?.items {
        objects.push(serde_json::to_value(one)?);
    }
    for one in bed.rollbacks().list(&all).await?.items {
        objects.push(serde_json::to_value(one)?);
    }
    for one in bed.deployments().list(&all).await?.items {
        objects.push(serde_json::to_value(one)?);
    }
    Ok(objects)
}

//! The debug page of a target is a bug report: from it alone the same plan follows.

use anyhow::{Context as _, Result, ensure};
use belay_api::{gates::Gate, reasons::StalledReason};
use belay_operator::{
    admin::Inspect as _,
    replay::{Agreement, DebugFile, replay},
};
use belay_suite::operator::{Bed, Running, Wiring};
use rstest::rstest;
use serde_json::json;

use crate::support::{following_to, gated, kubectl, stalled, wait_for_activation};

/// The page as it is served.
fn page(operator: &Running, bed: &Bed) -> Result<String> {
    let page = operator.handle.debug(&bed.namespace, "web").context("no page of web")?;
    Ok(serde_json::to_string_pretty(&page)?)
}

fn agrees(page: &str) -> Result<DebugFile> {
    let replayed = replay(page)?;
    ensure!(replayed.agreement == Agreement::Same, "{:?}\n{page}", replayed.agreement);
    let file: DebugFile = serde_json::from_str(page)?;
    let plan = file.plan.as_ref().context("no plan")?;
    ensure!(replayed.computed == serde_json::to_value(plan)?, "another plan");
    Ok(file)
}

#[derive(Debug, Clone, Copy)]
enum When {
    AtRest,
    Rolling,
    Paused,
    Gated,
    Changed,
    Invalid,
}

#[rstest]
#[tokio::test]
async fn a_debug_page_replays_to_the_same_plan(
    #[values(When::AtRest, When::Rolling, When::Paused, When::Gated, When::Changed, When::Invalid)]
    when: When,
) -> Result<()> {
    let bed = Bed::new("debug").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    match when {
        When::AtRest => {}
        When::Rolling => {
            bed.release("v1.2.0+never-ready").await?;
            wait_for_activation(&bed, "web", "v1.2.0+never-ready", 1).await?;
        }
        When::Paused => {
            bed.patch("web", "kubectl", &json!({ "spec": { "paused": true } })).await?;
            bed.release("v1.2.0").await?;
            gated(&bed, "web", "v1.2.0", Gate::InFlight).await?;
        }
        When::Gated => {
            bed.publish("v1.2.0")?;
            gated(&bed, "web", "v1.2.0", Gate::WaitingForImage).await?;
        }
        When::Changed => {
            let image = format!("app={}", bed.image("1.0.5"));
            kubectl(&bed, &["set", "image", "deployment/web", &image]).await?;
            stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
        }
        When::Invalid => {
            bed.annotate("web", "bake", json!("soon")).await?;
            stalled(&bed, "web", StalledReason::InvalidConfig).await?;
        }
    }
    let file = agrees(&page(&operator, &bed)?)?;
    assert_eq!(file.observed.namespace, bed.namespace);
    if let When::Rolling = when {
        let plan = file.plan.context("no plan")?;
        assert!(plan.pods, "pods are watched while it rolls");
        assert!(file.observed.pods.value().is_some(), "{:?}", file.observed.pods);
    }
    operator.stop().await
}

#[tokio::test]
async fn a_debug_page_holds_no_secret() -> Result<()> {
    let bed = Bed::new("secret").await?;
    let web = bed
        .web("1.0.0")
        .annotation("example.com/password", "hunter2")
        .pod_spec("imagePullSecrets", json!([{ "name": "pull-bob" }]));
    bed.release("v1.0.0").await?;
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    let page = page(&operator, &bed)?;
    let token = std::fs::read_to_string(bed.token.path())?;
    assert!(!page.contains(token.trim()), "the token of GitHub");
    assert!(!page.contains("hunter2"), "an annotation of somebody else: {page}");
    operator.stop().await
}

#[tokio::test]
async fn there_is_no_page_of_what_is_not_followed() -> Result<()> {
    let bed = Bed::new("nopage").await?;
    let operator = bed.following(Wiring::default()).await?;
    assert!(operator.handle.debug(&bed.namespace, "other").is_none());
    assert!(operator.handle.debug("other", "web").is_none());
    operator.stop().await
}

//! What a person may ask of a target: to be held, or only to be looked at (operator specification,
//! sections 2 and 3).

use anyhow::Result;
use belay_api::{gates::Gate, reasons::HeldReason};
use belay_suite::operator::{Bed, Running, Wiring, condition};
use belay_testkit::fault::FaultPlan;
use serde_json::json;

use crate::support::{
    following_to, gated, polls, target, told, traced, wait_for_activation, wait_for_release,
    wait_for_target, wired, writes,
};

/// Waits until a target is held for this reason; returns what it says.
async fn held(bed: &Bed, reason: HeldReason) -> Result<String> {
    let reason = belay_api::NamedValue::as_str(reason);
    wait_for_target(bed, "web", &format!("Held/{reason}"), |status| {
        let held = condition(&status.conditions, "Held")?;
        (held.reason == reason).then(|| held.message.clone())
    })
    .await
}

#[tokio::test]
async fn a_held_target_shows_what_it_would_do_and_does_it_on_resume() -> Result<()> {
    let bed = Bed::new("hold").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.annotate("web", "hold", json!("true")).await?;
    held(&bed, HeldReason::OnHold).await?;
    bed.release("v1.1.0").await?;
    gated(&bed, "web", "v1.1.0", Gate::Hold).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    assert_eq!(target(&bed, "web").await?.hold.as_deref(), Some("true"));
    bed.annotate("web", "hold", json!(null)).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    let status = target(&bed, "web").await?;
    assert!(condition(&status.conditions, "Held").is_none(), "{:?}", status.conditions);
    assert_eq!(status.hold, None);
    operator.stop().await
}

#[tokio::test]
async fn work_in_flight_is_finished_while_held() -> Result<()> {
    let bed = Bed::new("holdflight").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0+no-pull").await?;
    wait_for_activation(&bed, "web", "v1.1.0+no-pull", 1).await?;
    bed.annotate("web", "hold", json!("true")).await?;
    // It is judged, and taken back.
    wait_for_release(&bed, "web", "v1.1.0+no-pull", ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    held(&bed, HeldReason::OnHold).await?;
    operator.stop().await
}

/// `hold: TAG` while another tag runs starts nothing, and names the command that goes there.
#[tokio::test]
async fn a_target_that_is_held_at_another_tag_starts_nothing() -> Result<()> {
    let bed = Bed::new("holdtag").await?;
    let at_once = wired(|settings| settings.revert_window = belay_api::Duration::from_secs(0));
    let operator = following_to(&bed, at_once, &["v1.1.0"]).await?;
    bed.annotate("web", "hold", json!("1.0.0")).await?;
    let message = held(&bed, HeldReason::Mismatch).await?;
    assert!(message.contains("kubectl release rollback web --to 1.0.0"), "{message}");
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", Gate::Hold).await?;
    // Re-asserts included.
    bed.set_image("web", &bed.image("0.9.0"), "helm").await?;
    told(&bed, "ImageReverted", &["helm"]).await?;
    polls(&bed, 8).await?;
    assert_eq!(bed.live("web").await?, bed.image("0.9.0"));
    bed.annotate("web", "hold", json!("1.1.0")).await?;
    polls(&bed, 2).await?;
    bed.annotate("web", "hold", json!(null)).await?;
    bed.wait_for_image("web", &bed.image("1.2.0")).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_target_that_is_held_at_what_runs_is_on_hold() -> Result<()> {
    let bed = Bed::new("holdhere").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    bed.annotate("web", "hold", json!("1.1.0")).await?;
    let message = held(&bed, HeldReason::OnHold).await?;
    assert!(message.contains("1.1.0"), "{message}");
    // By the tag of the release too.
    bed.annotate("web", "hold", json!("v1.1.0")).await?;
    let message = held(&bed, HeldReason::OnHold).await?;
    assert!(message.contains("1.1.0"), "{message}");
    operator.stop().await
}

#[tokio::test]
async fn an_observed_target_is_only_written_about() -> Result<()> {
    let bed = Bed::new("observe").await?;
    bed.release("v1.0.0").await?;
    bed.release("v1.1.0").await?;
    let web = bed.web("1.0.0").annotation("belay.dev/mode", "observe");
    bed.create(&web, "helm").await?;
    let plan = FaultPlan::new();
    let wiring = Wiring { client: Some(traced(&bed, &plan)?), ..wired(|_| {}) };
    let operator = Running::start(&bed, wiring)?;
    gated(&bed, "web", "v1.1.0", None).await?;
    let wanted = wait_for_target(&bed, "web", "what is wanted", |status| {
        status.wanted.as_ref()?.image.clone()
    })
    .await?;
    assert_eq!(wanted, bed.image("1.1.0"));
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let others = writes(&plan)
        .filter(|call| call.id.resource().is_none_or(|it| it.resource != "releasetargets"));
    assert_eq!(others.calls(), [], "{others}");
    bed.annotate("web", "mode", json!("apply")).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    operator.stop().await
}

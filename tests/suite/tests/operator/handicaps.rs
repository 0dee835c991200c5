//! What the operator does without a right that is missing, and says so (operator specification, section
//! 3.7).

use anyhow::Result;
use belay_api::{NamedValue as _, reasons::Note};
use belay_suite::operator::{Bed, condition};
use belay_testkit::fault::{Answer, Calls, Fault, FaultPlan, Nth, Verb};
use http::StatusCode;

use crate::support::{told, traced, wait_for_target, wired};

#[tokio::test]
async fn pods_that_may_not_be_watched_are_listed_and_that_is_said_while_it_is_so() -> Result<()> {
    let bed = Bed::new("nowatch").await?;
    let plan = FaultPlan::new();
    let refused = Answer::kubernetes(StatusCode::FORBIDDEN, "Forbidden", "not yours to watch");
    let watches = Calls::any().verb(Verb::Watch).resource("pods");
    plan.inject(watches, Nth::Every, Fault::Answer(refused));
    let mut wiring = wired(|_| {});
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = bed.following(wiring).await?;
    bed.release("v1.1.0+never-ready").await?;
    let note = Note::PodsListed.as_str();
    let message = wait_for_target(&bed, "web", note, |status| {
        condition(&status.conditions, note).map(|one| one.message.clone())
    })
    .await?;
    assert!(message.contains("no right to watch pods"), "{message}");
    told(&bed, "PodsNotWatched", &["Warning", "no right to watch pods"]).await?;
    // The rollout is over, and nothing is listed any more.
    bed.annotate("web", "deadline", serde_json::json!("1s")).await?;
    wait_for_target(&bed, "web", "at rest", |status| {
        let is_noted = condition(&status.conditions, note).is_some();
        let is_back = condition(&status.conditions, "Ready")?.reason == "RolledBack";
        (is_back && !is_noted).then_some(())
    })
    .await?;
    operator.stop().await
}

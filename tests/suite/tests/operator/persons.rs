//! When a person changes the image with kubectl (operator specification, section 6).

use anyhow::Result;
use belay_api::{gates::Gate, reasons::StalledReason};
use belay_suite::operator::Bed;
use rstest::rstest;
use serde_json::json;

use crate::support::{
    following_to, gated, going_on, kubectl, polls, release, roll, stalled, target,
    wait_for_activation, wait_for_release, wired,
};

/// What `kubectl set image` is known as.
const SET: &str = "kubectl-set";

async fn set_image(bed: &Bed, image: &str) -> Result<()> {
    kubectl(bed, &["set", "image", "deployment/web", &format!("app={image}")]).await.map(drop)
}

#[tokio::test]
async fn an_image_that_a_person_sets_stays_until_it_is_adopted() -> Result<()> {
    let bed = Bed::new("person").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let by_hand = bed.image("1.0.5");
    set_image(&bed, &by_hand).await?;
    let message = stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    let way_out = format!("belay.dev/adopt: {SET}={by_hand}");
    assert!(message.contains(&way_out), "{message}");
    assert!(message.contains("kubectl release resume web"), "{message}");
    // A lower version is meant: what it replaced is refused from now on.
    let blocked = ("Blocked", "True", "RolledBackByPerson");
    wait_for_release(&bed, "web", "v1.1.0", blocked).await?;
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", None).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, by_hand);
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    bed.annotate("web", "adopt", json!(format!("{SET}={by_hand}"))).await?;
    bed.wait_for_image("web", &bed.image("1.2.0")).await?;
    bed.wait_for_healthy("web", "v1.2.0").await?;
    going_on(&bed, "web").await?;
    operator.stop().await
}

#[rstest]
#[case::another_value(SET, "1.0.4")]
#[case::another_manager("kubectl-edit", "1.0.5")]
#[tokio::test]
async fn leave_to_adopt_something_else_is_none(
    #[case] manager: &str,
    #[case] tag: &str,
) -> Result<()> {
    let bed = Bed::new("adopt").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    set_image(&bed, &bed.image("1.0.5")).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    bed.annotate("web", "adopt", json!(format!("{manager}={}", bed.image(tag)))).await?;
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", None).await?;
    polls(&bed, 4).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.5"));
    operator.stop().await
}

/// Leave is for one move: it does not count again when the same person comes back.
#[tokio::test]
async fn leave_to_adopt_is_for_what_that_person_holds_then() -> Result<()> {
    let bed = Bed::new("adoptonce").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let first = bed.image("1.0.5");
    set_image(&bed, &first).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    bed.annotate("web", "adopt", json!(format!("{SET}={first}"))).await?;
    roll(&bed, "v1.2.0").await?;
    let second = bed.image("1.1.5");
    set_image(&bed, &second).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    bed.release("v1.3.0").await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, second);
    operator.stop().await
}

/// argoproj-labs/argocd-image-updater#453: a newer version that a person had put in place was
/// "updated" to the latest release, which was older.
#[tokio::test]
async fn a_newer_image_of_a_person_is_never_lowered() -> Result<()> {
    let bed = Bed::new("hotfix").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    let hotfix = bed.image("1.1.1");
    set_image(&bed, &hotfix).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    gated(&bed, "web", "v1.1.0", Gate::Lower).await?;
    assert_eq!(target(&bed, "web").await?.blocked, [], "nothing was taken back");
    bed.annotate("web", "adopt", json!(format!("{SET}={hotfix}"))).await?;
    going_on(&bed, "web").await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, hotfix);
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn kubectl_rollout_undo_is_respected_and_newer_releases_are_followed() -> Result<()> {
    let bed = Bed::new("undo").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0", "v1.2.0"]).await?;
    kubectl(&bed, &["rollout", "undo", "deployment/web"]).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let blocked = ("Blocked", "True", "RolledBackByPerson");
    wait_for_release(&bed, "web", "v1.2.0", blocked).await?;
    let again = wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    let who = again.initiator.unwrap_or_default();
    assert!(who.starts_with("kubectl"), "{who}");
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    going_on(&bed, "web").await?;
    roll(&bed, "v1.3.0").await?;
    operator.stop().await
}

/// The template of the first sight has no annotation of ours, and undoing to it restores that.
#[tokio::test]
async fn kubectl_rollout_undo_to_the_first_image_is_respected() -> Result<()> {
    let bed = Bed::new("undofirst").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    kubectl(&bed, &["rollout", "undo", "deployment/web"]).await?;
    bed.wait_for_image("web", &bed.image("1.0.0")).await?;
    let blocked = ("Blocked", "True", "RolledBackByPerson");
    wait_for_release(&bed, "web", "v1.1.0", blocked).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

#[tokio::test]
async fn a_person_who_changes_the_image_in_mid_rollout_ends_it() -> Result<()> {
    let bed = Bed::new("midroll").await?;
    let operator = bed.following(wired(|_| {})).await?;
    bed.release("v1.1.0+never-ready").await?;
    bed.wait_for_image("web", &bed.image("1.1.0_never-ready")).await?;
    wait_for_activation(&bed, "web", "v1.1.0+never-ready", 1).await?;
    let by_hand = bed.image("1.0.5");
    set_image(&bed, &by_hand).await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    let left = release(&bed, "web", "v1.1.0+never-ready").await?.status.unwrap_or_default();
    let last = left.activations.last().cloned();
    let message = last.as_ref().and_then(|last| last.message.clone());
    assert_eq!(message, Some(format!("ChangedBy:{SET}")), "{last:?}");
    let verdict = last.and_then(|last| last.verdict).and_then(|one| one.known());
    assert_eq!(verdict, Some(belay_api::gates::Verdict::Superseded));
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, by_hand);
    let rollbacks = bed.rollbacks().list(&kube::api::ListParams::default()).await?;
    assert_eq!(rollbacks.items, []);
    operator.stop().await
}

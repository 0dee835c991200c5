//! Which release is followed (operator specification, sections 2 and 3.2).

use anyhow::Result;
use belay_api::{
    gates::{Gate, WaitReason},
    reasons::StalledReason,
};
use belay_suite::operator::{Bed, Wiring};
use belay_testkit::github::{MakeLatest, NewRelease};
use serde_json::json;

use crate::support::{
    REPO, following_to, gated, going_on, kubectl, polls, retag, roll, stalled, wait_for_activation,
    wait_for_release, wait_for_target, wired,
};

/// argoproj-labs/argocd-image-updater#426 and #1535: without a constraint prereleases were taken.
#[tokio::test]
async fn a_prerelease_is_taken_only_where_that_is_asked_for() -> Result<()> {
    let bed = Bed::new("prerelease").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.annotate("web", "range", json!(">=1.0.0 <2.0.0")).await?;
    bed.push("v1.1.0-rc.2").await?;
    bed.github.publish(REPO, NewRelease::new("v1.1.0-rc.2").prerelease())?;
    // Not marked on GitHub, but the version says it.
    bed.release("v1.1.0-rc.1").await?;
    bed.release("v2.0.0").await?;
    gated(&bed, "web", "v1.1.0-rc.2", Gate::Prerelease).await?;
    gated(&bed, "web", "v1.1.0-rc.1", Gate::Prerelease).await?;
    gated(&bed, "web", "v2.0.0", Gate::Range).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    bed.annotate("web", "prereleases", json!("true")).await?;
    bed.wait_for_image("web", &bed.image("1.1.0-rc.2")).await?;
    bed.wait_for_healthy("web", "v1.1.0-rc.2").await?;
    gated(&bed, "web", "v1.1.0-rc.1", Gate::Lower).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    operator.stop().await
}

/// mattrobinsonsre/terrapod#1374 and others: a fix of an old line became `releases/latest`, and
/// everybody went down to it.
#[tokio::test]
async fn a_backport_that_github_calls_latest_is_not_taken() -> Result<()> {
    let bed = Bed::new("backport").await?;
    let operator = following_to(&bed, Wiring::default(), &["v2.0.0"]).await?;
    bed.release("v1.0.1").await?;
    gated(&bed, "web", "v1.0.1", Gate::Lower).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("2.0.0"));
    roll(&bed, "v2.0.1").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_release_that_is_not_githubs_latest_waits_for_it_to_be() -> Result<()> {
    let bed = Bed::new("notlatest").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.push("v1.1.0").await?;
    bed.github.publish(REPO, NewRelease::new("v1.1.0").make_latest(MakeLatest::False))?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let edit = belay_testkit::github::ReleaseEdit {
        make_latest: Some(MakeLatest::True),
        ..belay_testkit::github::ReleaseEdit::default()
    };
    bed.github.edit(REPO, "v1.1.0", edit)?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn in_a_monorepo_only_the_tags_of_the_pattern_count() -> Result<()> {
    let bed = Bed::new("monorepo").await?;
    for tag in ["api/v7.0.0", "web/v1.0.0"] {
        bed.publish(tag)?;
    }
    bed.push("v1.0.0").await?;
    let web = bed
        .web("1.0.0")
        .annotation("belay.dev/tag-pattern", "web/v{version}")
        .annotation("belay.dev/tag-template", "{version}");
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "web/v1.0.0").await?;
    bed.push("v1.1.0").await?;
    bed.publish("web/v1.1.0")?;
    bed.publish("api/v8.0.0")?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    bed.wait_for_healthy("web", "web/v1.1.0").await?;
    gated(&bed, "web", "api/v8.0.0", Gate::Pattern).await?;
    operator.stop().await
}

/// realestate-com-au/tagfish#14: tag and digest belong together, always.
#[tokio::test]
async fn with_digest_the_tag_is_written_with_what_it_names() -> Result<()> {
    let bed = Bed::new("digest").await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/digest", "true"), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    for tag in ["v1.1.0", "v1.2.0"] {
        let digest = bed.push(tag).await?;
        bed.publish(tag)?;
        let image = format!("{}@{digest}", bed.image(tag.trim_start_matches('v')));
        bed.wait_for_image("web", &image).await?;
        let release = bed.wait_for_healthy("web", tag).await?;
        let recorded = release.status.unwrap_or_default().images;
        assert_eq!(recorded.first().and_then(|one| one.digest.clone()), Some(digest));
    }
    operator.stop().await
}

#[tokio::test]
async fn a_release_is_taken_when_it_is_old_enough() -> Result<()> {
    let bed = Bed::new("age").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.annotate("web", "min-age", json!("5s")).await?;
    let published = jiff::Timestamp::now();
    bed.release("v1.1.0").await?;
    gated(&bed, "web", "v1.1.0", Gate::Age).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let waited = jiff::Timestamp::now().duration_since(published);
    assert!(waited.as_millis() >= 4_000, "{waited}: not before it is 5 s old");
    bed.wait_for_healthy("web", "v1.1.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn an_image_that_cannot_be_compared_is_left_with_the_command_that_settles_it() -> Result<()> {
    let bed = Bed::new("compare").await?;
    bed.release("v1.0.0").await?;
    bed.push("nightly").await?;
    bed.create(&bed.web("nightly"), "helm").await?;
    let operator = bed.operator()?;
    let message = stalled(&bed, "web", StalledReason::CannotCompare).await?;
    let command =
        format!("kubectl annotate -n {} deployment/web belay.dev/range='>=1.0.0'", bed.namespace);
    assert!(message.contains(&command), "{message}");
    assert_eq!(bed.live("web").await?, bed.image("nightly"));
    kubectl(&bed, &["annotate", "deployment/web", "belay.dev/range=>=1.0.0"]).await?;
    bed.wait_for_image("web", &bed.image("1.0.0")).await?;
    going_on(&bed, "web").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_live_image_of_another_repository_is_never_replaced() -> Result<()> {
    let bed = Bed::new("differs").await?;
    bed.release("v1.0.0").await?;
    let other = bed.image("1.0.0").replace("/web:", "/shop:");
    let web = bed.web("1.0.0").annotation("belay.dev/image", other.trim_end_matches(":1.0.0"));
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    bed.release("v1.1.0").await?;
    let message = stalled(&bed, "web", StalledReason::RepositoryDiffers).await?;
    assert!(message.contains("/shop") && message.contains("/web"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

/// What is wanted, where the image comes later than its release.
#[tokio::test]
async fn a_release_without_its_image_waits_for_it() -> Result<()> {
    let bed = Bed::new("noimage").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.publish("v1.1.0")?;
    gated(&bed, "web", "v1.1.0", Gate::WaitingForImage).await?;
    wait_for_target(&bed, "web", "waits for the image", |status| {
        let waiting = status.waiting.as_ref()?;
        (waiting.reason.known() == Some(WaitReason::ImageBackoff)).then_some(())
    })
    .await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    bed.push("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    operator.stop().await
}

/// A tag that is published anew names another image: it is not the Release that it was.
#[tokio::test]
async fn a_tag_that_was_moved_is_not_gone_to_again() -> Result<()> {
    let bed = Bed::new("tagmoved").await?;
    let second = belay_api::Duration::from_secs(1);
    let wiring = wired(|settings| settings.windows.image_answer = second);
    let operator = bed.following(wiring).await?;
    bed.release("v1.1.0+no-pull").await?;
    wait_for_release(&bed, "web", "v1.1.0+no-pull", ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    bed.push("v9.9.9").await?;
    retag(&bed, "9.9.9", "1.1.0_no-pull").await?;
    bed.annotate("web", "allow", json!("v1.1.0+no-pull")).await?;
    gated(&bed, "web", "v1.1.0+no-pull", Gate::TagMoved).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

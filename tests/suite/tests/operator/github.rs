//! What GitHub says, and what follows when it says nothing (operator specification, sections 3.2 and
//! 10).

use anyhow::Result;
use belay_api::{
    gates::{ForgeBudget, Gate, WaitReason},
    reasons::StalledReason,
};
use belay_suite::operator::{Bed, Wiring, condition};
use belay_testkit::github::{LimitSettings, Matching, Reply, Rights, Times};
use rstest::rstest;

use crate::support::{
    REPO, following_to, gated, going_on, polls, roll, stalled, target, told, wait_for_target,
};

/// Waits until `Ready` is Unknown with these words.
async fn unknown(bed: &Bed, words: &str) -> Result<()> {
    wait_for_target(bed, "web", &format!("Ready is Unknown: {words}"), |status| {
        let ready = condition(&status.conditions, "Ready")?;
        let is_it = ready.status == "Unknown" && ready.message.contains(words);
        is_it.then_some(())
    })
    .await
}

#[rstest]
#[case::error(Reply::Answer { status: 500, headers: Vec::new(), body: "no".to_owned() }, "500")]
#[case::closed(Reply::Close, "GitHub")]
#[case::garbage(Reply::Garbage, "GitHub")]
#[tokio::test]
async fn while_github_fails_nothing_moves_and_that_is_said(
    #[case] reply: Reply,
    #[case] words: &str,
) -> Result<()> {
    let bed = Bed::new("fails").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.github.script(Matching::path("/repos/*"), Times::Always, reply)?;
    bed.release("v1.1.0").await?;
    unknown(&bed, words).await?;
    polls(&bed, 2).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    bed.github.clear_scripts();
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    operator.stop().await
}

#[tokio::test]
async fn while_github_asks_for_patience_it_is_not_asked() -> Result<()> {
    let bed = Bed::new("throttled").await?;
    let operator = bed.following(Wiring::default()).await?;
    let limit = Reply::SecondaryLimit { status: 403, retry_after: Some(5) };
    bed.github.script(Matching::any(), Times::Next(1), limit)?;
    bed.release("v1.1.0").await?;
    let until = wait_for_target(&bed, "web", "GitHub is waited for", |status| {
        let waiting = status.waiting.as_ref()?;
        let is_it = waiting.reason.known() == Some(WaitReason::GitHubThrottled);
        is_it.then(|| waiting.until.clone())?
    })
    .await?;
    let forge = target(&bed, "web").await?.forge;
    let budget = forge.as_ref().and_then(|forge| forge.budget.known());
    assert_eq!(budget, Some(ForgeBudget::Exhausted), "{forge:?}");
    let asked = bed.github.log().len();
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let log = bed.github.log();
    let next = log.requests().get(asked).map(|request| request.at);
    // Its clock has whole seconds.
    let early = jiff::SignedDuration::from_secs(1);
    assert!(next.is_some_and(|next| next + early >= until.0), "{next:?} and {until:?}");
    wait_for_target(&bed, "web", "GitHub is not waited for", |status| {
        let budget = status.forge.as_ref()?.budget.known();
        (budget == Some(ForgeBudget::Ok)).then_some(())
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_used_up_budget_is_no_absence_of_releases() -> Result<()> {
    let bed = Bed::new("budget").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.github.set_limits(LimitSettings::default())?;
    bed.release("v1.1.0").await?;
    bed.github.exhaust("test");
    wait_for_target(&bed, "web", "the budget is used up", |status| {
        let forge = status.forge.as_ref()?;
        let is_out = forge.budget.known() == Some(ForgeBudget::Exhausted);
        (is_out && forge.reset_time.is_some()).then_some(())
    })
    .await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    going_on(&bed, "web").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_revoked_token_is_said_and_a_new_one_is_used() -> Result<()> {
    let bed = Bed::new("revoked").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.github.revoke("test")?;
    unknown(&bed, "credential").await?;
    let message = {
        let status = target(&bed, "web").await?;
        condition(&status.conditions, "Ready").map(|one| one.message.clone()).unwrap_or_default()
    };
    assert!(message.contains(REPO) && message.contains("401"), "{message}");
    let token = bed.github.create_token("second", &Rights::read([REPO]))?;
    std::fs::write(bed.token.path(), &token)?;
    roll(&bed, "v1.1.0").await?;
    let text = format!("{:?}", target(&bed, "web").await?);
    assert!(!text.contains(&token));
    operator.stop().await
}

#[tokio::test]
async fn another_repository_under_the_same_name_is_not_followed() -> Result<()> {
    let bed = Bed::new("recreated").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    let before = bed.github.repository_id(REPO)?;
    let now = bed.github.recreate_repository(REPO)?;
    bed.release("v6.6.6").await?;
    let message = stalled(&bed, "web", StalledReason::RepositoryReplaced).await?;
    assert!(message.contains(&before.to_string()) && message.contains(&now.to_string()));
    told(&bed, "RepositoryReplaced", &["Warning", REPO]).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    operator.stop().await
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_followed_under_its_old_name() -> Result<()> {
    let bed = Bed::new("moved").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.github.rename_repository(REPO, "acme/shop")?;
    polls(&bed, 4).await?;
    bed.push("v1.1.0").await?;
    bed.github.publish("acme/shop", belay_testkit::github::NewRelease::new("v1.1.0"))?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    going_on(&bed, "web").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_repository_that_is_not_there_is_said_and_followed_once_it_is() -> Result<()> {
    let bed = Bed::new("missing").await?;
    bed.github.delete_repository(REPO)?;
    bed.push("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let operator = bed.operator()?;
    let message = stalled(&bed, "web", StalledReason::RepositoryNotFound).await?;
    assert!(message.contains(REPO), "{message}");
    bed.github.create_repository(REPO)?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    going_on(&bed, "web").await?;
    operator.stop().await
}

/// A release that is taken back is no candidate; what it was moved to stays.
#[tokio::test]
async fn a_release_that_is_withdrawn_stays_where_it_runs() -> Result<()> {
    let bed = Bed::new("withdrawn").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    bed.github.withdraw(REPO, "v1.1.0")?;
    gated(&bed, "web", "v1.0.0", Gate::Lower).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.1.0"));
    going_on(&bed, "web").await?;
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

//! Limits: a call before the time that GitHub asked for is never sent.

use std::{sync::Arc, time::Duration};

use belay_adapters::{
    Clock,
    forge::{Answer, Client, Credential, Settings},
};
use belay_testkit::github::{
    self, GitHub, LimitSettings, Matching, NewRelease, Reply, Rights, Times,
};
use jiff::Timestamp;
use rstest::rstest;

use crate::support::{REPO, TokenFile, anonymous, github, latest, settings, word};

/// A GitHub and a client that go by the same clock, which only the test moves.
struct Timed {
    github: Arc<GitHub>,
    client: Client,
}

impl Timed {
    fn new() -> Self {
        let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let github = GitHub::builder().clock(github::Clock::Standing(start)).start().unwrap();
        github.create_repository(REPO).unwrap();
        github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
        let github = Arc::new(github);
        let clock = github.clone();
        let settings = Settings {
            clock: Clock::of(move || clock.now()),
            ..settings(&github, Credential::Anonymous)
        };
        Self { github, client: Client::new(settings).unwrap() }
    }

    async fn ask(&self) -> (String, Option<i64>, usize) {
        let before = self.github.log().len();
        let answer = latest(&self.client).await;
        let until = match &answer {
            Ok(Answer::Throttled { until, .. }) => {
                Some(until.duration_since(self.github.now()).as_secs())
            }
            _ => None,
        };
        (word(&answer), until, self.github.log().len() - before)
    }
}

fn throttled(asked: bool, seconds: i64) -> (String, Option<i64>, usize) {
    (format!("throttled {asked}"), Some(seconds), usize::from(asked))
}

#[rstest]
#[case(403, Some(17), 17)]
#[case(429, Some(17), 17)]
#[case(403, None, 60)]
#[case(429, None, 60)]
#[tokio::test]
async fn the_secondary_limit_closes_the_budget_in_each_form(
    #[case] status: u16,
    #[case] retry_after: Option<u64>,
    #[case] seconds: i64,
) {
    let timed = Timed::new();
    let reply = Reply::SecondaryLimit { status, retry_after };
    timed.github.script(Matching::any(), Times::Next(1), reply).unwrap();
    assert_eq!(timed.ask().await, throttled(true, seconds));
    assert_eq!(timed.ask().await, throttled(false, seconds));
    timed.github.advance(Duration::from_secs(u64::try_from(seconds).unwrap() - 1));
    assert_eq!(timed.ask().await, throttled(false, 1));
    timed.github.advance(Duration::from_secs(1));
    assert_eq!(timed.ask().await, ("fresh v1.0.0".to_owned(), None, 1));
}

#[rstest]
#[case(403)]
#[case(429)]
#[tokio::test]
async fn the_last_request_of_a_window_is_the_last_that_is_sent(#[case] exceeded_status: u16) {
    let timed = Timed::new();
    let limits = LimitSettings { anonymous: 1, exceeded_status, ..LimitSettings::default() };
    timed.github.set_limits(limits).unwrap();
    assert_eq!(timed.ask().await, ("fresh v1.0.0".to_owned(), None, 1));
    assert_eq!(timed.ask().await, throttled(false, 3600));
    timed.github.advance(Duration::from_hours(1));
    assert_eq!(timed.ask().await.2, 1);
}

#[tokio::test]
async fn a_limit_that_somebody_else_used_up_is_told_once() {
    let timed = Timed::new();
    timed.github.exhaust("anonymous");
    assert_eq!(timed.ask().await, throttled(true, 3601));
    for _ in 0..20 {
        assert_eq!(timed.ask().await, throttled(false, 3601));
    }
}

#[tokio::test]
async fn a_limit_of_one_credential_is_not_anothers() {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let file = TokenFile::new(&token);
    let named = Client::new(settings(&github, file.credential())).unwrap();
    let nobody = anonymous(&github);
    github.exhaust("anonymous");
    assert_eq!(word(&latest(&nobody).await), "throttled true");
    assert_eq!(word(&latest(&named).await), "fresh v1.0.0");
}

#[tokio::test]
async fn requests_at_a_time_are_few() {
    let github = github();
    github.script(Matching::any(), Times::Always, Reply::Hang).unwrap();
    let settings = Settings { at_once: 2, ..settings(&github, Credential::Anonymous) };
    let client = Arc::new(Client::new(settings).unwrap());
    let asking: Vec<_> = (0..6)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { word(&latest(&client).await) })
        })
        .collect();
    let count = || {
        std::future::ready(match github.log().len() {
            2 => Ok(()),
            other => Err(other),
        })
    };
    belay_testkit::wait::until("two requests", belay_testkit::wait::SOON, count).await.unwrap();
    // A third would be there by the time that this one was answered.
    github.clear_scripts();
    assert_eq!(word(&latest(&anonymous(&github)).await), "fresh v1.0.0");
    assert_eq!(github.log().len(), 3, "{}", github.log().summary());
    for task in asking {
        task.abort();
    }
}

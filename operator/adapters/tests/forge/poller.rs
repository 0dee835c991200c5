//! One reading of a repository for all who follow it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use belay_adapters::forge::{
    Followed, Forge, Poller, PollerSettings, RepoSlug, Unknown, View, Wants,
};
use belay_testkit::{
    github::{GitHub, Matching, NewRelease, Reply, Rights, Times},
    wait,
};
use tokio::sync::oneshot;

use crate::support::{LATEST, REPO, TokenFile, forge, github, hurried, settings, slug};

type Changes = Arc<Mutex<Vec<(String, Vec<String>)>>>;

/// A poller at work. Dropping it stops it.
struct Running {
    poller: Arc<Poller>,
    changes: Changes,
    _stop: oneshot::Sender<()>,
}

impl Running {
    fn with(forge: Forge) -> Self {
        Self::every(Duration::from_millis(200), forge)
    }

    fn every(interval: Duration, forge: Forge) -> Self {
        let changes = Changes::default();
        let seen = changes.clone();
        let settings = PollerSettings { interval, at_once: 2, seed: 1 };
        let poller = Poller::new(forge, settings, move |repo, followers| {
            seen.lock().unwrap().push((repo.to_string(), followers.to_vec()));
        });
        let poller = Arc::new(poller);
        let (stop, stopped) = oneshot::channel::<()>();
        let working = poller.clone();
        tokio::spawn(async move {
            working
                .run(async {
                    let _ = stopped.await;
                })
                .await;
        });
        Self { poller, changes, _stop: stop }
    }

    fn follow(&self, follower: &str, repo: &str, wants: Wants) {
        self.poller.follow(follower, Followed { repo: slug(repo), wants });
    }

    async fn until(&self, what: &str, repo: &str, good: impl Fn(&View) -> bool) -> Arc<View> {
        wait::until(what, wait::SOON, || {
            std::future::ready(match self.poller.view(&slug(repo)) {
                Some(view) if good(&view) => Ok(view),
                other => Err(format!("{other:?}")),
            })
        })
        .await
        .unwrap()
    }
}

fn latest() -> Wants {
    Wants { latest: true, ..Wants::default() }
}

fn listed() -> Wants {
    Wants { list: true, ..Wants::default() }
}

fn shows(tag: &str) -> impl Fn(&View) -> bool {
    move |view| {
        let latest = view.reading.latest.as_ref().and_then(|it| it.as_ref().ok());
        latest.is_some_and(|it| it.as_ref().is_some_and(|release| release.tag == tag))
    }
}

fn with_token(github: &GitHub) -> (Forge, TokenFile) {
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let file = TokenFile::new(&token);
    let client = belay_adapters::forge::Client::new(settings(github, file.credential())).unwrap();
    (Forge::new(client), file)
}

#[tokio::test]
async fn one_reading_serves_all_followers_and_is_repeated() {
    let github = github();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    for number in 0..20 {
        running.follow(&format!("ns/{number:02}"), REPO, latest());
    }
    running.until("the first reading", REPO, shows("v1.0.0")).await;
    github.publish(REPO, NewRelease::new("v1.1.0")).unwrap();
    running.until("the new release", REPO, shows("v1.1.0")).await;
    wait::until("three more readings", wait::SOON, || {
        let totals = running.poller.totals();
        std::future::ready(if totals.readings >= 5 { Ok(()) } else { Err(totals.readings) })
    })
    .await
    .unwrap();
    let totals = running.poller.totals();
    let log = github.log();
    let asked = log.count(|it| it.path.ends_with("/latest"));
    assert!(asked as u64 <= totals.readings + 1, "{} for {totals:?}", log.summary());
    assert!(totals.not_modified + 4 >= totals.readings, "{totals:?}");
    let changes = running.changes.lock().unwrap().clone();
    assert_eq!(changes.len(), 2, "only what changed is told: {changes:?}");
    assert!(changes.iter().all(|(repo, followers)| repo == REPO && followers.len() == 20));
}

#[tokio::test]
async fn a_budget_that_becomes_low_is_told_although_the_reading_is_the_same() {
    let github = github();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    running.follow("ns/web", REPO, latest());
    let view = running.until("the first reading", REPO, shows("v1.0.0")).await;
    assert!(!view.is_low);
    let reset = jiff::Timestamp::now().as_second() + 7_200;
    let headers = [
        ("x-ratelimit-limit", "5000".to_owned()),
        ("x-ratelimit-remaining", "7".to_owned()),
        ("x-ratelimit-reset", reset.to_string()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let reply = Reply::Answer { status: 304, headers, body: String::new() };
    github.script(Matching::path(LATEST), Times::Always, reply).unwrap();
    running.until("a low budget", REPO, |view| view.is_low && shows("v1.0.0")(view)).await;
    assert_eq!(running.changes.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_one_follower_wants_beyond_the_others_is_read_at_once() {
    let github = github();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    running.follow("a", REPO, latest());
    let view = running.until("the latest", REPO, shows("v1.0.0")).await;
    assert_eq!(view.reading.list, None);
    running.follow("b", REPO, listed());
    let both = |view: &View| view.reading.list.is_some() && view.reading.latest.is_some();
    running.until("both", REPO, both).await;
    running.poller.unfollow("b");
    running.until("less again", REPO, |view| view.reading.list.is_none()).await;
}

#[tokio::test]
async fn what_is_wanted_while_a_reading_is_under_way_does_not_wait_for_the_next() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Hang).unwrap();
    let running = Running::every(Duration::from_hours(1), Forge::new(hurried(&github)));
    running.follow("a", REPO, latest());
    wait::until("the first request", wait::SOON, || {
        std::future::ready(if github.log().is_empty() { Err("none") } else { Ok(()) })
    })
    .await
    .unwrap();
    running.follow("b", REPO, listed());
    running.until("the list", REPO, |view| view.reading.list.is_some()).await;
}

#[tokio::test]
async fn a_new_follower_wakes_a_poller_that_has_nothing_to_do_for_an_hour() {
    let github = github();
    github.create_repository("acme/api").unwrap();
    let (forge, _file) = with_token(&github);
    let running = Running::every(Duration::from_hours(1), forge);
    running.follow("a", REPO, latest());
    running.until("the latest", REPO, shows("v1.0.0")).await;
    running.follow("b", "acme/api", latest());
    let poller = &running.poller;
    // Well before the longest sleep, after which it would look anyway.
    wait::until("the other", wait::SOON / 3, || {
        std::future::ready(poller.view(&slug("acme/api")).map(|_| ()).ok_or("nothing"))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn only_a_reading_without_trouble_is_a_success() {
    let github = github();
    let down = Reply::Answer { status: 502, headers: Vec::new(), body: String::new() };
    github.script(Matching::any(), Times::Always, down).unwrap();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    running.follow("a", REPO, latest());
    running.until("the failure", REPO, |view| view.reading.problem().is_some()).await;
    assert_eq!(running.poller.totals().last_success, None);
    github.clear_scripts();
    let view = running.until("the release", REPO, shows("v1.0.0")).await;
    assert!(running.poller.totals().last_success >= Some(view.reading.at));
}

#[tokio::test]
async fn a_repository_that_nobody_follows_is_not_read() {
    let github = github();
    github.create_repository("acme/api").unwrap();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    running.follow("a", REPO, latest());
    running.until("the latest", REPO, shows("v1.0.0")).await;
    running.follow("a", "acme/api", latest());
    running.until("the other", "acme/api", |_| true).await;
    assert_eq!(running.poller.view(&slug(REPO)), None);
    let mark = github.mark();
    let readings = running.poller.totals().readings;
    wait::until("two more readings", wait::SOON, || {
        let now = running.poller.totals().readings;
        std::future::ready(if now >= readings + 2 { Ok(()) } else { Err(now) })
    })
    .await
    .unwrap();
    let log = github.log().since(mark);
    assert!(log.requests().iter().all(|it| !it.path.contains(REPO)), "{}", log.summary());
}

#[tokio::test]
async fn a_limit_stops_all_repositories_and_is_no_answer() {
    let github = github();
    for number in 0..10 {
        github.create_repository(&format!("acme/r{number}")).unwrap();
    }
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    let reply = Reply::SecondaryLimit { status: 403, retry_after: Some(600) };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    let repos: Vec<RepoSlug> = (0..10).map(|number| slug(&format!("acme/r{number}"))).collect();
    for repo in &repos {
        running.follow(repo.as_str(), repo.as_str(), latest());
    }
    for repo in &repos {
        let throttled = |view: &View| {
            let Some(Err(Unknown::Throttled { until })) = view.reading.latest else { return false };
            view.next >= until
        };
        running.until("the limit", repo.as_str(), throttled).await;
    }
    let sent = github.log().len();
    assert!(sent <= 2, "those under way at a time, no more: {}", github.log().summary());
}

#[tokio::test]
async fn without_a_credential_it_asks_rarely() {
    let github = github();
    let running = Running::with(forge(&github));
    running.follow("a", REPO, latest());
    let view = running.until("the latest", REPO, shows("v1.0.0")).await;
    let wait = view.next.duration_since(view.reading.at).as_secs();
    assert!((60..=76).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_failure_is_read_again_later_and_told_once() {
    let github = github();
    let (forge, _file) = with_token(&github);
    let running = Running::with(forge);
    let bad = Reply::Answer { status: 502, headers: Vec::new(), body: String::new() };
    github.script(Matching::any(), Times::Next(4), bad).unwrap();
    running.follow("a", REPO, latest());
    running.until("the failure", REPO, |view| view.reading.problem().is_some()).await;
    running.until("the latest", REPO, shows("v1.0.0")).await;
    let changes = running.changes.lock().unwrap().clone();
    assert_eq!(changes.len(), 2, "{changes:?}");
}

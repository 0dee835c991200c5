//! A GitHub that answers what no GitHub should.

use std::time::Duration;

use anyhow::{Result, ensure};
use belay_api::conditions::find;
use belay_suite::operator::{Bed, Running, Wiring};
use belay_testkit::{
    github::{Matching, NewRelease, Reply, Times},
    wait,
};
use jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use rstest::rstest;

use crate::{
    neighbours::Neighbours, objects::rollback, panics, servers::Trap, targets::Targets, turn,
    words::say_nothing_of,
};

/// What a repository answers, and what must be said of it.
struct Case {
    name: &'static str,
    /// Which of its paths answers so; what is behind the repository's own.
    path: &'static str,
    reply: Reply,
    /// What the target says.
    words: &'static str,
}

fn answer(status: u16, body: &str) -> Reply {
    Reply::Answer { status, headers: Vec::new(), body: body.to_owned() }
}

fn redirect(trap: &Trap, status: u16, to: &str) -> Reply {
    let headers = vec![("location".to_owned(), trap.in_text(to))];
    Reply::Answer { status, headers, body: String::new() }
}

const LATEST: &str = "/releases/latest";
const FIELDS: &str = "its fields are not those GitHub documents";
const ELSEWHERE: &str = "redirects the repository to a place that is not followed";
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Of a hostile answer nothing is repeated.
const QUOTED: &str = "a text that nobody should be shown";

fn cases(trap: &Trap) -> Vec<Case> {
    let case = |name, path, reply, words| Case { name, path, reply, words };
    let latest = |name, body: &str, words| case(name, LATEST, answer(200, body), words);
    let to = |name, status, place, words| case(name, LATEST, redirect(trap, status, place), words);
    let release = |fields: &str| format!("{{\"draft\":false,\"prerelease\":false,{fields}}}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = release(&format!("\"tag_name\":\"{}\",\"published_at\":null", "1".repeat(1 << 20)));
    vec![
        latest("page", "<html>Please log in</html>", "it is no JSON"),
        latest("null", "null", FIELDS),
        latest("list", "[]", FIELDS),
        latest("number", &release(r#""tag_name":7,"published_at":null"#), FIELDS),
        latest("no-date", &release(r#""tag_name":"v9","published_at":7"#), FIELDS),
        latest("long-tag", &long, FIELDS),
        latest("deep", &deep, FIELDS),
        case("garbage", LATEST, Reply::Garbage, "it ends in the middle"),
        case("ten-megabytes", LATEST, Reply::Padded { bytes: 10 << 20 }, "more than 4194304 bytes"),
        case("cut", LATEST, Reply::Truncated { bytes: 20 }, "end of file before"),
        case("closed", LATEST, Reply::Close, "connection closed before"),
        case("silent", LATEST, Reply::Hang, "no whole answer within 1 s"),
        case("drips", LATEST, Reply::Drip, "no whole answer within 1 s"),
        case("teapot", LATEST, answer(418, "{}"), "(418)"),
        case("broken", LATEST, answer(500, QUOTED), "GitHub answered 500"),
        to("to-trap", 302, "http://127.0.0.1:TRAP/", ELSEWHERE),
        to("to-trap-6", 307, "http://[::1]:TRAP/", ELSEWHERE),
        to("to-decimal", 301, "http://2130706433:TRAP/", ELSEWHERE),
        to("to-name", 308, "http://localhost:TRAP/", ELSEWHERE),
        to("to-metadata", 302, "http://169.254.169.254/latest/meta-data/", ELSEWHERE),
        to("to-file", 302, "file:///etc/passwd", ELSEWHERE),
        case("text-id", "", answer(200, r#"{"id":"1","full_name":"a/b","private":false}"#), FIELDS),
        case("low-id", "", answer(200, r#"{"id":-1,"full_name":"a/b","private":false}"#), FIELDS),
        case("moved", "", redirect(trap, 301, "http://127.0.0.1:TRAP/"), ELSEWHERE),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_github_that_make_no_sense_are_said_so_and_hurt_nobody_else() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("forge").await?;
    let (trap, targets) = (Trap::new()?, Targets::watch(&bed));
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    let cases = cases(&trap);
    bed.push("1.0.0").await?;
    bed.push("1.1.0").await?;
    for Case { name, .. } in &cases {
        let repo = format!("acme/{name}");
        bed.github.create_repository(&repo)?;
        bed.github.publish(&repo, NewRelease::new("v1.0.0"))?;
        let workload = bed.workload(name, "1.0.0").annotation("belay.dev/repo", &repo);
        bed.create(&workload, "helm").await?;
    }
    let operator = Running::start(
        &bed,
        Wiring { github_patience: Duration::from_secs(1), ..Wiring::default() },
    )?;
    neighbours.ready(&targets).await?;
    for Case { name, path, reply, .. } in &cases {
        targets.healthy(name, "1.0.0").await?;
        let at = Matching::path(format!("/repos/acme/{name}{path}"));
        bed.github.script(at, Times::Always, reply.clone())?;
        bed.github.publish(&format!("acme/{name}"), NewRelease::new("v1.1.0"))?;
    }
    for Case { name, words, .. } in &cases {
        wait::until(&format!("{name} to say {words:?}"), wait::SOON, || {
            let status = targets.of(name).unwrap_or_default().status;
            let ready = find(&status.conditions, "Ready");
            let says =
                ready.is_some_and(|one| one.status == "Unknown" && one.message.contains(words));
            std::future::ready(if says { Ok(()) } else { Err(format!("{ready:?}")) })
        })
        .await?;
    }
    neighbours.roll(&bed, &targets).await?;
    for Case { name, .. } in &cases {
        ensure!(bed.live(name).await? == bed.image("1.0.0"), "{name} was moved");
    }
    trap.is_untouched()?;
    say_nothing_of(&bed, &[&std::fs::read_to_string(bed.token.path())?, QUOTED]).await?;
    // And when it makes sense again, all goes on.
    bed.github.clear_scripts();
    for Case { name, .. } in &cases {
        targets.healthy(name, "1.1.0").await?;
    }
    operator.stop().await?;
    panics::none()
}

/// Page after page without an end, and each of them names a place of its own for the next.
#[tokio::test]
async fn a_list_without_an_end_is_read_to_a_bound() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("pages").await?;
    let (trap, targets) = (Trap::new()?, Targets::watch(&bed));
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let workload = bed.web("1.0.0").annotation("belay.dev/tag-pattern", "v?{version}");
    bed.create(&workload, "helm").await?;
    let link = trap.in_text("<http://127.0.0.1:TRAP/next>; rel=\"next\"");
    let page = serde_json::json!([{
        "tag_name": "v1.0.0", "draft": false, "prerelease": false,
        "published_at": "2026-01-01T00:00:00Z",
    }]);
    let endless = Reply::Answer {
        status: 200,
        headers: vec![("link".to_owned(), link)],
        body: page.to_string(),
    };
    bed.github.script(Matching::path("/repos/acme/web/releases"), Times::Always, endless)?;
    let operator = bed.operator()?;
    neighbours.ready(&targets).await?;
    neighbours.roll(&bed, &targets).await?;
    targets.healthy("web", "1.0.0").await?;
    bed.wait_for_condition("web", "ListTruncated", "ListTruncated").await?;
    let pages: Vec<_> = bed
        .github
        .log()
        .requests()
        .iter()
        .filter(|request| request.path == "/repos/acme/web/releases")
        .map(|request| request.query.clone())
        .collect();
    let number = |query: &String| {
        let page = query.split('&').find_map(|part| part.strip_prefix("page="));
        page.map_or(Ok(1), str::parse::<u32>)
    };
    let last = pages.iter().map(number).collect::<Result<Vec<_>, _>>()?.into_iter().max();
    ensure!(last == Some(10), "{pages:?}");
    trap.is_untouched()?;
    operator.stop().await?;
    panics::none()
}

/// Somebody between here and GitHub who says "not before the year 9999" is believed for a day. Nobody
/// is asked meanwhile, and what needs no GitHub goes on.
#[rstest]
#[case::seconds(429, "retry-after", "99999999999")]
#[case::date(403, "retry-after", "Thu, 31 Dec 9998 23:59:59 GMT")]
#[case::window(403, "x-ratelimit-reset", "253370764799")]
// After all that a clock can tell.
#[case::beyond_all_dates(403, "retry-after", "Fri, 31 Dec 99999 23:59:59 GMT")]
#[tokio::test]
async fn a_wait_without_an_end_is_a_day_at_most(
    #[case] status: u16,
    #[case] header: &str,
    #[case] value: &str,
) -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("patience").await?;
    let targets = Targets::watch(&bed);
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "helm").await?;
    let operator = bed.operator()?;
    targets.healthy("web", "1.0.0").await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let throttled = Reply::Answer {
        status,
        headers: vec![
            (header.to_owned(), value.to_owned()),
            ("x-ratelimit-limit".to_owned(), "5000".to_owned()),
            ("x-ratelimit-remaining".to_owned(), "0".to_owned()),
        ],
        body: "{}".to_owned(),
    };
    bed.github.script(Matching::any(), Times::Always, throttled)?;
    let until = wait::until("web to say that GitHub is not asked", wait::SOON, || {
        let status = targets.of("web").unwrap_or_default().status;
        let forge = status.forge.as_ref().and_then(|forge| forge.reset_time.clone());
        std::future::ready(forge.ok_or(format!("{status:?}")))
    })
    .await?;
    let wait = until.0.duration_since(Timestamp::now());
    ensure!(wait > DAY / 2 && wait < DAY + SignedDuration::from_mins(5), "{wait}");
    let mark = bed.github.mark();
    // The rollout that was under way is judged, and a person can go back.
    bed.wait_for_healthy("web", "v1.1.0").await?;
    bed.rollbacks().create(&PostParams::default(), &rollback("back", "web", "")).await?;
    bed.wait_for_image("web", &bed.image("1.0.0")).await?;
    let log = bed.github.log();
    let early = log.since(mark).requests().iter().filter(|request| request.at < until.0).count();
    ensure!(early == 0, "GitHub was asked {early} times before {}", until.0);
    operator.stop().await?;
    panics::none()
}

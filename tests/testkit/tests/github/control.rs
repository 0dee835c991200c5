//! The control endpoint and the command.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use belay_testkit::github::{
    Change, GitHub,
    command::{GithubCommand, run},
};
use clap::Parser;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Answer, client, jwt, send};

async fn change(github: &GitHub, name: &str, fields: &Value) -> Answer {
    send(client().post(format!("{}/_belay/{name}", github.base_url())).json(fields)).await
}

async fn get(github: &GitHub, path: &str) -> Answer {
    send(client().get(format!("{}{path}", github.base_url()))).await
}

async fn state(github: &GitHub) -> Value {
    get(github, "/_belay/state").await.json()
}

#[tokio::test]
async fn a_release_is_published_edited_and_withdrawn() {
    let github = GitHub::start().await.unwrap();
    let release = json!({ "repo": "acme/web", "release": { "tag": "v1.0.0" } });
    let published = change(&github, "publish", &release).await;
    assert_eq!(published.status, 200, "{published:?}");
    let latest = get(&github, "/repos/acme/web/releases/latest").await.json();
    assert_eq!(latest["id"], published.json()["id"]);

    let edit = json!({ "repo": "acme/web", "tag": "v1.0.0", "edit": { "notes": "fixed" } });
    assert_eq!(change(&github, "edit", &edit).await.status, 200);
    let edited = get(&github, "/repos/acme/web/releases/latest").await.json();
    assert_eq!(edited["body"], "fixed");

    let withdraw = json!({ "repo": "acme/web", "tag": "v1.0.0", "to_draft": true });
    assert_eq!(change(&github, "withdraw", &withdraw).await.status, 200);
    assert_eq!(state(&github).await["repositories"][0]["releases"][0]["draft"], true);
    let withdraw = json!({ "repo": "acme/web", "tag": "v1.0.0" });
    assert_eq!(change(&github, "withdraw", &withdraw).await.status, 200);
    assert_eq!(state(&github).await["repositories"][0]["releases"], json!([]));
    let asked = github.log().count(|it| it.path.starts_with("/_belay"));
    assert_eq!(asked, 0, "the log holds what GitHub was asked");
}

#[rstest]
#[case::missing("edit", json!({ "repo": "a/b", "tag": "v1", "edit": {} }), 404)]
#[case::exists("create-repository", json!({ "repo": "acme/web" }), 409)]
#[case::malformed("create-repository", json!({ "repo": "web" }), 400)]
#[case::unknown_field("create-repository", json!({ "repo": "a/b", "privat": true }), 400)]
#[case::unknown_change("explode", json!({}), 400)]
#[case::missing_field("rename", json!({ "repo": "acme/web" }), 400)]
#[case::no_receiver(
    "deliver",
    json!({ "url": "http://127.0.0.1:1/", "event": { "ping": { "repo": "acme/web" } } }),
    502
)]
#[tokio::test]
async fn a_change_that_does_not_fit_is_refused_in_words(
    #[case] name: &str,
    #[case] fields: Value,
    #[case] status: u16,
) {
    let github = GitHub::start().await.unwrap();
    github.create_repository("acme/web").unwrap();
    let before = state(&github).await["repositories"].clone();
    let answer = change(&github, name, &fields).await;
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(!answer.json()["error"].as_str().unwrap().is_empty());
    assert_eq!(state(&github).await["repositories"], before);
}

#[tokio::test]
async fn everything_else_can_be_changed_too() {
    let github = GitHub::start().await.unwrap();
    let all = [
        ("create-repository", json!({ "repo": "acme/web", "private": true })),
        ("visibility", json!({ "repo": "acme/web", "private": false })),
        ("rename", json!({ "repo": "acme/web", "to": "acme/site" })),
        ("recreate", json!({ "repo": "acme/web" })),
        ("delete-repository", json!({ "repo": "acme/web" })),
        ("branch", json!({ "repo": "acme/site", "branch": "topic", "base": "behind" })),
        (
            "commit-status",
            json!({
                "repo": "acme/site", "ref": "main", "context": "ci", "state": "success",
            }),
        ),
        ("limits", json!({ "anonymous": 7 })),
        ("exhaust", json!({ "credential": "anonymous" })),
        ("advance", json!({ "seconds": 3600 })),
        ("single-sign-on", json!({ "owner": "acme", "required": true })),
        ("webhook-secret", json!({ "secret": "s" })),
        ("script", json!({ "times": { "next": 1 }, "reply": "hang" })),
        ("clear-scripts", json!({})),
        ("revoke", json!({ "label": "ci" })),
    ];
    let rights = json!({ "repositories": null, "permissions": { "contents": "read" } });
    let token = json!({ "label": "ci", "rights": rights });
    let token = change(&github, "token", &token).await.json();
    assert!(token["token"].as_str().unwrap().starts_with("ghp_"));
    let app = json!({ "slug": "belay", "owner": "acme" });
    let app = change(&github, "app", &app).await.json();
    assert!(app["private_key"].as_str().unwrap().contains("PRIVATE KEY"));
    let install = json!({ "app": "belay", "account": "acme", "rights": rights });
    let id = change(&github, "install", &install).await.json()["id"].clone();
    let suspend = json!({ "installation": id, "suspended": true });
    assert_eq!(change(&github, "suspend", &suspend).await.status, 200);
    for (name, fields) in all {
        let answer = change(&github, name, &fields).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
    }
    let limited = get(&github, "/repos/acme/site/releases").await;
    assert_eq!((limited.status, limited.header("x-ratelimit-limit")), (200, "7"));
    assert_eq!(github.webhook_secret(), "s");
    let state = state(&github).await;
    assert_eq!((&state["tokens"], &state["apps"][0]["slug"]), (&json!([]), &json!("belay")));
    assert!(!state.to_string().contains(token["token"].as_str().unwrap()));
    let log = get(&github, "/_belay/log").await.json();
    assert_eq!(log[0]["path"], "/repos/acme/site/releases");
}

#[test]
fn tests_may_use_the_same_changes() {
    let github = GitHub::builder().start().unwrap();
    let answer = github.apply(Change::CreateRepository { repo: "a/b".into(), private: false });
    assert_eq!(answer.unwrap()["id"], github.repository_id("a/b").unwrap());
    github.apply(Change::Revoke { label: "nobody".into() }).unwrap_err();
}

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: GithubCommand,
}

fn command(url: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let server = ["--url", url];
    let line = ["github"].iter().chain(arguments).chain(&server);
    run(Line::try_parse_from(line).unwrap().command)
}

#[tokio::test]
async fn the_command_publishes_edits_and_withdraws() {
    let github = GitHub::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    let key = key.to_str().unwrap();
    let lines: [&[&str]; 17] = [
        &["publish", "acme/web", "v1.0.0", "--created-at", "2026-01-01T00:00:00Z"],
        &["publish", "acme/web", "v1.1.0", "--draft", "--asset", "web.tgz", "--notes", "n"],
        &["publish", "acme/web", "v0.9.1", "--make-latest", "false", "--name", "old"],
        &["publish", "acme/web", "v2.0.0-rc.1", "--prerelease"],
        &["publish", "acme/web", "v0.9.0"],
        &["edit", "acme/web", "v1.1.0", "--draft", "false", "--notes", "out"],
        &["withdraw", "acme/web", "v0.9.0"],
        &["withdraw", "acme/web", "v0.9.1", "--to-draft"],
        &["create", "acme/secret", "--private"],
        &["rename", "acme/secret", "acme/hidden"],
        &["recreate", "acme/hidden"],
        &["limits", "--anonymous", "9", "--status", "429"],
        &["advance", "60"],
        &["token", "ci", "--repo", "acme/web", "--write"],
        &["app", "belay", "acme", "--key", key, "--write"],
        &["branch", "acme/web", "topic", "--base", "behind"],
        &["state"],
    ];
    for line in lines {
        command(github.base_url(), line).unwrap_or_else(|error| panic!("{line:?}: {error:#}"));
    }
    let state = state(&github).await;
    let web = &state["repositories"][0];
    let release = |tag: &str| {
        let releases = web["releases"].as_array().unwrap();
        releases.iter().find(|it| it["tag"] == tag).cloned().unwrap_or_default()
    };
    assert_eq!(web["latest"], "v1.1.0");
    assert_eq!(release("v2.0.0-rc.1")["prerelease"], true);
    assert_eq!(release("v0.9.1")["draft"], true);
    assert_eq!(release("v0.9.0"), Value::Null);
    assert_eq!(state["limits"]["exceeded_status"], 429);
    assert_eq!(state["tokens"], json!(["ci"]));
    assert!(std::fs::read_to_string(key).unwrap().contains("PRIVATE KEY"));

    let receiver = GitHub::start().await.unwrap();
    let deliver = ["deliver", receiver.base_url(), "acme/web", "--tag", "v1.1.0"];
    command(github.base_url(), &deliver).unwrap();
    let fields = r#"{"times":{"next":1},"reply":"single-sign-on"}"#;
    command(github.base_url(), &["change", "script", fields]).unwrap();
    assert_eq!(get(&github, "/repos/acme/web").await.status, 403);
    command(github.base_url(), &["limits", "--exhaust", "anonymous"]).unwrap();
    assert_eq!(get(&github, "/repos/acme/web").await.status, 429);
    command(github.base_url(), &["log"]).unwrap();
    assert_eq!(receiver.log().last().unwrap().header("x-github-event"), Some("release"));
}

#[tokio::test]
async fn the_command_says_what_is_wrong() {
    let github = GitHub::start().await.unwrap();
    let error = command(github.base_url(), &["withdraw", "acme/web", "v1"]).unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "the scripted GitHub refused withdraw (404): there is no repository acme/web"
    );
    let url = github.base_url().to_owned();
    drop(github);
    let error = command(&url, &["state"]).unwrap_err();
    assert!(
        format!("{error:#}").starts_with("could not reach the scripted GitHub at"),
        "{error:#}"
    );
    let line = ["github", "report", "a/b", "1", "done", "--url", &url];
    Line::try_parse_from(line).map(|_| ()).unwrap_err();
}

#[tokio::test]
async fn a_deployment_is_reported_by_command() {
    let github = GitHub::start().await.unwrap();
    command(github.base_url(), &["create", "acme/web"]).unwrap();
    let app = github.create_app("belay", "acme").unwrap();
    let rights = belay_testkit::github::Rights::write(["acme/web"]);
    let installation = github.install_app("belay", "acme", &rights).unwrap();
    let url = format!("{}/app/installations/{installation}/access_tokens", github.base_url());
    let token = send(client().post(url).bearer_auth(jwt(&app, github.now()))).await.json();
    let url = format!("{}/repos/acme/web/deployments", github.base_url());
    let post = client().post(&url).bearer_auth(token["token"].as_str().unwrap());
    let made = send(post.body(r#"{"ref":"main"}"#)).await.json();
    assert_eq!(made["creator"]["login"], "belay[bot]");
    let id = made["id"].to_string();
    command(github.base_url(), &["report", "acme/web", &id, "in_progress"]).unwrap();
    let statuses = send(client().get(format!("{url}/{id}/statuses"))).await.json();
    assert_eq!(statuses[0]["state"], "in_progress");
}

#[tokio::test]
async fn a_served_github_prints_its_address_and_ends_when_told() {
    let mut serving = Command::new(env!("CARGO_BIN_EXE_testbed"))
        .args(["github", "serve", "--repo", "acme/web", "--webhook-secret", "s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("export BELAY_GITHUB_URL=").unwrap();
    command(url, &["publish", "acme/web", "v1.0.0"]).unwrap();
    let latest = send(client().get(format!("{url}/repos/acme/web/releases/latest"))).await.json();
    assert_eq!(latest["tag_name"], "v1.0.0");
    let process = rustix::process::Pid::from_child(&serving);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(serving.wait().unwrap().success());
}

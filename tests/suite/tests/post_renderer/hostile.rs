//! A server that answers garbage, slowly, without end, or repeats secrets: a clear error in time,
//! and not one byte of a manifest.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use rstest::rstest;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};

use crate::{
    fake_server::{Answer, FakeServer, head, live},
    runs::{self, Belay, CHART_IMAGE, Helm, LIVE, marked_manifest},
};
use belay_suite::helms::{Major, WEB};

/// The live object, with another value at this place.
fn object(place: &str, value: impl Into<Value>) -> Answer {
    let mut object = live("shop", WEB, LIVE);
    // A row that changes nothing would fail, for it would pass.
    if let Some(found) = object.pointer_mut(place) {
        *found = value.into();
    }
    Answer::json("200 OK", &object)
}

/// An answer that claims to be the object.
fn ok(body: impl AsRef<[u8]>) -> Answer {
    Answer::whole("200 OK", &["Content-Type: application/json"], body)
}

fn raw(text: &str) -> Answer {
    Answer::Bytes(text.as_bytes().to_vec())
}

fn endless(start: &str, again: &str) -> Answer {
    Answer::Endless(start.as_bytes().to_vec(), again.as_bytes().to_vec())
}

fn not_found(body: impl AsRef<[u8]>) -> Answer {
    Answer::whole("404 Not Found", &["Content-Type: text/html"], body)
}

/// A `Status` of the API server.
fn status(code: u16, reason: &str, details: impl Into<Value>) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "details": details.into(), "message": "the words of the server",
    })
}

/// Nested objects, as deep as that.
fn deep(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({ "f:a": inner }))
}

const HTML: &str = "<!doctype html><title>Sign in</title>";
const FIELDS: &str = "/metadata/managedFields/0/fieldsV1";
const IMAGE: &str = "/spec/template/spec/containers/0/image";

const BROKEN: &str = "cannot be reached";
const NO_OBJECT: &str = "gave an answer that is not Deployment shop/web";
const ANOTHER: &str = "it is another object";
const NOT_ITS_404: &str = "a 404 that is not the API server's";
const TOO_LARGE: &str = "larger than 8 MiB";

#[rstest]
// Answers that are none.
#[case::html(ok(HTML), NO_OBJECT)]
#[case::empty(ok(""), NO_OBJECT)]
#[case::truncated(ok("{\"apiVersion\":\"apps/v1\",\"kind\":"), "EOF")]
#[case::list(ok(json!([live("shop", WEB, LIVE)]).to_string()), NO_OBJECT)]
#[case::not_text(ok([0xff, 0xfe, 0x00]), NO_OBJECT)]
#[case::deep(ok("[".repeat(1_000_000)), NO_OBJECT)]
#[case::compressed(Answer::whole("200 OK", &["Content-Encoding: gzip"], "\u{1f}\u{8b}"), NO_OBJECT)]
#[case::nothing(Answer::whole("204 No Content", &[], ""), "answered 204")]
#[case::part(Answer::whole("206 Partial Content", &[], "{}"), "answered 206")]
#[case::length_too_large(Answer::Bytes([head("200 OK", &[], 99), b"{}".to_vec()].concat()), BROKEN)]
#[case::length_too_small(Answer::Bytes([head("200 OK", &[], 1), b"{}".to_vec()].concat()), "EOF")]
#[case::length_of_nothing(Answer::Bytes(head("200 OK", &[], usize::MAX)), BROKEN)]
#[case::two_lengths(
    raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
    BROKEN
)]
#[case::chunks(raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"), BROKEN)]
#[case::closed(raw(""), BROKEN)]
#[case::reset(Answer::Reset, BROKEN)]
#[case::old_protocol(raw("<html>welcome</html>\n"), BROKEN)]
#[case::another_protocol(raw("SSH-2.0-OpenSSH_9.9\r\n"), BROKEN)]
#[case::newer_protocol(raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), BROKEN)]
#[case::many_headers(raw(&format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(100_000))), BROKEN)]
#[case::endless_header(endless("HTTP/1.1 200 OK\r\na: ", &"a".repeat(1 << 16)), BROKEN)]
#[case::endless_body(endless("HTTP/1.1 200 OK\r\n\r\n", &" ".repeat(1 << 16)), TOO_LARGE)]
#[case::endless_chunks(
    endless(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        &format!("10000\r\n{}\r\n", " ".repeat(1 << 16)),
    ),
    TOO_LARGE
)]
#[case::ten_megabytes(
    object("/metadata/annotations", json!({ "a": "a".repeat(10 << 20) })),
    TOO_LARGE
)]
// Another object, or one that nobody can understand.
#[case::kind(object("/kind", "StatefulSet"), ANOTHER)]
#[case::group(object("/apiVersion", "apps/v1beta1"), ANOTHER)]
#[case::name(object("/metadata/name", "api"), ANOTHER)]
#[case::namespace(object("/metadata/namespace", "till"), ANOTHER)]
#[case::no_containers(object("/spec", json!({})), NO_OBJECT)]
#[case::no_metadata(object("/metadata", json!({})), NO_OBJECT)]
#[case::status(ok(status(200, "", json!({})).to_string()), NO_OBJECT)]
#[case::owners_are_text(object("/metadata/managedFields", "none"), "managedFields")]
#[case::owners_are_numbers(object(FIELDS, json!({ "f:spec": 7 })), "managedFields")]
#[case::owners_are_deep(object(FIELDS, deep(120)), NO_OBJECT)]
#[case::image_of_two_lines(object(IMAGE, "web:1\nkind: Secret"), "no image reference has")]
// A "not found" that would look like a first install.
#[case::page(not_found(HTML), NOT_ITS_404)]
#[case::empty_page(not_found(""), NOT_ITS_404)]
#[case::no_such_path(not_found("404 page not found\n"), NOT_ITS_404)]
#[case::no_details(not_found(status(404, "NotFound", Value::Null).to_string()), NOT_ITS_404)]
#[case::another_reason(
    not_found(status(404, "Gone", json!({ "name": WEB })).to_string()),
    NOT_ITS_404
)]
#[case::another_name(Answer::not_found("api"), NOT_ITS_404)]
// Not now.
#[case::throttled(Answer::whole("429 Later", &["Retry-After: 1"], "later"), "answered 429")]
#[case::broken(
    Answer::json("500 Internal Server Error", &status(500, "InternalError", json!({}))),
    "answered 500: the words of the server"
)]
#[case::gateway(Answer::whole("502 Bad Gateway", &[], HTML), "answered 502")]
#[case::unavailable(Answer::whole("503 Later", &["Retry-After: 1"], "later"), "answered 503")]
#[case::no_words(Answer::whole("504 Gateway Timeout", &[], ""), "answered 504")]
#[case::odd_status(Answer::whole("799 What", &[], ""), "answered 799")]
#[tokio::test]
async fn an_answer_that_is_none_is_a_clear_error_after_one_question(
    #[case] answer: Answer,
    #[case] words: &str,
) -> Result<()> {
    let server = FakeServer::answering(answer).await?;
    // Generous, so that no row ends by it.
    let ended = Belay::at(&server.url(), "shop")?.args(["--timeout", "50s"]).run().await?;
    let error = ended.refused(&[words, "Deployment shop/web app"]);
    assert!(error.len() < 2_000, "{} bytes of error", error.len());
    assert_eq!(server.connections(), 1, "asked once, and never again");
    Ok(())
}

#[rstest]
#[case::body(Answer::Drip(head("200 OK", &[], 10_000)))]
#[case::body_without_length(Answer::Drip(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()))]
#[case::header(Answer::Drip(b"HTTP/1.1 200 OK\r\na:".to_vec()))]
#[case::status(Answer::Drip(b"HTTP/1.1".to_vec()))]
#[case::continued(Answer::Stall(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()))]
#[tokio::test]
async fn slow_bytes_end_with_the_deadline(#[case] answer: Answer) -> Result<()> {
    let server = FakeServer::answering(answer).await?;
    let ended = Belay::at(&server.url(), "shop")?.args(["--timeout", "1s"]).run().await?;
    ended.refused(&["not done within 1s", &server.url()]);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_redirect_is_not_followed(
    #[values("301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect")]
    status: &str,
    #[values("loopback", "another host", "the same")] to: &str,
) -> Result<()> {
    let trap = FakeServer::answering(ok(live("shop", WEB, LIVE).to_string())).await?;
    let location = match to {
        "loopback" => trap.url(),
        "the same" => String::new(),
        _ => "http://elsewhere.invalid".to_owned(),
    };
    let header = format!("Location: {location}/apis/apps/v1/namespaces/shop/deployments/web");
    let server = FakeServer::answering(Answer::whole(status, &[&header], "")).await?;
    let ended = Belay::at(&server.url(), "shop")?.run().await?;
    ended.refused(&[&server.url(), "redirects", "not followed", &status[..3]]);
    assert_eq!((server.connections(), trap.connections()), (1, 0));
    Ok(())
}

#[rstest]
#[case::garbage(ok(HTML))]
#[case::empty(Answer::json("200 OK", &json!({ "kind": "SecretList", "items": [] })))]
#[case::no_list(Answer::json("200 OK", &json!({ "kind": "Secret", "items": [] })))]
#[case::reset(Answer::Reset)]
#[case::endless(Answer::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 1 << 16]))]
#[case::redirected(Answer::whole("302 Found", &["Location: http://127.0.0.1:1/"], ""))]
#[case::odd_record(Answer::json("200 OK", &json!({ "kind": "SecretList", "items": [
    { "metadata": { "name": "../../pods/x", "labels": { "version": "18446744073709551615" } } },
] })))]
#[tokio::test]
async fn records_that_cannot_be_read_never_lead_to_a_strip(#[case] answer: Answer) -> Result<()> {
    let server = FakeServer::start(move |head| {
        if head.contains("/secrets") {
            answer.clone()
        } else {
            ok(live("shop", WEB, LIVE).to_string())
        }
    })
    .await?;
    let marked = marked_manifest();
    let ended = Belay::at(&server.url(), "shop")?.input(&*marked).run().await?;
    assert_eq!(ended.passed(), marked.replace(CHART_IMAGE, LIVE).as_bytes());
    let heads = server.heads();
    let paths = heads.iter().all(|head| head.starts_with("GET /api") && !head.contains(".."));
    assert!(paths, "{heads:?}");
    Ok(())
}

/// A server that fails while it knows the token.
#[derive(Debug, Clone, Copy)]
enum Failing {
    Closed,
    Unknown,
    Repeats,
    Quotes,
    Silent,
    Redirects,
}

impl Failing {
    async fn server(self) -> Result<FakeServer> {
        FakeServer::start(move |head| match self {
            Self::Closed => Answer::Reset,
            Self::Unknown => {
                Answer::json("401 Unauthorized", &status(401, "Unauthorized", json!({})))
            }
            Self::Repeats => Answer::whole("500 Internal Server Error", &[], head),
            Self::Quotes => {
                Answer::whole("404 Not Found", &[], "nobody has the token hunter2 here")
            }
            Self::Silent => Answer::Stall(Vec::new()),
            Self::Redirects => Answer::whole("302 Found", &["Location: /?token=hunter2"], head),
        })
        .await
    }
}

#[rstest]
#[tokio::test]
async fn a_token_is_sent_and_never_shown(
    #[values(
        Failing::Closed,
        Failing::Unknown,
        Failing::Repeats,
        Failing::Quotes,
        Failing::Silent,
        Failing::Redirects
    )]
    failing: Failing,
    #[values("text", "json")] format: &str,
) -> Result<()> {
    let server = failing.server().await?;
    let belay = Belay::at(&server.url(), "shop")?.args(["--kube-token", "hunter2"]);
    let ended = belay.args(["--timeout", "1s", "--report", format]).run().await?;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), &b""[..]), "{}", ended.stderr);
    assert!(server.heads()[0].contains("hunter2"), "the token is for the server");
    for shown in [&ended.stderr, &ended.report()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_token_on_helms_command_line_is_never_shown(
    #[values(
        Failing::Closed,
        Failing::Unknown,
        Failing::Repeats,
        Failing::Quotes,
        Failing::Silent
    )]
    failing: Failing,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let server = failing.server().await?;
    let helm = Helm::new(major).await?;
    let url = server.url();
    let command =
        ["template", "--debug", "-n", "shop", "--kube-apiserver", &url, "--kube-token", "hunter2"];
    let ended = helm.web(&command, &["--timeout=1s"]).await?.run().await?;
    helm.refused(&ended, &[&url]);
    assert!(server.heads()[0].contains("hunter2"), "the token is for the server");
    for shown in [&ended.stdout, &ended.stderr, &helm.report()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    Ok(())
}

#[rstest]
#[case::option(&["--kube-token", "other"], &["the token", "[redacted]"])]
#[case::variable(&[], &["the token", "[redacted]", "HELM_KUBETOKEN"])]
#[tokio::test]
async fn a_contradiction_of_tokens_shows_none(
    #[case] arguments: &[&str],
    #[case] words: &[&str],
) -> Result<()> {
    let helm = Helm::new(Major::Three).await?;
    let joined = arguments.join("=");
    let arguments: Vec<&str> = if joined.is_empty() { vec![] } else { vec![&joined] };
    let mut tool = helm.web(&["template", "--kube-token", "hunter2"], &arguments).await?;
    if arguments.is_empty() {
        tool = tool.env("HELM_KUBETOKEN", "hunter3");
    }
    let ended = tool.run().await?;
    helm.refused(&ended, words);
    let report = helm.report();
    for secret in ["hunter2", "hunter3", "other"] {
        assert!(!report.contains(secret) && !ended.stderr.contains(secret), "{report}");
    }
    Ok(())
}

#[rstest]
#[case::server("http://alice:hunter2@127.0.0.1:1", None)]
#[case::tls("https://alice:hunter2@127.0.0.1:1", None)]
#[case::not_a_url("http://alice:hunter2@exa mple", None)]
#[case::proxy("https://cluster.example", Some("http://alice:hunter2@127.0.0.1:1"))]
#[case::odd_proxy("https://cluster.example", Some("socks5://alice:hunter2@127.0.0.1:1"))]
#[tokio::test]
async fn a_password_in_a_url_is_never_shown(
    #[case] server: &str,
    #[case] proxy: Option<&str>,
) -> Result<()> {
    let mut belay = Belay::at(server, "shop")?;
    if let Some(proxy) = proxy {
        belay = belay.env("HTTPS_PROXY", proxy);
    }
    let ended = belay.run().await?;
    ended.refused(&[]);
    for shown in [&ended.stderr, &ended.report()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    Ok(())
}

/// A kubeconfig with one context, and this user.
fn kubeconfig(folder: &Path, user: &str) -> Result<PathBuf> {
    let path = folder.join("kubeconfig");
    let text = format!(
        "current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]
users:
- name: u
  user: {user}
"
    );
    fs::write(&path, text).context("write a kubeconfig")?;
    Ok(path)
}

#[rstest]
#[case::unfinished("{token: hunter2", "wrong at line 6, column 9")]
#[case::text("hunter2", "wrong at line 6, column 9")]
#[case::list("[hunter2]", "wrong at line 6, column 9")]
#[case::list_of_tokens("{token: [hunter2]}", "wrong at line 6, column 17")]
#[case::twice("{token: hunter2, token: hunter3}", "wrong at line 6")]
#[case::no_such_file("{tokenFile: /nowhere/token}", "/nowhere/token")]
#[case::no_certificate(
    "{client-key-data: hunter2, client-certificate-data: hunter2}",
    "load client certificate"
)]
#[case::no_key(
    "{client-key-data: aHVudGVyMg==, client-certificate-data: aHVudGVyMg==}",
    "127.0.0.1"
)]
#[case::no_header("{token: \"hunter2\\n\"}", "its token holds a line end")]
#[case::password("{username: alice, password: hunter2}", "Connection refused")]
#[tokio::test]
async fn a_broken_kubeconfig_is_told_without_its_secrets(
    #[case] user: &str,
    #[case] words: &str,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = kubeconfig(folder.path(), user)?;
    let ended = Belay::with_kubeconfig(&path, "shop")?.run().await?;
    ended.refused(&[words]);
    for shown in [&ended.stderr, &ended.report()] {
        let secrets = ["hunter2", "hunter3", "aHVudGVyMg"].map(|secret| shown.contains(secret));
        assert_eq!(secrets, [false; 3], "{shown}");
    }
    Ok(())
}

#[rstest]
#[case::fails("echo hunter2; echo 'log in first' >&2; exit 3", &["exit status: 3", "log in first"])]
#[case::garbage("echo 'token: [hunter2'", &["printed no ExecCredential with a status"])]
#[case::another_kind("echo 'status: {token: [hunter2]}'", &["printed no ExecCredential"])]
#[case::nothing("echo '{token: hunter2}'", &["printed no ExecCredential"])]
#[case::empty("exit 0", &["printed no ExecCredential"])]
#[case::waits("exec cat fifo", &["not done within 1s", "https://127.0.0.1:1"])]
#[tokio::test]
async fn a_credential_plugin_that_fails_is_told_without_what_it_printed(
    #[case] lines: &str,
    #[case] words: &[&str],
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // As long as somebody may still write, its readers wait; they end with this test.
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let _writer = File::options().read(true).write(true).open(&fifo)?;
    let lines = format!("cd {}; {lines}", folder.path().display());
    let plugin = runs::script(folder.path(), &lines)?;
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
         command: {}, args: [--secret=hunter2]}}}}",
        plugin.display(),
    );
    let path = kubeconfig(folder.path(), &user)?;
    let belay = Belay::with_kubeconfig(&path, "shop")?.env("PATH", "/bin:/usr/bin");
    let ended = belay.args(["--timeout", "1s"]).run().await?;
    ended.refused(words);
    for shown in [&ended.stderr, &ended.report()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    Ok(())
}

//! Webhooks: what is sent, and how it is signed.

use aws_lc_rs::hmac;
use belay_testkit::github::{Event, GitHub, NewRelease, ReleaseAction, Signature, Webhook};
use http::HeaderValue;
use rstest::rstest;
use serde_json::Value;

const REPO: &str = "acme/web";

fn github() -> GitHub {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    github
}

fn published() -> Event {
    Event::Release {
        repo: REPO.to_owned(),
        tag: "v1.0.0".to_owned(),
        action: ReleaseAction::Published,
    }
}

/// What a receiver does: the digits after `sha256=` must be the body's HMAC.
fn is_accepted(webhook: &Webhook, secret: &str) -> bool {
    let headers = webhook.headers();
    let Some(header) = headers.get("x-hub-signature-256") else { return false };
    let Some(digits) = header.to_str().unwrap().strip_prefix("sha256=") else { return false };
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    bytes.is_some_and(|bytes| hmac::verify(&key, webhook.body(), &bytes).is_ok())
}

#[test]
fn only_the_right_signature_is_accepted() {
    let github = github();
    let webhook = github.webhook(&published()).unwrap();
    let secret = github.webhook_secret();
    assert!(is_accepted(&webhook, &secret));
    for wrong in Signature::WRONG {
        assert!(!is_accepted(&webhook.clone().signed(wrong), &secret), "{wrong:?}");
    }
    github.set_webhook_secret("another");
    assert!(!is_accepted(&webhook, "another"));
    assert!(is_accepted(&github.webhook(&published()).unwrap(), "another"));
    let spoilt = webhook.body_of("{").secret("third");
    assert!(is_accepted(&spoilt, "third"));
}

#[rstest]
#[case(Signature::Missing, None)]
#[case(Signature::Empty, Some(0))]
#[case(Signature::Short, Some(39))]
#[case(Signature::WrongSecret, Some(71))]
#[case(Signature::NotHex, Some(71))]
#[case(Signature::Long, Some(73))]
fn wrong_signatures_have_every_length(#[case] wrong: Signature, #[case] length: Option<usize>) {
    let webhook = github().webhook(&published()).unwrap().signed(wrong);
    assert_eq!(webhook.headers().get("x-hub-signature-256").map(HeaderValue::len), length);
}

#[tokio::test]
async fn a_webhook_is_delivered_with_githubs_headers() {
    let github = github();
    // A second server takes it, for its log.
    let receiver = GitHub::start().await.unwrap();
    let url = format!("{}/webhook", receiver.base_url());
    assert_eq!(github.deliver(&url, &published()).await.unwrap(), 404);
    let log = receiver.log();
    let got = log.last().unwrap();
    assert_eq!((got.method.as_str(), got.header("x-github-event")), ("POST", Some("release")));
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert!(got.header("user-agent").unwrap().starts_with("GitHub-Hookshot/"));
    let id = github.repository_id(REPO).unwrap();
    assert_eq!(got.header("x-github-hook-installation-target-id"), Some(id.to_string().as_str()));
    let payload: Value = serde_json::from_str(&got.body).unwrap();
    assert_eq!(payload["repository"]["id"].as_u64(), Some(id));
    assert_eq!(payload["release"]["tag_name"], "v1.0.0");
}

#[tokio::test]
async fn a_delivery_keeps_its_id_and_another_one_has_another() {
    let github = github();
    let receiver = GitHub::start().await.unwrap();
    let url = format!("{}/webhook", receiver.base_url());
    let one = github.webhook(&published()).unwrap();
    let two = github.webhook(&published()).unwrap();
    for webhook in [&one, &one, &two] {
        webhook.deliver(&url).await.unwrap();
    }
    let log = receiver.log();
    let ids: Vec<_> =
        log.requests().iter().map(|it| it.header("x-github-delivery").unwrap()).collect();
    assert_eq!(ids, [one.delivery(), one.delivery(), two.delivery()]);
    assert_ne!(one.delivery(), two.delivery());
    let parts: Vec<_> = one.delivery().split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
}

#[rstest]
#[case(Event::Ping { repo: "acme/nothing".into() })]
#[case(Event::Release { repo: REPO.into(), tag: "v9".into(), action: ReleaseAction::Edited })]
#[case(Event::DeploymentStatus { repo: REPO.into(), deployment: 1 })]
fn an_event_of_something_that_is_not_there_is_refused(#[case] event: Event) {
    let refused = github().webhook(&event).unwrap_err().to_string();
    assert!(refused.starts_with("there is no "), "{refused}");
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_an_error() {
    let github = github();
    let url = GitHub::start().await.unwrap().base_url().to_owned();
    let error = github.deliver(&url, &published()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("could not send the release webhook to {url}"));
}

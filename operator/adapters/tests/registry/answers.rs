//! What each answer of a registry comes to, and what is not asked after it.

use std::time::Duration;

use belay_adapters::{
    Clock,
    registry::{Registry, Settings, Trouble},
};
use bytes::Bytes;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use jiff::Timestamp;
use rstest::rstest;

use crate::fake::{
    Body, DIGEST, Fake, answer, basic, bob, demands, eve, found, full, trouble_word, word,
};

const MANIFEST: &str = r#"{"schemaVersion":2,"manifests":[]}"#;
/// Of [`MANIFEST`].
const MANIFEST_DIGEST: &str =
    "sha256:bc5857ac9458293d5111ab85c952172cd7f56bceb4e3014ddc4cafac8927b313";

/// A body that says how long it is, and then hangs or drips.
fn endless(drip: bool) -> Body {
    let ticks = futures::stream::unfold((), move |()| async move {
        if !drip {
            std::future::pending::<()>().await;
        }
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        tick.tick().await;
        tick.tick().await;
        Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
    });
    StreamBody::new(ticks).boxed()
}

#[rstest]
#[case(404, "missing")]
#[case(400, "upstream Manifest 400")]
#[case(403, "denied Manifest 403")]
#[case(405, "upstream Manifest 405")]
#[case(429, "throttled Manifest true")]
#[case(500, "upstream Manifest 500")]
#[case(503, "upstream Manifest 503")]
#[case(204, "upstream Manifest 204")]
#[case(304, "upstream Manifest 304")]
#[tokio::test]
async fn a_head_that_is_not_answered_200_is_not_followed_by_a_get(
    #[case] status: u16,
    #[case] expected: &str,
) {
    let fake = Fake::start(move |_| answer(status, &[], "")).await;
    assert_eq!(word(&fake.head(None).await), expected);
    assert_eq!(fake.lines().len(), 1, "{:?}", fake.lines());
}

fn timed(fake: &Fake) -> (Registry, Timestamp, std::sync::Arc<std::sync::Mutex<Timestamp>>) {
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let now = std::sync::Arc::new(std::sync::Mutex::new(start));
    let clock = now.clone();
    let clock = Clock::of(move || *clock.lock().unwrap());
    (Registry::new(Settings { clock, ..fake.settings() }).unwrap(), start, now)
}

fn until(trouble: &Trouble, start: Timestamp) -> i64 {
    match trouble {
        Trouble::Throttled { until, .. } => until.duration_since(start).as_secs(),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::seconds(429, &[("retry-after", "7")], "", 7)]
#[case::date(429, &[("retry-after", "Sun, 01 Mar 2026 12:00:09 GMT")], "", 9)]
#[case::microseconds(429, &[("retry-after", "880us")], "", 1)]
#[case::nothing(429, &[], "", 60)]
#[case::unavailable(503, &[("retry-after", "7")], "", 7)]
#[tokio::test]
async fn a_host_that_asks_for_patience_is_not_called_before(
    #[case] status: u16,
    #[case] headers: &'static [(&str, &str)],
    #[case] body: &'static str,
    #[case] seconds: i64,
) {
    let fake = Fake::start(move |_| answer(status, headers, body)).await;
    let (client, start, now) = timed(&fake);
    let first = client.head(&fake.image(), None).await.unwrap_err();
    assert_eq!(
        (trouble_word(&first).as_str(), until(&first, start)),
        ("throttled Manifest true", seconds)
    );
    for _ in 0..1_000 {
        let again = client.head(&fake.image(), None).await.unwrap_err();
        assert_eq!(trouble_word(&again), "throttled Manifest false");
        assert_eq!(until(&again, start), seconds);
    }
    assert_eq!(fake.lines().len(), 1);
    *now.lock().unwrap() = start + jiff::SignedDuration::from_secs(seconds);
    let after = client.head(&fake.image(), None).await.unwrap_err();
    assert_eq!(trouble_word(&after), "throttled Manifest true");
}

#[tokio::test]
async fn a_token_that_is_throttled_is_told_as_that_and_nothing_follows() {
    let fake = Fake::start(|seen| match seen.path.as_str() {
        "/token" if seen.auth == basic("bob", "hunter2") => answer(
            429,
            &[],
            r#"{"errors":[{"message":"retry-after: 33s, allowed: 44000/minute"}]}"#,
        ),
        "/token" => answer(200, &[], r#"{"token":"t"}"#),
        _ if seen.auth == "Bearer t" => found(),
        _ => {
            let host = seen.headers["host"].to_str().unwrap();
            demands(&format!(r#"Bearer realm="http://{host}/token""#))
        }
    })
    .await;
    let (client, start, _) = timed(&fake);
    let trouble = client.head(&fake.image(), Some(&bob())).await.unwrap_err();
    assert_eq!(
        (trouble_word(&trouble).as_str(), until(&trouble, start)),
        ("throttled Token true", 33)
    );
    assert_eq!(fake.lines().len(), 2);
    let again = client.head(&fake.image(), Some(&bob())).await.unwrap_err();
    assert_eq!(trouble_word(&again), "throttled Manifest false", "the host, for this account");
    assert_eq!(fake.lines().len(), 2);
    let other = client.head(&fake.image(), Some(&eve())).await;
    assert_eq!(word(&other), format!("found {DIGEST}"), "another account has its own limit");
}

#[rstest]
#[case::no_header(&[])]
#[case::not_a_digest(&[("docker-content-digest", "abc")])]
#[case::capitals(&[("docker-content-digest",
    "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")])]
#[case::other_hash(&[("docker-content-digest", "sha512:abc")])]
#[tokio::test]
async fn without_a_digest_the_manifest_is_read_once_and_hashed(
    #[case] headers: &'static [(&str, &str)],
) {
    let fake = Fake::start(move |_| answer(200, headers, MANIFEST)).await;
    assert_eq!(word(&fake.head(None).await), format!("found {MANIFEST_DIGEST}"));
    let path = "/v2/acme/web/manifests/v1";
    assert_eq!(fake.lines(), [format!("HEAD {path}"), format!("GET {path}")]);
}

#[rstest]
#[case::nothing("")]
#[case::a_page("<html>Please log in</html>")]
#[case::other_json(r#"{"message":"hello"}"#)]
#[case::a_list("[]")]
#[tokio::test]
async fn whoever_answers_everything_with_200_is_no_registry(#[case] body: &'static str) {
    let fake = Fake::start(move |_| answer(200, &[], body)).await;
    assert_eq!(word(&fake.head(None).await), "unreadable Manifest");
    assert_eq!(fake.lines().len(), 2);
}

#[tokio::test]
async fn another_digest_than_was_asked_for_is_not_believed() {
    let fake = Fake::start(|_| found()).await;
    let client = fake.client();
    for (letter, expected) in
        [("b", "unreadable Manifest".to_owned()), ("a", format!("found {DIGEST}"))]
    {
        let text = format!("{}/acme/web@sha256:{}", fake.address, letter.repeat(64));
        let image = belay_adapters::registry::Image::parse(&text).unwrap();
        assert_eq!(word(&client.head(&image, None).await), expected);
    }
}

fn huge() -> Body {
    // No length is announced: the bound is found while reading.
    let parts = (0..160).map(|_| Ok(Frame::data(Bytes::from(vec![b' '; 1 << 16]))));
    StreamBody::new(futures::stream::iter(parts)).boxed()
}

#[rstest]
#[case::announced(false)]
#[case::in_parts(true)]
#[tokio::test]
async fn ten_megabytes_are_not_read(
    #[case] in_parts: bool,
    #[values("token", "manifest")] which: &'static str,
) {
    let fake = Fake::start(move |seen| {
        let body = || if in_parts { huge() } else { full(vec![b' '; 10 << 20]) };
        let large = || Response::builder().status(200).body(body()).unwrap();
        let host = seen.headers["host"].to_str().unwrap();
        match (which, seen.method.as_str()) {
            ("manifest", "HEAD") => answer(200, &[], ""),
            ("token", "HEAD") => demands(&format!(r#"Bearer realm="http://{host}/token""#)),
            _ => large(),
        }
    })
    .await;
    let expected = if which == "token" { "unreadable Token" } else { "unreadable Manifest" };
    assert_eq!(word(&fake.head(None).await), expected);
}

#[rstest]
#[case::hangs(false)]
#[case::drips(true)]
#[tokio::test]
async fn slow_bytes_end_by_the_deadline_of_all_requests_together(#[case] drip: bool) {
    let fake = Fake::start(move |seen| {
        if seen.path == "/token" {
            return Response::builder().status(200).body(endless(drip)).unwrap();
        }
        let host = seen.headers["host"].to_str().unwrap();
        demands(&format!(r#"Bearer realm="http://{host}/token""#))
    })
    .await;
    let settings = Settings { within: Duration::from_millis(400), ..fake.settings() };
    let client = Registry::new(settings).unwrap();
    assert_eq!(word(&client.head(&fake.image(), Some(&bob())).await), "deadline");
    assert_eq!(fake.lines().len(), 2);
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_a_transport_failure() {
    let fake = Fake::start(|_| found()).await;
    let (settings, image) = (fake.settings(), fake.image());
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let hosts =
        belay_adapters::registry::HostPolicy::new([format!("http://{gone}").parse().unwrap()]);
    let client = Registry::new(Settings { hosts, ..settings }).unwrap();
    let image = image.on(&gone.to_string());
    assert_eq!(word(&client.head(&image, None).await), "transport");
}

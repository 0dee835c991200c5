//! Answers that are broken, too large, too slow, or lead elsewhere.

use std::time::Duration;

use belay_adapters::forge::{Client, Credential, Release, Settings};
use belay_testkit::github::{Matching, Reply, Times};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::support::{anonymous, github, hurried, latest, settings, word};

#[rstest]
#[case::not_json("<html>", "unreadable")]
#[case::empty("", "unreadable")]
#[case::null("null", "unreadable")]
#[case::a_list("[]", "unreadable")]
#[case::nothing("{}", "unreadable")]
#[case::tag_is_a_number(
    r#"{"tag_name":1,"draft":false,"prerelease":false,"published_at":null}"#,
    "unreadable"
)]
#[case::tag_is_null(
    r#"{"tag_name":null,"draft":false,"prerelease":false,"published_at":null}"#,
    "unreadable"
)]
#[case::draft_is_text(
    r#"{"tag_name":"v1","draft":"false","prerelease":false,"published_at":null}"#,
    "unreadable"
)]
#[case::no_prerelease(r#"{"tag_name":"v1","draft":false,"published_at":null}"#, "unreadable")]
#[case::no_date(
    r#"{"tag_name":"v1","draft":false,"prerelease":false,"published_at":"soon"}"#,
    "unreadable"
)]
#[case::author_is_text(
    r#"{"tag_name":"v1","draft":false,"prerelease":false,"published_at":null,"author":"x"}"#,
    "unreadable"
)]
#[case::positional(r#"["v1",false,false,null,null,null]"#, "unreadable")]
#[case::author_is_a_list(
    r#"{"tag_name":"v1","draft":false,"prerelease":false,"published_at":null,"author":["x"]}"#,
    "unreadable"
)]
#[case::enough(
    r#"{"tag_name":"v1","draft":false,"prerelease":false,"published_at":null,"x":[{}]}"#,
    "fresh v1"
)]
#[case::bad_bytes("{\"tag_name\":\"\u{fffd}\u{0}\"}", "unreadable")]
#[tokio::test]
async fn wrong_types_are_an_error_and_never_a_release(#[case] body: &str, #[case] expected: &str) {
    let github = github();
    let reply = Reply::Answer { status: 200, headers: Vec::new(), body: body.to_owned() };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    let answer = latest(&anonymous(&github)).await;
    assert_eq!(word(&answer), expected);
    if let Err(error) = answer {
        let words = format!("{error} {error:?}");
        assert!(body.is_empty() || !words.contains(body), "the answer is not repeated: {words}");
    }
}

#[rstest]
#[case::deep(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))]
#[case::long_tag(format!(
    r#"{{"tag_name":"{}","draft":false,"prerelease":false,"published_at":null}}"#,
    "v".repeat(100_000)
))]
#[tokio::test]
async fn a_text_that_is_made_to_hurt_is_only_unreadable(#[case] body: String) {
    let github = github();
    let reply = Reply::Answer { status: 200, headers: Vec::new(), body };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    assert_eq!(word(&latest(&anonymous(&github)).await), "unreadable");
}

#[rstest]
#[case::ten_megabytes(Reply::Padded { bytes: 10 << 20 }, "too-large")]
#[case::one_byte_too_much(Reply::Padded { bytes: (4 << 20) + 1 }, "too-large")]
#[case::just_so(Reply::Padded { bytes: 4 << 20 }, "fresh v1.0.0")]
#[case::garbage(Reply::Garbage, "unreadable")]
#[case::truncated(Reply::Truncated { bytes: 20 }, "transport")]
#[case::closed(Reply::Close, "transport")]
#[tokio::test]
async fn a_body_is_read_whole_or_not_at_all(#[case] reply: Reply, #[case] expected: &str) {
    let github = github();
    github.script(Matching::any(), Times::Next(1), reply).unwrap();
    let client = anonymous(&github);
    assert_eq!(word(&latest(&client).await), expected);
    let after = word(&latest(&client).await);
    assert!(after.ends_with(" v1.0.0"), "the next request is answered: {after}");
}

#[tokio::test]
async fn a_request_that_hangs_ends_by_its_deadline() {
    let github = github();
    github.script(Matching::any(), Times::Next(1), Reply::Hang).unwrap();
    let client = hurried(&github);
    assert_eq!(word(&latest(&client).await), "deadline");
    assert_eq!(word(&latest(&client).await), "fresh v1.0.0");
}

#[tokio::test]
async fn bytes_that_come_slowly_end_by_the_same_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert_ne!(connection.read(&mut request).await.unwrap(), 0);
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        // One byte at a time, for as long as anybody reads.
        while connection.write_all(b" ").await.is_ok() {
            ticks.tick().await;
        }
    });
    let github = github();
    let settings = Settings {
        base: format!("http://{address}").parse().unwrap(),
        within: Duration::from_millis(300),
        ..settings(&github, Credential::Anonymous)
    };
    let client = Client::new(settings).unwrap();
    assert_eq!(word(&latest(&client).await), "deadline");
    server.await.unwrap();
}

#[rstest]
#[case(301)]
#[case(302)]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn a_redirect_elsewhere_is_never_followed(#[case] status: u16) {
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}/repositories/1", trap.local_addr().unwrap());
    for location in [to.as_str(), "http://169.254.169.254/repositories/1", "//localhost/x"] {
        let github = github();
        let headers = vec![("location".to_owned(), location.to_owned())];
        let reply = Reply::Answer { status, headers, body: String::new() };
        github.script(Matching::any(), Times::Always, reply).unwrap();
        assert_eq!(word(&anonymous(&github).get::<Release>("/repos/a/b").await), "moved None");
        assert_eq!(github.log().len(), 1);
    }
    // Whoever connected would be in the queue by now: the answers above have been read.
    let accepted = futures::FutureExt::now_or_never(trap.accept());
    assert!(accepted.is_none(), "somebody came to the trap");
}

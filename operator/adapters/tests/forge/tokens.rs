//! Tokens from files.

use belay_adapters::forge::{Client, Credential};
use belay_testkit::github::{Matching, Reply, Rights, Times};
use rstest::rstest;

use crate::support::{REPO, TokenFile, github, latest, settings, values, word};

#[tokio::test]
async fn a_token_that_is_rotated_is_used_from_the_next_request_on() {
    let github = github();
    let old = github.create_token("old", &Rights::read([REPO])).unwrap();
    let new = github.create_token("new", &Rights::read([REPO])).unwrap();
    let file = TokenFile::new(&old);
    let client = Client::new(settings(&github, file.credential())).unwrap();
    let mut answers = vec![word(&latest(&client).await), word(&latest(&client).await)];
    file.write(&format!("{new}\n"));
    github.revoke("old").unwrap();
    answers.extend([word(&latest(&client).await), word(&latest(&client).await)]);
    let [fresh, unchanged] = ["fresh v1.0.0", "unchanged v1.0.0"];
    assert_eq!(answers, [fresh, unchanged, fresh, unchanged]);
    let log = github.log();
    let who: Vec<_> = log.requests().iter().map(|it| it.credential.to_string()).collect();
    assert_eq!(who, ["token old", "token old", "token new", "token new"]);
    let tags = log.requests().iter().map(|it| values(it, "if-none-match").len());
    assert_eq!(tags.collect::<Vec<_>>(), [0, 1, 0, 1], "a tag belongs to its token");
}

#[tokio::test]
async fn a_new_token_has_its_own_window() {
    let github = github();
    let old = github.create_token("old", &Rights::public()).unwrap();
    let new = github.create_token("new", &Rights::public()).unwrap();
    let file = TokenFile::new(&old);
    let client = Client::new(settings(&github, file.credential())).unwrap();
    github.exhaust("old");
    for expected in ["throttled true", "throttled false"] {
        assert_eq!(word(&latest(&client).await), expected);
    }
    file.write(&new);
    // The wait was asked of whoever asks; it holds for the new token as well.
    assert_eq!(word(&latest(&client).await), "throttled false");
    assert_eq!(client.budget().quota(github.now()), None, "the old window is forgotten");
}

#[tokio::test]
async fn a_bad_token_is_denied_and_not_tried_without() {
    let github = github();
    let file = TokenFile::new("ghp_nonsense");
    let client = Client::new(settings(&github, file.credential())).unwrap();
    assert_eq!(word(&latest(&client).await), "denied 401");
    assert_eq!(github.log().len(), 1);
}

#[rstest]
#[case::empty("")]
#[case::blank(" \n")]
#[case::two_lines("a\nb")]
#[case::blank_within("a b")]
#[case::not_ascii("gh\u{e4}")]
#[tokio::test]
async fn a_file_without_a_token_asks_nothing(#[case] text: &str) {
    let github = github();
    let file = TokenFile::new(text);
    let client = Client::new(settings(&github, file.credential())).unwrap();
    assert_eq!(word(&latest(&client).await), "credential");
    assert_eq!(github.log().len(), 0);
}

#[tokio::test]
async fn a_file_that_is_gone_asks_nothing_and_is_named() {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let file = TokenFile::new(&token);
    let client = Client::new(settings(&github, file.credential())).unwrap();
    assert_eq!(word(&latest(&client).await), "fresh v1.0.0");
    std::fs::remove_file(file.path()).unwrap();
    let error = latest(&client).await.unwrap_err();
    assert_eq!(error.to_string(), format!("read GitHub's credential from {:?}", file.path()));
    assert_eq!(github.log().len(), 1);
    file.write(&token);
    assert_eq!(word(&latest(&client).await), "unchanged v1.0.0");
}

#[tokio::test]
async fn a_token_is_printed_nowhere() {
    let github = github();
    let token = github.create_token("ci", &Rights::public()).unwrap();
    let file = TokenFile::new(&token);
    let client = Client::new(settings(&github, file.credential())).unwrap();
    let mut texts = vec![format!("{client:?} {:?}", file.credential())];
    let replies = [Reply::Close, Reply::Garbage, Reply::Padded { bytes: 5 << 20 }];
    for reply in replies {
        github.script(Matching::any(), Times::Next(1), reply).unwrap();
        let error = latest(&client).await.unwrap_err();
        texts.push(format!("{error} {error:?}"));
    }
    texts.push(format!("{client:?}"));
    let text = texts.concat();
    assert!(!text.contains(&token), "{text}");
    assert!(text.contains("Client"), "{text}");
    let bad = TokenFile::new("sec ret");
    let client = Client::new(settings(&github, bad.credential())).unwrap();
    let error = latest(&client).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sec ret"));
    assert!(Credential::Anonymous.is_anonymous() && !bad.credential().is_anonymous());
}

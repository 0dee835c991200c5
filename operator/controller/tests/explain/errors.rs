//! What cannot be explained is said on standard error, with an exit code.

use rstest::rstest;

use crate::support::{REPO, failure, github};

#[rstest]
#[case::missing(&["acme/nothing"], "read acme/nothing: GitHub shows no repository of this name")]
#[case::anonymous(&["acme/nothing"], "a private one needs --github-token-file")]
#[case::range(&[REPO, "--range", "newest"], "read the annotations: --range: \"newest\":")]
#[case::several(&[REPO, "--bake", "5 minutes", "--mode", "off"], "--mode: \"off\": expected apply or observe")]
#[case::no_token(&[REPO, "--github-token-file", "/nowhere"], "\"/nowhere\"")]
#[case::no_ca(&[REPO, "--github-ca-file", "/nowhere"], "--github-ca-file from \"/nowhere\"")]
#[case::scaled_object(&[REPO, "--scaledobject", "web"], "not supported by this version")]
fn nothing_is_explained(#[case] words: &[&str], #[case] expected: &str) {
    let (text, code) = failure(&github(&["v1.0.0"]), words);
    assert!(text.starts_with("error: ") && text.contains(expected), "{text}");
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn a_missing_and_a_hidden_repository_are_told_in_the_same_words() {
    let github = github(&[]);
    github.create_private_repository("acme/secret").unwrap();
    let (missing, _) = failure(&github, &["acme/nothing"]);
    let (hidden, _) = failure(&github, &["acme/secret"]);
    assert_eq!(missing.replace("nothing", "secret"), hidden);
}

#[test]
fn a_limit_says_when_it_ends() {
    let github = github(&["v1.0.0"]);
    github.exhaust("anonymous");
    let (text, code) = failure(&github, &[REPO]);
    assert!(text.contains("GitHub asks not to be called before 20"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_failing_github_is_no_empty_one() {
    use belay_testkit::github::{Matching, Reply, Times};

    let github = github(&["v1.0.0"]);
    let reply = Reply::Answer { status: 502, headers: Vec::new(), body: String::new() };
    github.script(Matching::any(), Times::Always, reply).unwrap();
    let (text, code) = failure(&github, &[REPO]);
    assert!(text.contains("read acme/web: ") && text.contains("502"), "{text}");
    assert_eq!(code, Some(1));
}

#[rstest]
#[case(&[])]
#[case(&["acme"])]
#[case(&[REPO, "--running", "a:b"])]
fn usage_has_an_exit_code_of_its_own(#[case] words: &[&str]) {
    let (text, code) = failure(&github(&[]), words);
    assert_eq!(code, Some(2), "{text}");
}

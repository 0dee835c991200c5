//! Wrong outputs that must be found.

use std::borrow::Cow;

use rstest::rstest;

use super::{fingerprint::Token, *};
use crate::splice::{self, Action};

const INPUT: &str = "---
apiVersion: v1
kind: ConfigMap
data: {a: '1'}
---
x: &x {tty: true, image: no}
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: app
        image: web:1
        stdin: yes
        <<: {tty: *x}
      - name: side
        image: side:1
";

fn verdict(action: Action<'_>, outcome: Outcome, output: &str) -> Result<(), VerifyError> {
    let manifest = scan::read(INPUT.as_bytes(), "belay.dev").unwrap();
    let edits = [Edit { target: 0, container: 0, action }];
    let spliced =
        Spliced { bytes: Cow::Owned(output.as_bytes().to_vec()), outcomes: vec![outcome] };
    check(&manifest, &edits, &spliced)
}

fn preserved(from: &str, to: &str) -> Result<(), VerifyError> {
    let output = INPUT.replace("web:1", "web:2");
    assert!(output.contains(from), "{from:?} is not in the output");
    verdict(Action::Preserve { image: "web:2" }, Outcome::Preserved, &output.replacen(from, to, 1))
}

#[test]
fn what_the_scan_kept_is_what_the_first_reader_reads() {
    let manifest = scan::read(INPUT.as_bytes(), "belay.dev").unwrap();
    let body = manifest.documents[1].body(manifest.input);
    let pair = Pair { document: 1, before: body, after: body };
    let paths = Paths::new();
    let kept = pair.replay(&manifest.readings[&1], &paths).hash();
    let read = pair.read(Reader::First, body, &paths, "before").unwrap().hash();
    assert_eq!(kept, read);
    assert_ne!(kept, Fingerprint::default().hash());
}

#[test]
fn a_long_content_is_compared_to_its_beginning() {
    let print = |first: &str| {
        let mut print = Fingerprint::default();
        print.token(Token::Text(first));
        (0..10_000).for_each(|_| print.token(Token::Text("a text")));
        print
    };
    assert!(print("a").is_like(&print("a")));
    assert!(!print("a").is_like(&print("b")));
    assert_ne!(print("a").hash(), print("b").hash());
}

/// Enough edited documents that each core gets a share of them.
#[test]
fn many_edited_documents_are_all_checked() {
    let one = |index: usize| INPUT.replace("name: web}", &format!("name: web-{index}}}"));
    let input: String = (0..40).map(one).collect();
    let manifest = scan::read(input.as_bytes(), "belay.dev").unwrap();
    let action = Action::Preserve { image: "web:2" };
    let edits: Vec<_> = (0..40).map(|target| Edit { target, container: 0, action }).collect();
    let good = splice::apply(&manifest, &edits).unwrap();
    check(&manifest, &edits, &good).unwrap();
    for last in [0, 21, 39] {
        let mut text = String::from_utf8(good.bytes.to_vec()).unwrap();
        let at = text.find(&format!("name: web-{last}}}")).unwrap();
        let tty = text[..at].rfind("tty: true").unwrap();
        text.replace_range(tty..tty + "tty: true".len(), "tty: null");
        let bad = Spliced { bytes: Cow::Owned(text.into_bytes()), outcomes: good.outcomes.clone() };
        check(&manifest, &edits, &bad).unwrap_err();
    }
}

#[test]
fn the_intended_edit_passes() {
    preserved("", "").unwrap();
    let stripped = INPUT.replace("        image: web:1\n", "");
    verdict(Action::Strip { image: "web:2" }, Outcome::Stripped, &stripped).unwrap();
    verdict(Action::Preserve { image: "web:1" }, Outcome::Unchanged, INPUT).unwrap();
}

#[rstest]
#[case::another_document("a: '1'", "a: '2'", "bytes differ outside")]
#[case::its_comments("---\napiVersion: v1", "---\n# c\napiVersion: v1", "bytes differ outside")]
#[case::a_lost_document(
    "---\napiVersion: v1\nkind: ConfigMap\ndata: {a: '1'}\n",
    "",
    "count the documents"
)]
#[case::an_emptied_document(
    "apiVersion: v1\nkind: ConfigMap\ndata: {a: '1'}\n",
    "#\n",
    "count the documents"
)]
#[case::a_new_document("stdin: yes\n", "stdin: yes\n---\n", "count the documents")]
#[case::the_wrong_image("web:2", "web:3", "read the image of Deployment web app")]
#[case::the_old_image("web:2", "web:1", "read the image of Deployment web app")]
#[case::another_image("side:1", "side:2", "read the image of Deployment web side")]
#[case::both_images("side:1", "web:2", "read the image of Deployment web side")]
#[case::another_leaf("stdin: yes", "stdin: no", "more than images differs")]
#[case::a_style_that_changes_the_type("stdin: yes", "stdin: 'yes'", "more than images differs")]
#[case::a_new_key("stdin: yes", "stdin: yes\n        args: []", "more than images differs")]
#[case::a_lost_key("        stdin: yes\n", "", "more than images differs")]
#[case::what_an_alias_reads("tty: true", "tty: false", "more than images differs")]
#[case::a_name("name: web", "name: wob", "more than images differs")]
#[case::the_kind("kind: Deployment", "kind: DaemonSet", "more than images differs")]
#[case::a_second_image("stdin: yes", "stdin: yes\n        image: web:2", "read the image")]
#[case::an_image_that_is_no_string("web:2", "!!binary web:2", "read the image")]
#[case::broken_yaml("stdin: yes", "stdin: [", "read document 2 of the manifest again")]
fn anything_else_fails(#[case] from: &str, #[case] to: &str, #[case] expected: &str) {
    let error = preserved(from, to).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn an_image_that_is_still_there_was_not_stripped() {
    let output = INPUT.replace("web:1", "web:2");
    let strip = verdict(Action::Strip { image: "web:2" }, Outcome::Stripped, &output);
    assert!(strip.is_err());
}

#[test]
fn a_change_without_a_decision_fails() {
    let manifest = scan::read(INPUT.as_bytes(), "belay.dev").unwrap();
    let spliced = Spliced { bytes: Cow::Borrowed(b"x"), outcomes: Vec::new() };
    assert!(matches!(check(&manifest, &[], &spliced), Err(VerifyError::OtherBytes)));
}

#[test]
fn repeated_keys_are_read_by_both_readers() {
    let input = INPUT.replace("stdin: yes", "stdin: yes\n        stdin: no\n        image: web:1");
    let manifest = scan::read(input.as_bytes(), "belay.dev").unwrap();
    let edits = [Edit { target: 0, container: 0, action: Action::Preserve { image: "web:2" } }];
    let spliced = splice::apply(&manifest, &edits).unwrap();
    check(&manifest, &edits, &spliced).unwrap();

    let first = input.replacen("web:1", "web:2", 1);
    let wrong = Spliced { bytes: Cow::Borrowed(first.as_bytes()), ..spliced };
    assert!(check(&manifest, &edits, &wrong).is_err());
}

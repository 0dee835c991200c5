//! The executor itself.

use belay_suite::helms::Major;
use rstest::rstest;

use super::{
    page::{Page, Step},
    shown,
};

fn command(line: usize, command: &str, shown: &[&str]) -> Step {
    let shown = shown.iter().map(|line| (*line).to_owned()).collect();
    Step::Command { line, command: command.to_owned(), shown }
}

#[test]
fn commands_are_found_with_their_continuations_and_output() {
    let text = "```console\n$ a <<E\n> b\n> E\nout\n> no command\n```\ntext\n```yaml\na: 1\n```\n\
                ```console helm3\n$ c\n```\n```console helm4\n$ d\n```\n";
    let first = || command(2, "a <<E\nb\nE", &["out", "> no command"]);
    for (major, second) in
        [(Major::Three, command(13, "c", &[])), (Major::Four, command(16, "d", &[]))]
    {
        let page = Page::read(text, major).unwrap();
        assert_eq!(page.steps, [first(), second]);
        assert!(page.for_each_helm);
    }
}

#[test]
fn files_are_written_where_the_page_shows_them() {
    let text = "```console\n$ a\n```\n```yaml file=x.yaml\nb: 1\n```\n";
    let page = Page::read(text, Major::Four).unwrap();
    let file = Step::File { name: "x.yaml".to_owned(), text: "b: 1\n".to_owned() };
    assert_eq!(page.steps, [command(2, "a", &[]), file]);
    assert!(!page.for_each_helm);
}

#[test]
fn what_is_not_run_is_kept_with_its_reason() {
    let text = "```console not-run=github\n$ gh auth login\nout\n```\n";
    let page = Page::read(text, Major::Four).unwrap();
    assert_eq!(page.not_run, ["github: gh auth login"]);
    assert!(page.steps.is_empty());
}

#[rstest]
#[case::a_command_that_nothing_runs("```text\n$ a\n```\n")]
#[case::an_unknown_mark("```console helm5\n$ a\n```\n")]
#[case::no_mark("```\na\n```\n")]
#[case::output_without_a_command("```console\na\n```\n")]
#[case::output_after_another_block("```console\n$ a\n```\n```console\nout\n```\n")]
#[case::no_end("```console\n$ a\n")]
#[case::another_reason("```console not-run=slow\n$ a\n```\n")]
#[case::a_file_elsewhere("```yaml file=../a\na: 1\n```\n")]
fn a_page_that_would_not_be_run_whole_is_an_error(#[case] page: &str) {
    Page::read(page, Major::Three).unwrap_err();
}

#[rstest]
#[case::the_same(&["a", "b"], "a\nb\n", true)]
#[case::nothing_shown(&[], "a\n", true)]
#[case::more_printed(&["a"], "a\nb\n", false)]
#[case::less_printed(&["a", "b"], "a\n", false)]
#[case::blanks_and_blank_lines(&["a b", ""], "\n  a    b\n\n", true)]
#[case::any_lines(&["a", "…", "d"], "a\nb\nc\nd\n", true)]
#[case::no_lines(&["a", "…", "d"], "a\nd\n", true)]
#[case::lines_that_are_missing(&["…", "d"], "a\nb\n", false)]
#[case::any_text(&["v…: … b"], "v1: a a b\n", true)]
#[case::text_that_differs(&["v…: b"], "v1: c\n", false)]
#[case::text_behind(&["v…: b"], "v1: b c\n", false)]
fn what_is_shown_is_compared_with_what_is_printed(
    #[case] shown: &[&str],
    #[case] printed: &str,
    #[case] equal: bool,
) {
    let shown: Vec<String> = shown.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(shown::check(1, "a", &shown, "0", printed).is_ok(), equal);
}

#[rstest]
#[case("Error: no", "1", true)]
#[case("Error from server (NotFound): no", "1", true)]
#[case("belay: no", "1", true)]
#[case("Error: no", "0", false)]
#[case("fine", "1", false)]
fn a_command_fails_if_and_only_if_an_error_is_shown(
    #[case] shown: &str,
    #[case] code: &str,
    #[case] expected: bool,
) {
    assert_eq!(shown::check(1, "a", &[shown.to_owned()], code, shown).is_ok(), expected);
}

//! The commands of `docs/guide/post-renderer.md`, run in their order with each Helm.
//!
//! A block of the page that is marked `console` is a session: commands after `$`, continued after
//! `>`, each with what it prints. `console helm3` and `console helm4` belong to one Helm. All
//! blocks of one Helm share a shell, a home, and a namespace, which stands where the page says
//! `shop`. In what is shown, `…` is any text, and any lines where it stands alone. A command fails
//! if and only if an error is shown. Blank lines and the width of blanks do not count.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use belay_testkit::Cluster;
use rstest::rstest;

use belay_suite::helms::{Major, belay, suite};

/// A command that hangs ends the test; the page takes some fifteen seconds.
const DEADLINE: Duration = Duration::from_mins(5);

/// What a block of commands that nothing runs is marked as.
const NOT_RUN: [&str; 3] = ["sh", "text", "yaml"];

/// A command, with its place in the page and what is shown of its output.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
}

fn steps(page: &str, major: Major) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    // The rest of the opening fence, while a block is open.
    let mut block: Option<&str> = None;
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(info) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info) };
            continue;
        }
        let Some(info) = block else { continue };
        let ours = match (info, major) {
            ("console", _) | ("console helm3", Major::Three) | ("console helm4", Major::Four) => {
                true
            }
            ("console helm3" | "console helm4", _) => false,
            (info, _) if NOT_RUN.contains(&info) && !line.starts_with("$ ") => false,
            (info, _) => bail!("line {number} is in a block that is marked {info:?}"),
        };
        if !ours {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: number, command: command.to_owned(), shown: Vec::new() });
            continue;
        }
        let step = steps.last_mut().with_context(|| format!("line {number} has no command"))?;
        match line.strip_prefix("> ") {
            Some(more) if step.shown.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more);
            }
            _ => step.shown.push(line.to_owned()),
        }
    }
    ensure!(block.is_none() && !steps.is_empty(), "the page is cut off, or has no commands");
    Ok(steps)
}

/// A script that runs each step in one shell, and keeps output and exit code of each in `folder`.
fn script(steps: &[Step], folder: &Path) -> String {
    let one = |(number, step): (usize, &Step)| {
        let at = folder.join(number.to_string()).display().to_string();
        let command = &step.command;
        format!("{{\n{command}\n}} >'{at}.out' 2>&1 </dev/null\necho $? >'{at}.code'\n")
    };
    steps.iter().enumerate().map(one).collect()
}

/// Whether a step went as shown.
fn check(step: &Step, code: &str, output: &str) -> Result<()> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = output.lines().map(words).filter(|line| !line.is_empty()).collect();
    let shown: Vec<String> = step.shown.iter().map(|line| words(line)).collect();
    let fails = shown.iter().any(|line| line.starts_with("Error: ") || line.starts_with("belay: "));
    let Step { line, command, .. } = step;
    ensure!(
        (code.trim() != "0") == fails,
        "line {line}: `{command}` ended with {code} and printed:\n{output}"
    );
    ensure!(
        shown.is_empty() || lines_match(&shown, &printed),
        "line {line}: `{command}` is shown with:\n{}\nbut printed:\n{output}",
        step.shown.join("\n")
    );
    Ok(())
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any == "…" => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, more)| line_matches(first, line) && lines_match(rest, more)),
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let Some((start, rest)) = shown.split_once('…') else { return shown == printed };
    let Some(printed) = printed.strip_prefix(start) else { return false };
    let ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
    ends.into_iter().any(|at| line_matches(rest, &printed[at..]))
}

/// The programs that the page names, under its names.
fn programs(cluster: &Cluster, major: Major, folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    let component = |binary| cluster.components().binary(binary);
    for (name, program) in [
        ("belay", belay()?),
        ("helm", component(major.binary())?),
        ("helm3", component(Binary::Helm3)?),
        ("kubectl", component(Binary::Kubectl)?),
    ] {
        std::os::unix::fs::symlink(&program, folder.join(name))
            .with_context(|| format!("link {}", program.display()))?;
    }
    Ok(())
}

#[rstest]
#[case::helm_3(Major::Three)]
#[case::helm_4(Major::Four)]
#[tokio::test]
async fn the_commands_of_the_guide_do_what_it_shows(#[case] major: Major) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("shop").await?;
    let top = suite("../..");
    let page = fs::read_to_string(top.join("docs/guide/post-renderer.md"))?;
    let steps = steps(&page.replace("shop", &namespace), major)?;

    let folder = tempfile::tempdir()?;
    let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
    fs::create_dir(&home)?;
    programs(cluster, major, &bin)?;
    let file = folder.path().join("script");
    fs::write(&file, script(&steps, folder.path()))?;
    let run = tokio::process::Command::new("sh")
        .arg(&file)
        .current_dir(&top)
        .env_clear()
        .env("HOME", &home)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("KUBECONFIG", cluster.admin_kubeconfig())
        .env("KUBECTL_KUBERC", "false")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, run).await.context("run the page's commands")??;
    let odd = String::from_utf8_lossy(&output.stderr);
    ensure!(odd.is_empty(), "the shell says: {odd}");
    let mut wrong = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let read =
            |ending: &str| fs::read_to_string(folder.path().join(format!("{number}.{ending}")));
        let checked = check(step, read("code")?.trim(), &read("out")?);
        wrong.extend(checked.err().map(|error| error.to_string()));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn commands_are_found_with_their_continuations_and_output() {
    let page = "```console\n$ a <<E\n> b\n> E\nout\n> no command\n```\ntext\n```yaml\na: 1\n```\n\
                ```console helm3\n$ c\n```\n```console helm4\n$ d\n```\n";
    let step = |line, command: &str, shown: &[&str]| Step {
        line,
        command: command.to_owned(),
        shown: shown.iter().map(|line| (*line).to_owned()).collect(),
    };
    let first = || step(2, "a <<E\nb\nE", &["out", "> no command"]);
    assert_eq!(steps(page, Major::Three).unwrap(), [first(), step(13, "c", &[])]);
    assert_eq!(steps(page, Major::Four).unwrap(), [first(), step(16, "d", &[])]);
}

#[rstest]
#[case::a_command_that_nothing_runs("```text\n$ a\n```\n")]
#[case::an_unknown_mark("```console helm5\n$ a\n```\n")]
#[case::no_mark("```\na\n```\n")]
#[case::output_without_a_command("```console\na\n```\n")]
#[case::no_end("```console\n$ a\n")]
#[case::nothing_to_run("```yaml\na: 1\n```\n")]
fn a_page_that_would_not_be_run_whole_is_an_error(#[case] page: &str) {
    steps(page, Major::Three).unwrap_err();
}

#[rstest]
#[case::the_same(&["a", "b"], "a\nb\n", true)]
#[case::nothing_shown(&[], "a\n", true)]
#[case::more_printed(&["a"], "a\nb\n", false)]
#[case::less_printed(&["a", "b"], "a\n", false)]
#[case::blanks_and_blank_lines(&["a b"], "\n  a    b\n\n", true)]
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
    let shown = shown.iter().map(|line| (*line).to_owned()).collect();
    let step = Step { line: 1, command: "a".to_owned(), shown };
    assert_eq!(check(&step, "0", printed).is_ok(), equal);
}

#[rstest]
#[case("Error: no", "1", true)]
#[case("belay: no", "1", true)]
#[case("Error: no", "0", false)]
#[case("fine", "1", false)]
fn a_command_fails_if_and_only_if_an_error_is_shown(
    #[case] shown: &str,
    #[case] code: &str,
    #[case] expected: bool,
) {
    let step = Step { line: 1, command: "a".to_owned(), shown: vec![shown.to_owned()] };
    assert_eq!(check(&step, code, shown).is_ok(), expected);
}

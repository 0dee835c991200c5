//! The recording of the demo, `docs/demo.cast` (asciicast, version 2), and its excerpt in the README.
//!
//! It is what a demo of its own wrote, line by line, with long waits made short. Two recordings are
//! the same where their lines are, but for what no two demos have in common: [`mask`].

mod mask;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use self::mask::{masked, told};
use super::{acts::ACTS, tell};
use crate::helms::suite;

/// The recording, from the top of the repository.
const CAST: &str = "docs/demo.cast";

/// Between these lines of the README stands the excerpt.
const BEGIN: &str = "<!-- demo:begin -->";
const END: &str = "<!-- demo:end -->";

/// The size of the terminal in which it is played.
const SIZE: (u16, u16) = (120, 40);

/// The longest wait that is left between two lines.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What it is called with.
const OPTION: &str = "--fast";

/// The act that the excerpt shows, by its place, beside the summary.
const SHOWN: usize = 1;

/// A line and when it was written.
struct Line {
    at: Duration,
    text: String,
}

/// Plays the demo and writes the recording and the excerpt, or compares them with what it shows.
///
/// # Errors
/// The demo failed, or it shows something else than what is written.
pub(super) fn record(check: bool) -> Result<()> {
    let lines = play()?;
    let shown: Vec<String> = lines.iter().map(|line| line.text.clone()).collect();
    if check {
        let written = fs::read_to_string(file(CAST)).with_context(|| format!("read {CAST}"))?;
        let written = texts(&written).with_context(|| format!("understand {CAST}"))?;
        compare(&written, &shown)?;
        let readme = readme()?;
        ensure!(
            with_excerpt(&readme, &written)? == readme,
            "README.md holds another excerpt than {CAST}: write both with `cargo xtask demo --record`"
        );
        tell::say(&format!("{CAST} and README.md show what was shown."));
        return Ok(());
    }
    let readme = with_excerpt(&readme()?, &shown)?;
    fs::write(file(CAST), cast(&lines)).with_context(|| format!("write {CAST}"))?;
    fs::write(file("README.md"), readme).context("write README.md")?;
    tell::say(&format!("{CAST} and the excerpt in README.md are written."));
    Ok(())
}

/// Runs the demo as a program of its own, shows what it shows, and notes when.
fn play() -> Result<Vec<Line>> {
    let program = env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    let mut child = command
        .arg(OPTION)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start the demo")?;
    let begun = Instant::now();
    let mut lines = vec![Line { at: Duration::ZERO, text: format!("$ cargo xtask demo {OPTION}") }];
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line.context("read what the demo shows")?;
        println!("{line}");
        lines.push(Line { at: begun.elapsed(), text: told(&line) });
    }
    let status = child.wait().context("wait for the demo")?;
    ensure!(status.success(), "the demo ended with {status}");
    Ok(lines)
}

/// The recording as a file.
fn cast(lines: &[Line]) -> String {
    let (width, height) = SIZE;
    let mut cast =
        format!(r#"{{"version":2,"width":{width},"height":{height},"title":"cargo xtask demo"}}"#);
    cast.push('\n');
    let (mut before, mut now) = (Duration::ZERO, Duration::ZERO);
    for line in lines {
        now += line.at.saturating_sub(before).min(PATIENCE);
        before = line.at;
        let seconds = (now.as_secs_f64() * 1000.0).round() / 1000.0;
        let event = json!([seconds, "o", format!("{}\r\n", line.text)]).to_string();
        cast.push_str(&event);
        cast.push('\n');
    }
    cast
}

/// The lines of a recording.
fn texts(cast: &str) -> Result<Vec<String>> {
    let mut lines = cast.lines();
    let header: Value = serde_json::from_str(lines.next().context("it is empty")?)?;
    ensure!(header["version"] == 2, "it is not asciicast, version 2");
    let mut shown = String::new();
    for line in lines {
        let (_, _, text): (f64, String, String) =
            serde_json::from_str(line).with_context(|| format!("read {line}"))?;
        shown.push_str(&text);
    }
    Ok(shown.lines().map(str::to_owned).collect())
}

/// Whether both say the same; the error shows where they do not.
fn compare(written: &[String], shown: &[String]) -> Result<()> {
    let (written, shown) = (masked(written), masked(shown));
    let same = written.iter().zip(&shown).take_while(|(old, new)| old == new).count();
    let (old, new) = (&written[same..], &shown[same..]);
    if old.is_empty() && new.is_empty() {
        return Ok(());
    }
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let gone = old[..old.len() - tail].iter().map(|line| format!("- {line}"));
    let come = new[..new.len() - tail].iter().map(|line| format!("+ {line}"));
    let differ: Vec<String> = gone.chain(come).collect();
    bail!(
        "the demo no longer shows what {CAST} does; with times, names and ports masked:\n{}\nif that is meant, run \
         `cargo xtask demo --record`, and commit {CAST} and README.md",
        differ.join("\n")
    )
}

/// The README with the excerpt of these lines in its place.
fn with_excerpt(readme: &str, lines: &[String]) -> Result<String> {
    let place = readme
        .split_once(BEGIN)
        .and_then(|(before, rest)| rest.split_once(END).map(|(_, after)| (before, after)));
    let (before, after) = place.with_context(|| format!("README.md lacks {BEGIN} and {END}"))?;
    let act = chapter(lines, ACTS[SHOWN].title)?;
    let summary = chapter(lines, tell::SUMMARY)?;
    let excerpt = [act, summary].map(|lines| lines.join("\n")).join("\n\n");
    Ok(format!("{before}{BEGIN}\n\n```text\n{excerpt}\n```\n\n{END}{after}"))
}

/// The lines from a title to the next one, without empty ones at the end and the rest of the title's.
fn chapter<'l>(lines: &'l [String], title: &str) -> Result<Vec<&'l str>> {
    let start = format!("━━ {title} ━");
    let mut rest = lines.iter().skip_while(|line| !line.starts_with(&start));
    let heading = rest.next().with_context(|| format!("nothing is shown under {title:?}"))?;
    let mut chapter = vec![heading.as_str()];
    chapter.extend(rest.take_while(|line| !line.starts_with("━━ ")).map(|line| line.trim_end()));
    // The narrator's last words are not of the summary.
    while chapter.last().is_some_and(|line| line.is_empty() || line.starts_with("▸ Everything")) {
        chapter.pop();
    }
    Ok(chapter)
}

fn readme() -> Result<String> {
    fs::read_to_string(file("README.md")).context("read README.md")
}

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    suite("../..").join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        let seconds = [0, 1, 61, 61];
        let with_time = texts.iter().zip(seconds);
        with_time
            .map(|(text, at)| Line { at: Duration::from_secs(at), text: (*text).to_owned() })
            .collect()
    }

    #[test]
    fn a_recording_is_read_as_it_was_written_with_short_waits() {
        let cast = cast(&lines(&["$ demo", "one", "\"two\" ✔", ""]));
        let events: Vec<&str> = cast.lines().collect();
        assert_eq!(
            events,
            [
                r#"{"version":2,"width":120,"height":40,"title":"cargo xtask demo"}"#,
                r#"[0.0,"o","$ demo\r\n"]"#,
                r#"[1.0,"o","one\r\n"]"#,
                r#"[2.5,"o","\"two\" ✔\r\n"]"#,
                r#"[2.5,"o","\r\n"]"#,
            ]
        );
        assert_eq!(texts(&cast).unwrap(), ["$ demo", "one", "\"two\" ✔", ""]);
        texts("").unwrap_err();
        texts("{\"version\":1}\n").unwrap_err();
    }

    #[test]
    fn what_differs_is_shown_with_the_way_out() {
        let old = ["a 3s", "b", "c", "d"].map(str::to_owned);
        let new = ["a 4s", "B", "c"].map(str::to_owned);
        compare(&old, &old).unwrap();
        let error = compare(&old, &new).unwrap_err().to_string();
        let (_, differ) = error.split_once("masked:\n").unwrap();
        assert!(differ.starts_with("- b\n- c\n- d\n+ B\n+ c\nif that is meant"), "{error}");
        assert!(error.contains("cargo xtask demo --record"), "{error}");
    }

    #[test]
    fn the_readme_holds_the_excerpt_of_the_recording() {
        let lines = texts(&fs::read_to_string(file(CAST)).unwrap()).unwrap();
        let readme = readme().unwrap();
        assert_eq!(with_excerpt(&readme, &lines).unwrap(), readme);
        let (_, rest) = readme.split_once(BEGIN).unwrap();
        let excerpt = rest.split_once(END).unwrap().0;
        assert!(excerpt.lines().count() <= 30, "{excerpt}");
        with_excerpt("no place", &lines).unwrap_err();
    }
}

//! What a page shows of a command's output, compared with what the command printed.
//!
//! `…` is any text, and any lines where it stands alone. A command fails if and only if an error is
//! shown. Blank lines and the width of blanks do not count.

use anyhow::{Result, ensure};

/// How lines begin that say that a command has failed.
const ERRORS: [&str; 3] = ["Error: ", "Error from server", "belay: "];

/// Whether a command with this output is to fail.
pub(crate) fn fails(shown: &[String]) -> bool {
    shown.iter().any(|line| ERRORS.iter().any(|error| line.trim_start().starts_with(error)))
}

/// Whether a command went as shown.
pub(crate) fn check(
    line: usize,
    command: &str,
    shown: &[String],
    code: &str,
    output: &str,
) -> Result<()> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<String> = output.lines().map(words).filter(|line| !line.is_empty()).collect();
    let wanted: Vec<String> =
        shown.iter().map(|line| words(line)).filter(|line| !line.is_empty()).collect();
    ensure!(
        (code.trim() != "0") == fails(shown),
        "line {line}: `{command}` ended with {code} and printed:\n{output}"
    );
    ensure!(
        wanted.is_empty() || lines_match(&wanted, &printed),
        "line {line}: `{command}` is shown with:\n{}\nbut printed:\n{output}",
        shown.join("\n")
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

//! What `ps` prints of a process: its arguments in one line, without a mark between them.

use super::{Doubt, Process};

/// One column of `ps` for one process.
pub(super) fn ask(ps: &str, column: &str, id: u32) -> Result<String, String> {
    let output = std::process::Command::new(ps)
        .args(["-ww", "-o", column, "-p", &id.to_string()])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|cause| format!("{ps} could not be run: {cause}"))?;
    if !output.status.success() {
        return Err(format!("{ps} ended with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Puts the columns `comm` and `command` together.
pub(super) fn process(comm: &str, command: &str) -> Process {
    let comm = comm.strip_suffix('\n').unwrap_or(comm);
    let command = command.strip_suffix('\n').unwrap_or(command);
    // The program's name may hold blanks; `comm` says where it ends.
    let rest = command.strip_prefix(comm).filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let (name, rest, known) = match rest {
        Some(rest) if !comm.is_empty() => (comm, rest.strip_prefix(' '), true),
        _ => match command.split_once(' ') {
            Some((name, rest)) => (name, Some(rest), false),
            None => (command, None, false),
        },
    };
    let words = rest.into_iter().flat_map(|rest| rest.split(' '));
    let arguments: Vec<String> = std::iter::once(name).chain(words).map(str::to_owned).collect();
    // An argument that is empty leaves nothing but two blanks; one with quotes, or with what ps
    // escapes, is likely to hold blanks as well.
    let odd = |word: &String| {
        let mark = |sign: char| sign.is_control() || "\"'`\\\u{fffd}".contains(sign);
        word.is_empty() || word.contains(mark)
    };
    let doubtful = !known || arguments.iter().skip(1).any(odd);
    Process {
        executable: Some(comm.to_owned()).filter(|comm| !comm.is_empty()),
        arguments,
        guessed: true,
        doubt: doubtful.then_some(Doubt::Blanks),
        folder: None,
    }
}

//! `completion`, and the answers that the shim gives to kubectl (specification of the plugin, section
//! C.7): one candidate a line, a tab and a description where there is one, `:4` at the end, which
//! keeps shells from offering files. Whatever goes wrong, the answer is in time and says nothing.

mod names;

use std::{ffi::OsString, io, time::Duration};

use clap::{CommandFactory as _, Parser as _};
use clap_complete::engine;

use crate::{
    Error, Exit, Session,
    cli::{
        Cli,
        completion::{CompleteArgs, CompletionArgs, Shell},
    },
    connect::{self, connect},
};

/// The answer must be there by then.
const LIMIT: Duration = Duration::from_millis(500);

/// cobra's directive: no files.
const NO_FILES: &str = ":4\n";

const SHIM: &str = "\
#!/bin/sh
# Completion of `kubectl release`, for kubectl 1.26 and later.
# To be saved as kubectl_complete-release in a folder on the PATH, and made executable.
exec kubectl-release __complete \"$@\"
";

/// Prints the shim or a script.
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &CompletionArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let shell = match args.shell {
        Shell::Kubectl => {
            session.out.raw(SHIM)?;
            session.out.note(
                "hint: save it as kubectl_complete-release in a folder on the PATH, such as \
                 ~/.krew/bin, and make it executable",
            )?;
            return Ok(Exit::Done);
        }
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::PowerShell => clap_complete::Shell::PowerShell,
    };
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(shell, &mut command, "kubectl-release", &mut script);
    let script = String::from_utf8(script).map_err(|error| io::Error::other(error.to_string()))?;
    session.out.raw(&script)?;
    Ok(Exit::Done)
}

/// Answers kubectl.
///
/// # Errors
/// The output cannot be written.
pub async fn complete(args: &CompleteArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let answer = tokio::time::timeout(LIMIT, candidates(&args.words, session)).await;
    for (value, description) in answer.unwrap_or_default() {
        // A candidate is one line; what would not be is left out.
        if value.chars().any(char::is_control) {
            continue;
        }
        match description {
            Some(text) => session.out.raw(&format!("{value}\t{}\n", one_line(&text)))?,
            None => session.out.raw(&format!("{value}\n"))?,
        }
    }
    session.out.raw(NO_FILES)?;
    Ok(Exit::Done)
}

fn one_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

type Candidate = (String, Option<String>);

async fn candidates(words: &[OsString], session: &mut Session<'_>) -> Vec<Candidate> {
    let current = words.last().and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let before: Vec<String> = words
        .get(..words.len().saturating_sub(1))
        .unwrap_or_default()
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(wanted) = names::wanted(&before, &current)
        && let Some(found) = dynamic(&wanted, &before, session).await
    {
        let is_possible = |(value, _): &Candidate| value.starts_with(&wanted.typed);
        let all = found.into_iter().filter(is_possible);
        return all.map(|(value, text)| (format!("{}{value}", wanted.keep), text)).collect();
    }
    of_the_command_line(words)
}

/// What the command line itself offers: verbs, flags, and their fixed values.
fn of_the_command_line(words: &[OsString]) -> Vec<Candidate> {
    let mut command = Cli::command();
    let mut all: Vec<OsString> = vec!["kubectl-release".into()];
    all.extend(words.iter().cloned());
    if words.is_empty() {
        all.push("".into());
    }
    let last = all.len() - 1;
    let found = engine::complete(&mut command, all, last, None).unwrap_or_default();
    found
        .into_iter()
        .filter(|candidate| !candidate.is_hide_set())
        .map(|candidate| {
            let help = candidate.get_help().map(ToString::to_string);
            (candidate.get_value().to_string_lossy().into_owned(), help)
        })
        .collect()
}

/// What the cluster or the kubeconfig offers.
async fn dynamic(
    wanted: &names::Wanted,
    before: &[String],
    session: &mut Session<'_>,
) -> Option<Vec<Candidate>> {
    // The flags that were typed before say which cluster and namespace.
    let flags = names::cluster_flags(before);
    let words =
        ["kubectl-release".to_owned()].into_iter().chain(flags).chain(["version".to_owned()]);
    session.global = Cli::try_parse_from(words).ok()?.global;
    let environment = session.out.environment.clone();
    if let names::What::Config(entry) = wanted.what {
        let all = connect::names(&session.global.cluster, &environment, entry).ok()?;
        return Some(all.into_iter().map(|name| (name, None)).collect());
    }
    // A credential plugin of the kubeconfig runs here, and may take longer than there is time.
    let args = session.global.cluster.clone();
    let connecting = tokio::task::spawn_blocking(move || connect(&args, &environment));
    let cluster = connecting.await.ok()?.ok()?;
    Some(names::find(wanted, cluster).await)
}

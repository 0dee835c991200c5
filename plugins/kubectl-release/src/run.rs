//! From arguments to an exit code.

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, error::ErrorKind};

use crate::{
    cli::{Cli, Verb, for_people},
    error::Error,
    exit::Exit,
    out::Out,
    session::Session,
    verbs,
};

/// The name under which kubectl asks for completion: dashes of a plugin's name become underscores.
const SHIM: &str = "kubectl_complete-release";

/// The program.
pub fn main() -> ExitCode {
    // `COMPLETE=zsh kubectl-release` prints a script that completes verbs and flags, and ends here.
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let arguments = without_name_of_shim(std::env::args_os().collect());
    let mut out = Out::real();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let exit = match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(run(arguments, &mut out));
            // A read that hangs must not keep the process.
            runtime.shutdown_background();
            exit
        }
        Err(error) => report(&Error::other(format!("start: {error}")), false, &mut out),
    };
    exit.into()
}

/// The binary under the name of the shim is the verb that it stands for.
fn without_name_of_shim(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let stem = arguments.first().and_then(|name| Path::new(name).file_stem());
    if stem.is_some_and(|stem| stem == SHIM) {
        arguments.insert(1, "__complete".into());
    }
    arguments
}

/// How usage texts name the program: kubectl starts it as `kubectl-release`.
fn called(arguments: &[OsString]) -> &'static str {
    let stem = arguments.first().and_then(|name| Path::new(name).file_stem());
    let is_plugin = stem.is_none_or(|stem| stem.to_string_lossy().starts_with("kubectl"));
    if is_plugin { "kubectl release" } else { "release" }
}

/// Runs the verb of `arguments`, of which the first is the program's name.
pub async fn run(arguments: Vec<OsString>, out: &mut Out) -> Exit {
    let command = for_people(called(&arguments));
    let parsed = command
        .try_get_matches_from(&arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, out),
    };
    let verbose = cli.global.verbosity > 0;
    let result = {
        let mut session = Session::new(cli.global, out);
        tokio::select! {
            biased;
            () = interrupted() => Ok(Exit::Interrupted),
            result = dispatch(&cli.verb, &mut session) => result,
        }
    };
    let result = result.and_then(|exit| Ok(out.flush().map(|()| exit)?));
    match result {
        Ok(exit) => exit,
        Err(error) => report(&error, verbose, out),
    }
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn dispatch(verb: &Verb, session: &mut Session<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::Status(args) => verbs::status::run(args, session).await,
        Verb::History(args) => verbs::history::run(args, session).await,
        Verb::Rollback(args) => Box::pin(verbs::rollback::run(args, session)).await,
        Verb::Hold(args) => verbs::hold::run(args, session).await,
        Verb::Resume(args) => Box::pin(verbs::resume::run(args, session)).await,
        Verb::Adopt(args) => verbs::adopt::run(args, session).await,
        Verb::Leave(args) => Box::pin(verbs::leave::run(args, session)).await,
        Verb::Owners(args) => verbs::owners::run(args, session).await,
        Verb::Why(args) => verbs::why::run(args, session).await,
        Verb::Doctor(args) => verbs::doctor::run(args, session).await,
        Verb::Version(args) => verbs::version::run(args, session).await,
        Verb::Completion(args) => verbs::completion::run(args, session),
        Verb::Complete(args) => verbs::completion::complete(args, session).await,
    }
}

/// What clap has to say; help that was asked for is an answer.
fn usage(error: &clap::Error, out: &mut Out) -> Exit {
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let text = error.render().to_string();
    let written = if is_answer {
        out.raw(&text)
    } else {
        text.trim_end().lines().try_for_each(|line| out.note(line))
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) if is_answer => Exit::Done,
        Ok(()) => Exit::Usage,
        Err(error) => Error::from(error).exit(),
    }
}

fn report(error: &Error, verbose: bool, out: &mut Out) -> Exit {
    for line in error.lines(verbose) {
        // Whoever closed standard error does not want to know.
        if out.note(line).is_err() {
            break;
        }
    }
    error.exit()
}

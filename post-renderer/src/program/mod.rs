//! The program `belay`: read → scan → one GET per target → decide → splice → verify → one write.

mod ask;
pub mod cli;
pub mod exit;
mod guard;
mod input;
mod render;
mod waits;

use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use cli::Cli;
use exit::Exit;
use guard::{Guard, LastWords, SoFar};
use waits::Patient;

use crate::{
    helm::{Environment, Parent, environment, parent},
    report::{Report, file},
};

/// What a run has to do with before it reads its input.
#[derive(Debug)]
pub(crate) struct Setting {
    cli: Cli,
    environment: Environment,
    parent: Parent,
    so_far: SoFar,
    guard: Guard,
}

/// Runs with the process's arguments, environment, parent and standard streams.
pub fn main() -> ExitCode {
    let parent_id = parent::id();
    let cli = match Cli::parse_from(env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; what cannot be printed cannot be helped.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            return if error.print().is_ok() { exit } else { Exit::Failed }.into();
        }
    };
    let so_far = SoFar::default();
    let last_words =
        LastWords { log_file: log_file(&cli), format: cli.report, so_far: so_far.clone() };
    let guard = Guard::start(cli.timeout, parent_id, last_words.clone());
    let environment = environment::read(&|name| env::var(name).ok());
    let mut setting = Setting { cli, environment, parent: parent::look(), so_far, guard };
    let mut report = Report::new();
    let result = run(&setting, &mut report);
    setting.guard.end();
    conclude(&setting, report, &result, &last_words).into()
}

/// Everything up to the one write.
fn run(setting: &Setting, report: &mut Report) -> Result<(), String> {
    refuse_explain(setting)?;
    let input = input::read(Patient::new(io::stdin().lock(), &setting.guard))?;
    report.input.bytes = input.len();
    setting.so_far.keep(report);
    waits::before_work(&setting.guard, &input);
    let output = render::render(setting, &input, report)?;
    setting.guard.look();
    report.succeeded = true;
    if setting.cli.explain {
        return Ok(());
    }
    setting.so_far.keep(report);
    waits::before_writing(&setting.guard, output.len());
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&output)
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("write the manifests to standard output: {error}"))
}

/// A report that Helm reads as manifests would be a disaster.
fn refuse_explain(setting: &Setting) -> Result<(), String> {
    let under_helm =
        matches!(setting.parent, Parent::Helm(_)) || setting.environment.plugin_name.is_some();
    if setting.cli.explain && under_helm {
        return Err("--explain writes no manifests, and Helm would take the report for them; run \
                    `helm template … | belay --explain --namespace NAME --kube-context NAME`"
            .to_owned());
    }
    Ok(())
}

fn conclude(
    setting: &Setting,
    mut report: Report,
    result: &Result<(), String>,
    last_words: &LastWords,
) -> Exit {
    if let Err(error) = result {
        report.succeeded = false;
        report.error = Some(error.clone());
    }
    let text = last_words.format(&report);
    let kept = last_words.keep(&text);
    if setting.cli.explain && result.is_ok() {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        return if written.is_ok() { Exit::Done } else { Exit::Failed };
    }
    let shown = if result.is_ok() { text } else { last_words.shown(report, kept.as_deref()) };
    // Nobody need read it.
    let _ = io::stderr().lock().write_all(shown.as_bytes());
    if result.is_ok() { Exit::Done } else { Exit::Failed }
}

fn log_file(cli: &Cli) -> Option<PathBuf> {
    let given = cli.log_file.clone().filter(|path| !path.as_os_str().is_empty());
    given.or_else(|| file::default_path(|name| env::var_os(name).map(PathBuf::from)))
}

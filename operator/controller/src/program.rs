//! The program: from the command line to an exit code.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use belay_adapters::Clock;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{Cli, Command, Explain, LogArguments, LogFormat, Output, ReleasePauses, Replay, Run},
    config::Config,
    exit::Exit,
    explain::explain,
    replay::{Agreement, replay},
    start,
};

/// Threads that run tasks. The operator waits more than it works.
const WORKERS: usize = 2;
/// Threads for names and files. Each lookup that hangs holds one.
const BLOCKING: usize = 8;
/// The stack of each thread, in bytes.
const STACK: usize = 1 << 20;

/// Runs the program.
pub fn main() -> ExitCode {
    ended().into()
}

fn ended() -> Exit {
    let cli = match Cli::parse_from(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let done = match cli.command {
        Command::Run(arguments) => match Config::of(&arguments) {
            Ok(config) => run(&arguments, config),
            Err(error) => return usage(&Cli::usage_error("run", error)),
        },
        Command::Explain(arguments) => explained(&arguments),
        Command::ReleasePauses(arguments) => released(&arguments),
        Command::Replay(arguments) => return replayed(&arguments),
    };
    match done {
        Ok(()) => Exit::Done,
        Err(error) => failed(&error),
    }
}

fn usage(error: &clap::Error) -> Exit {
    // There is nobody to tell when the output is closed.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

fn failed(error: &anyhow::Error) -> Exit {
    let _ = writeln!(io::stderr(), "error: {error:#}");
    Exit::Failed
}

fn run(arguments: &Run, config: Config) -> Result<()> {
    log(&arguments.log);
    tls();
    runtime(WORKERS)?.block_on(async {
        let stop = signal()?;
        start::run(config, stop).await
    })
}

fn explained(arguments: &Explain) -> Result<()> {
    tls();
    let explanation = runtime(1)?.block_on(explain(arguments, Clock::machine()))?;
    let text = match arguments.output {
        Output::Table => explanation.table(),
        Output::Json => serde_json::to_string_pretty(&explanation)? + "\n",
    };
    print(&text)
}

fn released(arguments: &ReleasePauses) -> Result<()> {
    log(&arguments.log);
    tls();
    runtime(1)?.block_on(async {
        let stop = signal()?;
        let mut out = io::stdout();
        tokio::select! {
            released = start::release_pauses(arguments, &mut out) => released,
            () = stop => anyhow::bail!("stopped before all pauses were ended; run it again"),
        }
    })
}

fn replayed(arguments: &Replay) -> Exit {
    let file = &arguments.file;
    let replayed = fs::read_to_string(file)
        .map_err(anyhow::Error::from)
        .and_then(|text| Ok(replay(&text)?))
        .with_context(|| format!("replay {}", file.display()));
    let shown = replayed.and_then(|replayed| {
        print(&(serde_json::to_string_pretty(&replayed.computed)? + "\n"))?;
        Ok(replayed.agreement)
    });
    let (word, exit) = match shown {
        Ok(Agreement::Same) => ("the same as recorded", Exit::Done),
        Ok(Agreement::NothingRecorded) => ("no plan was recorded", Exit::Done),
        Ok(Agreement::Different) => ("DIFFERENT from what was recorded", Exit::Failed),
        Err(error) => return failed(&error),
    };
    let _ = writeln!(io::stderr(), "{word}");
    exit
}

fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).context("write the result")
}

/// Few threads with small stacks: each also gets a heap arena of its own from the C library.
fn runtime(workers: usize) -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .max_blocking_threads(BLOCKING)
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .context("start the runtime")
}

/// One provider for everything that speaks TLS.
fn tls() {
    // An error means that one is installed already, and there is only this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

fn log(arguments: &LogArguments) {
    // Checked when the command line was read.
    let filter =
        EnvFilter::try_new(&arguments.log_filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // An error means that somebody logs already.
    let _ = match arguments.log_format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Ends with SIGTERM, as the kubelet sends it, or SIGINT.
#[cfg(unix)]
fn signal() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate()).context("wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("wait for SIGINT")?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
    })
}

/// Ends with Ctrl-C.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn signal() -> Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a console nobody can press it, and the program runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

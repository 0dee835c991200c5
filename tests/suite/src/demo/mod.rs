//! The demo: the main job of Belay on real components, from an empty cluster on.
//!
//! It tells what happens and why; every claim is read back from the API server, and one that does not
//! hold ends the demo with an error.

mod acts;
mod cast;
mod existing;
mod stage;
mod tell;

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context as _, Result, bail};

use self::{
    acts::ACTS,
    existing::{Answer, Existing},
    stage::Stage,
    tell::Summary,
};

/// How the demo is run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Leaves all up at the end, until Ctrl-C, and says how to reach it.
    #[arg(long)]
    pub keep: bool,
    /// Shortens what is waited for: how often GitHub is asked, and how long a success must hold.
    #[arg(long)]
    pub fast: bool,
    /// Plays on the cluster that the current context of this file leads to, and removes at the end what
    /// it made there. kwok must play its nodes, as in `cargo xtask cluster up`.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Does not ask before it makes anything in that cluster.
    #[arg(long, requires = "kubeconfig")]
    pub yes: bool,
    /// Writes what is shown with --fast to docs/demo.cast, and its excerpt to README.md.
    #[arg(long, conflicts_with_all = ["keep", "kubeconfig"])]
    pub record: bool,
    /// Only compares what is shown with what is written there.
    #[arg(long, requires = "record")]
    pub check: bool,
}

/// Runs all acts in their order, and says how the program is to end.
///
/// # Errors
/// The first thing that could not be done, or was not as it was said.
pub async fn run(options: Options) -> Result<ExitCode> {
    if options.record {
        cast::record(options.check)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(file) = &options.kubeconfig else {
        play(&options, None).await?;
        tell::say("Everything is stopped and removed.");
        return Ok(ExitCode::SUCCESS);
    };
    let existing = Existing::look(file).await?;
    match existing.ask(options.yes)? {
        Answer::Yes => {}
        Answer::No => {
            tell::say("Nothing was changed.");
            return Ok(ExitCode::SUCCESS);
        }
        Answer::Nobody => {
            eprintln!(
                "error: refusing to use an existing cluster without confirmation; pass --yes"
            );
            return Ok(ExitCode::from(2));
        }
    }
    play(&options, Some(&existing)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Plays in a cluster of the demo's own or in an existing one, which is cleaned up however it ended.
async fn play(options: &Options, existing: Option<&Existing>) -> Result<()> {
    let mut stage = None;
    let shown = show(options, existing, &mut stage).await;
    let Some(existing) = existing else { return shown };
    let cleaned = existing.clean().await.context("remove what the demo made in the cluster");
    // The operators had to live until now.
    drop(stage);
    match (shown, cleaned) {
        (Err(first), Err(second)) => bail!("{first:#}\nand then: {second:#}"),
        (shown, cleaned) => shown.and(cleaned),
    }
}

async fn show(
    options: &Options,
    existing: Option<&Existing>,
    stage: &mut Option<Stage>,
) -> Result<()> {
    let begun = Instant::now();
    let stage = stage.insert(unless_interrupted(Box::pin(Stage::set(options, existing))).await?);
    let mut summary = Summary::default();
    for act in &ACTS {
        tell::title(act.title);
        let start = Instant::now();
        let outcome = unless_interrupted((act.play)(stage)).await?;
        summary.add(act.title, outcome, start.elapsed());
    }
    summary.print(begun.elapsed());
    if options.keep {
        stage.keep().await?;
    }
    Ok(())
}

/// Ctrl-C ends what is being done, and not what is to be done after it.
async fn unless_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        pressed = tokio::signal::ctrl_c() => {
            pressed.context("listen for Ctrl-C")?;
            bail!("interrupted")
        }
    }
}

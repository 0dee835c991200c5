//! The demo: the main job of Belay on real components, from an empty cluster on.
//!
//! It tells what happens and why; every claim is read back from the API server, and one that does not
//! hold ends the demo with an error.

mod acts;
mod stage;
mod tell;

use std::time::Instant;

use anyhow::Result;

use self::{acts::ACTS, stage::Stage, tell::Summary};

/// How the demo is run.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Options {
    /// Leaves all up at the end, until Ctrl-C, and says how to reach it.
    #[arg(long)]
    pub keep: bool,
    /// Shortens what is waited for: how often GitHub is asked, and how long a success must hold.
    #[arg(long)]
    pub fast: bool,
}

/// Runs all acts in their order.
///
/// # Errors
/// The first thing that could not be done, or was not as it was said.
pub async fn run(options: Options) -> Result<()> {
    let begun = Instant::now();
    let mut stage = Stage::set(options).await?;
    let mut summary = Summary::default();
    for act in &ACTS {
        tell::title(act.title);
        let start = Instant::now();
        let outcome = (act.play)(&mut stage).await?;
        summary.add(act.title, outcome, start.elapsed());
    }
    summary.print(begun.elapsed());
    if options.keep {
        stage.keep().await?;
    }
    drop(stage);
    tell::say("Everything is stopped and removed.");
    Ok(())
}

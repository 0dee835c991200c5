//! The real operator program, killed at speed: what `cargo xtask soak` does for longer.

use std::io::Write as _;

use anyhow::{Result, ensure};
use belay_suite::kills::Soak;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_is_killed_all_the_time_loses_and_leaves_nothing() -> Result<()> {
    let soak = Soak { targets: 20, releases: 5, life: 1_500..6_000, seed: 7 };
    let outcome = soak.run().await?;
    // How often it was killed is part of the result.
    writeln!(std::io::stdout(), "{outcome}")?;
    ensure!(outcome.kills >= 5 && outcome.bad >= 5, "{outcome}");
    Ok(())
}

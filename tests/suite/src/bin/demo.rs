//! `cargo xtask demo`: what Belay is for, on real components.
//!
//! Every claim is read back from the API server and decides the exit code.

use std::process::ExitCode;

use belay_suite::demo::{Options, run};
use clap::Parser;

/// Shows what Belay is for, on real components.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse().options).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

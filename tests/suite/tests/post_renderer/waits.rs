//! Waits over which no thread watches from the start: whatever the run waits for, it ends all the same.

use std::{
    fs::{self, File},
    io::{Write as _, pipe},
    os::fd::OwnedFd,
};

use anyhow::Result;
use belay_testkit::wait;
use rstest::rstest;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    pipe::fcntl_getpipe_size,
    process::Signal,
};
use serde_json::json;

use crate::{
    lifetime::{is_asked, silent},
    runs::{self, Belay, send},
};

/// Here nothing but the server has to be waited for.
#[rstest]
#[case::deadline(None, "not done within 1s")]
#[case::signal(Some(Signal::TERM), "ended by SIGTERM")]
#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for(
    #[case] signal: Option<Signal>,
    #[case] why: &str,
) -> Result<()> {
    let server = silent().await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    let mut config = runs::kubeconfig(&server.url(), &[("alone", None)]);
    config["clusters"][0]["cluster"]["certificate-authority-data"] = json!("");
    fs::write(&path, config.to_string())?;
    let timeout = if signal.is_some() { "1h" } else { "1s" };
    let belay = Belay::with_kubeconfig(&path, "shop")?.args(["--timeout", timeout]);
    let running = belay.start()?;
    is_asked(&server).await?;
    if let Some(signal) = signal {
        send(running.id()?, signal)?;
    }
    running.end().await?.refused(&[why, "nothing was written"]);
    Ok(())
}

/// Too short to fill a pipe, but not one that is full.
#[rstest]
#[case::deadline(None, &["not done within 1s", "standard output is not read"])]
#[case::signal(Some(Signal::TERM), &["ended by SIGTERM", "what was written is not whole"])]
#[tokio::test]
async fn a_short_output_that_nobody_takes_is_not_waited_for(
    #[case] signal: Option<Signal>,
    #[case] words: &[&str],
) -> Result<()> {
    let (reader, mut writer) = pipe()?;
    writer.write_all(&vec![b'#'; fcntl_getpipe_size(&writer)?])?;
    let timeout = if signal.is_some() { "1h" } else { "1s" };
    let belay = Belay::new()?.args(["--timeout", timeout]).input("kind: A\n");
    let running = belay.stdout(writer).start()?;
    running.watches().await?;
    if let Some(signal) = signal {
        is_blocked(running.id()?).await?;
        send(running.id()?, signal)?;
    }
    running.end().await?.refused(words);
    drop(reader);
    Ok(())
}

/// Waits until it writes to a pipe that has no room.
async fn is_blocked(id: u32) -> Result<()> {
    wait::until("belay to write", wait::SOON, || async {
        let at = fs::read_to_string(format!("/proc/{id}/wchan")).unwrap_or_default();
        let state = fs::read_to_string(format!("/proc/{id}/syscall")).unwrap_or_default();
        // System call 1 of x86-64 and 64 of arm64, with descriptor 1.
        let writes = state.starts_with("1 0x1 ") || state.starts_with("64 0x1 ");
        if writes || at.contains("pipe_write") { Ok(()) } else { Err(format!("{at} {state}")) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn an_input_that_stops_half_way_ends_with_the_deadline() -> Result<()> {
    let (reader, mut writer) = pipe()?;
    writer.write_all(b"kind: A\n")?;
    let belay = Belay::new()?.args(["--timeout", "1s"]);
    let ended = belay.input_file(File::from(OwnedFd::from(reader))).run().await?;
    ended.refused(&["not done within 1s", "standard input has not ended", "nothing was written"]);
    drop(writer);
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_that_nobody_writes_ends_with_the_deadline() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let belay = Belay::with_kubeconfig(&path, "shop")?.args(["--timeout", "1s"]);
    belay.run().await?.refused(&["not done within 1s", "nothing was written"]);
    Ok(())
}
